//! Rotated files of the access log: the oldest are removed.

use std::fs;
use std::io;
use std::os::unix::fs::chown;

use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{Launch, tenfold};
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::tools;

pub(crate) const THEME: Theme = Theme {
    name: "logs-archive",
    cases: cases![
        Own on EPOLL: the_oldest_files_are_removed;
        Once: keeping_needs_rotation;
    ],
};

/// Rotated files of former days in a folder, as a server leaves them there.
fn former_files(folder: &TempFolder, names: &[&str]) {
    folder.write("access.log", "");
    for name in names {
        let path = folder.write(name, format!("{name}\n"));
        if tools::is_root() {
            // The workers' user.
            chown(&path, Some(65534), Some(65534)).expect("this is root");
        }
    }
}

fn names(folder: &TempFolder) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).expect("our own folder");
    let name = |entry: io::Result<fs::DirEntry>| entry.expect("our own folder").file_name();
    let mut names: Vec<_> = entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

fn the_oldest_files_are_removed(config: &Config) {
    let folder = TempFolder::new("keep");
    former_files(&folder, &["access.log.2026-01-02", "access.log.2026-01-03", "access.log.2026-01-03.2"]);
    // A rotation does not give this name.
    former_files(&folder, &["access.log.1"]);
    let launch = Launch::new(config, site::shared()).flag("--access-log", folder.at("access.log").display());
    let server = launch.flag("--log-rotate", "daily").flag("--log-keep", 2).start();
    let expected = ["access.log", "access.log.1", "access.log.2026-01-03", "access.log.2026-01-03.2"];
    becomes_true(SOON, "the oldest is removed", || names(&folder) == expected);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn keeping_needs_rotation() {
    let output = tenfold(&["serve", ".", "--access-log", "access.log", "--log-keep", "7"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("log-keep has no effect while log-rotate is off"), "{said}");
}
