//! The server under a service manager: passed sockets, reports, and the journal.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use rustix::process::Signal;
use tenfold_engine::Topology;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{Launch, tenfold};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "service",
    cases: cases![
        Own on ENGINES: a_passed_socket_is_served_and_stays_open;
        Own on EPOLL: passed_sockets_take_the_place_of_listen, workers_share_a_passed_socket,
            sockets_that_do_not_match_are_named, a_worker_for_each_socket_needs_one,
            start_reload_and_end_are_reported, an_abstract_socket_gets_signs_of_life,
            a_failed_reload_is_reported, an_upgrade_is_reported, lines_for_the_journal_have_priorities,
            usr1_reports_the_new_log;
    ],
};

fn plain(server: Server) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// A service manager that receives reports on a thread. The queue of the socket has room for few reports, and the
/// server drops a report without room within a second.
struct Manager {
    socket: UnixDatagram,
    reports: Receiver<String>,
}

impl Manager {
    fn at(address: &SocketAddr) -> Manager {
        let socket = UnixDatagram::bind_addr(address).expect("the name is free");
        let (received, reports) = channel();
        let own = socket.try_clone().expect("a descriptor is left");
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = own.recv(&mut bytes) {
                let _ = received.send(String::from_utf8_lossy(&bytes[..count]).into_owned());
            }
        });
        Manager { socket, reports }
    }

    /// The next report that is not a watchdog signal.
    #[track_caller]
    fn next(&self) -> String {
        let by = Instant::now() + SOON;
        std::iter::repeat_with(|| self.receive())
            .take_while(|_| Instant::now() < by)
            .find(|report| report != "WATCHDOG=1")
            .expect("a report arrives beside signs of life")
    }

    #[track_caller]
    fn receive(&self) -> String {
        self.reports.recv_timeout(SOON).expect("a report arrives")
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // Ends the thread.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// A launch in `folder` whose service manager is at `name`.
fn managed(config: &Config, name: &str, folder: &TempFolder) -> Launch {
    let file = folder.write("tenfold.toml", "log-level = \"info\"\n");
    let notify = format!("NOTIFY_SOCKET={name}");
    let launch = Launch::bare(config).through("env", &[&notify, "WATCHDOG_USEC=100000"]);
    launch.flag("--config", file.display()).flag("--root", site::shared().display())
}

fn a_passed_socket_is_served_and_stays_open(config: &Config) {
    let socket = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = socket.local_addr().expect("it is bound");
    let serve = || {
        let socket = socket.try_clone().expect("a descriptor is left");
        Launch::new(config, site::shared()).passing(socket).flag("--listen", address).start_at(address)
    };
    let first = serve();
    assert_eq!(first.get("/1k.html").status, 200);
    assert!(
        first.errors().contains("the listening sockets come from the service manager"),
        "{}",
        first.errors()
    );
    plain(first);
    // The kernel completes the connection, and the next server answers it.
    let mut waiting = std::net::TcpStream::connect(address).expect("the socket still listens");
    waiting.write_all(&request("GET", "/1k.html", &[("Connection", "close")])).expect("it is connected");
    let second = serve();
    let mut answer = String::new();
    waiting.set_read_timeout(Some(SOON)).expect("it is open");
    if !config.tls {
        waiting.read_to_string(&mut answer).expect("it is answered");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    plain(second);
}

fn passed_sockets_take_the_place_of_listen(config: &Config) {
    let folder = TempFolder::new("passed");
    let tcp = TcpListener::bind("[::]:0").expect("a port is free");
    let port = tcp.local_addr().expect("it is bound").port();
    let unix = UnixListener::bind(folder.at("socket")).expect("our own folder");
    let launch = Launch::new(config, site::shared()).passing(tcp).passing(unix);
    // The socket accepts IPv4 too.
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    let server = launch.start_at(address);
    assert_eq!(server.get("/1k.html").status, 200);
    becomes_true(SOON, "IPv4 has its usual form", || server.log().starts_with("127.0.0.1 - - ["));
    let mut wire = UnixStream::connect(folder.at("socket")).expect("it listens");
    wire.write_all(&request("GET", "/1k.html", &[("Connection", "close")])).expect("it is connected");
    let mut answer = String::new();
    wire.read_to_string(&mut answer).expect("it is answered");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(server.status()["listen"][1], format!("unix:{}", folder.at("socket").display()));
    // A reload keeps them.
    server.process.signal(Signal::HUP);
    server.expect_report("(generation 2)");
    assert_eq!(server.get("/1k.html").status, 200);
    plain(server);
    assert!(folder.at("socket").exists(), "the file is the service manager's");
}

fn workers_share_a_passed_socket(config: &Config) {
    let socket = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = socket.local_addr().expect("it is bound");
    let launch = Launch::new(config, site::shared()).without("--topology").without("--workers");
    let server = launch.passing(socket).flag("--workers", 3).flag("--log-level", "debug").start_at(address);
    assert!(server.errors().contains("topology threads, 3 workers"), "{}", server.errors());
    assert_eq!(server.get("/1k.html").status, 200);
    plain(server);
}

fn a_worker_for_each_socket_needs_one(config: &Config) {
    let socket = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let several = Config { topology: Topology::ReuseportProcesses, ..*config };
    let output = Launch::new(&several, site::shared()).passing(socket).flag("--control", "off").refused();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("topology reuseport-processes needs 2 sockets of 127.0.0.1:"), "{said}");
    assert!(said.contains("passed 1; set topology to threads"), "{said}");
}

fn sockets_that_do_not_match_are_named(config: &Config) {
    let socket = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = socket.local_addr().expect("it is bound");
    let refused = |listen: &[&str], part: &str| {
        let socket = socket.try_clone().expect("a descriptor is left");
        let mut launch = Launch::new(config, site::shared()).passing(socket);
        for address in listen {
            launch = launch.flag("--listen", address);
        }
        let output = launch.refused();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part), "{part:?} is not in: {said}");
    };
    let passed = address.to_string();
    refused(&["127.0.0.1:1"], &format!("passed {passed} (descriptor 3, first), which is not in listen"));
    refused(
        &[&passed, "127.0.0.1:1"],
        "listen has 127.0.0.1:1, and the service manager passed no socket for it; add ListenStream=127.0.0.1:1",
    );
    let file = fs::File::open("/dev/null").expect("Linux has it");
    let output = Launch::new(config, site::shared()).passing(file).refused();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains(
            "cannot use the descriptor 3 (first) that the service manager passed: it is not a socket"
        ),
        "{said}"
    );
}

