//! Neither program can open the files of the server: it serves on with the workers that it has, and tries again.

use std::fs;
use std::process::Command;
use std::thread;

use rustix::process::Signal;
use tenfold_tests::binary;
use tenfold_tests::config::Config;
use tenfold_tests::launch::{Launch, tenfold_slowly};
use tenfold_tests::process::Process;
use tenfold_tests::seal::{Below, get_once, new_client};
use tenfold_tests::server::Server;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::{SOON, becomes_true, eventually};
use tenfold_tests::wire::Wire;

use super::{folder, program, put_script, start, succeeds, upgrade};

/// A folder that also has one for the log, and a server that writes there.
fn with_log(config: &Config) -> (TempFolder, Launch) {
    let folder = folder();
    folder.allow(".", 0o755);
    folder.write("logs/keep", "");
    let launch = Launch::new(config, &folder.at("site")).program(&program(&folder));
    let log = folder.at("logs/access.log").display().to_string();
    (folder, launch.flag("--access-log", log))
}

/// Puts a program that passes the check, takes `step`, and cannot start.
fn put_failing(folder: &TempFolder, step: &str) {
    let good = binary::server().expect("the server").path.display();
    put_script(
        folder,
        &format!(
            "case \"$TENFOLD_HANDOVER\" in check*) exec {good} \"$@\";; *) {step}; exec {good} serve /nonexistent;; esac"
        ),
    );
}

/// A step that hides the folder of the log.
fn hide(folder: &TempFolder) -> String {
    format!("mv {} {}", folder.at("logs").display(), folder.at("away").display())
}

fn restore(folder: &TempFolder) {
    fs::rename(folder.at("away"), folder.at("logs")).expect("our own folder");
}

/// Waits until the program that came back has failed twice since the output had `begin` characters.
fn fails_twice(server: &Server, begin: usize) {
    becomes_true(SOON, "two attempts fail", || {
        server.ended().is_some() || server.errors()[begin..].matches("the former ones go on").count() >= 2
    });
    assert!(server.ended().is_none(), "{}", server.errors());
}

/// Runs `tenfold upgrade`, which waits for its result longer than a test waits for other commands.
fn upgrade_slowly(server: &Server) -> (Option<i32>, String) {
    let output = tenfold_slowly(&["upgrade", "--control", &server.at("control").display().to_string()]);
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).expect("it is text"))
}

fn serves(server: &Server) {
    assert_eq!(server.get("/").body, b"the page\n");
}

