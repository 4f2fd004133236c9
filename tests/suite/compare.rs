//! The same requests get the same bytes from every engine.
//!
//! `TENFOLD_TEST_SEED` selects other requests, `TENFOLD_TEST_REQUESTS` sets their number: `cargo xtask compare`.

use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::OnceLock;
use std::time::Duration;

use tenfold_engine::Engine;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::generate::exchange;
use tenfold_tests::harness::{Theme, each_at_once};
use tenfold_tests::launch::Launch;
use tenfold_tests::response::blot_dates;
use tenfold_tests::server::Server;
use tenfold_tests::site;

pub(crate) const THEME: Theme =
    Theme { name: "compare", cases: cases![Shared on COMPARED: the_same_requests_get_the_same_bytes] };

/// The number of requests in all exchanges together.
const REQUESTS: usize = 10_000;
const SEED: u64 = 1;
/// Concurrent connections. On a serial engine the others wait.
const AT_ONCE: usize = 4;
/// The longest wait for a response.
const PATIENCE: Duration = Duration::from_secs(30);

/// The simplest engine's output for each exchange: its length and its hash.
type OutputHash = (usize, u64);

fn number(name: &str, otherwise: usize) -> usize {
    let text = std::env::var(name);
    text.map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn seed() -> u64 {
    number("TENFOLD_TEST_SEED", SEED as usize) as u64
}

fn told() -> &'static [OutputHash] {
    static TOLD: OnceLock<Vec<OutputHash>> = OnceLock::new();
    TOLD.get_or_init(|| {
        let (mut exchanges, mut left) = (0, number("TENFOLD_TEST_REQUESTS", REQUESTS));
        while left > 0 {
            left = left.saturating_sub(exchange(seed(), exchanges).requests);
            exchanges += 1;
        }
        let server = simplest();
        let mut told = vec![(0, 0); exchanges];
        let share = exchanges.div_ceil(AT_ONCE);
        each_at_once(told.chunks_mut(share).zip((0..).step_by(share)), |(part, first)| {
            for (place, at) in part.iter_mut().zip(first..) {
                *place = summed(&answer(&server, at));
            }
        });
        server.stop().unwrap_or_else(|why| panic!("{why}"));
        told
    })
}

fn simplest() -> Server {
    Launch::new(&Config::of(Engine::Naive), site::shared()).start()
}

fn summed(answer: &[u8]) -> OutputHash {
    let mut hasher = DefaultHasher::new();
    hasher.write(answer);
    (answer.len(), hasher.finish())
}

/// The whole output on a new connection, without dates.
fn answer(server: &Server, at: usize) -> Vec<u8> {
    let bytes = exchange(seed(), at).bytes;
    let mut all = match server.config.tls {
        true => server.exchange(&with_schemes_of_tls(&bytes)),
        false => plainly(server, &bytes),
    };
    blot_dates(&mut all);
    all
}

/// The same exchange over TLS: a target with the scheme of the connection keeps it, and so does a target with another
/// (RFC 9110 §7.4).
fn with_schemes_of_tls(bytes: &[u8]) -> Vec<u8> {
    let mut swapped = Vec::with_capacity(bytes.len() + 16);
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        let schemes: [(&[u8], &[u8]); 2] = [(b" http://", b" https://"), (b" https://", b" http://")];
        match schemes.into_iter().find(|(from, _)| rest.starts_with(from)) {
            Some((from, to)) => (swapped.extend_from_slice(to), rest = &rest[from.len()..]),
            None => (swapped.push(*first), rest = after),
        };
    }
    swapped
}

/// [`Server::exchange`] with the fewest calls.
fn plainly(server: &Server, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket of ours");
    stream.write_all(bytes).expect("the server takes what is sent");
    // The server may have closed the connection already.
    let _ = stream.shutdown(Shutdown::Write);
    let mut all = Vec::with_capacity(16 * 1024);
    match stream.read_to_end(&mut all) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => panic!("no end came: {error}"),
        _ => all,
    }
}

fn the_same_requests_get_the_same_bytes(server: &Server) {
    let told = told();
    let answered = told.iter().filter(|(length, _)| *length > 0).count();
    assert!(answered > told.len() / 2, "only {answered} of {} exchanges were answered at all", told.len());
    each_at_once(0..AT_ONCE, |first| {
        for at in (first..told.len()).step_by(AT_ONCE) {
            let found = answer(server, at);
            if summed(&found) != told[at] {
                tell_apart(server, at, &found);
            }
        }
    });
}

/// Fails and prints the simplest engine's output.
fn tell_apart(server: &Server, at: usize, found: &[u8]) -> ! {
    let expected = answer(&simplest(), at);
    let differs = found.iter().zip(&expected).take_while(|(left, right)| left == right).count();
    panic!(
        "seed {}, exchange {at}: from byte {differs} on another answer\nsent: {}\nnaive: {}\n{}: {}",
        seed(),
        shown(&exchange(seed(), at).bytes),
        shown(&expected[differs.saturating_sub(60)..]),
        server.config,
        shown(&found[differs.saturating_sub(60)..]),
    );
}

fn shown(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(600)];
    format!("({} bytes) {}", bytes.len(), start.escape_ascii())
}
