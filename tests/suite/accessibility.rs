//! The rules of accessibility of axe (WCAG 2.2 AA and good practice) on every kind of page, in a real browser.

use std::fs;
use std::net::SocketAddr;

use rustix::process::Signal;
use serde_json::Value;
use tenfold_tests::binary;
use tenfold_tests::browser::BrowserPage;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{ANY_PORT, Launch, tenfold, tenfold_slowly};
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};

pub(crate) const THEME: Theme = Theme {
    name: "accessibility",
    cases: cases![
        Own on EPOLL: pages_break_no_rule_of_accessibility, a_listing_breaks_no_rule_of_accessibility,
            the_status_page_breaks_no_rule_of_accessibility, reports_break_no_rule_of_accessibility;
    ],
};

const PAGES: [&str; 14] = [
    "/",
    // Without a second server: Chromium opens no connection to port 1.
    "/side-by-side.html?second=1",
    "/media.html",
    "/no-such-page",
    "/members/",
    "/members/register",
    "/book/",
    "/book/tutorial/getting-started.html",
    "/book/reference/configuration.html",
    "/book/explanation/costs.html",
    "/book/explanation/models/uring.html",
    "/book/explanation/lab-run.html",
    "/book/how-to/migrate/nginx.html",
    "/book/source/crates/engine/src/models/naive.rs.html",
];

/// The violations of the open page: the rule, and the first elements that break it. Folded parts are opened first.
const CHECK: &str = "document.querySelectorAll('details').forEach(part => part.open = true), axe.run().then(result => [result.passes.length, ...result.violations.map(
    rule => rule.id + ': ' + rule.help + ': ' + rule.nodes.slice(0, 3).map(node => node.html).join(' | '))])";

/// Checks pages in both colour schemes, wide and as on a phone.
#[track_caller]
fn break_no_rule(address: SocketAddr, pages: &[&str]) {
    let source = binary::workspace().join("tests/axe/node_modules/axe-core/axe.min.js");
    let axe = fs::read_to_string(&source)
        .unwrap_or_else(|error| panic!("{}: {error}; `cargo xtask setup` installs it", source.display()));
    let mut page = BrowserPage::open();
    let mut found = Vec::new();
    for (scheme, width, mobile) in [("light", 1280, false), ("dark", 390, true)] {
        page.prefer(scheme);
        page.resize(width, 900, mobile);
        for path in pages {
            page.go(&format!("http://{address}{path}"));
            page.evaluate(&format!("{axe};0"));
            let outcome = page.evaluate(CHECK);
            let (passed, broken) = outcome.as_array().and_then(|all| all.split_first()).expect("a list");
            assert!(passed.as_u64() > Some(10), "{path}: only {passed} rules apply");
            let broken = broken.iter().filter_map(Value::as_str);
            found.extend(broken.map(|rule| format!("{path}, {scheme}, {width} wide: {rule}")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn pages_break_no_rule_of_accessibility(config: &Config) {
    let file = binary::workspace().join("examples/tenfold.toml");
    let server = Launch::bare(config).flag("--config", file.display()).members().start();
    break_no_rule(server.address, &PAGES);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn a_listing_breaks_no_rule_of_accessibility(config: &Config) {
    let folder = TempFolder::new("accessible-listing");
    folder.write("a file.txt", "text");
    folder.write("folder/film.mp4", "no film");
    folder.write("folder/song.ogg", "no song");
    folder.write("folder/README.md", "# About this folder");
    folder.write("folder/picture.svg", "<svg xmlns='http://www.w3.org/2000/svg' width='8' height='8'/>");
    let server =
        Launch::bare(config).flag("--root", folder.path().display()).flag("--listing", "html").start();
    break_no_rule(server.address, &["/", "/folder/", "/folder/?view=grid", "/?filter=none"]);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn the_status_page_breaks_no_rule_of_accessibility(config: &Config) {
    // The page has a certificate, statuses and a warning.
    let launch = Launch::new(&config.over_tls(), site::shared()).flag("--admin", ANY_PORT);
    let server = launch.start();
    assert_eq!(server.get("/1k.html").status, 200);
    server.process.children()[0].signal(Signal::KILL);
    becomes_true(SOON, "a warning", || server.status()["diagnostics"]["warnings"].as_u64() >= Some(1));
    break_no_rule(server.admin(), &["/"]);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn reports_break_no_rule_of_accessibility(config: &Config) {
    let folder = TempFolder::new("accessible-reports");
    let server = Launch::bare(config).flag("--root", folder.path().display()).start();
    folder.write("page.txt", "text");
    let (url, bench) = (format!("http://{}/page.txt", server.address), folder.at("bench.html"));
    let run = tenfold(&["bench", "-q", "-n", "2000", "--report", &bench.display().to_string(), &url]);
    assert!(bench.exists(), "{run:?}");
    let lab = folder.at("lab").display().to_string();
    let only = ["--only", "se20-url,ab-models", "--profile", "smoke", "--blocks", "1", "--output", &lab];
    let run = tenfold_slowly(&[&["lab", "run"], &only[..]].concat());
    assert!(folder.at("lab/report.html").exists(), "{run:?}");
    break_no_rule(server.address, &["/bench.html", "/lab/report.html"]);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
