//! Standard error at each `log-level`: the documented messages, and none below the level.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::{Theme, each_at_once};
use tenfold_tests::launch::Launch;
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::{SOON, becomes_true};

pub(crate) const THEME: Theme = Theme {
    name: "levels",
    cases: cases![
        Own on EPOLL: each_level_prints_its_own_and_more_severe_messages,
            a_reload_changes_the_log_level_of_workers;
    ],
};

/// Most severe first.
const LEVELS: [&str; 4] = ["error", "warn", "info", "debug"];

/// The messages of `a_life` at each level, from the supervisor and the workers.
const SAID: [&[&str]; 4] = [
    &["tenfold: error: backlog cannot change without a restart; the old configuration stays in use"],
    &[
        "tenfold: warning: there is no setting TENFOLD_LOG_FORMT; did you mean TENFOLD_LOG_FORMAT?",
        "tenfold: warning: cannot write the access log: No space left on device",
        "; another takes its place",
    ],
    &["serves   http://", "tenfold: the configuration was read again", "tenfold: stopped"],
    &["tenfold: debug: signal HangUp", "tenfold: debug: generation # has ended"],
];

/// The index of a line's level in [`LEVELS`].
fn level_of(line: &str) -> usize {
    let message = line.strip_prefix("#-#-#T#:#:#Z ").unwrap_or(line);
    let of = |name: &&str| message.starts_with(&format!("tenfold: {name}: "));
    ["error", "warning", "info", "debug"].iter().position(of).unwrap_or(2)
}

/// The lines without numbers, sorted, so that two servers have equal lines.
fn lines(said: &str) -> Vec<String> {
    let plain = |line: &str| {
        line.chars().fold(String::new(), |mut plain, letter| {
            match letter.is_ascii_digit() {
                false => plain.push(letter),
                true if plain.ends_with('#') => {}
                true => plain.push('#'),
            }
            plain
        })
    };
    // The start block has more lines at `debug`.
    let detail = |line: &&str| line.starts_with("  ") && !line.starts_with("  serves ");
    let mut lines: Vec<_> = said.lines().filter(|line| !detail(line)).map(plain).collect();
    lines.sort_unstable();
    lines
}

/// Writes a configuration with a root and further lines.
fn write(folder: &TempFolder, more: &str) -> String {
    let path = folder.write("tenfold.toml", format!("root = \"site\"\n{more}"));
    path.display().to_string()
}

/// A server that cannot write its access log, and has reported it once a response has come.
fn launch(config: &Config, folder: &TempFolder) -> Launch {
    folder.write("site/index.html", "x");
    let file = write(folder, "");
    let launch = Launch::bare(config).flag("--config", file).flag("--access-log", "/dev/full");
    launch.flag("--log-mode", "sync")
}

/// Waits until other processes serve.
fn replaced(server: &Server, before: &[Process]) {
    becomes_true(SOON, "others serve", || {
        let now = server.workers();
        now.len() == before.len() && now.iter().all(|worker| !before.contains(worker))
    });
}

fn reload(server: &Server, folder: &TempFolder, more: &str) {
    let before = server.workers();
    write(folder, more);
    server.process.signal(Signal::HUP);
    replaced(server, &before);
}

/// All messages of a run with events of each level.
fn a_life(config: &Config, level: &str) -> String {
    let folder = TempFolder::new("levels");
    let launch = launch(config, &folder).through("env", &["TENFOLD_LOG_FORMT=json"]);
    let server = launch.flag("--log-level", level).start();
    assert_eq!(server.get("/").status, 200);
    let before = server.workers();
    before[0].signal(Signal::KILL);
    replaced(&server, &before);
    write(&folder, "backlog = 77\n");
    server.process.signal(Signal::HUP);
    server.expect_report("the old configuration");
    reload(&server, &folder, "max-body = \"100\"\n");
    server.process.signal(Signal::TERM);
    assert!(server.ends_within(SOON).success(), "{}", server.errors());
    // Its last output may still be in the pipe.
    if level_of("tenfold: stopped") <= LEVELS.iter().position(|name| *name == level).expect("it is a level") {
        server.expect_report("tenfold: stopped");
    }
    // Nothing follows the last message of a server with a lower level.
    sleep(Duration::from_millis(100));
    server.errors()
}

fn each_level_prints_its_own_and_more_severe_messages(config: &Config) {
    let lives = std::sync::Mutex::new([const { String::new() }; 4]);
    each_at_once(0..LEVELS.len(), |place| {
        let said = a_life(config, LEVELS[place]);
        lives.lock().expect("no panic")[place] = said;
    });
    let lives = lives.into_inner().expect("no panic");
    let all = lines(&lives[3]);
    for (place, name) in LEVELS.iter().enumerate() {
        let said = lines(&lives[place]);
        let expected: Vec<_> = all.iter().filter(|line| level_of(line) <= place).cloned().collect();
        assert_eq!(said, expected, "{name}: what is graver, and nothing below it");
        for (of, words) in SAID.iter().enumerate() {
            for word in *words {
                let is_said = said.iter().any(|line| level_of(line) == of && line.contains(word));
                assert_eq!(is_said, of <= place, "{name}: {word:?} in:\n{}", lives[place]);
            }
        }
    }
}

/// Workers of a new configuration use its level from the first message.
fn a_reload_changes_the_log_level_of_workers(config: &Config) {
    let folder = TempFolder::new("levels");
    let server = launch(config, &folder).start();
    let complaints = || server.errors().matches("cannot write the access log").count();
    let lost = || server.status()["log_lines_lost"].as_u64().expect("a number");
    let ask = || assert_eq!(server.get("/").status, 200);
    ask();
    becomes_true(SOON, "a worker complains", || complaints() == 1);
    reload(&server, &folder, "log-level = \"error\"\n");
    ask();
    becomes_true(SOON, "a line is lost", || lost() >= 2);
    assert_eq!(complaints(), 1, "a warning is said at the level error:\n{}", server.errors());
    reload(&server, &folder, "log-level = \"warn\"\n");
    ask();
    becomes_true(SOON, "a worker complains again", || complaints() >= 2);
    assert_eq!(complaints(), 2, "{}", server.errors());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
