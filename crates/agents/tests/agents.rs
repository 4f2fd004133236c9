//! Agents of this machine: messages, refusals, and losses after which nothing may be left running.
//!
//! The same program is the test, the controllers, the agents and the stubs. It has no harness, because an agent must be a
//! process with one thread.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tenfold_agents::fleet::FleetPlan;
use tenfold_agents::fleet::command::{AgentPlace, StartCommand};
use tenfold_agents::{Fleet, FleetEvent, Task, TaskPipe, agent};
use tenfold_sys::process::{self, Pid};
use tenfold_sys::signal::Signal;

/// The longest wait for the end of processes: the silence after which they end, and a margin.
const GONE: Duration = Duration::from_secs(25);
/// The longest wait for a message.
const SOON: Duration = Duration::from_secs(20);

const TASKS: [(&str, Task); 4] = [("echo", echo), ("fail", fail), ("flood", flood), ("sleep", sleep)];

fn main() {
    let words: Vec<String> = std::env::args().collect();
    match words.get(1).map(String::as_str) {
        Some("agent") => exit(agent::serve(&TASKS)),
        Some("controller") => control(),
        Some("stub") => stub(&words[2]),
        // Cargo and IDEs pass flags of the usual harness.
        _ => test(),
    }
}

fn exit(result: Result<(), String>) -> ! {
    if let Err(why) = &result {
        eprintln!("{why}");
    }
    std::process::exit(i32::from(result.is_err()))
}

fn test() {
    let cases: [fn(); 11] = [
        messages_go_both_ways,
        a_task_ends_with_its_reason,
        a_start_that_fails_is_one_line_with_a_remedy,
        a_hostile_agent_is_lost,
        a_flood_is_bounded,
        nothing_is_left_after_a_killed_part,
        nothing_is_left_after_a_stopped_part,
        nothing_is_left_after_a_killed_controller,
        nothing_is_left_after_a_stopped_controller,
        nothing_is_left_after_the_deadline,
        nothing_is_left_after_two_losses,
    ];
    // Most of them wait for a silence to end.
    let running: Vec<_> = cases.into_iter().map(thread::spawn).collect();
    let failed = running.into_iter().map(thread::JoinHandle::join).filter(Result::is_err).count();
    assert_eq!(failed, 0, "the messages are above");
}

/// Sends each message back.
fn echo(pipe: &mut TaskPipe) -> Result<(), String> {
    while let Some(message) = pipe.receive::<String>()? {
        pipe.send(&message)?;
    }
    Ok(())
}

fn fail(_: &mut TaskPipe) -> Result<(), String> {
    Err("no\x1b[31m luck".to_owned())
}

fn flood(pipe: &mut TaskPipe) -> Result<(), String> {
    loop {
        pipe.send(&0)?;
    }
}

/// Starts a child and a grandchild that sleep, and sends the numbers of all processes: of the agent, of the warden, of
/// the task, and of the children.
fn sleep(pipe: &mut TaskPipe) -> Result<(), String> {
    let script = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; wait";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let output = child.stdout.take().expect("a pipe");
    let number = child.id();
    // Nobody waits for it: the warden reaps it.
    drop(child);
    let mut lines = BufReader::new(output).lines();
    let mut line = || lines.next().expect("two lines").expect("text").parse::<u32>().expect("a number");
    let own = std::process::id();
    let warden = process::parent(own).expect("a parent");
    let agent = process::parent(warden).expect("a parent");
    pipe.send(&[agent, warden, own, number, line(), line()])?;
    while pipe.receive::<String>()?.is_some() {}
    Ok(())
}

fn own() -> String {
    std::env::current_exe().expect("/proc").display().to_string()
}

fn plan(command: &str, names: &[&str]) -> FleetPlan {
    let places: Vec<AgentPlace> = names.iter().map(|name| name.parse().expect("a name")).collect();
    let command: StartCommand = command.parse().expect("a command");
    FleetPlan { places, command, copy: false }
}

