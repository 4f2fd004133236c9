//! `tenfold lab`: experiments are listed, run, interrupted, continued and reported.

mod machines;
pub(crate) mod ordinary;

use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use tenfold_testkit::experiment::EXPERIMENT;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::process::Process;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::{binary, tools};

pub(crate) const THEME: Theme = Theme {
    name: "lab",
    cases: cases![
        Once: experiments_are_listed_and_shown, the_doctor_names_a_mend_for_each_fault,
            a_run_ends_in_a_report_that_is_made_again_from_raw_data,
            an_interrupted_run_continues_without_loss, a_broken_experiment_file_shows_line_column_and_mend,
            a_missing_peer_is_a_reason, a_trial_that_fails_is_marked,
            why_splits_the_difference_of_two_servers, the_wall_measures_every_engine_at_every_level,
            exhibits_show_a_mistake_and_its_correction, a_page_takes_its_round_trips, a_plan_that_does_more_than_trials_is_not_continued,
            explain_refuses_with_a_mend, an_interrupted_explanation_ends_with_130,
            an_ordinary_user_measures_compares_and_asks_the_doctor,
            an_ordinary_user_sees_a_request_call_by_call, an_early_end_is_reported_with_its_reason,
            reports_of_trials_do_not_reach_a_service_manager,
            a_run_on_several_machines_is_continued_on_the_same_only, a_run_ends_with_the_agent_of_its_server,
            machines_are_examined_or_refused_with_a_mend, a_search_takes_the_load_of_another_machine;
        OnceAsRoot, Measure: claims_that_are_counted_hold;
        OwnAsRoot on EPOLL: a_report_is_not_written_for_another_user;
        Own on ANY: explain_shows_each_call_of_the_table_beside_its_source_line;
    ],
};

use self::machines::{
    a_run_ends_with_the_agent_of_its_server, a_run_on_several_machines_is_continued_on_the_same_only,
    a_search_takes_the_load_of_another_machine, machines_are_examined_or_refused_with_a_mend,
};
use self::ordinary::{
    an_early_end_is_reported_with_its_reason, an_ordinary_user_measures_compares_and_asks_the_doctor,
    an_ordinary_user_sees_a_request_call_by_call, reports_of_trials_do_not_reach_a_service_manager,
};

fn command(words: &[&str]) -> Command {
    let server = binary::server().unwrap_or_else(|why| panic!("{why}"));
    // A run without an end would block the suite.
    let mut command = Command::new(tools::program("timeout"));
    command.arg("60").arg(&server.path).arg("lab").args(words).stdin(Stdio::null());
    // The laboratory counts the calls of a server.
    command.env("TENFOLD_TEST_SLICE", "1000");
    command
}

fn lab(words: &[&str]) -> Output {
    command(words).output().expect("timeout runs")
}

#[track_caller]
fn expect_code(code: i32, words: &[&str], expected: &[&str]) -> String {
    expect_output(lab(words), code, words, expected)
}

#[track_caller]
fn expect_output(output: Output, code: i32, words: &[&str], expected: &[&str]) -> String {
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
    for part in expected {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    text
}

fn experiments_are_listed_and_shown() {
    let listed =
        expect_code(0, &["list"], &["n16-tcp", "t23-timers", "ab-models", "se20-404", "w12-libraries"]);
    assert_eq!(listed.lines().count(), 29, "{listed}");
    expect_code(0, &["show", "n16-tcp"], &["every response waits about 40 ms", "40.05 ms", "--tcp-cork on"]);
    expect_code(0, &["show", "n16-engines"], &["NOT TESTABLE HERE: it needs"]);
    expect_code(0, &["show", "se20-404", "--file"], &["name = \"se20-404\"", "[[claims]]"]);
    expect_code(2, &["show", "n16-tpc"], &["did you mean `n16-tcp`?"]);
    expect_code(2, &["run", "--profile", "hasty"], &["smoke", "quick", "full"]);
    expect_code(2, &["run", "--blocks", "0", "--only", "se20-url"], &["--blocks"]);
}

fn the_doctor_names_a_mend_for_each_fault() {
    let text = expect_code(0, &["doctor"], &["nginx", "open files"]);
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("SPOILS") || line.starts_with("limits") {
            assert!(lines.get(at + 1).is_some_and(|next| next.starts_with("    ")), "no mend: {line}");
        }
    }
}

