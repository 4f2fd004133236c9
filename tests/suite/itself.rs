//! The suite itself: its remains, the scope of its long runs, and its parsers.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;

use tenfold_engine::{Dispatch, MODELS, Sender, probe};
use tenfold_tests::binary;
use tenfold_tests::budget::{Budget, Share};
use tenfold_tests::cases;
use tenfold_tests::combinations::{Parameter, Partial, completed};
use tenfold_tests::config::{Config, everything};
use tenfold_tests::harness::Theme;
use tenfold_tests::left;
use tenfold_tests::lists::{
    ANOTHER, DISPATCHES, DRIVERS, ENGINES, List, MECHANISMS, ONE_TLS, SENDERS, TLS, TOPOLOGIES, TRIGGERS,
};
use tenfold_tests::part::SuitePart;
use tenfold_tests::site::TempFolder;
use tenfold_tests::strace::Calls;
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::tools;

pub(crate) const THEME: Theme = Theme {
    name: "itself",
    cases: cases![
        Once: remains_of_killed_runs_are_removed, a_long_comparison_is_of_every_configuration,
            completing_a_row_is_legal_and_reproducible, every_test_is_in_one_part_and_parts_are_about_equal,
            invalid_parts_are_rejected, every_turn_of_a_case_is_on_one_engine_and_all_turns_are_on_all,
            lists_have_every_driver_engine_topology_sender_and_trigger, the_result_of_an_interrupted_call_is_joined_to_its_beginning,
            a_call_that_has_not_returned_brought_nothing, cases_wait_for_their_share;
    ],
};

/// A promise of `cargo xtask compare`.
fn a_long_comparison_is_of_every_configuration() {
    let mut suite = Command::new(std::env::current_exe().expect("a running program has a path"));
    suite.args(["--list", "compare::"]).env("TENFOLD_TEST_REQUESTS", "1");
    suite.env_remove("TENFOLD_TEST_PART").env_remove("TENFOLD_TEST_TURN");
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
    let server = binary::server().unwrap_or_else(|why| panic!("{why}"));
    let mut command = Command::new(&server.path);
    command.arg("serve").arg(&data).args(["--listen", "127.0.0.1:0"]).stderr(Stdio::null());
    let mut server = command.spawn().expect("it starts");
    left::remove(temporary.path());
    for name in &left_behind {
        assert!(!temporary.at(name).exists(), "{name} is left");
    }
    for name in kept.iter().chain(&[format!("tenfold-{dead}-1-file")]) {
        assert!(temporary.at(name).exists(), "{name} was somebody else's");
    }
    becomes_true(SOON, "the server that was at work there ends", || {
        server.try_wait().expect("our own child").is_some()
    });
}

fn completing_a_row_is_legal_and_reproducible() {
    let of = |name, count: usize| Parameter { name, values: (0..count).map(|at| at.to_string()).collect() };
    let parameters = [of("a", 2), of("b", 3), of("c", 3)];
    // The last two values are never equal.
    let legal = |row: &Partial| row[1].is_none() || row[1] != row[2];
    let whole = |number| completed(&[1], number, &parameters, &legal).expect("there is a legal one");
    let rows: Vec<_> = (0..100).map(whole).collect();
    assert!(rows.iter().all(|row| row.len() == 3 && row[0] == 1 && row[1] != row[2]));
    assert!((0..3).all(|value| rows.iter().any(|row| row[2] == value)), "{rows:?}");
    assert_eq!(rows, (0..100).map(whole).collect::<Vec<_>>());
    assert_eq!(completed(&[1], 0, &parameters, &|row| row[2].is_none()), None);
}

fn every_test_is_in_one_part_and_parts_are_about_equal() {
    let names: Vec<String> = (0..2000).map(|at| format!("theme::engine::case_{at}")).collect();
    let parts: Vec<SuitePart> =
        (1..=10).map(|number| format!("{number}/10").parse().expect("a part")).collect();
    for name in &names {
        assert_eq!(parts.iter().filter(|part| part.has(name)).count(), 1, "{name}");
    }
    for part in &parts {
        let count = names.iter().filter(|name| part.has(name)).count();
        assert!((120..280).contains(&count), "{part:?} has {count} of 2,000");
    }
}

fn invalid_parts_are_rejected() {
    for text in ["", "3", "0/5", "6/5", "1/0", "a/b", "1/2/3", "-1/5"] {
        assert!(text.parse::<SuitePart>().is_err(), "{text:?}");
    }
    assert!("1/1".parse::<SuitePart>().is_ok_and(|part| part.has("any")));
}

