//! Upgrades and TLS: a certificate that the server obtains by itself, and the keys of tickets.

use std::fs;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::version::TLS12;
use rustls::{ClientConfig, ClientConnection};
use tenfold_tests::config::Config;
use tenfold_tests::launch::Launch;
use tenfold_tests::pebble::Pebble;
use tenfold_tests::process::Process;
use tenfold_tests::seal::{get_once, trusted_roots};
use tenfold_tests::time::{SOON, becomes_true, eventually};

use super::{folder, program, succeeds};
use crate::acme::trusting;

/// An upgrade during an order continues the order, and a later upgrade needs no authority.
pub(super) fn an_order_goes_on_after_an_upgrade(config: &Config) {
    let folder = folder();
    let pebble = Pebble::start(1);
    let (allowed, set) = (folder.at("allowed"), pebble.dns_command());
    // The order is open until the program may set the record. Without a permission, the program ends after some time.
    let wait = format!("for i in $(seq 400); do [ -e {} ] && break; sleep 0.05; done", allowed.display());
    let command = folder.write("dns", format!("#!/bin/sh\n{wait}\nexec {} \"$@\"\n", set.display()));
    folder.allow("dns", 0o755);
    let root = folder.write("root.pem", fs::read(pebble.root_file()).expect("our own file"));
    let server = Launch::new(config, &folder.at("site"))
        .program(&program(&folder))
        .flag("--tls", "*.a.test")
        .flag("--tls-directory", pebble.directory())
        .flag("--tls-directory-root", root.display())
        .flag("--tls-dns-command", command.display())
        .flag("--tls-state", folder.at("state").display())
        .start();
    let state = folder.at("state").join(pebble.folder_name());
    let order = || fs::read_to_string(state.join("order.json")).ok();
    let open = eventually(SOON, "an open order", order);
    succeeds(&server, &folder);
    assert_eq!(order().as_ref(), Some(&open), "the order is still open");

    fs::write(&allowed, "").expect("our own folder");
    let trusted = trusting(pebble.issuer());
    let presented =
        || get_once(server.address, &trusted, "any.a.test", "/").ok().map(|exchange| exchange.certificate);
    let certificate = eventually(SOON, "a certificate", presented);
    becomes_true(SOON, "the order ends", || order().is_none());
    let key = serde_json::from_str::<serde_json::Value>(&open).expect("it is JSON")["key"].clone();
    assert!(state.join(key.as_str().expect("a name")).exists(), "the certificate has the key of that order");

    drop(pebble);
    succeeds(&server, &folder);
    assert_eq!(presented(), Some(certificate), "it outlives the authority");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Helpers are forks of a process with the keys, before and after an upgrade.
pub(super) fn h96_no_helper_remembers_the_keys_of_tickets(config: &Config) {
    let folder = folder();
    let launch = Launch::new(&config.over_tls(), &folder.at("site")).program(&program(&folder));
    let server = launch.members().flag("--admin", format!("unix:{}", folder.at("admin").display())).start();
    for when in ["after the start", "after an upgrade", "after a second upgrade"] {
        let name = ticket_of(server.address);
        // A key in memory is its name and its secret.
        let mut secrets = server.process.remembered_behind(&name[..16], 32);
        // A name in freed memory is followed by small numbers of the allocator.
        secrets.retain(|secret| !secret.windows(4).any(|bytes| bytes == [0; 4]));
        assert!(!secrets.is_empty(), "the server has the key {when}");
        // The former worker ends after the upgrade has succeeded, and its helpers end after it.
        let others = eventually(SOON, "accounts, signing, admin and a worker", || {
            let mut others = server.process.with_descendants();
            others.retain(|process| *process != server.process);
            (others.len() == 4).then_some(others)
        });
        let has = |process: &&Process| secrets.iter().any(|secret| process.remembers(secret));
        // A helper drops the keys after its fork, and the server does not wait for this.
        becomes_true(SOON, &format!("only the worker of {others:?} has the key {when}"), || {
            others.iter().filter(has).count() == 1
        });
        succeeds(&server, &folder);
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The session ticket of a TLS 1.2 handshake, which is not encrypted (RFC 5077 §3.3).
fn ticket_of(address: SocketAddr) -> Vec<u8> {
    let client = ClientConfig::builder_with_protocol_versions(&[&TLS12]);
    let client = client.with_root_certificates(trusted_roots()).with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let mut client = ClientConnection::new(Arc::new(client), name).expect("legal");
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(SOON)).expect("an option");
    let mut received = Vec::new();
    while client.is_handshaking() {
        while client.wants_write() {
            client.write_tls(&mut stream).expect("the server reads");
        }
        let mut bytes = vec![0; 16 * 1024];
        let count = stream.read(&mut bytes).expect("the server answers");
        assert!(count > 0, "the handshake was broken off");
        received.extend_from_slice(&bytes[..count]);
        let mut rest = &bytes[..count];
        while !rest.is_empty() {
            client.read_tls(&mut rest).expect("memory");
            client.process_new_packets().expect("a good server");
        }
    }
    // A record (22, 3, 3, length) with the message (4, length), the lifetime and the length of the ticket.
    let is_ticket = |at: &usize| received[*at..].starts_with(&[22, 3, 3]) && received.get(at + 5) == Some(&4);
    let at = (0..received.len()).find(is_ticket).expect("the server sends a ticket");
    received[at + 15..].to_vec()
}
