//! The laboratory on several machines, which are agents of this machine here.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tenfold_testkit::experiment::EXPERIMENT;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::{binary, tools};

use super::{command, expect_code, expect_output};

/// The command that starts an agent of the tested program.
fn on_command() -> String {
    let server = binary::server().unwrap_or_else(|why| panic!("{why}"));
    format!("{} agent", server.path.display())
}

fn json(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Runs a command whose agents keep their files in the folder `temporary`, which must be empty at the end.
fn with_temporary(folder: &TempFolder, words: &[&str]) -> Output {
    let temporary = folder.at("temporary");
    std::fs::create_dir_all(&temporary).expect("our own folder");
    std::fs::set_permissions(&temporary, PermissionsExt::from_mode(0o755)).expect("our own folder");
    let output = command(words).env("TMPDIR", &temporary).output().expect("timeout runs");
    let left: Vec<_> = std::fs::read_dir(&temporary).expect("it is there").flatten().collect();
    assert!(left.is_empty(), "agents left files: {left:?}");
    output
}

pub(super) fn a_run_on_several_machines_is_continued_on_the_same_only() {
    let folder = TempFolder::new("lab-machines");
    let file = folder.write("own.toml", EXPERIMENT).display().to_string();
    let (on, output) = (on_command(), folder.at("run").display().to_string());
    let machines = ["--server", "a=127.0.0.1", "--client", "b", "--client", "a", "--on-command", &on];
    let mut words = vec!["run", "--profile", "smoke", "--blocks", "1", "--only", &file, "--output", &output];
    words.extend(machines);
    expect_output(with_temporary(&folder, &words), 0, &words, &["2 HOLDS"]);
    let hosts = json(&folder.at("run/hosts.json"));
    let names: Vec<&str> =
        hosts.as_array().expect("a list").iter().filter_map(|host| host["name"].as_str()).collect();
    assert_eq!(names, ["a*1", "a*2", "b"], "the server is the first");
    assert!(hosts[1]["link"]["megabytes"].as_f64().is_some_and(|speed| speed > 0.0), "{hosts}");
    let trials = std::fs::read_to_string(folder.at("run/trials.jsonl")).expect("it is there");
    for line in trials.lines() {
        let trial: Value = serde_json::from_str(line).expect("a trial");
        let server = trial["server"].to_string();
        assert!(
            server.contains("\"127.0.0.1:") && server.contains("temporary"),
            "it ran elsewhere: {server}"
        );
        assert!(trial["values"]["responses"].as_f64().is_some_and(|count| count > 0.0), "{trial}");
        assert!(trial["values"]["cpu"].as_f64().is_some_and(|cpu| cpu > 0.0), "{trial}");
    }
    let page = std::fs::read_to_string(folder.at("run/report.html")).expect("it is written");
    assert!(page.contains("on these machines") && page.contains("server at 127.0.0.1"), "no topology");
    assert!(!std::fs::read_to_string(folder.at("run/plan.json")).expect("a plan").contains(&on), "a command");
    let resume = ["run", "--resume", &output];
    let again = format!("--resume {output} --server a=127.0.0.1 --client b --client a");
    expect_code(2, &resume, &["other machines", &again]);
    let other = [&resume[..], &["--server", "a=127.0.0.2"], &machines[2..]].concat();
    expect_code(2, &other, &["other machines", &again]);
    expect_code(0, &[&resume[..], &machines].concat(), &["2 HOLDS"]);
    expect_code(0, &["report", &output], &["report.html"]);
}

pub(super) fn a_run_ends_with_the_agent_of_its_server() {
    let folder = TempFolder::new("lab-lost");
    let file = folder.write("own.toml", EXPERIMENT).display().to_string();
    // The shell becomes the agent, so its process id is that of the agent.
    let script = format!("#!/bin/sh\necho $$ > {}/$1.pid\nexec {}\n", folder.path().display(), on_command());
    let script = folder.write("start.sh", script);
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).expect("our own file");
    let (on, output) = (format!("{} {{}}", script.display()), folder.at("run").display().to_string());
    let words = [
        "run",
        "--profile",
        "smoke",
        "--blocks",
        "100",
        "--only",
        &file,
        "--output",
        &output,
        "--server",
        "a=127.0.0.1",
        "--client",
        "b",
        "--on-command",
        &on,
    ];
    let mut lab = command(&words);
    // A killed agent cannot remove its files.
    lab.env("TMPDIR", folder.path());
    lab.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let lab = lab.spawn().expect("timeout runs");
    let trials = folder.at("run/trials.jsonl");
    let has_trial = || std::fs::metadata(&trials).is_ok_and(|file| file.len() > 0);
    becomes_true(2 * SOON, "a trial ends", has_trial);
    let agent = std::fs::read_to_string(folder.at("a.pid")).expect("the script wrote it");
    assert!(
        Command::new(tools::program("kill")).args(["-9", agent.trim()]).status().expect("kill").success()
    );
    let ended = lab.wait_with_output().expect("it ends");
    let text =
        expect_output(ended, 1, &words, &["the agent on a ", "continue with: tenfold lab run --resume"]);
    assert!(text.contains("--server a=127.0.0.1 --client b"), "{text}");
    let kept = std::fs::read_to_string(&trials).expect("it is there");
    assert!(kept.lines().all(|line| line.contains("\"failed\":null")), "the lost trial was recorded: {kept}");
}

