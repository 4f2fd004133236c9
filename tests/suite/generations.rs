//! HUP on engines with a loop: idle connections move to the new workers.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, bind, connect, ipproto, listen, socket_with, sockopt,
};
use rustix::process::Signal;
use tenfold_engine::Engine;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{Launch, free_address};
use tenfold_tests::process::{Process, send_message};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder, bytes};
use tenfold_tests::time::{EndOnDrop, SOON, becomes_true, eventually};
use tenfold_tests::wire::{Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "generations",
    cases: cases![
        Loops Own: idle_connections_move_and_the_old_workers_end, a_connection_moves_when_its_download_ends,
            pipelined_requests_beside_reloads_lose_nothing, many_connections_move,
            a_worker_without_room_leaves_connections_where_they_are;
        LoopsOnce Own: the_idle_deadline_moves_with_a_connection, an_address_is_counted_once,
            the_client_of_a_proxy_header_moves_with_its_connection,
            connections_of_another_kind_stay, a_client_that_never_pauses_does_not_keep_the_former_configuration;
        LoopsOnce Own: connections_of_mptcp_stay_and_others_move;
        LoopsOnce OwnAsRoot: h86_a_malformed_message_ends_the_hand_over_to_one_worker,
            h86_a_queued_socket_whose_close_waits_does_not_delay_the_end;
        LoopsTls OwnLayered: connections_with_tls_move, pipelined_requests_with_tls_lose_nothing;
    ],
};

/// Records of both directions go on in the new worker, which has the facts of the handshake, too.
fn connections_with_tls_move(config: &Config) {
    idle_connections_move_and_the_old_workers_end(config);
    a_connection_moves_when_its_download_ends(config);
}

fn pipelined_requests_with_tls_lose_nothing(config: &Config) {
    pipelined_requests_beside_reloads_lose_nothing(config);
}

const OLD: &[u8] = b"the old folder\n";
const NEW: &[u8] = b"the new folder\n";

/// A server with a file of settings, and a site for each of two configurations.
struct Reloaded {
    server: Server,
    folder: TempFolder,
    generation: u64,
}

impl Reloaded {
    fn start(config: &Config, settings: &str) -> Reloaded {
        Reloaded::launch(Launch::bare(config), settings, Launch::start)
    }

    fn launch(launch: Launch, settings: &str, start: impl FnOnce(Launch) -> Server) -> Reloaded {
        let folder = TempFolder::new("generations");
        folder.write("old/index.html", OLD);
        folder.write("new/index.html", NEW);
        folder.write("old/large.bin", bytes(8 << 20, 8));
        let file = folder.write("tenfold.toml", format!("root = \"old\"\n{settings}"));
        let server = start(launch.flag("--config", file.display()).flag("--defer-accept", "off"));
        Reloaded { server, folder, generation: 1 }
    }

    /// Takes up other settings, and waits until workers with them serve. Returns the former workers.
    fn reload(&mut self, root: &str, settings: &str) -> Vec<Process> {
        let former = self.server.workers();
        self.folder.write("tenfold.toml", format!("root = \"{root}\"\n{settings}"));
        let before = self.server.errors().len();
        self.server.process.signal(Signal::HUP);
        self.generation += 1;
        becomes_true(SOON, "the new configuration serves", || {
            let errors = self.server.errors();
            assert!(!errors[before..].contains("stays in use"), "{errors}");
            let status = self.server.status();
            let workers = status["workers"].as_array().expect("a list");
            let mut of_newest =
                workers.iter().filter(|worker| worker["generation"] == self.generation).peekable();
            // It has none if it cannot be served.
            status["generation"] == self.generation
                && of_newest.peek().is_some()
                && of_newest.all(|one| one["state"] == "serving")
        });
        former
    }

    fn connection_count(&self, name: &str) -> u64 {
        self.server.status()["connections"][name].as_u64().expect("a number")
    }

