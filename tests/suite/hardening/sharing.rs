//! Resources that processes of the server share, and that code in one of them could take from the others: listening
//! sockets, and the calls of the process that forks.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use tenfold_engine::Engine;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};

use super::sandbox::{attempt, is_fatal, start};

pub(crate) const THEME: Theme = Theme {
    name: "hardening",
    cases: cases![
        Topologies Own: h94_no_worker_changes_how_others_wait_at_a_unix_socket;
        Engines Own: h79_no_process_that_serves_starts_or_signals_another,
            h79_the_process_of_a_connection_accepts_no_other;
    ],
};

/// Whether a server answers on its Unix socket.
fn answers_on(path: &Path) -> bool {
    UnixStream::connect(path).is_ok_and(|stream| {
        let waits = stream.set_read_timeout(Some(SOON));
        waits.is_ok() && answers(stream)
    })
}

/// Whether a server without other work answers on its port within a bound.
fn answers_at(server: &Server) -> bool {
    TcpStream::connect(server.address).is_ok_and(|stream| {
        let waits = stream.set_read_timeout(Some(Duration::from_secs(2)));
        waits.is_ok() && answers(stream)
    })
}

fn answers(mut stream: impl Read + Write) -> bool {
    let asked = stream.write_all(b"GET /1k.html HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    asked.and_then(|()| stream.read_to_end(&mut answer)).is_ok() && answer.starts_with(b"HTTP/1.1 200 ")
}

/// Starts a server that listens on a port and on a Unix socket.
fn on_both(config: &Config, socket: &Path) -> Server {
    let launch = Launch::new(config, site::shared()).attempts();
    launch.flag("--listen", format!("unix:{}", socket.display())).start()
}

/// A worker changes the mode for a moment, and restores it when others wait: a look at the mode shows nothing.
fn h94_no_worker_changes_how_others_wait_at_a_unix_socket(config: &Config) {
    const CALLS: [&str; 2] = ["ioctl", "fcntl"];
    let folder = TempFolder::new("shared-wait");
    folder.allow(".", 0o777);
    let socket = folder.at("socket");
    let server = on_both(config, &socket);
    std::thread::scope(|scope| {
        let attempting = scope.spawn(|| attempt(&server, "ioctl"));
        // Every worker looks for connections meanwhile, and for none afterwards, which would end its wait.
        for _ in 0..10 {
            drop(UnixStream::connect(&socket));
            std::thread::sleep(Duration::from_millis(3));
        }
        attempting.join().expect("no panic");
    });
    // A connection to the Unix socket would end a wait there.
    assert!((0..8).all(|_| answers_at(&server)), "a worker waits elsewhere: {}", server.errors());
    assert!(answers_on(&socket), "{}", server.errors());
    // The process of a connection has no listening socket.
    if config.engine != Engine::Fork {
        let refused = || server.status()["refused_calls"].as_u64();
        becomes_true(SOON, "both ways are refused", || refused() >= Some(2));
        CALLS.iter().for_each(|call| server.expect_report(&format!("refused the system call {call} (")));
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h79_no_process_that_serves_starts_or_signals_another(config: &Config) {
    for (call, reported) in [("fork", "clone"), ("kill", "kill"), ("tgkill", "tgkill")] {
        is_fatal(&start(config), call, &format!("the system call {reported} ("));
    }
}

fn h79_the_process_of_a_connection_accepts_no_other(config: &Config) {
    // Elsewhere a process accepts and serves.
    if config.engine == Engine::Fork {
        let server = start(config);
        assert!(attempt(&server, "accept4"), "it is refused, and no more");
        let line = "the sandbox refused the system call accept4 (";
        server.expect_report(line);
        assert_eq!(server.get("/1k.html").status, 200);
    }
}
