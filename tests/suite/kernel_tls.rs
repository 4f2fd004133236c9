//! TLS in the kernel. Cases are ignored if this kernel has no TLS; `tests/kernel` boots a kernel with TLS.

use std::io::{Read, Write};
use std::net::TcpStream;

use rustls::{ClientConnection, StreamOwned};
use tenfold_engine::Engine;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::seal::{get_once, new_client};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::SOON;
use tenfold_tests::tools::sealed_by_kernel;

pub(crate) const THEME: Theme = Theme {
    name: "kernel-tls",
    cases: cases![
        Own on ENGINES: on_uses_the_kernel_or_is_refused;
        Own on DRIVERS + ANOTHER: auto_serves_with_the_kernel_or_without;
        OwnWithKernelTls on ENGINES: files_leave_whole_by_explicit_senders,
            a_key_update_ends_the_connection_in_order_or_changes_keys;
    ],
};

const REFUSED: [&str; 2] = [
    "tls-kernel on needs TLS in the kernel (CONFIG_TLS), which refuses: TCP_ULP \"tls\": ",
    "tls-kernel on does not go with engine uring: TLS in the kernel refuses MSG_WAITALL, with which the ring sends; ",
];

fn encrypted(config: &Config, how: &str) -> Launch {
    Launch::new(&config.over_tls(), site::shared()).flag("--tls-kernel", how)
}

fn works(config: &Config) -> bool {
    sealed_by_kernel().is_some() && config.engine != Engine::Uring
}

#[track_caller]
fn get(server: &Server, target: &str) {
    let exchange = get_once(server.address, &new_client(), "localhost", target);
    let exchange = exchange.unwrap_or_else(|error| panic!("{error}; the server said:\n{}", server.errors()));
    assert!(exchange.response.starts_with("HTTP/1.1 200 "), "{}", exchange.response);
}

fn expect_refusal(config: &Config) {
    let output = encrypted(config, "on").refused();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    let expected = REFUSED[usize::from(config.engine == Engine::Uring)];
    assert!(said.contains(expected), "{said}");
}

fn on_uses_the_kernel_or_is_refused(config: &Config) {
    if !works(config) {
        return expect_refusal(config);
    }
    let (before, server) = (sealed_by_kernel(), encrypted(config, "on").start());
    get(&server, "/1k.html");
    assert!(sealed_by_kernel() > before);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn auto_serves_with_the_kernel_or_without(config: &Config) {
    let server = encrypted(config, "auto").word("-v").start();
    get(&server, "/1k.html");
    let by = if works(config) {
        "  records  encrypted by the kernel"
    } else {
        "  records  encrypted by the workers"
    };
    assert!(server.errors().contains(by), "{}", server.errors());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

type Client = StreamOwned<ClientConnection, TcpStream>;

fn connect(server: &Server) -> Client {
    let name = "localhost".try_into().expect("a name");
    let client = ClientConnection::new(new_client(), name).expect("the configuration is legal");
    let stream = TcpStream::connect(server.address).expect("it listens");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    StreamOwned::new(client, stream)
}

/// Sends a request. Returns head and body, which has `length` bytes.
fn exchange(client: &mut Client, target: &str, fields: &str, length: usize) -> (String, Vec<u8>) {
    write!(client, "GET {target} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n").expect("there is room");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).expect("a head comes");
        head.push(byte[0]);
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body).expect("a body comes");
    (String::from_utf8(head).expect("it is ASCII"), body)
}

/// Checks that a closing record comes next.
fn expect_end(client: &mut Client) {
    assert_eq!(client.read(&mut [0; 1]).expect("a closing record comes"), 0);
}

fn files_leave_whole_by_explicit_senders(config: &Config) {
    const SIZE: usize = 64 << 20;
    if !works(config) {
        return expect_refusal(config);
    }
    let folder = TempFolder::new("kernel-tls");
    let content: Vec<u8> = (0..SIZE as u64).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect();
    folder.write("large", &content);
    folder.write("small", "small");
    for sender in ["sendfile", "splice", "mmap", "copy"] {
        let launch = Launch::new(&config.over_tls(), folder.path()).flag("--tls-kernel", "on");
        let server = launch.flag("--tls-preset", "modern").flag("--send", sender).start();
        let before = sealed_by_kernel();
        let mut client = connect(&server);
        for _ in 0..3 {
            assert_eq!(exchange(&mut client, "/small", "", 5).1, b"small", "{sender}");
        }
        assert!(exchange(&mut client, "/large", "", SIZE).1 == content, "{sender}");
        let (head, part) = exchange(&mut client, "/large", "Range: bytes=70000-1234567\r\n", 1_164_568);
        assert!(head.starts_with("HTTP/1.1 206 ") && part == content[70_000..=1_234_567], "{sender}: {head}");
        assert!(exchange(&mut client, "/large", "Connection: close\r\n", SIZE).1 == content, "{sender}");
        expect_end(&mut client);
        assert!(sealed_by_kernel() > before, "{sender}");
        server.stop().unwrap_or_else(|why| panic!("{why}"));
    }
}

fn a_key_update_ends_the_connection_in_order_or_changes_keys(config: &Config) {
    if !works(config) {
        return expect_refusal(config);
    }
    let server = encrypted(config, "on").word("-v").start();
    let changes = !server.errors().contains("it cannot change keys");
    let mut client = connect(&server);
    let (head, _) = exchange(&mut client, "/1k.html", "", 1024);
    assert!(!head.contains("Connection: close"), "{head}");
    for _ in 0..3 {
        client.conn.refresh_traffic_keys().expect("the handshake is over");
        let (head, _) = exchange(&mut client, "/1k.html", "", 1024);
        assert_eq!(head.contains("Connection: close"), !changes, "{head}");
        if !changes {
            expect_end(&mut client);
            break;
        }
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
