//! The files in `packaging/kubernetes`, with the program: its configurations, its probes and its end.
//! `packaging/kubernetes/check.sh` checks the objects themselves, with tools.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use rustix::process::Signal;
use tenfold_testkit::folder::TempFolder;
use tenfold_testkit::program::Program;
use tenfold_testkit::time::SOON;
use tenfold_testkit::wire::{Wire, request};

/// A file in `packaging/kubernetes`.
fn packaged(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/kubernetes").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()))
}

/// The words after each `key` of a text, without quotes and brackets.
fn values<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let after = text.match_indices(key).map(|(place, _)| &text[place + key.len()..]);
    let found: Vec<_> = after.filter_map(|rest| rest.split([',', '}', '\n']).next()).collect();
    assert!(!found.is_empty(), "there is no {key:?} in\n{text}");
    found.into_iter().map(|word| word.trim().trim_matches('"')).collect()
}

/// The configuration of a folder, with places of this machine.
fn configuration(name: &str, places: &[(&str, &str)]) -> String {
    let common = [(":8080", "127.0.0.1:0"), ("0.0.0.0:9145", "127.0.0.1:0"), ("/site", "site")];
    common.iter().chain(places).fold(packaged(&format!("{name}/tenfold.toml")), |text, (theirs, ours)| {
        let (theirs, ours) = (format!("\"{theirs}\""), format!("\"{ours}\""));
        assert!(text.contains(&theirs), "{name} does not have {theirs}:\n{text}");
        text.replace(&theirs, &ours)
    })
}

/// Starts the server with this configuration as a pod does, asks the probes and some pages, and ends it by TERM.
fn serves(text: String, pages: &[(&str, u16)]) {
    let deployment = packaged("server/deployment.yaml");
    let folder = TempFolder::new("kubernetes");
    folder.write("site/index.html", "home");
    folder.write("tenfold.toml", text);
    // Workers of a server that root starts are another user, and write the database.
    folder.allow(".", 0o777);
    let tenfold = || Program::new(env!("CARGO_BIN_EXE_tenfold")).folder(folder.path());
    let checked = tenfold().args(["check", "tenfold.toml"]).run();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let words = deployment.lines().find_map(|line| line.trim().strip_prefix("args: [")?.strip_suffix(']'));
    let words = words.expect("the pod has a command line").replace("/etc/tenfold/", "");
    let server = tenfold().args(words.split(", ")).start();
    let address = server.address();
    let admin: SocketAddr = server.until(SOON, "it names its admin listener", |errors| {
        errors.split_once("health checks are on ")?.1.split(' ').next()?.parse().ok()
    });
    let ask = |address, target: &str| {
        let mut wire = Wire::connect(address);
        wire.send(request("GET", target, &[]));
        wire.response().status
    };
    for path in values(&deployment, "httpGet: {path: ") {
        assert_eq!(ask(admin, path), 200, "{path}");
    }
    for (target, status) in pages {
        assert_eq!(ask(address, target), *status, "{target}");
    }
    server.stop(Signal::TERM, SOON);
}

#[test]
fn the_server_runs_with_its_configuration() {
    serves(configuration("server", &[]), &[("/", 200), ("/account/login", 404)]);
}

#[test]
fn members_have_a_configuration_too() {
    let text = packaged("members/tenfold.toml");
    assert!(text.starts_with(&packaged("server/tenfold.toml")), "members only add settings:\n{text}");
    let folder = values(&packaged("members/accounts.yaml"), "mountPath: ")[0].to_owned();
    let database = [(format!("file:{folder}/url"), "sqlite:members.db")];
    let database = database.each_ref().map(|(theirs, ours)| (theirs.as_str(), *ours));
    serves(configuration("members", &database), &[("/", 200), ("/account/login", 200), ("/members/", 303)]);
}

#[test]
fn pods_agree_with_the_configuration() {
    let (deployment, text) = (packaged("server/deployment.yaml"), packaged("server/tenfold.toml"));
    let number = |key: &str| -> u32 {
        let value = values(&deployment, key)[0];
        value.parse().unwrap_or_else(|error| panic!("{key}{value}: {error}"))
    };
    let settings: toml::Table = text.parse().expect("it is TOML");
    let setting = |key: &str| settings[key].as_str().unwrap_or_else(|| panic!("{key} is no text"));
    assert_eq!(setting("listen"), format!(":{}", number("name: http, containerPort: ")));
    assert_eq!(setting("admin"), format!("0.0.0.0:{}", number("name: admin, containerPort: ")));
    let drain: u32 = setting("drain-timeout").trim_end_matches('s').parse().expect("seconds");
    let grace = number("terminationGracePeriodSeconds: ");
    assert!(grace > number("sleep: {seconds: ") + drain, "a pod is killed after {grace} s, while it drains");
}

#[test]
fn images_have_this_version() {
    for file in ["server/kustomization.yaml", "agents/kustomization.yaml"] {
        assert_eq!(values(&packaged(file), "newTag: "), [env!("CARGO_PKG_VERSION")], "{file}");
    }
}
