//! Upgrades of a server that obtains its certificate by itself.

use std::fs;

use tenfold_tests::config::Config;
use tenfold_tests::launch::{Launch, free_address};
use tenfold_tests::pebble::Pebble;
use tenfold_tests::seal::get_once;
use tenfold_tests::time::{SOON, becomes_true, eventually};

use super::{folder, program, succeeds};
use crate::acme::trusting;

/// An upgrade in the middle of an order continues that order, and one behind it needs no authority.
pub(super) fn an_order_goes_on_after_an_upgrade(config: &Config) {
    let folder = folder();
    let pebble = Pebble::start(free_address());
    let (allowed, set) = (folder.at("allowed"), pebble.dns_command());
    // The order is open until the program may set the record. It ends by itself if nobody allows it.
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
