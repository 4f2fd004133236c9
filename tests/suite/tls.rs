//! TLS beyond the layer: the log, sessions, and certificates.

use std::sync::Arc;

use rustix::process::Signal;
use rustls::ClientConfig;
use serde_json::Value;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::seal::{Below, SecureExchange, get_once, new_client};
use tenfold_tests::server::Server;
use tenfold_tests::site;
use tenfold_tests::time::{SOON, becomes_true};

pub(crate) const THEME: Theme = Theme {
    name: "tls",
    cases: cases![
        Engines Own: a_line_of_json_has_the_result_of_the_handshake, a_session_is_resumed_also_after_a_reload;
        Topologies Own: a_session_of_one_worker_is_resumed_in_another;
    ],
};

#[track_caller]
fn get(server: &Server, client: &Arc<ClientConfig>) -> SecureExchange {
    let exchange = get_once(server.address, client, "localhost", "/1k.html")
        .unwrap_or_else(|error| panic!("{error}; the server said:\n{}", server.errors()));
    assert!(exchange.response.starts_with("HTTP/1.1 200 "), "{}", exchange.response);
    exchange
}

fn a_line_of_json_has_the_result_of_the_handshake(config: &Config) {
    let encrypted = config.through(Below::Tls);
    let server = Launch::new(&encrypted, site::shared()).flag("--log-format", "json").start();
    get(&server, &new_client());
    becomes_true(SOON, "a line", || server.log().lines().count() == 1);
    let line: Value = serde_json::from_str(&server.log()).expect("it is JSON");
    assert_eq!(line["tls_version"], "TLSv1.3");
    assert_eq!(line["tls_cipher"], "TLS_AES_256_GCM_SHA384");
    assert_eq!((&line["tls_server_name"], &line["tls_alpn"]), (&"localhost".into(), &"http/1.1".into()));
    assert_eq!(line["tls_resumed"], false);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    let plain = Launch::new(config, site::shared()).flag("--log-format", "json").start();
    plain.get("/1k.html");
    becomes_true(SOON, "a line", || plain.log().lines().count() == 1);
    assert!(!plain.log().contains("tls"), "{}", plain.log());
}

fn handshakes(server: &Server, kind: &str) -> u64 {
    server.status()["tls"][kind].as_u64().expect("a count")
}

fn a_session_is_resumed_also_after_a_reload(config: &Config) {
    let server = Launch::new(&config.through(Below::Tls), site::shared()).start();
    let client = new_client();
    assert!(!get(&server, &client).resumed, "there is no session yet");
    assert!(get(&server, &client).resumed, "a second connection");
    server.process.signal(Signal::HUP);
    becomes_true(SOON, "the new workers serve and the old ones are gone", || {
        let status = server.status();
        let workers = status["workers"].as_array().expect("a list").clone();
        status["generation"] == 2 && workers.iter().all(|worker| worker["generation"] == 2)
    });
    assert!(get(&server, &client).resumed, "after a reload");
    becomes_true(SOON, "handshakes are counted", || {
        (handshakes(&server, "full"), handshakes(&server, "resumed")) == (1, 2)
    });
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn a_session_of_one_worker_is_resumed_in_another(config: &Config) {
    let server = Launch::new(&config.through(Below::Tls), site::shared()).start();
    let client = new_client();
    let count = 24;
    let resumed = (0..count).filter(|_| get(&server, &client).resumed).count();
    assert_eq!(resumed, count - 1, "each but the first");
    becomes_true(SOON, "handshakes are counted", || handshakes(&server, "resumed") == count as u64 - 1);
    let status = server.status();
    let serving = |worker: &&Value| worker["requests"].as_u64().unwrap_or(0) > 0;
    if config.workers() > 1 {
        let workers = status["workers"].as_array().expect("a list");
        assert!(workers.iter().filter(serving).count() > 1, "{status:#}");
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}
