//! The suite itself: its remains, and the scope of its long runs.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use tenfold_engine::{MODELS, Sender, probe};
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::databases::RedisServer;
use tenfold_tests::harness::Theme;
use tenfold_tests::left;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::tools;

pub(crate) const THEME: Theme = Theme {
    name: "itself",
    cases: cases![
        Every Once: remains_of_killed_runs_are_removed, a_long_comparison_is_of_every_configuration
    ],
};

/// `cargo xtask compare` promises it.
fn a_long_comparison_is_of_every_configuration() {
    let mut suite = Command::new(std::env::current_exe().expect("a running program has a path"));
    suite.args(["--list", "compare::"]).env("TENFOLD_TEST_REQUESTS", "1").env_remove("TENFOLD_TEST_PART");
    let output = suite.output().expect("it can be started again");
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let compared: BTreeSet<&str> = listed.lines().filter_map(|line| line.split("::").nth(1)).collect();
    let of_engine = |engine| {
        move |&topology| {
            Sender::ALL.iter().map(move |&sender| Config { topology, sender, ..Config::of(engine) })
        }
    };
    let all = MODELS.iter().flat_map(|model| model.topologies.iter().flat_map(of_engine(model.engine)));
    let there = |config: &Config| probe(config.engine).is_ok() && config.plan().is_ok();
    let missing: Vec<_> = all
        .filter(there)
        .map(|config| config.to_string())
        .filter(|name| !compared.contains(&**name))
        .collect();
    assert!(missing.is_empty(), "not compared: {missing:?}");
}

fn remains_of_killed_runs_are_removed() {
    let temporary = TempFolder::new("temporary");
    let mut gone = Command::new(tools::program("true")).stdin(Stdio::null()).spawn().expect("it starts");
    let (dead, living) = (gone.id(), std::process::id());
    gone.wait().expect("our own child");
    let file = |name: &str| temporary.write(&format!("{name}/data/file"), "left");
    let left_behind = [format!("tenfold-{dead}-0-database"), format!("tenfold-{dead}-17-two-words")];
    let kept = [
        format!("tenfold-{living}-0-database"),
        format!("tenfold-{dead}"),
        format!("tenfold-{dead}-x-database"),
        format!("other-{dead}-0-database"),
        "tenfold-engine-0".into(),
    ];
    left_behind.iter().chain(&kept).for_each(|name| drop(file(name)));
    fs::write(temporary.at(&format!("tenfold-{dead}-1-file")), "no folder").expect("our own folder");

    let data = temporary.at(&left_behind[0]).join("data");
    // Redis may run as a user other than root.
    let redis = RedisServer::start_in(&data);
    left::remove(temporary.path());
    for name in &left_behind {
        assert!(!temporary.at(name).exists(), "{name} is left");
    }
    for name in kept.iter().chain(&[format!("tenfold-{dead}-1-file")]) {
        assert!(temporary.at(name).exists(), "{name} was somebody else's");
    }
    becomes_true(SOON, "the server that was at work there ends", || !redis.process().is_running());
}
