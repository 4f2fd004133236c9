//! HAProxy, nginx and Caddy from packages, in front of the server.

use std::net::SocketAddr;

use tenfold_tests::address::ReservedAddress;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Named;
use tenfold_tests::launch::Launch;
use tenfold_tests::lists::ENGINES;
use tenfold_tests::proxy::{Proxy, new_caddy};
use tenfold_tests::seal::certificate_folder;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::tools;
use tenfold_tests::visitor::Visitor;
use tenfold_tests::wire::{Wire, request};

use super::{assert_clients, behind, stop};

/// Starts a proxy in front of the server and sends it a request from 127.0.0.5, which the log must contain.
#[track_caller]
fn names_the_client(server: Server, proxy: impl Fn(SocketAddr) -> Proxy) {
    let front = ReservedAddress::new();
    let proxy = proxy(*front);
    let mut wire = Wire::connect_from("127.0.0.5", *front);
    wire.send(request("GET", "/1k.html", &[("Connection", "close")]));
    let response = wire.response();
    let expected = std::fs::read(site::shared().join("1k.html")).expect("the site has it");
    assert_eq!((response.status, response.body), (200, expected));
    drop((wire, proxy));
    assert_clients(&server, &["127.0.0.5"]);
    stop(server);
}

pub(super) fn haproxy_names_the_client(config: &Config) {
    let launch = || Launch::new(config, site::shared()).flag("--trusted-proxy", "127.0.0.1");
    for field in ["option forwardfor", "http-request set-header Forwarded for=%[src]"] {
        let server = launch().start();
        let lines = format!(" option httpclose\n {field}\n server s {}", server.address);
        names_the_client(server, |front| Proxy::haproxy(front, &lines));
    }
    for version in ["send-proxy", "send-proxy-v2"] {
        let server = behind(launch());
        let lines = format!(" option httpclose\n server s {} {version}", server.address);
        names_the_client(server, |front| Proxy::haproxy(front, &lines));
    }
}

pub(super) fn nginx_names_the_client(config: &Config) {
    let field = ["X-Forwarded-For $proxy_add_x_forwarded_for", "Forwarded for=$remote_addr"];
    for field in field {
        let server = Launch::new(config, site::shared()).flag("--trusted-proxy", "127.0.0.1").start();
        let pass = format!("proxy_set_header {field}; proxy_pass http://{};", server.address);
        names_the_client(server, |front| {
            Proxy::start(front, &format!("server {{ listen {front}; location / {{ {pass} }} }}\n"))
        });
    }
}

/// Caddy replaces the forwarded fields of its client, and has another host.
pub(super) fn caddy_names_the_client_the_host_and_the_scheme(config: &Config) {
    let caddy = tools::program("caddy");
    let launch = |fields: &str| {
        let launch = Launch::new(config, site::shared()).flag("--trusted-proxy", "127.0.0.1");
        launch.flag("--forwarded-fields", fields)
    };
    let pass = |server: &Server| {
        format!("reverse_proxy {} {{\n header_up Host upstream.example\n}}", server.address)
    };

    let server = launch("x-forwarded-for x-forwarded-host").flag("--log-format", "{client} {host}").start();
    let front = ReservedAddress::new();
    let proxy = Proxy::caddy(&caddy, "http", *front, &pass(&server));
    let mut wire = Wire::connect_from("127.0.0.5", *front);
    let forged = [("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Host", "forged.example")];
    wire.send(request("GET", "/1k.html", &forged));
    assert_eq!(wire.response().status, 200);
    drop((wire, proxy));
    assert_clients(&server, &["127.0.0.5"]);
    assert_eq!(server.log(), "127.0.0.5 localhost\n");
    stop(server);

    let server = launch("x-forwarded-for x-forwarded-proto").members().start();
    let files = TempFolder::new("caddy-certificate");
    files.allow(".", 0o755);
    let [certificate, key] = ["cert.pem", "key.pem"].map(|name| {
        let content = std::fs::read(certificate_folder().join(name)).expect("it was made");
        files.write(name, content).display().to_string()
    });
    for scheme in ["http", "https"] {
        let front = ReservedAddress::new();
        let visitor = Visitor::new(&server).at(*front);
        let (mut visitor, tls, expected) = match scheme {
            "https" => (visitor.over_tls(), format!("tls {certificate} {key}\n"), "__Host-form"),
            _ => (visitor, String::new(), "form"),
        };
        let proxy = Proxy::caddy(&caddy, scheme, *front, &(tls + &pass(&server)));
        let page = visitor.get("/account/login");
        assert_eq!(page.status, 200);
        let cookies: Vec<_> = visitor.cookies.keys().collect();
        assert_eq!(cookies, [expected], "{scheme}: {}", page.head);
        drop(proxy);
    }
    stop(server);
}

/// One test for each engine, if there is a suitable Caddy.
pub(super) fn caddy_sends_proxy_headers() -> Vec<Named> {
    let Some(caddy) = new_caddy() else { return Vec::new() };
    let on_every_engine = (ENGINES.configs)().into_iter().filter(|config| !config.has_pool());
    let named = |config: Config| {
        let caddy = caddy.clone();
        let run = move || {
            for version in ["v1", "v2"] {
                let server =
                    behind(Launch::new(&config, site::shared()).flag("--trusted-proxy", "127.0.0.1"));
                let transport = format!("transport http {{\n proxy_protocol {version}\n}}");
                let site = format!("reverse_proxy {} {{\n{transport}\n}}", server.address);
                let front = ReservedAddress::new();
                let proxy = Proxy::caddy(&caddy, "http", *front, &site);
                // A persistent connection of the proxy belongs to one client. A serial server would wait for it.
                let clients: &[&str] =
                    if config.serial() { &["127.0.0.5"] } else { &["127.0.0.5", "127.0.0.6", "127.0.0.5"] };
                for client in clients {
                    let mut wire = Wire::connect_from(client, *front);
                    wire.send(request("GET", "/1k.html", &[]));
                    assert_eq!(wire.response().status, 200);
                }
                drop(proxy);
                assert_clients(&server, clients);
                stop(server);
            }
        };
        Named { name: config.engine.to_string(), run: Box::new(run) }
    };
    on_every_engine.map(named).collect()
}
