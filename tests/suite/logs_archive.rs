//! Rotated files of the access log: removed, or compressed.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Command;

use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{Launch, tenfold};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::tools;

pub(crate) const THEME: Theme = Theme {
    name: "logs-archive",
    cases: cases![
        Epoll Own: old_files_are_removed_and_others_compressed, a_file_that_is_still_written_is_compressed_later;
        Every Once: keeping_and_compressing_need_rotation;
    ],
};

#[track_caller]
fn stop(server: Server) {
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The content of a file that gzip accepts.
#[track_caller]
pub(crate) fn decompressed(path: &Path) -> String {
    let output = Command::new("gzip").arg("-dc").arg(path).output().expect("every system has gzip");
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("lines are text")
}

/// Makes rotated files of earlier days in a folder.
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

fn old_files_are_removed_and_others_compressed(config: &Config) {
    let folder = TempFolder::new("keep");
    let old = ["access.log.2026-01-02.gz", "access.log.2026-01-03", "access.log.2026-01-03.2"];
    former_files(&folder, &old);
    // Neither is the name of a rotated file. The second is a remainder of a killed server.
    former_files(&folder, &["access.log.1", "access.log.2026-01-03.2.gz.tmp"]);
    let launch = Launch::new(config, site::shared()).flag("--access-log", folder.at("access.log").display());
    let launch = launch.flag("--log-rotate", "daily").flag("--log-keep", 2).flag("--log-compress", "on");
    let server = launch.start();
    let expected = ["access.log", "access.log.1", "access.log.2026-01-03.2.gz", "access.log.2026-01-03.gz"];
    becomes_true(SOON, "the oldest is removed, the others are compressed", || names(&folder) == expected);
    for (name, content) in [(expected[3], old[1]), (expected[2], old[2])] {
        assert_eq!(decompressed(&folder.at(name)), format!("{content}\n"));
        let facts = fs::metadata(folder.at(name)).expect("it was just there");
        let owner = if tools::is_root() { 65534 } else { facts.uid() };
        assert_eq!((facts.uid(), facts.mode() & 0o777), (owner, 0o644), "as the original");
    }
    stop(server);
}

fn a_file_that_is_still_written_is_compressed_later(config: &Config) {
    let folder = TempFolder::new("written");
    former_files(&folder, &["access.log.2026-01-03"]);
    let path = folder.at("access.log.2026-01-03");
    let mut writer = fs::File::options().append(true).open(&path).expect("our own file");
    let launch = Launch::new(config, site::shared()).flag("--access-log", folder.at("access.log").display());
    let launch = launch.flag("--log-rotate", "daily").flag("--log-compress", "on");
    let server = launch.flag("--log-level", "debug").start();
    server.expect_report("access.log.2026-01-03 is still written");
    writer.write_all(b"the last line\n").expect("our own file");
    drop(writer);
    becomes_true(SOON, "it is compressed", || {
        folder.at("access.log.2026-01-03.gz").exists() && !path.exists()
    });
    let text = decompressed(&folder.at("access.log.2026-01-03.gz"));
    assert_eq!(text, "access.log.2026-01-03\nthe last line\n");
    stop(server);
}

fn keeping_and_compressing_need_rotation() {
    for flags in [["--log-keep", "7"], ["--log-compress", "on"]] {
        let output = tenfold(&[&["serve", ".", "--access-log", "access.log"][..], &flags].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let name = flags[0].trim_start_matches('-');
        assert!(said.contains(&format!("{name} has no effect while log-rotate is off")), "{said}");
    }
}