    /// Connections that are idle after a request. Each makes it at once: on a busy machine the last of many would come
    /// after `head-timeout`.
    fn idle(&self, count: usize) -> Vec<Wire> {
        let one = |_| {
            let mut wire = self.server.connect();
            assert!(is_kept(&mut wire, OLD));
            wire
        };
        (0..count).map(one).collect()
    }

    fn stop(self) {
        self.server.stop().unwrap_or_else(|why| panic!("{why}"));
    }
}

/// Makes a request, and returns whether its response keeps the connection.
#[track_caller]
fn is_kept(wire: &mut Wire, page: &[u8]) -> bool {
    wire.get("/");
    let response = wire.response();
    assert_eq!(response.body, page, "{:?}", String::from_utf8_lossy(&response.body));
    response.field("Connection") != Some("close")
}

fn end_soon(workers: &[Process]) {
    becomes_true(SOON, "the former workers end", || !workers.iter().any(|worker| worker.is_running()));
}

/// A service manager passes a socket of MPTCP. Its connections stay, as those of Unix sockets do.
fn connections_of_mptcp_stay_and_others_move(config: &Config) {
    let mptcp_socket = || {
        let (kind, flags) = (SocketType::STREAM, SocketFlags::CLOEXEC);
        socket_with(AddressFamily::INET, kind, flags, Some(ipproto::MPTCP)).expect("Linux 5.6")
    };
    let listener = mptcp_socket();
    let local = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    bind(&listener, &local).and_then(|()| listen(&listener, 100)).expect("loopback has a free port");
    let listener = std::net::TcpListener::from(listener);
    let address = listener.local_addr().expect("it is bound");
    let launch = Launch::bare(config).passing(listener);
    let mut site = Reloaded::launch(launch, "", |launch| launch.start_at(address));
    let mut kept = site.idle(2);
    let other = mptcp_socket();
    connect(&other, &address).expect("it listens");
    let other = TcpStream::from(other);
    let serves = |page: &[u8]| {
        (&other).write_all(&request("GET", "/", &[])).expect("it is connected");
        let mut reader = BufReader::new(&other);
        let head = reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty());
        assert!(head.count() > 1, "a head");
        let mut body = vec![0; page.len()];
        reader.read_exact(&mut body).is_ok_and(|()| body == page)
    };
    assert!(serves(OLD));
    kept.extend(site.idle(2));
    let before = site.server.errors().len();
    site.reload("new", "");
    becomes_true(SOON, "the others move", || site.connection_count("handed_over") == 4);
    assert!(kept.iter_mut().all(|wire| is_kept(wire, NEW)));
    assert!(serves(OLD), "the former worker serves it");
    assert!(!site.server.errors()[before..].contains("compromised"), "{}", site.server.errors());
    drop((kept, other));
    site.stop();
}

/// Code in the former worker sends what is no connection. Connections stay with their workers, and those after move again.
fn h86_a_malformed_message_ends_the_hand_over_to_one_worker(config: &Config) {
    if config.engine == Engine::Busy {
        // It looks at the queue when a word of shared memory says so, which a test cannot write.
        return;
    }
    let mut site = Reloaded::start(config, "");
    let mut kept = site.idle(2);
    let before = site.server.errors().len();
    for worker in site.server.workers() {
        // One of them leads to the process itself.
        for socket in worker.message_sockets() {
            rustix::net::send(&socket, b"no connection", SendFlags::DONTWAIT).expect("it has room");
        }
    }
    let said = || site.server.errors()[before..].matches("takes over no more connections").count();
    becomes_true(SOON, "it is reported once", || said() == 1);
    assert!(kept.iter_mut().all(|wire| is_kept(wire, OLD)), "it serves");
    end_soon(&site.reload("new", ""));
    assert!(kept.iter_mut().all(|wire| is_kept(wire, NEW)), "the next worker takes over what it sends");
    assert_eq!(site.connection_count("handed_over"), 2);
    site.stop();
}

