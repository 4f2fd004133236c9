//! The laboratory as an ordinary user, who cannot read the memory and the descriptors of the server.

use std::os::unix::fs::{PermissionsExt, chown};
use std::process::{Output, Stdio};

use tenfold_testkit::experiment::EXPERIMENT;
use tenfold_tests::site::TempFolder;
use tenfold_tests::{binary, tools};

use super::expect_output;

/// The user `nobody`.
const NOBODY: u32 = 65_534;

/// A folder of an ordinary user with a copy of the program, because the user may be unable to read the build folder.
pub(crate) struct OrdinaryUser {
    pub(crate) folder: TempFolder,
}

impl OrdinaryUser {
    pub(crate) fn new(name: &str) -> OrdinaryUser {
        let folder = TempFolder::new(name);
        let server = binary::server().unwrap_or_else(|why| panic!("{why}"));
        let program = folder.at("tenfold");
        std::fs::copy(&server.path, &program).expect("there is room");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("our own file");
        if tools::is_root() {
            chown(folder.path(), Some(NOBODY), None).expect("the test is root");
        }
        OrdinaryUser { folder }
    }

    /// The output of the program.
    pub(crate) fn run(&self, words: &[&str]) -> Output {
        // Inside `setpriv`, because `timeout` without root cannot signal another user's process.
        let mut command = tools::as_nobody(&tools::program("timeout"));
        command.arg("60").arg(self.folder.at("tenfold")).args(words).current_dir(self.folder.path());
        command.stdin(Stdio::null()).output().expect("it runs")
    }

    #[track_caller]
    fn expect(&self, words: &[&str], expected: &[&str]) -> String {
        expect_output(self.run(words), 0, words, expected)
    }
}

pub(super) fn an_ordinary_user_measures_compares_and_asks_the_doctor() {
    let user = OrdinaryUser::new("lab-ordinary");
    user.expect(
        &["lab", "doctor"],
        &["strace traces what this user starts", "the memory of a server (pss) is closed"],
    );
    let text = EXPERIMENT.replace("[cells.poll]\n", "[cells.poll]\nsubject = \"nginx\"\n");
    let file = user.folder.write("own.toml", &text).display().to_string();
    let words = ["lab", "run", "--profile", "smoke", "--only", &file, "--output", "run"];
    user.expect(&words, &["2 HOLDS"]);
    let words = ["lab", "why", "epoll", "poll", "--profile", "smoke", "--blocks", "1", "--output", "why"];
    let text = user.expect(&words, &["A: epoll\nB: poll", "1 block"]);
    let calls = |name: &str| text.lines().any(|line| line.trim_start().starts_with(name));
    assert!(calls("epoll_") && calls("poll ") && calls("recvfrom "), "{text}");
    // The memory that decides is hidden.
    let site = user.folder.write("site/index.html", "home").parent().expect("a folder").display().to_string();
    let words = ["tune", "--for", "memory", &site];
    expect_output(user.run(&words), 1, &words, &["is closed to users without CAP_SYS_PTRACE", "run as root"]);
}

/// Decoded arguments show that the tracer may read the memory of the server.
pub(super) fn an_ordinary_user_sees_a_request_call_by_call() {
    let user = OrdinaryUser::new("lab-explained");
    let text =
        user.expect(&["lab", "explain", "epoll"], &["recvfrom(", "\"GET /1067.bin", "<TCP:[127.0.0.1:"]);
    let cited = |path: &str| text.contains(&format!("     crates/engine/src/{path}:"));
    assert!(cited("models/epoll.rs") && cited("drivers/readiness/io.rs"), "{text}");
    let last = text.split("The client closes:").nth(1).unwrap_or_else(|| panic!("{text}"));
    assert!(!last.contains("exit_group") && !last.contains("munmap"), "calls of the end: {text}");
}

pub(super) fn an_early_end_is_reported_with_its_reason() {
    let folder = TempFolder::new("lab-early");
    let text = EXPERIMENT.replace("workers = \"1\"", "log-level = \"never\"");
    let file = folder.write("own.toml", text).display().to_string();
    let output = folder.at("run").display().to_string();
    let words = ["run", "--profile", "smoke", "--only", &file, "--output", &output];
    super::expect_code(4, &words, &["the server did not start; it wrote: ", "log-level"]);
}

/// Subjects do not get the variables of a service manager, to which they would report.
pub(super) fn reports_of_trials_do_not_reach_a_service_manager() {
    let folder = TempFolder::new("lab-managed");
    let manager = std::os::unix::net::UnixDatagram::bind(folder.at("manager")).expect("a short path");
    let file = folder.write("own.toml", EXPERIMENT).display().to_string();
    let output = folder.at("run").display().to_string();
    let words = ["run", "--profile", "smoke", "--only", &file, "--output", &output];
    let mut command = super::command(&words);
    command.env("NOTIFY_SOCKET", folder.at("manager")).env("WATCHDOG_USEC", "20000");
    expect_output(command.output().expect("timeout runs"), 0, &words, &["2 HOLDS"]);
    manager.set_nonblocking(true).expect("our own socket");
    let mut report = [0; 512];
    let error =
        manager.recv(&mut report).map(|length| String::from_utf8_lossy(&report[..length]).into_owned());
    assert!(error.is_err(), "{error:?}");
}