/// Claims about counts hold on any machine, other than claims about times.
fn claims_that_are_counted_hold() {
    let folder = TempFolder::new("lab-counted");
    let output = folder.at("run").display().to_string();
    let only = "se20-url,ab-backlog";
    let words = ["run", "--profile", "smoke", "--only", only, "--blocks", "1", "--output", &output];
    // The kernel counts the events of a network namespace, so this case has its own.
    let (lab, begin) = (command(&words), "ip link set lo up && exec \"$@\"");
    let mut alone = Command::new(tools::program("unshare"));
    alone.args(["--net", "sh", "-c", begin, "sh"]).arg(lab.get_program()).args(lab.get_args());
    let output = alone.stdin(Stdio::null()).output().expect("unshare runs");
    expect_output(output, 0, &words, &["4 HOLDS\n"]);
}

fn a_run_ends_in_a_report_that_is_made_again_from_raw_data() {
    let folder = TempFolder::new("lab-run");
    let output = folder.at("run").display().to_string();
    let words =
        ["run", "--profile", "smoke", "--only", "n16-starvation", "--blocks", "1", "--output", &output];
    let text = expect_code(0, &words, &["HOLDS", "naive serves one client at a time", "report.html"]);
    // naive and the pool leave connections without a response, so there is nothing to compare.
    for line in [
        "There is no comparison of models: epoll has a result in n16-starvation (16 connections, 1,067 bytes)",
        "\nSo the run is no reason to leave the default, epoll.\n",
        "\n  tenfold lab run --only own-models,n16-idle   compare models\n",
    ] {
        assert!(text.contains(line), "{line:?} is not in: {text}");
    }
    let read = |name: &str| {
        let path = folder.at("run").join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}\n{text}", path.display()))
    };
    let verdicts: Value = serde_json::from_str(&read("verdicts.json")).expect("it is JSON");
    let rulings: Vec<&str> = verdicts["verdicts"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|verdict| verdict["ruling"].as_str().expect("a word"))
        .collect();
    assert_eq!(rulings, ["holds"; 3]);
    let page = read("report.html");
    assert!(page.contains("Which published claims hold") && page.contains("<svg"));
    assert!(
        !page.contains("<script") && !page.contains("src=") && !page.contains("<link"),
        "nothing is fetched"
    );
    assert!(read("summary.md").contains("3 HOLDS of 3 claims") && read("trials.csv").lines().count() == 4);
    for name in ["report.html", "verdicts.json", "trials.csv", "summary.md"] {
        std::fs::remove_file(folder.at("run").join(name)).expect("it is there");
    }
    expect_code(0, &["report", &output], &["report.html"]);
    assert_eq!(read("report.html"), page);
    expect_code(0, &["compare", &output, &output], &["3 of 3 verdicts agree"]);
    expect_code(2, &words, &["--resume"]);
}