/// Code in a worker leaves a socket where only the supervisor has the queue. Its last close waits (SO_LINGER).
fn h86_a_queued_socket_whose_close_waits_does_not_delay_the_end(config: &Config) {
    const LINGER: Duration = Duration::from_secs(60);
    if config.engine == Engine::Busy {
        // It looks at the queue when a word of shared memory says so, which a test cannot write.
        return;
    }
    let server = Launch::new(config, site::shared()).start();
    let queues: Vec<_> = server.workers().into_iter().flat_map(Process::message_sockets).collect();
    for queue in &queues {
        rustix::net::send(queue, b"no connection", SendFlags::DONTWAIT).expect("it has room");
    }
    server.expect_report("takes over no more connections");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let _silent = TcpStream::connect(listener.local_addr().expect("it listens")).expect("it is accepted");
    let (mut full, _) = listener.accept().expect("there is one");
    sockopt::set_socket_linger(&full, Some(LINGER)).expect("a socket has it");
    full.set_nonblocking(true).expect("a socket has it");
    let end = std::iter::repeat_with(|| full.write(&[0; 65536])).find_map(Result::err);
    assert_eq!(end.expect("nobody reads").kind(), ErrorKind::WouldBlock);
    let passed = [full.as_fd()];
    let mut queued = 0;
    for queue in &queues {
        // One end of each pair takes descriptors.
        queued += usize::from(send_message(queue, b"?", &passed, SendFlags::DONTWAIT).is_ok());
    }
    assert!(queued > 0, "no queue takes the socket");
    drop((full, queues));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The silent one has not made a request yet.
fn idle_connections_move_and_the_old_workers_end(config: &Config) {
    let mut site = Reloaded::start(config, "");
    let mut kept = site.idle(4);
    kept.push(site.server.connect());
    becomes_true(SOON, "all are accepted", || site.connection_count("accepted") == 5);
    end_soon(&site.reload("new", ""));
    assert_eq!(site.connection_count("handed_over"), 5);
    for _ in 0..2 {
        assert!(kept.iter_mut().all(|wire| is_kept(wire, NEW)), "the new workers keep them");
    }
    end_soon(&site.reload("old", ""));
    assert!(kept.iter_mut().all(|wire| is_kept(wire, OLD)), "a connection moves any number of times");
    let expected = [("handed_over", 10), ("accepted", 5), ("open", 5), ("evicted", 0)];
    becomes_true(SOON, "they are counted", || {
        expected.iter().all(|(name, count)| site.connection_count(name) == *count)
    });
    drop(kept);
    becomes_true(SOON, "their ends are counted", || site.connection_count("open") == 0);
    site.stop();
}

fn a_connection_moves_when_its_download_ends(config: &Config) {
    let mut site = Reloaded::start(config, "");
    let large = bytes(8 << 20, 8);
    let mut wire = site.server.connect();
    wire.get("/large.bin");
    assert_eq!(wire.head().status, 200);
    wire.expect_body(&large[..1000]);
    let former = site.reload("new", "");
    sleep(Duration::from_millis(300));
    assert!(former.iter().any(|worker| worker.is_running()), "one still sends");
    wire.expect_body(&large[1000..]);
    end_soon(&former);
    assert!(is_kept(&mut wire, NEW));
    site.stop();
}

/// Bytes can arrive at every moment of a move.
fn pipelined_requests_beside_reloads_lose_nothing(config: &Config) {
    const RELOADS: usize = 20;
    let mut site = Reloaded::start(config, "");
    let (over, address) = (AtomicBool::new(false), site.server.address);
    let client = |number: u64| {
        let mut wire = Wire::connect(address, config.layer);
        let mut answered = 0;
        while !over.load(Ordering::Relaxed) {
            wire.send(request("GET", "/", &[]).repeat(3));
            for _ in 0..3 {
                let response = wire.response();
                assert!([OLD, NEW].contains(&&response.body[..]), "{response:?}");
                assert_eq!(response.field("Connection"), None, "a close in client {number}");
                answered += 1;
            }
            sleep(Duration::from_millis(number));
        }
        assert!(answered > RELOADS, "{answered} requests");
    };
    std::thread::scope(|scope| {
        let at_end = EndOnDrop(&over);
        let clients: Vec<_> = (0..4).map(|number| scope.spawn(move || client(number))).collect();
        for round in 0..RELOADS {
            end_soon(&site.reload(if round % 2 == 0 { "new" } else { "old" }, ""));
        }
        drop(at_end);
        clients.into_iter().for_each(|client| client.join().expect("a client lost nothing"));
    });
    site.stop();
}

/// Its connection may never be idle on a ring, which receives the next request while it sends a response.
fn a_client_that_never_pauses_does_not_keep_the_former_configuration(config: &Config) {
    let mut site = Reloaded::start(config, "");
    let stream = TcpStream::connect(site.server.address).expect("it listens");
    stream.set_read_timeout(Some(SOON)).expect("our own socket");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let requests = request("GET", "/", &[]).repeat(50);
            while !over.load(Ordering::Relaxed) {
                if (&stream).write_all(&requests).is_err() {
                    return;
                }
            }
        });
        let at_end = EndOnDrop(&over);
        let reload = scope.spawn(|| site.reload("new", ""));
        let mut reader = BufReader::new(&stream);
        let mut line = Vec::new();
        let begin = Instant::now();
        // A response that announces the close may be lost, because the client sends more than the server drains.
        while !(line == NEW || line == b"Connection: close\r\n") {
            line.clear();
            match reader.read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => panic!("read a response: {error}"),
            }
            assert!(begin.elapsed() < 3 * SOON, "it keeps the former configuration");
        }
        drop(at_end);
        let _ = stream.shutdown(Shutdown::Both);
        end_soon(&reload.join().expect("the reload succeeds"));
    });
    // It has unread responses, and the server would wait for them until `send-timeout`.
    drop(stream);
    site.stop();
}

