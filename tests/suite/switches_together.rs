//! Combinations of switches: a short check of every pair, and with `TENFOLD_TEST_ALL=1` of every legal combination of
//! most of them ([`MULTIPLIED`]).

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use tenfold_engine::{Dispatch, Driver, Engine, MODELS, TimerKind};
use tenfold_tests::cases;
use tenfold_tests::combinations::{Parameter, Partial, completed, pairwise, product};
use tenfold_tests::config::{Config, everything};
use tenfold_tests::harness::{Named, Theme};
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::wire::{Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "switches-together",
    cases: cases![
        Many: rows;
        Once: every_pair_is_in_some_row;
    ],
};

/// The combinations per test in long runs.
const TOGETHER: usize = 64;

/// Long runs test the product of this number of first parameters. The product of all parameters would take weeks, so
/// the others have pseudo-random values in each row.
const MULTIPLIED: usize = 13;

/// The switches, the engine first. Default values are not passed.
fn parameters() -> Vec<Parameter> {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let named = |name, values| Parameter { name, values };
    let mut all = vec![
        named("engine", MODELS.iter().map(|model| model.name.to_owned()).collect()),
        named("write", words(&["joined", "split", "per-header"])),
        named("accept", words(&["all", "one"])),
        named("tcp-nodelay", words(&["on", "off"])),
        named("tcp-cork", words(&["off", "on"])),
        named("defer-accept", words(&["on", "off"])),
        named("backlog", words(&["511", "16"])),
        named("linger", words(&["off", "1"])),
        named("notsent-lowat", words(&["off", "16k"])),
        named("timer", of(TimerKind::ALL, &TimerKind::Wheel)),
        named("log-format", words(&["combined", "common", "json"])),
        named("log-mode", words(&["buffered", "sync", "async"])),
        named("dispatch", of(Dispatch::ALL, &Dispatch::Inline)),
        named("listen", words(&["TCP", "TCP and IPv6", "TCP and Unix"])),
        named("log-full", words(&["block", "drop"])),
        named("log-rotate", words(&["off", "5 lines", "2 KiB", "daily"])),
        named("log-level", words(&["info", "error", "warn", "debug"])),
    ];
    if fastopen_is_available() {
        all.push(named("fastopen", words(&["off", "16"])));
    }
    all
}

/// Whether this kernel supports TCP Fast Open for servers; otherwise the switch is rejected.
fn fastopen_is_available() -> bool {
    const SERVERS: u32 = 2;
    let said = fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen").expect("Linux has it");
    said.trim().parse::<u32>().is_ok_and(|bits| bits & SERVERS != 0)
}

/// All values of a table, the default first.
fn of<T: ToString + PartialEq>(all: &[T], default: &T) -> Vec<String> {
    let others = all.iter().filter(|value| *value != default);
    [default].into_iter().chain(others).map(ToString::to_string).collect()
}

/// Whether a row can be legal: switches without effect on an engine keep their default. `row` may be shorter than the
/// parameters.
fn legal(parameters: &[Parameter], row: &Partial) -> bool {
    // The index and the value of a parameter, if chosen.
    let chosen = |name: &str| {
        let place = parameters.iter().position(|parameter| parameter.name == name)?;
        let value = (*row.get(place)?)?;
        Some((value, &*parameters[place].values[value]))
    };
    let default = |name: &str| chosen(name).is_none_or(|(value, _)| value == 0);
    let has_queue = chosen("log-mode").is_none_or(|(_, mode)| mode == "async");
    if !has_queue && !default("log-full") {
        return false;
    }
    let Some(engine) = row[0] else { return true };
    let model = &MODELS[engine];
    let blocking = model.driver == Driver::Blocking;
    let forks = model.engine == Engine::Fork;
    let is_async = chosen("log-mode").is_some_and(|(_, mode)| mode == "async");
    let divides = chosen("dispatch")
        .is_none_or(|(_, asked)| model.dispatches.iter().any(|dispatch| dispatch.to_string() == asked));
    (!blocking || default("timer"))
        && (model.engine.accepts_in_batches() || default("accept"))
        && !(forks && (is_async || !default("log-full")))
        && divides
}

/// A test for each row of pairs, and in long runs for several rows of the product.
fn rows() -> Vec<Named> {
    if !fastopen_is_available() {
        eprintln!("net.ipv4.tcp_fastopen has no bit for servers: fastopen stands beside no other switch");
    }
    let parameters = Arc::new(parameters());
    let legal = |row: &Partial| legal(&parameters, row);
    let named = |kind: &str, place: usize, rows: &[Vec<usize>]| {
        let (parameters, rows) = (parameters.clone(), rows.to_vec());
        let engine = &parameters[0].values[rows[0][0]];
        let name = format!("{kind}::{engine}::{place}");
        Named { name, run: Box::new(move || rows.iter().for_each(|row| look(&parameters, row))) }
    };
    let pairs = pairwise(&parameters, &legal);
    let mut tests: Vec<_> = pairs.chunks(1).zip(0..).map(|(row, place)| named("pairs", place, row)).collect();
    if everything() {
        let rows = product(&parameters[..MULTIPLIED], &legal);
        let whole = rows.iter().zip(0..).map(|(row, number)| completed(row, number, &parameters, &legal));
        let whole: Vec<_> = whole.map(|row| row.expect("what is by default is legal")).collect();
        let some = whole.chunks(TOGETHER).zip(0..).map(|(rows, place)| named("product", place, rows));
        tests.extend(some);
    }
    tests
}

