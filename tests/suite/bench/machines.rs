//! `tenfold bench --on`: agents of this machine, their sums, and their losses.

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tenfold_tests::binary;
use tenfold_tests::process::Process;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::{SOON, becomes_true};

use super::peer::{FaultyServer, ok};
use super::{bench, counting, expect_code, measured, number, said, without_others};

/// The longest life of a process below a stopped agent, and a margin.
const LAST: Duration = Duration::from_secs(25);

/// The command of an agent on this machine.
fn agent() -> String {
    let server = binary::server().unwrap_or_else(|why| panic!("{why}"));
    format!("{} agent", server.path.display())
}

/// The sum of the responses by status and of the requests without a response.
fn counted(run: &Value) -> f64 {
    let statuses = run["statuses"].as_object().expect("statuses");
    statuses.values().filter_map(Value::as_f64).sum::<f64>() + number(run, "/unfinished")
}

pub(super) fn agents_share_a_plan() {
    let agent = agent();
    let on = ["--on", "a", "--on", "b*2", "--on-command", &agent];
    for words in [
        &["-d", "1s", "-c", "7"][..],
        &["-d", "1s", "-c", "6", "--rate", "999"],
        &["-n", "1001", "-c", "6", "--rate", "2000", "--arrivals", "poisson"],
        &["-n", "1001", "-c", "8", "-t", "2"],
        &["-n", "1001", "-c", "6", "--processes", "2"],
    ] {
        let (peer, count) = counting(u64::MAX);
        let address = peer.address.to_string();
        let run = measured(&[words, &on[..], &[&address]].concat());
        assert_eq!(counted(&run), count.load(Ordering::Relaxed) as f64, "{words:?}: {run:#}");
        if words.contains(&"-n") {
            assert_eq!(number(&run, "/answers"), 1001.0, "{words:?}: {run:#}");
        }
        if words.contains(&"999") {
            assert_eq!(number(&run, "/schedule/asked"), 999.0, "{run:#}");
        }
        let agents = run["agents"].as_array().expect("rows");
        let all = |name: &str| agents.iter().map(|row| row[name].clone()).collect::<Vec<_>>();
        assert_eq!(all("name"), [json!("a"), json!("b*1"), json!("b*2")]);
        assert_eq!(all("seed"), [json!(1), json!(2), json!(3)]);
        let answers: f64 = all("answers").iter().filter_map(Value::as_f64).sum();
        assert_eq!(answers, number(&run, "/answers"), "{words:?}: {run:#}");
        assert!(!run["invalid"].to_string().contains("no response"), "{run:#}");
    }
}

pub(super) fn nothing_of_one_machine_changes() {
    let (peer, _) = counting(u64::MAX);
    let run = measured(&["-n", "200", "-c", "4", &peer.address.to_string()]);
    assert_eq!(run["agents"], json!([]));
    let output = bench(&["-v", "-n", "200", "-c", "4", &peer.address.to_string()]);
    assert!(!said(&output).contains("agent"), "{}", said(&output));
    for (words, why) in [
        (&["--on", "-oProxyCommand=x"][..], "cannot begin with '-'"),
        (&["--on", "a", "--on", "a"], "\"a\" is named twice; use a*2"),
        (&["--on", "a*0"], "1 to 1000"),
        (&["--on", "a b"], "neither spaces"),
        (&["--on-command", "x"], "no effect without --on"),
        (&["--on-copy"], "no effect without --on"),
        (&["--share", "equal"], "no effect without --on"),
        (&["--on", "a", "--on-copy", "--on-command", "x agent"], "--on-copy copies by OpenSSH"),
        (&["--on", "a", "--share", "processors", "-t", "2"], "remove --threads"),
    ] {
        let output = expect_code(2, &[&["127.0.0.1:9"], words].concat(), &[why]);
        assert_eq!(said(&output).lines().count(), 1, "{}", said(&output));
    }
}

pub(super) fn an_agent_that_fails_is_named() {
    let agent = agent();
    let on = ["--on", "a", "--on", "b", "--on-command", &agent];
    let (peer, _) = counting(u64::MAX);
    let address = peer.address.to_string();
    // Two requests leave nothing for the third agent, which is no fault.
    let three = ["--on", "a*3", "--on-command", &agent];
    expect_code(
        0,
        &[&["-v", "-n", "2", "-c", "3", &address], &three[..]].concat(),
        &["2 responses OK", "3 agents"],
    );
    // Agents with fewer connections than threads.
    expect_code(
        2,
        &[&["-c", "3", "-t", "2", &address], &on[..]].concat(),
        &["3 connections cannot be shared by 4"],
    );
    expect_code(1, &[&["-n", "9", "http://no.such.host.invalid/"], &on[..]].concat(), &["a: cannot resolve"]);
    let nobody = tenfold_tests::address::ReservedAddress::new().to_string();
    expect_code(1, &[&["-n", "9", &nobody], &on[..]].concat(), &["a: cannot connect to", "refused"]);
    expect_code(
        1,
        &["-n", "9", &address, "--on", "a", "--on-command", "/no/such/program {}"],
        &["the agent on a: cannot start"],
    );
}