fn start(names: &[&str]) -> Fleet {
    Fleet::start(&plan(&format!("{} agent", own()), names)).unwrap_or_else(|why| panic!("{why:?}"))
}

/// The next event of an agent.
fn next(fleet: &mut Fleet, agent: usize) -> FleetEvent {
    let until = Instant::now() + SOON;
    loop {
        if let Some(event) = fleet.take(agent) {
            return event;
        }
        assert!(Instant::now() < until, "no event came");
        fleet.exchange(SOON);
    }
}

fn messages_go_both_ways() {
    let mut fleet = start(&["a*2", "b"]);
    assert_eq!((0..3).map(|agent| fleet.label(agent).to_owned()).collect::<Vec<_>>(), ["a*1", "a*2", "b"]);
    let long = "x".repeat(3 << 20);
    for agent in 0..3 {
        // All agents of this machine have its clock.
        let clock = fleet.clock(agent);
        assert!(clock.offset.unsigned_abs() <= clock.round_trip / 2 + 1, "{clock:?}");
        fleet.begin(agent, "echo", SOON).expect("a short message");
        fleet.say(agent, &long).expect("it fits");
    }
    for agent in 0..3 {
        assert_eq!(next(&mut fleet, agent), FleetEvent::Said(format!("\"{long}\"")));
        fleet.end_task(agent);
        assert_eq!(next(&mut fleet, agent), FleetEvent::Ended(String::new()));
    }
}

fn a_task_ends_with_its_reason() {
    let mut fleet = start(&["a"]);
    fleet.begin(0, "fail", SOON).expect("a short message");
    assert_eq!(next(&mut fleet, 0), FleetEvent::Failed("no [31m luck".to_owned()));
    assert_eq!(next(&mut fleet, 0), FleetEvent::Ended("exited with code 1".to_owned()));
    fleet.begin(0, "unknown", SOON).expect("a short message");
    assert_eq!(next(&mut fleet, 0), FleetEvent::Failed("there is no task \"unknown\"".to_owned()));
    assert!(matches!(next(&mut fleet, 0), FleetEvent::Ended(_)));
    // The agent still works.
    fleet.begin(0, "echo", SOON).expect("a short message");
    fleet.say(0, &"again").expect("a short message");
    assert_eq!(next(&mut fleet, 0), FleetEvent::Said("\"again\"".to_owned()));
}

/// A script in a temporary folder that is removed with this value.
struct Script(PathBuf);

impl Script {
    fn new(name: &str, text: &str) -> Script {
        let path = std::env::temp_dir().join(format!("tenfold-agents-{}-{name}", std::process::id()));
        fs::write(&path, text).expect("a folder for temporary files");
        Script(path)
    }

