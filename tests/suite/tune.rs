//! `tenfold tune`: a search ends with a configuration or with the default, and does not change the site.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;
use serde_json::Value;
use tenfold_tests::cases;
use tenfold_tests::harness::Theme;
use tenfold_tests::process::Process;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::becomes_true;
use tenfold_tests::{binary, tools};

use crate::lab::ordinary::OrdinaryUser;

pub(crate) const THEME: Theme = Theme {
    name: "tune",
    cases: cases![
        Once: tune_measures_the_best_setting_again_and_only_reads_the_site, tune_refuses_with_a_mend,
            an_interrupted_search_writes_no_configuration, an_ordinary_user_searches_within_the_budget,
            a_disturbed_search_gives_no_advice;
    ],
};

fn command(words: &[&str]) -> Command {
    let server = binary::server().unwrap_or_else(|why| panic!("{why}"));
    // A search without an end would block the suite.
    let mut command = Command::new(tools::program("timeout"));
    command.arg("60").arg(&server.path).arg("tune").args(words).stdin(Stdio::null());
    command
}

fn tune(words: &[&str]) -> (Option<i32>, String) {
    let output = command(words).output().expect("timeout runs");
    let text = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
    (output.status.code(), text)
}

/// Names, contents and times of a folder's files.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>, SystemTime)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("it is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            let time = path.metadata().and_then(|file| file.modified()).expect("it is a file");
            all.push((path.clone(), std::fs::read(&path).expect("it is a file"), time));
        }
    }
    all.sort();
    all
}

fn tune_measures_the_best_setting_again_and_only_reads_the_site() {
    let folder = TempFolder::new("tune");
    folder.write("site/index.html", "<p>home</p>");
    folder.write("site/a b.txt", vec![b'x'; 5_000]);
    let line = |path: &str, status: u16| {
        format!("127.0.0.1 - - [21/Nov/2026:08:00:00 +0000] \"GET {path} HTTP/1.1\" {status} 5 \"-\" \"-\"\n")
    };
    let gone = line("/gone", 200);
    let log = [line("/", 200), line("/a%20b.txt?v=1", 200), line("/", 200), line("/", 304), gone].concat();
    let log = folder.write("access.log", log).display().to_string();
    let (site, output) = (folder.at("site"), folder.at("run").display().to_string());
    let before = contents(&site);
    let shown = site.display().to_string();
    let config = folder.write("own.toml", "# A site.\nroot = \"site\"\nworkers = 2\n").display().to_string();
    let words =
        ["--budget", "20s", "--seed", "3", "--log", &log, "--config", &config, "--output", &output, &shown];
    let (code, text) = tune(&words);
    let file = folder.at("run/tenfold.toml");
    if code == Some(4) {
        // Concurrent cases disturb the search.
        assert!(
            text.contains("tenfold: error: invalid: ") && text.contains("no configuration was written"),
            "{text}"
        );
        assert!(!text.contains("best:") && !file.exists(), "a configuration without a proof: {text}");
        assert_eq!(contents(&site), before, "the site was changed");
        return;
    }
    assert_eq!(code, Some(0), "{text}");
    for expected in [
        "requests: 2 paths (4 of 5 lines of ",
        "paths left out: 1 not served with status 200",
        "tried:    ",
        "best:     --",
        "best over default in ",
        " fresh block",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in: {text}");
    }
    let decided: Vec<&str> = text.lines().filter(|line| line.ends_with("  decides")).collect();
    assert!(decided.len() == 1 && decided[0].trim_start().starts_with("rate "), "{text}");
    // The machine decides whether there is a winner. A configuration is written only for one.
    let better = text.contains(" of the default, 95 % interval");
    assert_eq!(file.exists(), better, "{text}");
    assert_eq!(text.contains("nothing was written"), !better, "{text}");
    if better {
        let server = binary::server().unwrap_or_else(|why| panic!("{why}"));
        let checked = Command::new(&server.path).arg("check").arg(&file).output().expect("it runs");
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        let diff = std::fs::read_to_string(folder.at("run/tenfold.diff")).expect("it is written");
        assert!(diff.starts_with(&format!("--- {config}\n+++ {config}\n@@ -1,3 +1,")), "{diff}");
        assert!(
            text.ends_with(&format!("apply the change: patch {config} {output}/tenfold.diff\n\n{diff}")),
            "{text}"
        );
        let applied = Command::new(tools::program("patch"))
            .args(["--batch", &config])
            .arg(folder.at("run/tenfold.diff"))
            .output();
        let applied = applied.expect("it runs");
        assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stdout));
        let checked = Command::new(&server.path).args(["check", &config]).output().expect("it runs");
        assert!(checked.status.success(), "{}: {diff}", String::from_utf8_lossy(&checked.stderr));
    } else {
        assert!(
            !text.contains("\n@@ ") && !folder.at("run/tenfold.diff").exists(),
            "a diff without a gain: {text}"
        );
    }
    assert_eq!(contents(&site), before, "the site was changed");
    let trials = std::fs::read_to_string(folder.at("run/confirmation/trials.jsonl")).expect("they are kept");
    for line in trials.lines() {
        let trial: Value = serde_json::from_str(line).expect("it is JSON");
        let words: Vec<&str> =
            trial["server"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let serves = words.iter().any(|word| Path::new(word).ends_with("site"));
        assert!(trial["failed"].is_string() || serves, "{line}");
    }
    let (code, text) = tune(&words);
    assert!(code == Some(2) && text.contains("is not empty; name a new folder"), "{text}");
}