/// A run under way on two agents, and the number of requests so far.
struct Measuring {
    child: Child,
    count: Arc<AtomicU64>,
    folder: TempFolder,
    _peer: FaultyServer,
}

impl Measuring {
    fn start(seconds: &str) -> Measuring {
        let folder = TempFolder::new("bench-machines");
        let script = "echo $$ >$0.$1; echo note of $1 >&2; exec PROGRAM agent";
        let server = binary::server().unwrap_or_else(|why| panic!("{why}"));
        let script =
            folder.write("start", script.replace("PROGRAM", &server.path.display().to_string()).as_bytes());
        let count = Arc::new(AtomicU64::new(0));
        let counted = count.clone();
        let peer = FaultyServer::start(move |stream, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            ok(stream, "hello")
        });
        let mut command = Command::new(&server.path);
        command.args(["bench", "--json", "-d", seconds, "-c", "4", "--on", "a", "--on", "b"]);
        command
            .arg("--on-command")
            .arg(format!("sh {} {{}}", script.display()))
            .arg(peer.address.to_string());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it was built");
        becomes_true(SOON, "it is under way", || count.load(Ordering::Relaxed) > 100);
        Measuring { child, count, folder, _peer: peer }
    }

    /// The agent of this name.
    fn agent(&self, name: &str) -> Process {
        let text = fs::read_to_string(self.folder.at(&format!("start.{name}"))).expect("it has started");
        Process(text.trim().parse().expect("a number"))
    }

    /// The only child of a process.
    fn child_of(process: Process) -> Process {
        process.children().first().copied().expect("a child")
    }

    fn output(self) -> Output {
        let output = self.child.wait_with_output().expect("our own child");
        // The load of a stopped agent ends with the patience of its warden.
        becomes_true(LAST, "the requests end", || {
            let before = self.count.load(Ordering::Relaxed);
            thread::sleep(Duration::from_millis(50));
            self.count.load(Ordering::Relaxed) == before
        });
        output
    }
}

pub(super) fn lost_agents_make_a_run_invalid() {
    // The run would take a minute. The last number is the seconds in which its end is noticed on a busy machine.
    let cases = [
        ("agent", Signal::KILL, "it ended", 12),
        ("agent", Signal::STOP, "it has not answered for 5 s", 20),
        ("warden", Signal::KILL, "warden was killed", 12),
        ("task", Signal::KILL, "was killed by signal 9", 12),
        ("task", Signal::TERM, "was stopped on its machine", 12),
        ("task", Signal::STOP, "it has not reported its load for 5 s", 20),
    ];
    let run = |(part, signal, says, seconds): (&str, Signal, &str, u64)| {
        let run = Measuring::start("60s");
        let agent = run.agent("a");
        let process = match part {
            "agent" => agent,
            "warden" => Measuring::child_of(agent),
            _ => Measuring::child_of(Measuring::child_of(agent)),
        };
        let begin = Instant::now();
        process.signal(signal);
        let output = run.output();
        let took = begin.elapsed();
        assert_eq!(output.status.code(), Some(4), "{part} {signal:?}: {}", said(&output));
        assert!(took < Duration::from_secs(seconds), "{part} {signal:?}: {took:?}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let found = &report["runs"][0];
        let (lost, other) = (&found["agents"][0], &found["agents"][1]);
        assert!(lost["lost"].as_str().is_some_and(|why| format!("it {why}").contains(says)), "{found:#}");
        assert_eq!(lost["written"], json!(["note of a"]), "{found:#}");
        assert!(
            other["lost"].is_null() && other["answers"].as_f64().is_some_and(|count| count > 0.0),
            "{found:#}"
        );
        assert!(number(found, "/answers") > 0.0, "{found:#}");
        let invalid = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(invalid.contains("invalid: a: it ") && invalid.contains("note of a"), "{invalid}");
        // A stopped agent is killed by its warden.
        becomes_true(LAST, "nothing is left", || !process.is_running());
    };
    cases.into_iter().for_each(run);
}

pub(super) fn a_paused_agent_makes_a_run_invalid() {
    let run = Measuring::start("5s");
    let task = Measuring::child_of(Measuring::child_of(run.agent("a")));
    task.signal(Signal::STOP);
    // The fault that the controller must see.
    thread::sleep(Duration::from_millis(1_500));
    task.signal(Signal::CONT);
    let output = run.output();
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    let text = said(&output);
    assert!(text.contains("invalid: a: a thread of the agent did not run for 1."), "{text}");
}

pub(super) fn an_interrupt_ends_all_agents() {
    let run = Measuring::start("60s");
    let agents = ["a", "b"].map(|name| run.agent(name));
    let begin = Instant::now();
    Process(run.child.id()).signal(Signal::INT);
    let output = without_others(run.output());
    assert!(begin.elapsed() < Duration::from_secs(20), "it took {:?} to end", begin.elapsed());
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["runs"][0]["interrupted"], json!(true));
    assert!(number(&report["runs"][0], "/answers") > 0.0, "{report:#}");
    assert!(agents.iter().all(|agent| !agent.is_running()));
}