pub(super) fn what_cannot_be_opened_refuses_an_upgrade(config: &Config) {
    let (folder, launch) = with_log(config);
    let server = launch.members().start();
    let workers = server.workers();
    let database = server.at("members.db");
    let refused = |why: &str| {
        let (code, said) = upgrade(&server);
        assert!(server.ended().is_none(), "{said}\n{}", server.errors());
        assert_eq!(code, Some(1), "{said}\n{}", server.errors());
        assert!(said.contains("the check of"), "{said}");
        server.expect_report(why);
        assert_eq!(server.workers(), workers);
        serves(&server);
    };
    fs::rename(folder.at("logs"), folder.at("away")).expect("our own folder");
    refused("cannot open the access log");
    restore(&folder);
    fs::hard_link(folder.at("logs/access.log"), folder.at("logs/other")).expect("our own folder");
    if rustix::process::geteuid().is_root() {
        refused("it has several names");
    }
    fs::remove_file(folder.at("logs/other")).expect("our own file");
    fs::rename(&database, server.at("away")).expect("our own folder");
    fs::create_dir(&database).expect("our own folder");
    refused("members.db");
    fs::remove_dir(&database).expect("our own folder");
    fs::rename(server.at("away"), &database).expect("our own folder");
    succeeds(&server, &folder);
    serves(&server);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

pub(super) fn a_program_that_came_back_tries_again(config: &Config) {
    let (folder, launch) = with_log(config);
    let server = launch.start();
    let workers = server.workers();
    put_failing(&folder, &hide(&folder));
    thread::scope(|scope| {
        let upgraded = scope.spawn(|| upgrade_slowly(&server));
        fails_twice(&server, 0);
        server.expect_report("cannot open the access log");
        assert!(workers.iter().all(|worker| worker.is_running()));
        serves(&server);
        // It shortens the pause.
        restore(&folder);
        server.process.signal(Signal::HUP);
        let (code, said) = upgraded.join().expect("it ends");
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("the new program could not start"), "{said}");
    });
    let status = server.status();
    assert_eq!((&status["process"], &status["upgrades"]["failed"]), (&server.process.0.into(), &1.into()));
    serves(&server);
    becomes_true(SOON, "the former workers end", || workers.iter().all(|worker| !worker.is_running()));
    succeeds(&server, &folder);
    serves(&server);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// It opens everything, but its workers cannot read the root.
pub(super) fn a_program_that_came_back_starts_workers_again(config: &Config) {
    let folder = folder();
    folder.allow(".", 0o755);
    let server = start(config, &folder);
    let site = folder.at("site").display().to_string();
    put_failing(&folder, &format!("chmod 0 {site}"));
    thread::scope(|scope| {
        let upgraded = scope.spawn(|| upgrade_slowly(&server));
        fails_twice(&server, 0);
        server.expect_report("cannot read the root");
        folder.allow("site", 0o755);
        let (code, said) = upgraded.join().expect("it ends");
        assert_eq!(code, Some(1), "{said}");
    });
    serves(&server);
    succeeds(&server, &folder);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

pub(super) fn a_signal_ends_a_server_that_tries_again(config: &Config) {
    for signal in [Signal::INT, Signal::TERM, Signal::QUIT] {
        let (folder, launch) = with_log(config);
        let socket = folder.at("site.sock");
        let server = launch.flag("--listen", format!("unix:{}", socket.display())).start();
        let mut wire = Wire::connect_unix(&socket);
        wire.get("/large.bin");
        assert_eq!(wire.head().status, 200);
        let workers = server.workers();
        put_failing(&folder, &hide(&folder));
        server.process.signal(Signal::USR2);
        fails_twice(&server, 0);
        // These have no meaning then, and do no harm.
        server.process.signal(Signal::USR1);
        server.process.signal(Signal::USR2);
        server.process.signal(signal);
        if signal == Signal::INT {
            drop(wire);
        } else {
            wire.expect_body(&tenfold_tests::site::bytes(8 << 20, 8));
        }
        assert!(server.ends_within(SOON).success(), "{signal:?}: {}", server.errors());
        assert!(workers.iter().all(|worker| !worker.is_running()), "{signal:?}");
        assert!(!socket.exists() && !server.at("control").exists(), "{signal:?}: files of sockets are left");
    }
}

/// The accounts process and the one with the keys are started before the log is opened.
pub(super) fn processes_of_failed_attempts_end(config: &Config) {
    let (folder, launch) = with_log(&config.through(Below::Tls));
    let server = launch.members().start();
    let before = server.process.children().len();
    let begin = server.errors().len();
    put_failing(&folder, &hide(&folder));
    server.process.signal(Signal::USR2);
    fails_twice(&server, begin);
    let left: Vec<Process> = server.process.children();
    // Those of an attempt that is being made are there, too.
    assert!(left.len() <= before + 2, "{before} before, now {left:?}");
    fails_twice(&server, server.errors().len());
    assert!(server.process.children().len() <= before + 2, "{before} before, now {left:?}");
    restore(&folder);
    becomes_true(SOON, "the old processes have ended", || {
        let now = server.process.children();
        now.len() == before && now.iter().all(|process| !left.contains(process))
    });
    let client = new_client();
    get_once(server.address, &client, "localhost", "/").expect("an exchange");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// A check has a standard output of its own, which is no file that can be opened.
pub(super) fn a_log_on_standard_output_goes_on(config: &Config) {
    let folder = folder();
    folder.allow(".", 0o755);
    let pipe = folder.at("pipe").display().to_string();
    assert!(Command::new("mkfifo").args(["--mode=666", &pipe]).status().expect("coreutils").success());
    // Open for both directions, so that nothing waits for a reader.
    let script = format!("exec \"$@\" 1<>{pipe}");
    let launch = Launch::new(config, &folder.at("site")).program(&program(&folder));
    let server = launch.flag("--access-log", "/dev/stdout").through("sh", &["-c", &script, "sh"]).start();
    succeeds(&server, &folder);
    serves(&server);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// It takes the place of one that passes the check.
pub(super) fn a_program_that_was_not_checked_is_not_executed(config: &Config) {
    let folder = folder();
    let server = start(config, &folder);
    let good = binary::server().expect("the server").path.display();
    folder.write("other", "#!/bin/sh\nexit 9\n");
    folder.allow("other", 0o755);
    let (other, path) = (folder.at("other").display().to_string(), program(&folder).display().to_string());
    put_script(&folder, &format!("mv {other} {path}; exec {good} \"$@\""));
    let (code, said) = upgrade(&server);
    assert!(server.ended().is_none(), "{said}");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("exited with code 9"), "{said}");
    serves(&server);
    succeeds(&server, &folder);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The supervisor's end of the check's output would let a worker read the report that the new program is ready.
pub(super) fn a_worker_that_starts_during_a_check_has_no_part_of_it(config: &Config) {
    let folder = folder();
    let server = start(config, &folder);
    // A socket counts, and which one it is does not.
    let kinds = |worker: Process| {
        let kind = |to: &String| to.split('[').next().unwrap_or_default().to_owned();
        let mut kinds: Vec<_> = worker.descriptors().iter().map(kind).collect();
        kinds.sort();
        kinds
    };
    let worker = || {
        let number = server.status()["workers"][0]["process"].as_u64();
        number.and_then(|number| u32::try_from(number).ok()).map(Process)
    };
    let first = worker().expect("it serves");
    let expected = kinds(first);
    put_script(&folder, "exec sleep 60");
    server.process.signal(Signal::USR2);
    becomes_true(SOON, "the check runs", || {
        server
            .process
            .children()
            .iter()
            .any(|child| child.words().first().is_some_and(|word| word == "sleep"))
    });
    first.signal(Signal::KILL);
    serves(&server);
    let second = eventually(SOON, "another worker", || worker().filter(|other| *other != first));
    becomes_true(SOON, "it has what the first had", || kinds(second) == expected);
    assert_eq!(server.status()["upgrades"]["failed"], 0, "the check still runs");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The end of a process with much memory takes the system a while.
pub(super) fn a_check_ends_before_the_server(config: &Config) {
    let folder = folder();
    let server = start(config, &folder);
    put_script(&folder, "exec perl -e '$filled = \"x\" x 400_000_000; sleep 20'");
    server.process.signal(Signal::USR2);
    becomes_true(SOON, "the check has its memory", || {
        let children = server.process.children();
        children.iter().filter_map(|child| child.private_memory()).any(|memory| memory > 380_000)
    });
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