fn an_interrupted_run_continues_without_loss() {
    let folder = TempFolder::new("lab-resume");
    let file = folder.write("own.toml", EXPERIMENT).display().to_string();
    let output = folder.at("run").display().to_string();
    let words = ["run", "--profile", "smoke", "--only", &file, "--blocks", "10", "--output", &output];
    let trials = || std::fs::read_to_string(folder.at("run").join("trials.jsonl")).unwrap_or_default();
    let mut child = command(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let begin = Instant::now();
    while trials().lines().count() < 3 && begin.elapsed() < Duration::from_secs(30) {
        // Each look reads the whole file.
        thread::sleep(Duration::from_millis(5));
    }
    // `timeout` passes the signal on.
    Process(child.id()).signal(Signal::INT);
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    let before = trials();
    let count = before.lines().count();
    assert!((3..20).contains(&count), "{count} trials before the interrupt");
    let text = expect_code(0, &["run", "--resume", &output], &["2 HOLDS", "errors in 10 trials: 0"]);
    // The machine decides which of the two is cheaper, and whether its disturbances permit advice.
    let (_, advice) = text.split_once("report.html\n\n").unwrap_or_else(|| panic!("no advice in: {text}"));
    let lines: Vec<&str> = advice.lines().collect();
    let [result, meaning, limits, "", command] = lines[..5] else { panic!("{advice}") };
    assert!(
        result.contains(" costs the least CPU time") && limits.contains("leaves out naive, fork, "),
        "{advice}"
    );
    let is_advised = |engine: &&str| {
        let begin =
            format!("So {engine} is the best measured choice, but the default, epoll, has no result in own");
        let serve = format!("  tenfold serve --engine {engine}   serve this folder with it");
        meaning.starts_with(&begin) && command == serve
    };
    let is_noisy = result.contains(" blocks were disturbed") && command.starts_with("  tenfold lab doctor");
    assert!(is_noisy || ["poll", "select"].iter().any(is_advised), "{advice}");
    let page = std::fs::read_to_string(folder.at("run/report.html")).expect("it is written");
    let (first, _) = page.split_once("class=\"counts\"").expect("the verdicts follow");
    assert_eq!(first.matches("class=\"interval\"").count(), 2, "a chart of both models: {first}");
    let after = trials();
    assert!(after.starts_with(&before), "trials were lost: {text}");
    // An interrupted block is repeated as a whole.
    assert_eq!(after.lines().count(), 20 + count % 2);
    expect_code(2, &["run", "--resume", &output, "--blocks", "9"], &["--blocks"]);
    for (path, why) in [("nothing", "No such file"), ("", "plan.json")] {
        expect_code(1, &["run", "--resume", &folder.at(path).display().to_string()], &[why]);
    }
}

fn a_broken_experiment_file_shows_line_column_and_mend() {
    let folder = TempFolder::new("lab-broken");
    for (from, to, expected) in [
        ("count = \"poll\"", "count = \"pol\"", &["own.toml:20:18", "did you mean `poll`?", "^^^^"][..]),
        ("measure = \"errors\"", "measure = \"eror\"", &["own.toml:19:11", "did you mean `errors`?"]),
        ("title", "titel", &["own.toml:3:1", "did you mean `title`?"]),
        ("[base]", "[base", &["own.toml:8:"]),
    ] {
        let file = folder.write("own.toml", EXPERIMENT.replacen(from, to, 1)).display().to_string();
        expect_code(2, &["show", &file], expected);
    }
    expect_code(2, &["show", "nowhere.toml"], &["cannot read nowhere.toml"]);
}

fn a_missing_peer_is_a_reason() {
    let folder = TempFolder::new("lab-peers");
    let text = EXPERIMENT.replace("[cells.poll]\n", "[cells.poll]\nsubject = \"nginx\"\n");
    let file = folder.write("own.toml", &text).display().to_string();
    let output = folder.at("run").display().to_string();
    let words = ["run", "--profile", "smoke", "--only", &file, "--peers", "none", "--output", &output];
    expect_code(0, &words, &["NOT TESTABLE HERE", "nginx is not among --peers", "1 HOLDS"]);
    let output = folder.at("beside").display().to_string();
    let words = ["run", "--profile", "smoke", "--only", &file, "--peers", "nginx", "--output", &output];
    expect_code(0, &words, &["2 HOLDS"]);
    let kept = folder.at("beside").join("subjects");
    let text = std::fs::read_to_string(kept.join("own-poll.conf")).expect("its configuration is kept");
    assert!(text.contains("worker_processes 1;"));
    // An archive of a run may have links, through which nginx would write its process id.
    let victim = folder.write("victim", "precious");
    std::fs::remove_file(folder.at("beside").join("trials.jsonl")).expect("it was written");
    std::os::unix::fs::symlink(&victim, kept.join("own-poll.pid")).expect("our own folder");
    expect_code(0, &["run", "--resume", &output], &["2 HOLDS"]);
    assert_eq!(std::fs::read(&victim).expect("it is there"), b"precious");
    // In the configuration of nginx, this name would be two directives.
    let output = folder.at("a;b").display().to_string();
    let words = ["run", "--profile", "smoke", "--only", &file, "--peers", "nginx", "--output", &output];
    expect_code(0, &words, &["nginx cannot be configured", "contains ';'", "1 HOLDS"]);
    assert!(!folder.at("a;b").join("subjects/own-poll.conf").exists());
}

/// The plan in an archive may contain more settings than its experiment.
fn a_plan_that_does_more_than_trials_is_not_continued() {
    let folder = TempFolder::new("lab-foreign");
    let output = folder.at("run").display().to_string();
    let file = folder.write("own.toml", EXPERIMENT).display().to_string();
    let title = EXPERIMENT.replace("title = \"An", "title = \"\\u001b]0;An");
    let wild = folder.write("wild.toml", title).display().to_string();
    let shown = expect_code(0, &["show", &wild], &["\\u{1b}]0;An experiment"]);
    assert!(!shown.contains('\x1b'));
    let named =
        folder.write("named.toml", EXPERIMENT.replace("cells.poll", "cells.\"a/b\"")).display().to_string();
    expect_code(2, &["run", "--only", &named], &["`a/b` is not a name of a cell"]);
    expect_code(0, &["run", "--profile", "smoke", "--only", &file, "--output", &output], &["2 HOLDS"]);
    let victim = folder.write("victim", "precious");
    let plan = folder.at("run").join("plan.json");
    let own = std::fs::read_to_string(&plan).expect("it was written");
    let sized = |plan: &str, bytes: u32| plan.replacen("\"file\": null", &format!("\"file\": {bytes}"), 1);
    let files = sized(&sized(&own, 600_000_000), 700_000_000);
    std::fs::write(&plan, files).expect("our own folder");
    expect_code(2, &["run", "--resume", &output], &["needs files of more than 1 GiB"]);
    for (from, to, why) in [
        (
            "\"engine\": \"poll\"",
            format!("\"engine\": \"poll\", \"access-log\": {victim:?}"),
            "sets access-log",
        ),
        ("\"engine\": \"poll\"", "\"engine\": \"poll\", \"config\": \"x\"".to_owned(), "sets config"),
        ("\"name\": \"own\"", format!("\"name\": {victim:?}"), "the plan has the name"),
        ("\"file\": null", "\"file\": 10000000000000".to_owned(), "needs files of more than 1 GiB"),
        ("\"armed\": null", "\"armed\": 4294967295".to_owned(), "a cell with more than 10000000 timers"),
    ] {
        assert!(own.contains(from), "{own}");
        std::fs::write(&plan, own.replace(from, &to)).expect("our own folder");
        expect_code(2, &["run", "--resume", &output], &[why]);
    }
    std::fs::write(&plan, own).expect("our own folder");
    expect_code(0, &["run", "--resume", &output], &["2 HOLDS"]);
    // A link would redirect configurations and error output.
    std::fs::remove_file(folder.at("run").join("trials.jsonl")).expect("it was written");
    std::fs::remove_dir_all(folder.at("run").join("subjects")).expect("it was made");
    std::fs::create_dir(folder.at("elsewhere")).expect("our own folder");
    std::os::unix::fs::symlink(folder.at("elsewhere"), folder.at("run").join("subjects")).expect("our own");
    expect_code(1, &["run", "--resume", &output], &["run/subjects: File exists"]);
    assert_eq!(std::fs::read_dir(folder.at("elsewhere")).expect("it is there").count(), 0);
    assert_eq!(std::fs::read(&victim).expect("it is there"), b"precious");
}

/// Another user's folder of a run may have links to our files.
fn a_report_is_not_written_for_another_user(_: &Config) {
    let folder = TempFolder::new("lab-planted");
    let output = folder.at("run").display().to_string();
    let file = folder.write("own.toml", EXPERIMENT).display().to_string();
    expect_code(0, &["run", "--profile", "smoke", "--only", &file, "--output", &output], &["2 HOLDS"]);
    let ours = folder.write("ours.txt", "precious");
    let csv = folder.at("run").join("trials.csv");
    std::fs::remove_file(&csv).expect("it was written");
    std::os::unix::fs::symlink(&ours, &csv).expect("our own folder");
    // An unpacked archive belongs to this user, but may have links too.
    expect_code(0, &["report", &output], &["report.html"]);
    assert_eq!(std::fs::read(&ours).expect("it is there"), b"precious");
    assert!(!csv.is_symlink());
    std::os::unix::fs::chown(folder.at("run"), Some(12_345), None).expect("the test is root");
    expect_code(2, &["report", &output], &["belongs to user 12345"]);
    assert_eq!(std::fs::read(&ours).expect("it is there"), b"precious");
}

fn a_trial_that_fails_is_marked() {
    let folder = TempFolder::new("lab-failed");
    let text = EXPERIMENT
        .replace("\"poll\", workers", "\"kqueue\", workers")
        .replace("\"select\", workers", "\"kqueue\", workers");
    let file = folder.write("own.toml", &text).display().to_string();
    let output = folder.at("run").display().to_string();
    let words = ["run", "--profile", "smoke", "--only", &file, "--output", &output];
    expect_code(4, &words, &["INCONCLUSIVE", "no trial succeeded", "kqueue"]);
    let trials = std::fs::read_to_string(folder.at("run").join("trials.jsonl")).expect("trials are kept");
    for line in trials.lines() {
        let trial: Value = serde_json::from_str(line).expect("it is JSON");
        assert!(trial["failed"].as_str().is_some_and(|why| why.contains("did not start")), "{line}");
    }
}

fn why_splits_the_difference_of_two_servers() {
    let folder = TempFolder::new("lab-why");
    let output = folder.at("run").display().to_string();
    let words =
        ["why", "epoll --send copy", "poll", "--profile", "smoke", "--blocks", "2", "--output", &output];
    let text = expect_code(0, &words, &["A: epoll --send copy\nB: poll", "2 blocks", "ListenDrops"]);
    for name in ["user", "system", "waiting", "latency", "context switches", "page faults"] {
        let line =
            text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        assert!(line.contains('[') && line.contains(']'), "{line} has no interval");
    }
    let calls = |name: &str| text.lines().any(|line| line.trim_start().starts_with(name));
    assert!((calls("epoll_") && calls("poll ")) || text.contains("not counted: it needs strace"), "{text}");
    expect_code(0, &["report", &output], &["report.html"]);
    let page = std::fs::read_to_string(folder.at("run").join("report.html")).expect("it is written");
    assert!(
        page.contains("tenfold lab why &quot;epoll --send copy&quot; &quot;poll&quot; --seed"),
        "it repeats"
    );
    expect_code(2, &["why", "eppoll", "poll"], &["did you mean `epoll`?"]);
    expect_code(2, &["why", "epoll --sned copy", "poll"], &["did you mean --send?"]);
    expect_code(2, &["why", "epoll", "poll", "--connections", "0"], &["--connections"]);
}

fn the_wall_measures_every_engine_at_every_level() {
    let folder = TempFolder::new("lab-wall");
    let output = folder.at("run").display().to_string();
    let words = ["wall", "--engines", "poll,epoll", "--idle", "50", "--blocks", "2", "--output", &output];
    let text = expect_code(0, &words, &["| idle connections |", "report.html"]);
    for cell in ["poll-0", "poll-50", "epoll-0", "epoll-50"] {
        for block in ["block 1 ", "block 2 "] {
            let measured = |line: &&str| line.starts_with(block) && line.contains(&format!(" {cell} "));
            let line = text.lines().find(measured).unwrap_or_else(|| panic!("{block}{cell}: {text}"));
            assert!(line.ends_with(" µs"), "{line}");
        }
    }
    let rows = |first: &str| {
        text.lines().filter(|line| line.trim_start_matches("| ").trim().starts_with(first)).count()
    };
    assert_eq!([rows("0 |"), rows("50 |")], [1, 1], "{text}");
    let growth = text.lines().find(|line| line.contains("last / first")).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(growth.matches('[').count(), 2, "{text}");
    assert!(!text.contains('\x1b'), "plain lines without a terminal: {text}");
    expect_code(2, &["wall", "--engines", "kqueue"], &["no engine `kqueue`"]);
    expect_code(2, &["wall", "--idle", "99999999"], &["--idle", "ulimit -n"]);
}

fn exhibits_show_a_mistake_and_its_correction() {
    let folder = TempFolder::new("lab-museum");
    let output = folder.at("run").display().to_string();
    // Exhibits with verdicts on counts. The machine decides whether a listener reports two connections together, so
    // only the correction of `accept-one` is certain.
    let words = ["museum", "accept-one", "send-once", "--output", &output];
    let text = expect_code(
        0,
        &words,
        &[
            "With one accept for each event, connections are never accepted.",
            "HOLDS: Accepting until EAGAIN mends it.",
            "HOLDS: Without resuming, responses are truncated.",
            "HOLDS: Resuming when the socket is writable mends it.",
        ],
    );
    let bars: Vec<usize> = text
        .lines()
        .filter(|line| line.starts_with("  before") || line.starts_with("  after"))
        .map(|line| line.matches('#').count())
        .collect();
    assert!(matches!(bars[..], [_, 0, 40, 0]), "{text}");
    assert!(folder.at("run").join("subjects/accept-one.c").exists(), "the source is kept");
    expect_code(0, &["museum", "accept-one", "--source"], &["#ifdef CORRECTED", "while ((client = accept("]);
    expect_code(2, &["museum", "accept-two"], &["did you mean `accept-one`?"]);
    expect_code(2, &["museum", "--source"], &["name one"]);
    // Without a compiler, an exhibit is left out with the reason.
    let empty = folder.make("empty");
    let output = folder.at("without").display().to_string();
    let mut without = command(&["museum", "accept-one", "--output", &output]);
    let found = without.env("PATH", empty).output().expect("timeout runs");
    let text = String::from_utf8_lossy(&[found.stdout, found.stderr].concat()).into_owned();
    assert_eq!(found.status.code(), Some(0), "{text}");
    assert!(text.contains("NOT TESTABLE HERE") && text.contains("needs a C compiler"), "{text}");
}

/// A handshake and one request take two round trips. HTTP/1.1 makes three requests in turn on each of two connections. The
/// proxy can fail in either direction, and the load generator can use other connections.
fn a_page_takes_its_round_trips() {
    let folder = TempFolder::new("lab-page");
    let text = EXPERIMENT
        .replace(
            "connections = 2, milliseconds = 300",
            "page = 6, pages = 2, round-trip = 40, connections = 2",
        )
        .replace("[cells.poll]\n", "[cells.poll]\nload = { http2 = true, connections = 1 }\n");
    let file = folder.write("own.toml", text).display().to_string();
    let output = folder.at("run").display().to_string();
    expect_code(0, &["run", "--profile", "smoke", "--only", &file, "--output", &output], &["2 HOLDS"]);
    let trials = std::fs::read_to_string(folder.at("run/trials.jsonl")).expect("raw data");
    let trials: Vec<Value> = trials.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    for (cell, least) in [("poll", 80.0), ("select", 160.0)] {
        let trial = trials.iter().find(|trial| trial["cell"] == cell).unwrap_or_else(|| panic!("{cell}"));
        let page = trial["values"]["page"].as_f64().unwrap_or_else(|| panic!("{trial:#}"));
        assert!(page >= least, "{cell}: the page took {page} ms, and its round trips take {least} ms");
        assert_eq!(trial["values"]["responses"], 12.0, "{trial:#}");
    }
}

fn explain_shows_each_call_of_the_table_beside_its_source_line(config: &Config) {
    let model = config.engine.model();
    let text = expect_code(0, &["explain", model.name], &[model.summary, model.file]);
    let lines: Vec<&str> = text.lines().collect();
    let mut calls: Vec<(&str, Option<&str>)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((number, rest)) = line.trim_start().split_once("  ") else { continue };
        let (Ok(number), Some((name, _))) = (number.parse::<usize>(), rest.split_once('(')) else { continue };
        assert_eq!(number, calls.len() + 1, "{text}");
        let cited = lines.get(at + 2).filter(|line| line.trim_start().starts_with("crates/"));
        calls.push((name, cited.map(|line| line.trim())));
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join(format!("docs/explanation/models/{}.md", model.name)))
        .expect("a page");
    let section = page.split("## One request\n").nth(1).unwrap_or_else(|| panic!("{}", model.name));
    for step in model.calls.iter().filter(|step| step.note != "for large files") {
        let names: Vec<String> = step.calls.iter().map(ToString::to_string).collect();
        let is_one = |name: &str| names.iter().any(|one| one == name);
        let found = calls.iter().find(|(name, cited)| is_one(name) && cited.is_some());
        assert!(found.is_some(), "none of {names:?} with its line in {text}");
        let rows = section.split("\n## ").next().unwrap_or_default();
        let in_page = names.iter().any(|name| rows.contains(&format!("| `{name}` |")));
        assert!(in_page, "none of {names:?} on the page of {}", model.name);
    }
    // `crates/a.rs:12, fn name: the line`
    for cited in calls.iter().filter_map(|(_, cited)| *cited) {
        let (place, rest) = cited.split_once(", fn ").unwrap_or_else(|| panic!("{cited}"));
        let (path, number) = place.split_once(':').expect("a number");
        let (function, line) = rest.split_once(": ").expect("a line");
        let source = std::fs::read_to_string(root.join(path)).expect("a source file");
        let number: usize = number.parse().expect("a number");
        assert_eq!(source.lines().nth(number - 1).map(str::trim), Some(line), "{cited}");
        let above: Vec<&str> = source.lines().take(number).collect();
        let names =
            |line: &&str| line.contains(&format!("{function}(")) || line.contains(&format!("{function}<"));
        assert!(above.iter().any(names), "{cited}");
    }
}

fn explain_refuses_with_a_mend() {
    expect_code(
        2,
        &["explain", "epol"],
        &["there is no engine \"epol\"; there are naive, fork", "did you mean `epoll`?"],
    );
    let server = binary::server().unwrap_or_else(|why| panic!("{why}"));
    let output =
        Command::new(&server.path).args(["lab", "explain", "poll"]).env("PATH", "/nonexistent").output();
    let output = output.expect("it runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("strace is not installed; install the package strace"), "{text}");
}

fn an_interrupted_explanation_ends_with_130() {
    let mut child = command(&["explain", "epoll"]).stdout(Stdio::piped()).spawn().expect("it starts");
    let process = Process(child.id());
    // `timeout` passes the signal on. The program catches it before it starts a server.
    let has_server = || process.with_descendants().len() > 2;
    becomes_true(SOON, "the server to be explained runs", has_server);
    process.signal(Signal::INT);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let mut text = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("text");
    assert_eq!(text, "", "no part of a trace");
}