/// A server that has reported to its service manager, in its folder.
#[track_caller]
fn ready(config: &Config) -> (TempFolder, Manager, Server) {
    let folder = TempFolder::new("notify");
    let path = folder.at("notify");
    let manager = Manager::at(&SocketAddr::from_pathname(&path).expect("a short path"));
    let server = managed(config, &path.display().to_string(), &folder).start();
    assert!(manager.next().starts_with("READY=1\n"));
    (folder, manager, server)
}

fn start_reload_and_end_are_reported(config: &Config) {
    let folder = TempFolder::new("notify");
    let path = folder.at("notify");
    let manager = Manager::at(&SocketAddr::from_pathname(&path).expect("a short path"));
    let server = managed(config, &path.display().to_string(), &folder).start();
    let ready = manager.next();
    let serving = format!("READY=1\nSTATUS=serving {} with engine epoll, 1 worker", server.address);
    assert_eq!(ready, serving);
    server.process.signal(Signal::HUP);
    let reloading = manager.next();
    let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").and_then(|rest| rest.split_once('\n'));
    assert!(time.is_some_and(|(time, _)| time.parse().is_ok_and(|time: u64| time > 0)), "{reloading}");
    let ready = manager.next();
    assert_eq!(ready, format!("{serving}, generation 2"));
    assert_eq!(server.get("/1k.html").status, 200);
    server.process.signal(Signal::TERM);
    assert_eq!(manager.next(), "STOPPING=1\nSTATUS=running responses finish");
    assert!(server.ends_within(SOON).success(), "{}", server.errors());
}