/// More than the queue between two workers holds.
fn many_connections_move(config: &Config) {
    const COUNT: usize = 400;
    let mut site = Reloaded::start(config, "max-connections = 450\n");
    let mut kept = site.idle(COUNT);
    end_soon(&site.reload("new", "max-connections = 450\n"));
    assert!(kept.iter_mut().all(|wire| is_kept(wire, NEW)));
    assert_eq!(site.connection_count("handed_over"), COUNT as u64);
    site.stop();
}

/// A connection that stays ends with its next response, as on every engine that moves none.
fn a_worker_without_room_leaves_connections_where_they_are(config: &Config) {
    let mut site = Reloaded::start(config, "max-connections = 20\n");
    let mut kept = site.idle(6 * config.workers());
    let status = site.server.status();
    let of_worker = |worker: &serde_json::Value| worker["connections"]["open"].as_u64().unwrap_or(0).min(1);
    let fitting: u64 = status["workers"].as_array().expect("a list").iter().map(of_worker).sum();
    let former = site.reload("new", "max-connections = 1\n");
    becomes_true(SOON, "one for each worker moves", || site.connection_count("handed_over") == fitting);
    let mut moved = 0;
    for wire in &mut kept {
        // An old worker learns that there is no room when the first connection has arrived.
        let last = eventually(SOON, "it moves, or its end is announced", || {
            wire.get("/");
            let response = wire.response();
            let is_closed = response.field("Connection") == Some("close");
            (is_closed || response.body == NEW).then_some(response.body)
        });
        match last == NEW {
            true => moved += 1,
            false => wire.expect_end(),
        }
    }
    assert_eq!(moved, fitting);
    end_soon(&former);
    site.stop();
}

