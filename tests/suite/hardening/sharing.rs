//! Resources that processes of the server share, and that code in one of them could take from the others: listening
//! sockets, and the calls of the process that forks.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::{Shutdown, connect, getsockname, shutdown};
use rustix::process::Signal;
use tenfold_engine::Engine;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{Launch, free_address};
use tenfold_tests::seal::{Below, get_once, new_client};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};

use super::sandbox::{attempt, is_fatal, start};

pub(crate) const THEME: Theme = Theme {
    name: "hardening",
    cases: cases![
        Topologies Own: h94_a_listener_that_a_worker_shuts_down_is_revived,
            h94_no_worker_changes_how_others_wait_at_a_unix_socket;
        Epoll Own: h94_listeners_are_revived_as_often_as_they_are_shut_down;
        Engines OwnAsRoot: h94_a_listener_that_was_connected_listens_again,
            h94_a_listener_that_is_shut_down_stops_no_other;
        Engines Own: h94_workers_with_another_unix_socket_shake_hands;
        Every Once: h94_workers_with_another_unix_socket_are_started_until_they_serve;
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

/// Whether a server answers on its port within a time in which it has nothing else to do.
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

/// Lets one worker shut down every listening socket that it has, and checks that the server answers on all of them.
fn is_survived(server: &Server, socket: &Path) {
    attempt(server, "shutdown");
    becomes_true(SOON, &format!("it answers on the Unix socket again: {}", server.errors()), || {
        answers_on(socket)
    });
    becomes_true(SOON, &format!("it answers on the port again: {}", server.errors()), || {
        let asked = TcpStream::connect(server.address);
        asked.is_ok() && server.get("/1k.html").status == 200
    });
}

fn h94_a_listener_that_a_worker_shuts_down_is_revived(config: &Config) {
    let folder = TempFolder::new("shared");
    folder.allow(".", 0o777);
    let socket = folder.at("socket");
    let server = on_both(config, &socket);
    assert!(answers_on(&socket));
    is_survived(&server, &socket);
    let name = format!("unix:{}", socket.display());
    let reported = || server.errors().matches(&format!("a process of the server shut down {name}")).count();
    // The process of a connection has no listening socket. Elsewhere the report follows the revival.
    match config.engine {
        Engine::Fork => assert_eq!(reported(), 0, "{}", server.errors()),
        _ => becomes_true(SOON, "it is reported once", || reported() == 1),
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    assert!(!socket.exists(), "its file was left");
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

fn h94_listeners_are_revived_as_often_as_they_are_shut_down(config: &Config) {
    const TIMES: usize = 12;
    let folder = TempFolder::new("shared-often");
    folder.allow(".", 0o777);
    let socket = folder.at("socket");
    let server = on_both(config, &socket);
    for _ in 0..TIMES {
        is_survived(&server, &socket);
    }
    let reported = || server.errors().matches("a process of the server shut down").count();
    becomes_true(SOON, "each listener is reported", || reported() >= 2);
    assert_eq!(reported(), 2, "each listener once: {}", server.errors());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// A ring connects a socket without a system call that a filter sees. Here the test connects the one that it shares.
fn h94_a_listener_that_was_connected_listens_again(config: &Config) {
    let server = start(config);
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let to = elsewhere.local_addr().expect("it is bound");
    for listener in server.process.listeners() {
        shutdown(&listener, Shutdown::Both).expect("it listens");
        // The supervisor may have been faster.
        let _ = connect(&listener, &to);
    }
    becomes_true(SOON, &format!("it answers again: {}", server.errors()), || answers_at(&server));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The supervisor is stopped, so that nobody lets it listen again.
fn h94_a_listener_that_is_shut_down_stops_no_other(config: &Config) {
    let second = free_address();
    let server = Launch::new(config, site::shared()).flag("--listen", second).start();
    let other = |dead: SocketAddr| if dead == second { server.address } else { second };
    for dead in [server.address, second] {
        let is_dead =
            |listener: &OwnedFd| getsockname(listener).is_ok_and(|name| name.try_into() == Ok(dead));
        server.process.signal(Signal::STOP);
        let listeners: Vec<_> = server.process.listeners().into_iter().filter(is_dead).collect();
        assert!(!listeners.is_empty());
        listeners.iter().for_each(|listener| shutdown(listener, Shutdown::Both).expect("it listens"));
        for _ in 0..3 {
            let stream = TcpStream::connect(other(dead)).expect("it listens");
            stream.set_read_timeout(Some(Duration::from_secs(2))).expect("a socket of ours");
            assert!(answers(stream), "{dead} stops {}: {}", other(dead), server.errors());
        }
        server.process.signal(Signal::CONT);
        becomes_true(SOON, "it listens again", || TcpStream::connect(dead).is_ok_and(answers));
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h94_workers_with_another_unix_socket_shake_hands(config: &Config) {
    let folder = TempFolder::new("shared-tls");
    folder.allow(".", 0o777);
    let socket = folder.at("socket");
    let server = on_both(&config.through(Below::Tls), &socket);
    let responds = || {
        let exchange = get_once(server.address, &new_client(), "localhost", "/1k.html");
        exchange.is_ok_and(|exchange| exchange.response.starts_with("HTTP/1.1 200 "))
    };
    assert!(responds() && answers_on(&socket));
    attempt(&server, "shutdown");
    becomes_true(SOON, "it answers on the Unix socket again", || answers_on(&socket));
    // The process of a connection has no listening socket.
    if config.engine != Engine::Fork {
        becomes_true(SOON, "other workers serve", || server.status()["generation"] == 2);
    }
    becomes_true(SOON, &format!("it shakes hands again: {}", server.errors()), responds);
    assert!(server.status()["signing"]["process"].is_u64(), "{}", server.status());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The workers that are to have another socket fail as long as they cannot read the root.
fn h94_workers_with_another_unix_socket_are_started_until_they_serve() {
    let (folder, root) = (TempFolder::new("shared-renewal"), TempFolder::new("shared-renewal-root"));
    folder.allow(".", 0o777);
    root.write("1k.html", "a page");
    root.allow(".", 0o755);
    let socket = folder.at("socket");
    let launch = Launch::new(&Config::of(Engine::Epoll), root.path()).attempts();
    let server = launch.flag("--listen", format!("unix:{}", socket.display())).start();
    assert!(answers_on(&socket));
    root.allow(".", 0);
    attempt(&server, "shutdown");
    becomes_true(SOON, "they fail", || {
        let said = server.errors();
        said.contains("the old one stays in use") || said.contains("workers cannot be replaced")
    });
    root.allow(".", 0o755);
    becomes_true(SOON, &format!("it answers on the Unix socket again: {}", server.errors()), || {
        answers_on(&socket)
    });
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
