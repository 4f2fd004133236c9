//! A server that was started as root does not serve as root.

use rustix::process::Signal;
use tenfold_engine::Engine;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{ANY_PORT, Launch, tenfold};
use tenfold_tests::process::Process;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true, eventually};

pub(crate) const THEME: Theme = Theme {
    name: "privileges",
    cases: cases![
        OwnAsRoot on WORKERS + ANOTHER: h101_workers_run_as_nobody, h101_a_replacement_worker_runs_as_nobody,
            a_named_user;
        OnceAsRoot: a_user_that_does_not_exist, a_ring_beyond_the_locked_memory_of_the_user;
    ],
};

fn is_somebody(worker: Process, user: &str) {
    let ids = worker.status("Uid").unwrap_or_default();
    assert_eq!(
        ids.split_ascii_whitespace().collect::<Vec<_>>(),
        [user; 4],
        "real, effective, saved, file system"
    );
    let groups = worker.status("Groups").unwrap_or_default();
    assert!(!groups.split_ascii_whitespace().any(|group| group == "0"), "groups of root are left: {groups}");
    for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
        let capabilities = worker.status(set).unwrap_or_default();
        assert_eq!(capabilities.trim_start_matches('0'), "", "{set}: {capabilities}");
    }
}

fn h101_workers_run_as_nobody(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    let mut wire = server.connect();
    wire.get("/1k.html");
    assert_eq!(wire.response().status, 200);
    let serving: Vec<_> = server.process.with_descendants().into_iter().skip(1).collect();
    assert!(!serving.is_empty(), "no process below the supervisor serves");
    serving.into_iter().for_each(|process| is_somebody(process, "65534"));
    drop(wire);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn h101_a_replacement_worker_runs_as_nobody(config: &Config) {
    let server = Launch::new(config, site::shared()).start();
    let first = server.workers()[0];
    first.signal(Signal::KILL);
    let next = eventually(SOON, "another worker", || {
        let now = server.workers();
        (now.len() == config.processes() && !now.contains(&first)).then_some(now)
    });
    assert_eq!(server.get("/1k.html").status, 200);
    // The other worker may have answered before the new worker was ready.
    let is_set_up = |process: &Process| process.status("Uid").is_some_and(|ids| !ids.starts_with('0'));
    becomes_true(SOON, "the new one gives up what it may do", || next.iter().all(is_set_up));
    next.into_iter().for_each(|process| is_somebody(process, "65534"));
}

fn a_named_user(config: &Config) {
    let server = Launch::new(config, site::shared()).flag("--user", "daemon").start();
    assert_eq!(server.get("/1k.html").status, 200);
    server.workers().into_iter().for_each(|process| is_somebody(process, "1"));
}

/// The limit does not apply to the supervisor, which is root: the worker gets no ring.
fn a_ring_beyond_the_locked_memory_of_the_user() {
    let config = Config::of(Engine::Uring);
    let launch = Launch::new(&config, site::shared()).flag("--listen", ANY_PORT);
    let output = launch.through("prlimit", &["--memlock=0:0"]).refused();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("allow 256 KiB for each worker (ulimit -l), or choose another engine"), "{said}");
}

fn a_user_that_does_not_exist() {
    let folder = TempFolder::new("user");
    let root = folder.path().display().to_string();
    let output = tenfold(&["serve", &root, "--listen", ANY_PORT, "--user", "no-such-user"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{said}");
    assert!(said.contains("no-such-user"), "{said}");
}
