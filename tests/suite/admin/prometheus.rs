//! A real Prometheus that scrapes the server, and the dashboard over it.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tenfold_tests::address::ReservedAddress;
use tenfold_tests::binary::workspace;
use tenfold_tests::config::Config;
use tenfold_tests::launch::Launch;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::tools;
use tenfold_tests::wire::{Wire, request};

use super::{ask, start};

/// A Prometheus that runs until this value is dropped.
struct Prometheus(Child);

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn scrapes_and_the_dashboard_finds_its_metrics(config: &Config) {
    // With certificates, each expression has values.
    let (server, admin) = start(Launch::new(&config.over_tls(), site::shared()));
    for _ in 0..5 {
        assert_eq!(server.get("/1k.html").status, 200);
    }
    check(&ask(admin, "GET", "/metrics").body);
    let folder = TempFolder::new("prometheus");
    let text = format!(
        "global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}\n\
         scrape_configs: [{{job_name: tenfold, static_configs: [{{targets: ['{admin}']}}]}}]\n"
    );
    let file = folder.write("prometheus.yml", text);
    let at = ReservedAddress::new();
    let mut command = Command::new(tools::program("prometheus"));
    command.arg(format!("--config.file={}", file.display()));
    command.arg(format!("--storage.tsdb.path={}", folder.at("data").display()));
    command.arg(format!("--web.listen-address={at}"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _prometheus = Prometheus(command.spawn().expect("it is installed"));
    let query = |query: &str| -> Option<Value> {
        let encoded: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let mut wire = Wire::try_connect(*at).ok()?;
        wire.try_send(&request("GET", &format!("/api/v1/query?query={encoded}"), &[])).ok()?;
        let response = wire.try_head()?;
        let length = response.field("Content-Length")?.parse().ok()?;
        let body: Value = serde_json::from_slice(&wire.take(length)).ok()?;
        (body["status"] == "success").then(|| body["data"]["result"].clone())
    };
    // On a busy machine it takes seconds.
    becomes_true(Duration::from_secs(60), "Prometheus listens", || Wire::try_connect(*at).is_ok());
    // After a late scrape, Prometheus has no values until the next scrape.
    for sum in ["sum(tenfold_requests_total)", "sum(tenfold_response_seconds_bucket{le=\"+Inf\"})"] {
        becomes_true(SOON, &format!("{sum} is 5"), || {
            query(sum).is_some_and(|found| found[0]["value"][1] == "5")
        });
    }
    let text = std::fs::read(workspace().join("packaging/grafana/tenfold.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_slice(&text).expect("the dashboard is JSON");
    let panels = dashboard["panels"].as_array().expect("it has panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let mut expressions = 0;
    let text = String::from_utf8(ask(admin, "GET", "/metrics").body).expect("text");
    let names: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for target in targets {
        let expression = target["expr"].as_str().expect("a target has an expression");
        for name in expression.split(|letter: char| !letter.is_alphanumeric() && letter != '_') {
            let is_known = names.iter().any(|line| line.split(['{', ' ']).next() == Some(name));
            assert!(is_known || !name.starts_with("tenfold_"), "{name} is no metric: {expression}");
        }
        let expression = expression.replace("$__rate_interval", "1m").replace("$instance", ".*");
        // Rates need two scrapes.
        becomes_true(SOON, &format!("{expression} has values"), || {
            query(&expression).is_some_and(|found| found.as_array().is_some_and(|all| !all.is_empty()))
        });
        expressions += 1;
    }
    assert!(expressions >= 10, "{expressions} expressions");
}

/// Checks the text with `promtool`.
fn check(text: &[u8]) {
    let mut command = Command::new(tools::program("promtool"));
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it is installed");
    child.stdin.take().expect("a pipe").write_all(text).expect("it reads");
    let output = child.wait_with_output().expect("our own child");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