fn an_abstract_socket_gets_signs_of_life(config: &Config) {
    let folder = TempFolder::new("notify");
    let name = format!("tenfold-notify-{}", std::process::id());
    let manager = Manager::at(&SocketAddr::from_abstract_name(&name).expect("a short name"));
    let server = managed(config, &format!("@{name}"), &folder).start();
    assert!(manager.next().starts_with("READY=1\n"));
    for _ in 0..3 {
        assert_eq!(manager.receive(), "WATCHDOG=1");
    }
    server.process.signal(Signal::TERM);
    assert!(manager.next().starts_with("STOPPING=1\n"));
    assert!(server.ends_within(SOON).success(), "{}", server.errors());
}

fn a_failed_reload_is_reported(config: &Config) {
    let (folder, manager, server) = ready(config);
    folder.write("tenfold.toml", "nonsense = 1\n");
    server.process.signal(Signal::HUP);
    assert!(manager.next().starts_with("RELOADING=1\n"));
    assert_eq!(
        manager.next(),
        "READY=1\nSTATUS=the configuration was not applied; the old configuration stays in use"
    );
    plain(server);
}

/// The process keeps its id, so the server reports a reload and not another process (`MAINPID=`).
fn an_upgrade_is_reported(config: &Config) {
    let (folder, manager, server) = ready(config);
    let upgrade = || tenfold(&["upgrade", "--control", &server.at("control").display().to_string()]);
    let begins = || {
        let reloading = manager.next();
        assert!(reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reloading}");
    };
    for _ in 0..2 {
        let output = upgrade();
        assert!(output.status.success(), "{output:?}\n{}", server.errors());
        begins();
        let ready = manager.next();
        let serving = format!("READY=1\nSTATUS=serving {} with engine epoll, ", server.address);
        assert!(ready.starts_with(&serving), "{ready}");
        assert_eq!(manager.receive(), "WATCHDOG=1", "the new program gives signs of life");
    }
    folder.write("tenfold.toml", "nonsense = 1\n");
    assert_eq!(upgrade().status.code(), Some(1));
    begins();
    let ready = manager.next();
    assert!(
        ready.starts_with("READY=1\nSTATUS=") && ready.ends_with("; the old program stays in use"),
        "{ready}"
    );
    assert_eq!(server.get("/1k.html").status, 200);
    server.process.signal(Signal::TERM);
    assert!(manager.next().starts_with("STOPPING=1\n"));
    assert!(server.ends_within(SOON).success(), "{}", server.errors());
}

fn lines_for_the_journal_have_priorities(config: &Config) {
    // The shell names its own standard error, as a service manager does.
    let script = "JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec \"$@\"";
    let server = Launch::new(config, site::shared()).through("sh", &["-c", script, "sh"]).start();
    server.workers()[0].signal(Signal::KILL);
    server.expect_report("another takes its place");
    let errors = server.errors();
    assert!(errors.starts_with("<6>  serves "), "{errors}");
    assert!(errors.lines().all(|line| line.starts_with("<6>") || line.starts_with("<4>")), "{errors}");
    assert!(errors.contains("\n<4>tenfold: warning: worker 1 "), "{errors}");
    plain(server);
    // Another descriptor was the journal's.
    let other = Launch::new(config, site::shared()).through("env", &["JOURNAL_STREAM=8:1"]).start();
    assert!(other.errors().starts_with("  serves "), "{}", other.errors());
    plain(other);
}

fn usr1_reports_the_new_log(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    server.process.signal(Signal::USR1);
    server.expect_report("the access log was opened again");
    plain(server);
}
