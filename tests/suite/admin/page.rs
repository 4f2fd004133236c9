//! The page of the admin listener: its numbers, its bounds, its policy, and its script in a browser.

use std::collections::BTreeMap;

use rustix::process::Signal;
use tenfold_tests::browser::BrowserPage;
use tenfold_tests::config::Config;
use tenfold_tests::launch::Launch;
use tenfold_tests::site;
use tenfold_tests::time::{SOON, becomes_true};

use super::{ask, metrics, start};

/// The numbers of the page by the names of their metrics.
#[track_caller]
fn numbers(page: &str) -> BTreeMap<String, f64> {
    let read = |piece: &str| {
        let (value, rest) = piece.split_once("\" title=\"").expect("a number has a title");
        let (name, _) = rest.split_once("\">").expect("the title ends");
        (name.replace("&quot;", "\""), value.parse().unwrap_or_else(|_| panic!("no number: {value}")))
    };
    page.split("<data value=\"").skip(1).map(read).collect()
}

pub(super) fn the_page_has_the_numbers_of_metrics(config: &Config) {
    let (server, admin) = start(Launch::new(&config.over_tls(), site::shared()));
    for (target, status) in [("/1k.html", 200), ("/1k.html", 200), ("/none", 404)] {
        assert_eq!(server.get(target).status, status);
    }
    becomes_true(SOON, "all is counted", || {
        let found = metrics(admin);
        let lines = found["tenfold_log_lines_total{result=\"written\"}"];
        (found["tenfold_connections"], found["tenfold_response_seconds_count"], lines) == (0.0, 3.0, 3.0)
    });
    let response = ask(admin, "GET", "/");
    assert_eq!((response.status, response.need("Content-Type")), (200, "text/html; charset=utf-8"));
    assert_eq!(response.need("Cache-Control"), "no-store");
    let policy = response.need("Content-Security-Policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(response.body.len() < 32 << 10, "{} bytes", response.body.len());
    let page = String::from_utf8_lossy(&response.body);
    let others = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!others.contains("://") && !others.contains("style=\""), "nothing from outside: {page}");
    let (shown, all) = (numbers(&page), metrics(admin));
    let is_changing = |name: &str| {
        name.starts_with("tenfold_uptime_seconds") || name.starts_with("tenfold_worker_memory_bytes")
    };
    for (name, value) in shown.iter().filter(|(name, _)| !is_changing(name)) {
        assert_eq!(all.get(name), Some(value), "{name} of {all:#?}");
    }
    for name in [
        "tenfold_responses_total{code=\"200\"}",
        "tenfold_responses_total{code=\"404\"}",
        "tenfold_requests_by_version_total{version=\"1.1\"}",
        "tenfold_tls_handshakes_total{result=\"full\"}",
        "tenfold_log_lines_total{result=\"written\"}",
        "tenfold_worker_requests_total{worker=\"1\",generation=\"1\"}",
        "tenfold_worker_memory_bytes{worker=\"1\",generation=\"1\"}",
        "tenfold_certificate_expires_timestamp_seconds{name=\"localhost\"}",
        "tenfold_sent_bytes_total",
        "tenfold_connections",
        "tenfold_hosts",
    ] {
        assert!(shown.contains_key(name), "{name} in {shown:#?}");
    }
    let head = ask(admin, "HEAD", "/");
    assert!(head.status == 200 && head.promised() > 1000 && head.body.is_empty(), "{}", head.head);
    assert_eq!(head.need("Content-Security-Policy"), policy);
    assert_eq!(ask(admin, "GET", "/index.html").status, 404);
    assert!(!page.contains("was killed by signal 9"), "{page}");
    server.process.children()[0].signal(Signal::KILL);
    becomes_true(SOON, "the page has the warning", || {
        let page = String::from_utf8(ask(admin, "GET", "/").body).expect("text");
        page.contains("was killed by signal 9")
    });
}

pub(super) fn the_page_draws_what_happens(config: &Config) {
    let (server, admin) = start(Launch::new(config, site::shared()));
    let mut page = BrowserPage::open();
    page.resize(390, 900, true);
    page.go(&format!("http://{admin}/"));
    page.evaluate("window.unchanged = true; 0");
    let answered = "tenfold_worker_requests_total{worker=\"1\",generation=\"1\"}";
    let number = format!("document.querySelector('data[title=\\'{answered}\\']').value");
    assert_eq!(page.evaluate(&number), "0");
    for _ in 0..5 {
        assert_eq!(server.get("/1k.html").status, 200);
    }
    becomes_true(SOON, "the number changes", || page.evaluate(&number) == "5");
    // Two readings are 2 s apart.
    becomes_true(SOON, "charts", || {
        assert_eq!(server.get("/1k.html").status, 200);
        page.evaluate("document.querySelectorAll('main svg polyline').length >= 4") == true
    });
    assert_eq!(page.evaluate("window.unchanged"), true, "the page was not loaded again");
    assert_eq!(page.evaluate("document.documentElement.scrollWidth <= innerWidth"), true, "it fits a phone");
    page.evaluate("document.querySelector('button').click(); 0");
    assert_eq!(page.evaluate("document.querySelector('button').textContent"), "Continue");
    let complaints = page.complaints();
    assert!(complaints.is_empty(), "{complaints:#?}");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    page.evaluate("document.querySelector('button').click(); 0");
    let status =
        "document.querySelector('[role=status]').textContent.startsWith('The server does not answer')";
    becomes_true(SOON, "the page tells that it is old", || page.evaluate(status) == true);
}