pub(super) fn machines_are_examined_or_refused_with_a_mend() {
    let on = on_command();
    let words = ["doctor", "--server", "a=127.0.0.1", "--client", "b", "--on-command", &on];
    let text = expect_code(0, &words, &["a (server at 127.0.0.1)\n", "\nb (client)\n", "loopback: "]);
    for part in ["link to a: TCP round trip ", "a and b are one machine", "clock: ", "lo: MTU 65536"] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    let refused = |server: &str, expected: &str| {
        expect_code(2, &["doctor", "--server", server, "--client", "b", "--on-command", &on], &[expected])
    };
    refused("a", "use NAME=ADDRESS");
    refused("a=::1", "IPv6");
    refused("a=0.0.0.0", "no address of one host");
    expect_code(2, &["run", "--client", "b"], &["--server"]);
    let words = ["run", "--server", "a=127.0.0.1", "--client", "b", "--on-command", "/no/such/program"];
    expect_code(1, &words, &["the agent on a", "/no/such/program"]);
    // No interface has this address.
    let words = ["doctor", "--server", "a=198.51.100.7", "--client", "b", "--on-command", &on];
    expect_code(1, &words, &["cannot listen on 198.51.100.7"]);
}

pub(super) fn a_search_takes_the_load_of_another_machine() {
    let folder = TempFolder::new("tune-machines");
    folder.write("site/index.html", "<p>home</p>");
    let server = binary::server().unwrap_or_else(|why| panic!("{why}"));
    let mut tune = Command::new(tools::program("timeout"));
    tune.arg("60").arg(&server.path).args(["tune", "--budget", "10s", "--address", "127.0.0.1", "--client"]);
    tune.args(["b", "--on-command", &on_command(), "--output"]).arg(folder.at("run")).arg(folder.at("site"));
    let output = tune.output().expect("timeout runs");
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    // Other programs may disturb a search, which then gives no advice.
    assert!(matches!(output.status.code(), Some(0 | 4)), "{text}");
    let plan = json(&folder.at("run/pilot/plan.json"));
    assert_eq!(plan["machines"]["clients"], serde_json::json!(["b"]), "{text}");
    assert_eq!(json(&folder.at("run/pilot/hosts.json"))[0]["name"], "this machine");
    let trials = std::fs::read_to_string(folder.at("run/pilot/trials.jsonl")).expect("it is there");
    assert!(trials.contains("\"failed\":null") && trials.contains("\"rate\":"), "{trials}");
}