    fn refused(&self) -> String {
        let refused = Fleet::start(&plan(&format!("sh {}", self.0.display()), &["host"]));
        let lines = refused.map(|_| ()).expect_err("it does not start");
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines[0].clone()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn a_start_that_fails_is_one_line_with_a_remedy() {
    let banner = "head -c 60000 /dev/zero | tr '\\0' 'x'; printf '\\nWelcome, user> '";
    let greeted = Script::new("greeted", &format!("{banner}; exec {} agent", own()));
    let fleet = Fleet::start(&plan(&format!("sh {}", greeted.0.display()), &["host"]));
    assert!(fleet.is_ok(), "a banner is skipped: {fleet:?}");
    drop(fleet);
    for (name, script, says) in [
        ("flood", "yes quoted | head -c 70000; sleep 9", "its output ends with: quoted"),
        ("other", "echo 'tenfold-agent 9.9.9-abc'; sleep 9", "build 9.9.9-abc, and this is build 0.1.0-"),
        ("missing", "echo 'bash: line 1: tenfold: command not found' >&2; exit 127", "or add --on-copy"),
        ("key", "echo 'Host key verification failed.' >&2; exit 255", "accept it once with `ssh host`"),
        ("login", "echo 'host: Permission denied (publickey).' >&2; exit 255", "`ssh-copy-id host`"),
        ("format", "echo 'sh: 1: tenfold: Exec format error' >&2; exit 126", "another architecture"),
    ] {
        let said = Script::new(name, script).refused();
        assert!(said.starts_with("the agent on host ") && said.contains(says), "{said}");
        assert!(!said.contains('\n'), "{said}");
    }
    let missing =
        Fleet::start(&plan("/no/such/program {}", &["host"])).map(|_| ()).expect_err("it is missing");
    assert!(missing[0].contains("cannot start /no/such/program: No such file"), "{missing:?}");
}

/// Sends the first line of a true agent, and then the bytes that `how` names.
fn stub(how: &str) {
    let mut agent = Command::new(own())
        .arg("agent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it is this program");
    let mut lines = BufReader::new(agent.stdout.take().expect("a pipe"));
    let mut line = String::new();
    while !line.starts_with("tenfold-agent ") {
        line.clear();
        lines.read_line(&mut line).expect("text");
    }
    agent.kill().expect("it runs");
    agent.wait().expect("it ended");
    let mut output = std::io::stdout();
    output.write_all(line.as_bytes()).expect("a pipe");
    let frame = |text: &str| [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat();
    let bytes = match how {
        "garbage" => vec![0xff; 100],
        "text" => frame("{\"say\":"),
        "pong" => frame("{\"pong\":{\"number\":77,\"clock\":1}}"),
        "deep" => frame(&"[".repeat(100_000)),
        "control" => frame("{\"unknown\u{1b}[2J\":1}"),
        _ => Vec::new(),
    };
    let _ = output.write_all(&bytes).and_then(|()| output.flush());
    while how == "flood" && output.write_all(&frame("{\"say\":1}")).is_ok() {}
    // A hung agent reads and does not answer.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn a_flood_is_bounded() {
    let mut fleet = start(&["a"]);
    fleet.begin(0, "flood", SOON).expect("a short message");
    let until = Instant::now() + SOON;
    let last = loop {
        fleet.exchange(SOON);
        // The events are not taken, and their number is bounded.
        if fleet.is_lost(0) {
            break std::iter::from_fn(|| fleet.take(0)).last();
        }
        assert!(Instant::now() < until, "the flood has no end");
    };
    assert_eq!(last, Some(FleetEvent::Lost("sent messages without end".to_owned())));
}

fn a_hostile_agent_is_lost() {
    let cases = [
        ("garbage", "sent no message of an agent: a message announces"),
        ("text", "sent no message of an agent"),
        ("pong", "answered a ping that was not sent"),
        ("deep", "sent no message of an agent"),
        ("control", "sent no message of an agent"),
        ("flood", "has not answered for 5 s"),
        ("silent", "has not answered for 5 s"),
    ];
    let check = |(how, says): (&str, &str)| {
        let refused = Fleet::start(&plan(&format!("{} stub {how}", own()), &["host"]));
        let lines = refused.map(|_| ()).expect_err(how);
        assert!(lines[0].contains(says), "{how}: {lines:?}");
        assert!(!lines[0].contains('\x1b'), "{how}: {lines:?}");
    };
    thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || check(case));
        }
    });
}

/// A fleet of one agent with sleeping processes, and their numbers.
fn sleeping() -> (Fleet, Vec<u32>) {
    let mut fleet = start(&["a"]);
    fleet.begin(0, "sleep", Duration::from_secs(600)).expect("a short message");
    let FleetEvent::Said(said) = next(&mut fleet, 0) else { panic!("no numbers") };
    let numbers = serde_json::from_str(&said).expect("numbers");
    (fleet, numbers)
}

fn signal(number: u32, signal: &str) {
    // The shell has it built in; the program is part of a package that a small system lacks.
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {number}")]).status();
    assert!(sent.expect("a shell").success());
}