fn the_idle_deadline_moves_with_a_connection(config: &Config) {
    let settings = "idle-timeout = \"4s\"\n";
    // On a busy machine a reload may take longer than the connection has left: then it is tried again.
    let took = eventually(3 * SOON, "a reload ends before the connection, and that ends in time", || {
        let mut site = Reloaded::start(config, settings);
        let mut wire = site.idle(1).remove(0);
        let began = Instant::now();
        sleep(Duration::from_millis(2500));
        let former = site.reload("new", settings);
        let is_late = began.elapsed() >= Duration::from_millis(3500);
        wire.expect_end();
        let took = began.elapsed();
        end_soon(&former);
        assert!(is_late || site.connection_count("handed_over") == 1);
        site.stop();
        // With a new deadline, it would end after 6.5 s.
        (!is_late && took < Duration::from_millis(6300)).then_some(took)
    });
    assert!(took >= Duration::from_millis(3500), "{took:?}");
}

fn an_address_is_counted_once(config: &Config) {
    let settings = "max-connections-per-address = 3\n";
    let mut site = Reloaded::start(config, settings);
    let mut kept = site.idle(3);
    let is_served = |site: &Reloaded| {
        let mut wire = site.server.connect();
        wire.try_send(&request("GET", "/", &[])).is_ok() && wire.try_head().is_some()
    };
    for round in 0..4 {
        assert!(!is_served(&site), "a fourth connection after {round} reloads");
        end_soon(&site.reload("old", settings));
        assert!(kept.iter_mut().all(|wire| is_kept(wire, OLD)));
    }
    kept.pop();
    becomes_true(SOON, "there is room again", || is_served(&site));
    site.stop();
}

const HEADER: &[u8] = b"PROXY TCP4 192.0.2.1 198.51.100.1 56324 80\r\n";

/// A server behind a proxy, and a connection of client 192.0.2.1 to it.
fn behind(config: &Config, settings: &str) -> (Reloaded, Wire) {
    let address = free_address();
    let launch = Launch::bare(config).flag("--listen", format!("proxy:{address}"));
    let site = Reloaded::launch(launch, settings, |launch| launch.start_at(address));
    let mut wire = site.server.connect();
    wire.send(HEADER);
    assert!(is_kept(&mut wire, OLD));
    (site, wire)
}

fn the_client_of_a_proxy_header_moves_with_its_connection(config: &Config) {
    let settings = "trusted-proxy = [\"127.0.0.1\"]\nmax-connections-per-address = 1\n";
    let (mut site, mut wire) = behind(config, settings);
    for page in ["new", "old"] {
        end_soon(&site.reload(page, settings));
        assert!(is_kept(&mut wire, if page == "new" { NEW } else { OLD }));
        let mut other = site.server.connect();
        let _ = other.try_send(&[HEADER, &request("GET", "/", &[])].concat());
        assert!(other.try_head().is_none(), "another connection of the client");
    }
    becomes_true(SOON, "the log names the client", || {
        site.server.log().lines().filter(|line| line.starts_with("192.0.2.1 ")).count() == 3
    });
    drop(wire);
    becomes_true(SOON, "its end is counted", || {
        let mut other = site.server.connect();
        other.try_send(&[HEADER, &request("GET", "/", &[])].concat()).is_ok() && other.try_head().is_some()
    });
    site.stop();
}

/// The new configuration does not trust the proxy any more.
fn connections_of_another_kind_stay(config: &Config) {
    let (mut site, mut wire) = behind(config, "trusted-proxy = [\"127.0.0.1\"]\n");
    let former = site.reload("new", "trusted-proxy = [\"127.0.0.2\"]\n");
    becomes_true(SOON, "the old worker ends it", || !is_kept(&mut wire, OLD));
    wire.expect_end();
    end_soon(&former);
    assert_eq!(site.connection_count("handed_over"), 0);
    site.stop();
}
