//! Programs that cannot start: the former one serves on, or the server ends if neither can.

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use tenfold_tests::binary;
use tenfold_tests::config::Config;
use tenfold_tests::launch::{Launch, tenfold_slowly};
use tenfold_tests::server::Server;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::{SOON, becomes_true};

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
    let good = program_path();
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

/// Neither program can open the log, so the server ends. Its workers end with it.
pub(super) fn a_server_ends_if_neither_program_can_start(config: &Config) {
    let (folder, launch) = with_log(&config.over_tls());
    let server = launch.members().start();
    let all = server.process.with_descendants();
    put_failing(&folder, &hide(&folder));
    let (code, said) = upgrade_slowly(&server);
    assert_eq!(code, Some(1), "{said}");
    assert_eq!(server.ends_within(SOON).code(), Some(1), "{}", server.errors());
    server.expect_report("the former program cannot serve either");
    becomes_true(SOON, "no process is left", || all.iter().all(|process| !process.is_running()));
}

/// It opens everything, but its workers cannot read the root. Neither can those of the former program.
pub(super) fn a_server_ends_if_no_worker_can_start(config: &Config) {
    let folder = folder();
    folder.allow(".", 0o755);
    let server = start(config, &folder);
    put_failing(&folder, &format!("chmod 0 {}", folder.at("site").display()));
    server.process.signal(Signal::USR2);
    let end = server.ends_within(SOON);
    folder.allow("site", 0o755);
    assert_eq!(end.code(), Some(1), "{}", server.errors());
    server.expect_report("cannot enter");
    assert!(!server.at("control").exists(), "the file of the control socket is left");
}

/// The supervisor can open a folder of root, and workers cannot.
pub(super) fn the_former_program_serves_if_no_new_worker_can(config: &Config) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = folder();
    folder.allow(".", 0o755);
    folder.write("closed/index.html", "closed\n");
    folder.allow("closed", 0o700);
    let server = start(config, &folder);
    let closed = folder.at("closed").display().to_string();
    put_failing(&folder, &format!("exec {} serve {closed} --topology {}", program_path(), config.topology));
    let (code, said) = upgrade_slowly(&server);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the workers of the new program did not begin to serve"), "{said}");
    let status = server.status();
    assert_eq!((&status["process"], &status["upgrades"]["failed"]), (&server.process.0.into(), &1.into()));
    serves(&server);
    succeeds(&server, &folder);
    serves(&server);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn program_path() -> String {
    binary::server().expect("the server").path.display().to_string()
}

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
