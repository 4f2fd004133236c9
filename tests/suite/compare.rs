//! The same requests get the same bytes from every engine.

use std::sync::OnceLock;

use tenfold_engine::Engine;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::generate::{Exchange, Random, exchange};
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::response::blot_dates;
use tenfold_tests::server::Server;
use tenfold_tests::site;

pub(crate) const THEME: Theme =
    Theme { name: "compare", cases: cases![Senders Shared: ten_thousand_requests_get_the_same_bytes;] };

/// Requests, in all exchanges together.
const REQUESTS: usize = 10_000;
/// `TENFOLD_TEST_SEED` names another.
const SEED: u64 = 1;

struct Told {
    exchange: Exchange,
    answer: Vec<u8>,
}

fn seed() -> u64 {
    match std::env::var("TENFOLD_TEST_SEED") {
        Ok(text) => text.parse().expect("TENFOLD_TEST_SEED is a number"),
        Err(_) => SEED,
    }
}

/// What the simplest engine answers.
fn told() -> &'static [Told] {
    static TOLD: OnceLock<Vec<Told>> = OnceLock::new();
    TOLD.get_or_init(|| {
        let server = Launch::new(&Config::of(Engine::Naive), site::shared()).start();
        let mut random = Random::new(seed());
        let (mut all, mut requests) = (Vec::new(), 0);
        while requests < REQUESTS {
            let exchange = exchange(&mut random);
            requests += exchange.requests;
            let answer = answer(&server, &exchange);
            all.push(Told { exchange, answer });
        }
        server.stop().unwrap_or_else(|why| panic!("{why}"));
        all
    })
}

fn answer(server: &Server, exchange: &Exchange) -> Vec<u8> {
    let mut bytes = server.exchange(&exchange.bytes);
    blot_dates(&mut bytes);
    bytes
}

fn ten_thousand_requests_get_the_same_bytes(server: &Server) {
    let told = told();
    let answered = told.iter().filter(|told| !told.answer.is_empty()).count();
    assert!(answered > told.len() / 2, "only {answered} of {} exchanges were answered at all", told.len());
    for (at, told) in told.iter().enumerate() {
        let found = answer(server, &told.exchange);
        if found != told.answer {
            let differs = found.iter().zip(&told.answer).take_while(|(left, right)| left == right).count();
            panic!(
                "seed {}, exchange {at}: from byte {differs} on another answer\nsent: {}\nnaive: {}\n{}: {}",
                seed(),
                shown(&told.exchange.bytes),
                shown(&told.answer[differs.saturating_sub(60)..]),
                server.config,
                shown(&found[differs.saturating_sub(60)..]),
            );
        }
    }
}

fn shown(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(600)];
    format!("({} bytes) {}", bytes.len(), start.escape_ascii())
}
