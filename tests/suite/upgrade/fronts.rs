//! Proxies with persistent connections to the server during reloads and upgrades.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use rustix::process::Signal;
use tenfold_tests::address::ReservedAddress;
use tenfold_tests::config::Config;
use tenfold_tests::proxy::Proxy;
use tenfold_tests::server::Server;
use tenfold_tests::time::{EndOnDrop, SOON, becomes_true};
use tenfold_tests::wire::Wire;

use super::{folder, start, succeeds};

const UPGRADES: usize = 3;
/// The reloads before the first upgrade, and after each upgrade.
const RELOADS: usize = 5;

/// nginx does not repeat failed requests, so the client sees each failure.
pub(super) fn nginx_that_keeps_connections_sees_no_failure(config: &Config) {
    no_request_fails(config, |front, server| {
        let http = format!(
            "upstream own {{ server {server}; keepalive 16; keepalive_requests 1000000; }}\n\
             server {{ listen {front}; keepalive_requests 1000000; location / {{ proxy_pass http://own; \
             proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_next_upstream off; }} }}\n"
        );
        Proxy::start(front, &http)
    });
}

/// HAProxy may use any persistent connection for a request.
pub(super) fn haproxy_that_keeps_connections_sees_no_failure(config: &Config) {
    no_request_fails(config, |front, server| {
        Proxy::haproxy(front, &format!(" http-reuse always\n server s {server} pool-max-conn 16"))
    });
}

/// Each reload and each upgrade completes before the next, with requests in between.
fn no_request_fails(config: &Config, proxy: impl Fn(SocketAddr, SocketAddr) -> Proxy) {
    let folder = folder();
    let server = start(config, &folder);
    let front = ReservedAddress::new();
    let proxy = proxy(*front, server.address);
    let (end, requests) = (AtomicBool::new(false), AtomicUsize::new(0));
    // An upgrade resets the counters of the server.
    let mut at_last_upgrade = 0;
    let ask = || {
        let mut kept: Option<Wire> = None;
        while !end.load(Ordering::Relaxed) {
            let mut wire = kept.take().unwrap_or_else(|| Wire::connect(*front));
            wire.get("/");
            let response = wire.response();
            assert_eq!((response.status, &response.body[..]), (200, &b"the page\n"[..]), "{}", response.head);
            requests.fetch_add(1, Ordering::Relaxed);
            kept = (response.field("Connection") != Some("close")).then_some(wire);
        }
    };
    let clients = if config.serial() { 1 } else { 4 };
    thread::scope(|scope| {
        let at_end = EndOnDrop(&end);
        let clients: Vec<_> = (0..clients).map(|_| scope.spawn(ask)).collect();
        let are_served = || {
            let before = requests.load(Ordering::Relaxed);
            becomes_true(SOON, "clients are served", || {
                requests.load(Ordering::Relaxed) > before + 20 || clients.iter().any(|it| it.is_finished())
            });
        };
        for round in 0..=UPGRADES {
            if round > 0 {
                succeeds(&server, &folder);
                at_last_upgrade = requests.load(Ordering::Relaxed);
                are_served();
            }
            for _ in 0..RELOADS {
                reload(&server);
                are_served();
            }
        }
        drop(at_end);
        clients.into_iter().for_each(|client| client.join().expect("no request fails"));
    });
    drop(proxy);
    let accepted = server.status()["connections"]["accepted"].as_u64().expect("a count") as usize;
    let requests = requests.into_inner() - at_last_upgrade;
    assert!(accepted * 2 < requests, "kept connections: {accepted} for {requests} requests");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Reloads, and waits for the new generation.
#[track_caller]
fn reload(server: &Server) {
    let generation = || server.status()["generation"].as_u64().expect("a number");
    let before = generation();
    server.process.signal(Signal::HUP);
    becomes_true(SOON, "a new generation serves", || generation() > before);
}