/// A row under test, printed on failure, because a test can have many.
struct SwitchRow<'a>(Vec<(&'a str, &'a str)>);

impl SwitchRow<'_> {
    fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(of, _)| *of == name).map(|(_, value)| *value)
    }
}

impl Drop for SwitchRow<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("switches beside each other: {:?}", self.0);
        }
    }
}

/// Starts the server of a row, makes requests at all its addresses, and stops it: every response is a line in its log.
fn look(parameters: &[Parameter], row: &[usize]) {
    let config = Config::of(MODELS[row[0]].engine);
    let chosen = parameters.iter().zip(row).skip(1).filter(|(_, value)| **value > 0);
    let row =
        SwitchRow(chosen.map(|(parameter, &value)| (parameter.name, &*parameter.values[value])).collect());
    let folder = TempFolder::new("together");
    let socket = folder.at("socket");
    let launch = Launch::new(&config, site::shared()).flag("--access-log", folder.at("access.log").display());
    let launch = row.0.iter().fold(launch, |launch, &(name, value)| match value {
        "TCP and IPv6" => launch.flag("--listen", "[::1]:0"),
        "TCP and Unix" => launch.flag("--listen", format!("unix:{}", socket.display())),
        value => launch.flag(&format!("--{name}"), value),
    });
    let server = launch.start();
    let mut answers = a_little_of_everything(server.connect());
    answers += match row.value("listen") {
        Some("TCP and IPv6") => a_little_of_everything(Wire::connect(server.listening()[0])),
        Some(_) => a_little_of_everything(Wire::connect_unix(&socket)),
        None => 0,
    };
    output_matches_the_log_level(&server, row.value("log-level").unwrap_or("info"));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    let logs = logs(&folder);
    let lines = logs.iter().map(|log| fs::read_to_string(log).expect("our own").lines().count());
    assert_eq!(lines.sum::<usize>(), answers, "lines in {logs:?}");
}

/// The access log, and its rotated files.
fn logs(folder: &TempFolder) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path()).expect("our own folder").flatten().map(|entry| entry.path());
    entries.filter(|path| path.to_string_lossy().contains("access.log")).collect()
}

fn output_matches_the_log_level(server: &Server, level: &str) {
    let told = format!(":{}/", server.address.port());
    let loud = ["info", "debug"].contains(&level);
    assert_eq!(server.errors().contains(&told), loud, "log-level {level}: {}", server.errors());
    let detail = "worker 1 is process";
    match level {
        "debug" => server.expect_report(detail),
        _ => assert!(!server.errors().contains(detail), "log-level {level}: {}", server.errors()),
    }
}

/// Requests a page, a file, a condition, a range, and several pipelined ones; returns their number.
fn a_little_of_everything(mut wire: Wire) -> usize {
    const AT_ONCE: usize = 8;
    wire.get("/1k.html");
    let page = wire.response();
    assert_eq!((page.status, &page.body), (200, &site::content("1k.html")));
    wire.get("/128k.bin");
    assert_eq!(wire.response().body, site::content("128k.bin"));
    wire.send(request("GET", "/1k.html", &[("If-None-Match", page.need("etag"))]));
    assert_eq!(wire.response().status, 304);
    wire.send(request("GET", "/16k.bin", &[("Range", "bytes=100-299")]));
    let part = wire.response();
    assert_eq!((part.status, &part.body[..]), (206, &site::content("16k.bin")[100..300]));
    wire.send(request("GET", "/1k.html", &[]).repeat(AT_ONCE));
    for _ in 0..AT_ONCE {
        assert_eq!(wire.response().body, page.body);
    }
    wire.send(request("GET", "/style.css", &[("Connection", "close")]));
    assert_eq!(wire.response().body, site::content("style.css"));
    wire.expect_end();
    AT_ONCE + 5
}

fn every_pair_is_in_some_row() {
    let parameters = parameters();
    let legal = |row: &Partial| legal(&parameters, row);
    let rows = pairwise(&parameters, &legal);
    let choices = |place: usize| (0..parameters[place].values.len()).map(move |value| (place, value));
    let all = || (0..parameters.len()).flat_map(choices);
    for (one, other) in all().flat_map(|one| all().map(move |other| (one, other))) {
        let mut pair: Partial = vec![None; parameters.len()];
        (pair[one.0], pair[other.0]) = (Some(one.1), Some(other.1));
        if one.0 == other.0 || !legal(&pair) {
            continue;
        }
        let held = rows.iter().any(|row| row[one.0] == one.1 && row[other.0] == other.1);
        let shown =
            [one, other].map(|(place, value)| (parameters[place].name, &parameters[place].values[value]));
        assert!(held, "{shown:?} is in no row");
    }
    let whole = |row: &Vec<usize>| legal(&row.iter().copied().map(Some).collect());
    assert!(rows.iter().all(whole), "a row is not legal");
    let most = parameters.iter().map(|parameter| parameter.values.len()).max().unwrap_or_default();
    assert!(rows.len() <= 8 * most, "{} rows are more than pairs need", rows.len());
}
