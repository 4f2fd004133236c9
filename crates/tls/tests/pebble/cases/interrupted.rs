//! A process that is killed repeatedly while it obtains a certificate.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use tenfold_tls::acme::client::AcmeClient;
use tenfold_tls::acme::settings::{AcmeSettings, Validation};
use tenfold_tls::acme::stored;

use super::NAMES;
use crate::authority::{self, Pebble, obtained};
use crate::responder::Responder;

/// The variable that makes the test such a process: folder, directory, roots, addresses of HTTP and TLS.
const CHILD: &str = "TENFOLD_TEST_ACME_CHILD";

/// The name of the test in this file.
const TEST: &str = "cases::interrupted::a_process_that_ends_at_any_point_is_resumed";

/// Obtains a certificate.
fn child(words: &str) {
    let words: Vec<&str> = words.split(' ').collect();
    let [scratch, directory, roots, http, tls] = words[..] else { panic!("five words") };
    let settings = AcmeSettings {
        names: NAMES.iter().map(|name| (*name).to_owned()).collect(),
        directory: directory.to_owned(),
        authority_roots: Some(PathBuf::from(roots)),
        contact: None,
        external_account: None,
        validation: Validation::TlsAlpn01,
    };
    let board = authority::board();
    let _responder = Responder::start(&board, [http, tls].map(|word| word.parse().expect("an address")));
    let state = authority::state(&PathBuf::from(scratch));
    let mut client = AcmeClient::new(settings, state, board, None).expect("a client");
    obtained(&mut client);
}

#[test]
#[ignore = "needs pebble and curl: cargo xtask test --only unit"]
fn a_process_that_ends_at_any_point_is_resumed() {
    if let Ok(words) = env::var(CHILD) {
        return child(&words);
    }
    let pebble = Pebble::start(0);
    let settings = pebble.settings(NAMES, Validation::TlsAlpn01);
    let roots = settings.authority_roots.expect("its own roots");
    let [http, tls] = pebble.validated();
    let (scratch, directory) = (pebble.scratch.0.display(), settings.directory);
    let words = format!("{scratch} {directory} {} {http} {tls}", roots.display());
    let start = || {
        pebble.forget_wait();
        let program = env::current_exe().expect("this program");
        let mut command = Command::new(program);
        command.args(["--ignored", "--nocapture", "--exact", TEST]).env(CHILD, &words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it can be started")
    };
    let mut obtained = 0;
    for milliseconds in (0..2000).step_by(90) {
        let mut child = start();
        // Each process is killed at another time.
        thread::sleep(Duration::from_millis(milliseconds));
        let _ = child.kill();
        let _ = child.wait();
        // The folder has no certificate, or a whole certificate with its key.
        let state = pebble.state();
        if stored::load(&state).expect("a partial certificate").is_some() {
            obtained += 1;
            std::fs::remove_file(pebble.scratch.0.join("state/certificate.pem")).expect("it is there");
        }
    }
    assert!(start().wait().expect("it ends").success(), "a process that runs to its end fails");
    assert!(stored::load(&pebble.state()).expect("no error").is_some());
    assert!(obtained < 22, "no process was ended in time");
}