fn tune_refuses_with_a_mend() {
    let folder = TempFolder::new("tune-refused");
    let empty = folder.make("empty").display().to_string();
    let file = folder.write("site/index.html", "home").display().to_string();
    let site = folder.at("site").display().to_string();
    let inside = folder.at("site/run").display().to_string();
    let log = folder.write("no.log", "no request\n").display().to_string();
    let nowhere = folder.at("nowhere").display().to_string();
    let output = folder.at("run").display().to_string();
    for (words, expected) in [
        (&[nowhere.as_str()][..], "cannot find the site"),
        (&[&file], "is not a folder; name the folder that is served"),
        (&[&empty], "has no files to request; name a folder"),
        (&["--log", &log, &site], "has no GET request with status 200 in 1 line; name an uncompressed"),
        (&["--log", &nowhere, &site], "cannot read the log"),
        (&["--for", "speed", &site], "throughput, latency, memory"),
        (&["--budget", "4s", &site], "is not a duration from 5s to 24h"),
        (&["--output", &inside, &site], "is in the site; name a folder outside of it"),
        (&["--config", &nowhere, &site], "cannot use the configuration: cannot read the configuration"),
        (&["--config", &log, &site], "cannot use the configuration: `tenfold check /"),
    ] {
        let words = [&["--output", &output][..usize::from(!words.contains(&"--output")) * 2], words].concat();
        let (code, text) = tune(&words);
        assert!(code == Some(2) && text.contains(expected), "{words:?}: {code:?} {text}");
    }
    assert!(!folder.at("site/run").exists());
    folder.write("one.log", "- - - [x] \"GET /none HTTP/1.1\" 200 5\n");
    let log = folder.at("one.log").display().to_string();
    let (code, text) = tune(&["--budget", "5s", "--log", &log, "--output", &output, &site]);
    assert!(
        code == Some(1) && text.contains("answers none of 1 path with status 200; name the folder"),
        "{text}"
    );
}

fn an_interrupted_search_writes_no_configuration() {
    let folder = TempFolder::new("tune-interrupted");
    folder.write("site/index.html", "home");
    let (site, output) = (folder.at("site").display().to_string(), folder.at("run").display().to_string());
    let mut search = command(&["--output", &output, &site]);
    let child = search.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let begun = || folder.at("run/round-1/trials.jsonl").exists();
    becomes_true(Duration::from_secs(30), "a round begins", begun);
    // `timeout` passes the signal on.
    Process(child.id()).signal(Signal::INT);
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(text.contains("interrupted; no configuration was written"), "{text}");
    assert!(!text.contains("--resume"), "a search cannot be continued: {text}");
    assert!(!folder.at("run/tenfold.toml").exists());
}

fn an_ordinary_user_searches_within_the_budget() {
    let user = OrdinaryUser::new("tune-ordinary");
    let site = user.folder.write("site/index.html", "home").parent().expect("a folder").display().to_string();
    let begin = Instant::now();
    let output = user.run(&["tune", "--budget", "5s", "--output", "run", &site]);
    let took = begin.elapsed();
    let text = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 4)), "{text}");
    assert!(text.contains("measuring the default"), "{text}");
    // Without its budget, a search takes minutes.
    assert!(took < Duration::from_secs(30), "{took:?}: {text}");
}

fn a_disturbed_search_gives_no_advice() {
    let folder = TempFolder::new("tune-disturbed");
    folder.write("site/index.html", "home");
    let (site, output) = (folder.at("site").display().to_string(), folder.at("run").display().to_string());
    let end = AtomicBool::new(false);
    let (code, text) = thread::scope(|scope| {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..processors {
            scope.spawn(|| {
                while !end.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let found = tune(&["--budget", "15s", "--output", &output, &site]);
        end.store(true, Ordering::Relaxed);
        found
    });
    assert_eq!(code, Some(4), "{text}");
    assert!(
        text.contains("tenfold: error: invalid: ") && text.contains("no configuration was written"),
        "{text}"
    );
    assert!(!text.contains("best") && !folder.at("run/tenfold.toml").exists(), "{text}");
}