/// Whether a process runs or is stopped.
fn lives(number: u32) -> bool {
    fs::read_to_string(format!("/proc/{number}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

fn expect_gone(numbers: &[u32], after: &str) {
    let until = Instant::now() + GONE;
    while let Some(left) = numbers.iter().find(|number| lives(**number)) {
        if Instant::now() > until {
            let stat = fs::read_to_string(format!("/proc/{left}/stat"));
            for number in numbers {
                let _ = i32::try_from(*number)
                    .map(|raw| Pid::from_raw(raw).map(|pid| process::send_signal(pid, Signal::Kill)));
            }
            panic!("{after}: of {numbers:?}, {left} is left: {stat:?}");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// A stopped warden continues when its agent is killed.
fn nothing_is_left_after_two_losses() {
    let (mut fleet, numbers) = sleeping();
    // Below sshd, an agent has a session of its own, so no signal of the terminal continues its warden.
    signal(numbers[1], "STOP");
    signal(numbers[0], "KILL");
    assert!(matches!(next(&mut fleet, 0), FleetEvent::Lost(_)));
    drop(fleet);
    expect_gone(&numbers, "stopped warden and killed agent");
}

const PARTS: [&str; 3] = ["agent", "warden", "task"];

fn nothing_is_left_after_a_killed_part() {
    for (part, name) in PARTS.iter().enumerate() {
        let (mut fleet, numbers) = sleeping();
        signal(numbers[part], "KILL");
        let event = next(&mut fleet, 0);
        assert!(matches!(event, FleetEvent::Ended(_) | FleetEvent::Lost(_)), "{name}: {event:?}");
        // The agent goes on after the end of its task.
        let left = if part == 0 { &numbers[..] } else { &numbers[1..] };
        expect_gone(left, &format!("killed {name}"));
        drop(fleet);
        expect_gone(&numbers, &format!("killed {name}, and the fleet ended"));
    }
}

fn nothing_is_left_after_a_stopped_part() {
    let cases = PARTS.iter().enumerate().map(|(part, name)| {
        thread::spawn(move || {
            let (mut fleet, numbers) = sleeping();
            signal(numbers[part], "STOP");
            // The controller of a load notices a silent task; this test has no load.
            if part < 2 {
                let event = next(&mut fleet, 0);
                assert!(matches!(event, FleetEvent::Ended(_) | FleetEvent::Lost(_)), "{name}: {event:?}");
            }
            drop(fleet);
            expect_gone(&numbers, &format!("stopped {name}"));
        })
    });
    let cases: Vec<_> = cases.collect();
    cases.into_iter().for_each(|case| case.join().expect("the message is above"));
}

/// A controller in a process of its own: it prints the numbers of the processes of its agent.
fn control() {
    let (mut fleet, numbers) = sleeping();
    println!("{}", serde_json::to_string(&numbers).expect("numbers"));
    loop {
        fleet.exchange(SOON);
    }
}

fn controller() -> (Child, Vec<u32>) {
    let mut child =
        Command::new(own()).arg("controller").stdout(Stdio::piped()).spawn().expect("it is this program");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("text");
    let numbers = serde_json::from_str(&line).expect("numbers");
    (child, numbers)
}

fn nothing_is_left_after_a_killed_controller() {
    let (mut child, numbers) = controller();
    child.kill().expect("it runs");
    child.wait().expect("it ended");
    expect_gone(&numbers, "killed controller");
}

fn nothing_is_left_after_a_stopped_controller() {
    let (mut child, numbers) = controller();
    signal(child.id(), "STOP");
    expect_gone(&numbers, "stopped controller");
    child.kill().expect("it is stopped");
    child.wait().expect("it ended");
}

fn nothing_is_left_after_the_deadline() {
    let mut fleet = start(&["a"]);
    fleet.begin(0, "sleep", Duration::from_secs(1)).expect("a short message");
    let FleetEvent::Said(said) = next(&mut fleet, 0) else { panic!("no numbers") };
    let numbers: Vec<u32> = serde_json::from_str(&said).expect("numbers");
    assert_eq!(next(&mut fleet, 0), FleetEvent::Ended("was ended after its 2 s".to_owned()));
    expect_gone(&numbers[1..], "deadline");
}
