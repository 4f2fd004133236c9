//! Switches beside each other: a short look at every pair of them, and with `TENFOLD_TEST_ALL=1` at every
//! combination that is legal.

use std::sync::Arc;

use tenfold_engine::{Driver, MODELS, TimerKind, TimerUpdate};
use tenfold_tests::cases;
use tenfold_tests::combinations::{Parameter, Partial, pairwise, product};
use tenfold_tests::config::{Config, everything};
use tenfold_tests::harness::{Named, Theme};
use tenfold_tests::launch::Launch;
use tenfold_tests::server::Server;
use tenfold_tests::site;
use tenfold_tests::wire::request;

pub(crate) const THEME: Theme = Theme {
    name: "switches-together",
    cases: cases![Every Many: rows; Every Once: every_pair_is_in_some_row],
};

/// Combinations that one test looks at, where there are tens of thousands.
const TOGETHER: usize = 64;

/// The switches, the engine first. What a switch is by default is not said.
fn parameters() -> Vec<Parameter> {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let named = |name, values| Parameter { name, values };
    vec![
        named("engine", MODELS.iter().map(|model| model.name.to_owned()).collect()),
        named("write", words(&["joined", "split", "per-header"])),
        named("accept", words(&["all", "one"])),
        named("tcp-nodelay", words(&["on", "off"])),
        named("tcp-cork", words(&["off", "on"])),
        named("defer-accept", words(&["on", "off"])),
        named("backlog", words(&["4096", "16"])),
        named("linger", words(&["off", "1"])),
        named("notsent-lowat", words(&["off", "16k"])),
        named("timer", of(TimerKind::ALL, &TimerKind::Wheel)),
        named("timer-update", of(TimerUpdate::ALL, &TimerUpdate::Lazy)),
        named("log-format", words(&["combined", "common", "json"])),
        named("log-mode", words(&["buffered", "sync", "async"])),
    ]
}

/// All of a table, the default first.
fn of<T: ToString + PartialEq>(all: &[T], default: &T) -> Vec<String> {
    let others = all.iter().filter(|value| *value != default);
    [default].into_iter().chain(others).map(ToString::to_string).collect()
}

/// Whether a row can be legal: what an engine has no use for stays what it is by default.
fn legal(parameters: &[Parameter], row: &Partial) -> bool {
    let Some(engine) = row[0] else { return true };
    let model = &MODELS[engine];
    let place = |name: &str| parameters.iter().position(|parameter| parameter.name == name);
    let default = |name: &str| place(name).and_then(|place| row[place]).is_none_or(|value| value == 0);
    let blocking = model.driver == Driver::Blocking;
    let is = |name: &str, value: &str| {
        let place = place(name).expect("it is in the table");
        row[place].is_some_and(|chosen| parameters[place].values[chosen] == value)
    };
    (!blocking || ["timer", "timer-update"].into_iter().all(default))
        && (model.engine.accepts_in_batches() || default("accept"))
        && !(model.name == "fork" && is("log-mode", "async"))
}

/// A test for each row, or for so many of them.
fn rows() -> Vec<Named> {
    let parameters = Arc::new(parameters());
    let legal = |row: &Partial| legal(&parameters, row);
    let (kind, rows, together) = match everything() {
        true => ("product", product(&parameters, &legal), TOGETHER),
        false => ("pairs", pairwise(&parameters, &legal), 1),
    };
    let tests = rows.chunks(together).enumerate().map(|(place, rows)| {
        let (parameters, rows) = (parameters.clone(), rows.to_vec());
        let engine = &parameters[0].values[rows[0][0]];
        let name = format!("{kind}::{engine}::{place}");
        Named { name, run: Box::new(move || rows.iter().for_each(|row| look(&parameters, row))) }
    });
    tests.collect()
}

/// Starts the server of a row, asks it for a little of everything, and ends it.
fn look(parameters: &[Parameter], row: &[usize]) {
    let config = Config::of(MODELS[row[0]].engine);
    let chosen = parameters.iter().zip(row).skip(1).filter(|(_, value)| **value > 0);
    let launch = chosen.fold(Launch::new(&config, site::shared()), |launch, (parameter, &value)| {
        launch.flag(&format!("--{}", parameter.name), &parameter.values[value])
    });
    let server = launch.start();
    a_little_of_everything(&server);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// A page, a file, a condition, a range, and several requests at once.
fn a_little_of_everything(server: &Server) {
    let mut wire = server.connect();
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
    wire.send(request("GET", "/1k.html", &[]).repeat(8));
    for _ in 0..8 {
        assert_eq!(wire.response().body, page.body);
    }
    wire.send(request("GET", "/style.css", &[("Connection", "close")]));
    assert_eq!(wire.response().body, site::content("style.css"));
    wire.expect_end();
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