fn every_turn_of_a_case_is_on_one_engine_and_all_turns_are_on_all() {
    if everything() {
        return;
    }
    let all = ANOTHER.of("theme::case", None);
    let in_turn: Vec<_> = (7..7 + all.len()).flat_map(|turn| ANOTHER.of("theme::case", Some(turn))).collect();
    assert_eq!(in_turn.len(), all.len(), "one for each turn");
    assert!(all.iter().all(|config| in_turn.contains(config)), "{in_turn:?}");
    let drivers = DRIVERS.of("theme::case", Some(7));
    assert!(drivers.iter().all(|config| !all.contains(config)), "{drivers:?} are always selected");
    assert_eq!(ONE_TLS.of("theme::case", Some(7)), ONE_TLS.of("theme::case", Some(8)));
    let cases = (0..100).map(|at| ONE_TLS.of(&format!("theme::case_{at}"), None));
    let chosen: BTreeSet<String> = cases.flatten().map(|config| config.to_string()).collect();
    assert_eq!(chosen.len(), drivers.len(), "{chosen:?}: each driver has a part of the cases");
}

fn lists_have_every_driver_engine_topology_sender_and_trigger() {
    let all = |list: List| (list.configs)().into_iter();
    for list in [DRIVERS, TLS] {
        let drivers = all(list).map(|config| config.engine.model().driver);
        let drivers: Vec<_> = drivers.collect();
        assert!(MODELS.iter().all(|model| drivers.contains(&model.driver)), "{drivers:?}");
    }
    for model in MODELS.iter().filter(|model| probe(model.engine).is_ok()) {
        let engine = model.engine;
        let first = Config::of(engine);
        for list in [ENGINES, TOPOLOGIES, SENDERS, MECHANISMS] {
            assert!(all(list).any(|config| config == first), "{engine}");
        }
        let library = first.has_library();
        for &sender in model.senders.iter().filter(|_| !library) {
            assert!(all(SENDERS).any(|config| config == Config { sender, ..first }), "{engine} {sender}");
        }
        for &topology in model.topologies.iter().filter(|_| !library) {
            assert!(
                all(MECHANISMS).any(|config| config == Config { topology, ..first }),
                "{engine} {topology}"
            );
        }
        for &dispatch in model.dispatches.iter().filter(|dispatch| **dispatch != Dispatch::Inline) {
            assert!(
                all(DISPATCHES).any(|config| config == Config { dispatch, ..first }),
                "{engine} {dispatch}"
            );
        }
        assert_eq!(all(TRIGGERS).any(|config| config.engine == engine), model.triggers, "{engine}");
    }
}

fn the_result_of_an_interrupted_call_is_joined_to_its_beginning() {
    let text = "7 recvmsg(3,  <unfinished ...>\n8 close(4) = 0\n7 <... recvmsg resumed>\"ab\", 2) = 2\n\
        9 <... poll resumed>) = 1\n8 write(6, \"d\", 8 <unfinished ...>\n8 <... write resumed>) = 8\n\
        7 --- SIGTERM ---\n7 write(5, \"c\", 1 <unfinished ...>\n7 +++ exited +++";
    let expected = [
        "7 recvmsg(3, \"ab\", 2) = 2",
        "8 close(4) = 0",
        "8 write(6, \"d\", 8) = 8",
        "7 write(5, \"c\", 1 <unfinished ...>",
    ];
    assert_eq!(Calls::of(text).lines, expected);
}

fn a_call_that_has_not_returned_brought_nothing() {
    let lines = [
        "7 accept4(3, NULL, NULL, SOCK_CLOEXEC) = 10",
        "7 accept4(3, NULL, NULL, SOCK_CLOEXEC) = -1 EAGAIN (Resource temporarily unavailable)",
        "7 accept4(3, 0x7ffff09ad, [128], 0) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)",
        "7 accept4(3,  <detached ...>",
        "7 close(10) = 0",
    ];
    assert_eq!(Calls::of(&lines.join("\n")).successes("accept4"), [lines[0]]);
}

fn cases_wait_for_their_share() {
    let budget = Budget::new(Share { descriptors: 10, ..Share::ALL });
    let some = |descriptors| Share { descriptors, ..Share::USUAL };
    let first = budget.take(some(6));
    let second = budget.try_take(some(4)).expect("the rest");
    assert!(budget.try_take(some(1)).is_none(), "nothing is left");
    drop(second);
    assert!(budget.try_take(Share::ALL).is_none(), "another case runs");
    thread::scope(|scope| {
        let waits = scope.spawn(|| drop(budget.take(some(5))));
        drop(first);
        waits.join().expect("a share is free");
    });
    let all = budget.take(some(100));
    assert!(budget.try_take(some(1)).is_none(), "a share of more than all is all");
    drop(all);
    drop(budget.take(Share::ALL));
}
