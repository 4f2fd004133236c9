//! Thousands of slow peers and a fast peer, which gets every response. Memory follows the work in progress.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use socket2::{Domain, Socket, Type};
use tenfold_engine::{Dispatch, Driver, Engine, Sender};
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::site;
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "slow-peers",
    cases: cases![
        Own on CONCURRENT, Measure: an_honest_client_gets_every_response;
    ],
};

/// The allowed growth of private memory, in KiB.
const GROWTH: u64 = 24 * 1024;

/// The buffer of `copy`, in KiB: a ring holds it until it is sent.
const PIECE: u64 = 128;

/// The numbers of slow heads and slow readers: as many as the model supports and descriptors allow. Workers of a
/// process share them, each with a limit of its own, and the kernel may choose one for all connections.
fn crowd(config: &Config) -> (usize, usize) {
    let most = match config.engine {
        Engine::Poll | Engine::Epoll | Engine::Uring => (5000, 1000),
        // Each iteration tries every connection.
        Engine::Busy => (1000, 200),
        // Threads share the descriptors that it can watch.
        Engine::Select => (700 / config.workers(), 100 / config.workers()),
        // A process or a thread each.
        _ => (100, 20),
    };
    let descriptors = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let fits = usize::try_from(descriptors / 3).unwrap_or(usize::MAX) / config.workers();
    (most.0.min(fits * 5 / 6), most.1.min(fits / 6))
}

/// Bytes of a segment, as on an Ethernet. The kernel sizes send buffers by segments: with those of the loopback, 64 KiB, it
/// holds 4 MiB for each reader. A thousand readers then leave TCP short of memory on the whole machine, and packets of
/// every other test are dropped (`man 7 tcp`, tcp_mem).
const SEGMENT: u32 = 1460;

/// A connection with a small window, so that unread data stays in the file and not in the kernel.
fn narrow(to: SocketAddr) -> TcpStream {
    let open = || -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, None)?;
        socket.set_recv_buffer_size(2048)?;
        socket.set_tcp_mss(SEGMENT)?;
        socket.connect(&to.into())?;
        Ok(socket.into())
    };
    open().unwrap_or_else(|error| panic!("connect to {to}: {error}"))
}

/// Private memory of the server's processes, in KiB.
fn private(server: &Server) -> u64 {
    server.process.with_descendants().into_iter().filter_map(Process::private_memory).sum()
}

fn is_open(server: &Server, count: usize) -> bool {
    server.status()["connections"]["open"].as_u64() >= Some(count as u64)
}

/// Sends a byte of each head, and reads available bytes for each reader.
fn go_on(heads: &mut [TcpStream], readers: &mut [TcpStream]) {
    for head in heads.iter_mut() {
        head.write_all(b"y").expect("a slow head is not given up before its time");
    }
    for reader in readers.iter_mut() {
        let count = reader.read(&mut [0; 512]).expect("a slow reader is not given up before its time");
        assert!(count > 0, "a slow reader's answer has ended");
    }
}

fn an_honest_client_gets_every_response(config: &Config) {
    let (slow_heads, slow_readers) = crowd(config);
    let launch =
        Launch::new(config, site::shared()).flag("--head-timeout", "10m").flag("--send-timeout", "10m");
    let launch = launch.flag("--defer-accept", "off");
    // All connections may become ready at the same time.
    let server = match config.dispatch {
        Dispatch::Inline => launch.start(),
        _ => launch.flag("--pool-queue", 10_000).start(),
    };
    assert_eq!(server.get("/1k.html").status, 200);
    let before = private(&server);
    let mut heads = Vec::new();
    for _ in 0..slow_heads {
        let mut head = TcpStream::connect(server.address).expect("the backlog has room, sooner or later");
        head.write_all(b"GET /1k.html HTTP/1.1\r\nHost: localhost\r\nX-Slow: y").expect("a new connection");
        heads.push(head);
    }
    let mut readers = Vec::new();
    for _ in 0..slow_readers {
        let mut reader = narrow(server.address);
        reader.write_all(&request("GET", "/large.bin", &[])).expect("a new connection");
        readers.push(reader);
    }
    becomes_true(3 * SOON, "all of them are served", || is_open(&server, slow_heads + slow_readers));
    let mut honest = server.connect();
    for _ in 0..3 {
        go_on(&mut heads, &mut readers);
        let begin = Instant::now();
        for at in 0..50 {
            assert_eq!(server.get("/1k.html").body.len(), 1024, "answer {at} on a connection of its own");
            honest.get("/16k.bin");
            assert!(honest.response().body == site::content("16k.bin"), "answer {at}");
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "100 answers took {:?}", begin.elapsed());
    }
    // A process per connection has memory of its own.
    if config.engine != Engine::Fork {
        let grown = private(&server).saturating_sub(before);
        let pieces = if config.sender == Sender::Copy && config.engine.model().driver == Driver::Completion {
            slow_readers as u64 * PIECE
        } else {
            0
        };
        assert!(grown <= GROWTH + pieces, "{slow_heads} heads and {slow_readers} readers took {grown} KiB");
    }
    // All heads are answered.
    for head in heads.iter_mut().step_by(50) {
        head.write_all(b"\r\nConnection: close\r\n\r\n").expect("it is still there");
        let mut answer = Vec::new();
        head.set_read_timeout(Some(SOON)).expect("a socket of ours");
        head.read_to_end(&mut answer).expect("a whole answer");
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n") && answer.len() > 1024, "{} bytes", answer.len());
    }
    drop((heads, readers, honest));
    becomes_true(3 * SOON, "all of them are gone", || server.status()["connections"]["open"] == 0);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
