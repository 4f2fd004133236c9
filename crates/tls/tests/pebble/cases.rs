use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenfold_tls::acme::client::AcmeEvent;
use tenfold_tls::acme::settings::{AcmeSettings, Validation};
use tenfold_tls::acme::stored::{self, StoredCertificate};
use tenfold_tls::certificates::key;
use tenfold_tls::challenges::ChallengeBoard;

use crate::authority::{Pebble, obtained};
use crate::responder::Responder;

mod interrupted;

const NAMES: &[&str] = &["www.a.test", "a.test"];

/// Starts an authority that rejects `reject` percent of the nonces, and prepares an order by tls-alpn-01.
fn started(reject: u8) -> (Pebble, ChallengeBoard, Responder, AcmeSettings) {
    let pebble = Pebble::start(reject);
    let (board, responder) = pebble.responder();
    let settings = pebble.settings(NAMES, Validation::TlsAlpn01);
    (pebble, board, responder, settings)
}

#[test]
#[ignore = "needs pebble and curl: cargo xtask test --only unit"]
fn a_certificate_is_issued_kept_renewed_and_revoked() {
    let (pebble, board, _responder, settings) = started(0);
    let mut client = pebble.client(settings.clone(), &board);
    let first = obtained(&mut client);
    let facts = first.chain.facts();
    assert!(NAMES.iter().all(|name| facts.covers(name)));
    assert!(first.chain.certificates.len() > 1 && first.chain.is_in_order());
    let key = key::read(&first.key).expect("its key");
    first.chain.with_key(key).keys_match().expect("its key");
    let mode = |path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&first.key), mode(&pebble.scratch.0.join("state"))), (0o600, 0o700));
    let step = client.step();
    assert!(step.event.is_none() && step.wait > Duration::from_secs(60), "{step:?}");
    // After a restart, the client has the certificate and the account.
    let mut client = pebble.client(settings.clone(), &board);
    assert!(client.step().event.is_none());
    pebble.suggest_renewal(&first, "2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z");
    let mut client = pebble.client(settings.clone(), &board);
    let step = client.step();
    assert!(step.event.is_none(), "a renewal must wait after a success: {step:?}");
    pebble.forget_wait();
    let mut client = pebble.client(settings.clone(), &board);
    let second = obtained(&mut client);
    assert_ne!(second.chain.facts().public_key, first.chain.facts().public_key);
    assert!(!first.key.exists(), "the former key was not removed");
    client.revoke().expect("it is revoked");
    assert!(stored::load(&pebble.state()).expect("no error").is_none());
    let third = obtained(&mut client);
    assert_ne!(third.chain.facts().public_key, second.chain.facts().public_key);
    // An additional name need not wait.
    let settings = pebble.settings(&["a.test", "www.a.test", "b.test"], Validation::TlsAlpn01);
    let fourth = obtained(&mut pebble.client(settings, &board));
    assert!(fourth.chain.facts().covers("b.test"));
}

#[test]
#[ignore = "needs pebble and curl: cargo xtask test --only unit"]
fn names_are_validated_over_http() {
    let pebble = Pebble::start(0);
    let (board, _responder) = pebble.responder();
    let mut client = pebble.client(pebble.settings(NAMES, Validation::Http01), &board);
    assert!(obtained(&mut client).chain.facts().covers("www.a.test"));
}

#[test]
#[ignore = "needs pebble and curl: cargo xtask test --only unit"]
fn an_account_is_bound_to_an_external_account() {
    const KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let pebble = Pebble::start_with_account("kid-1", KEY);
    let (board, _responder) = pebble.responder();
    let file = pebble.scratch.0.join("external");
    let settings = pebble.settings(&["a.test"], Validation::TlsAlpn01);
    let bound = AcmeSettings { external_account: Some(file.clone()), ..settings.clone() };
    let failure = |settings: &AcmeSettings| match pebble.client(settings.clone(), &board).step().event {
        Some(AcmeEvent::Failed { error, .. }) => error.to_string(),
        other => panic!("an account was created: {other:?}"),
    };
    assert!(failure(&settings).starts_with("cannot create the account: "));
    for (content, expected) in [
        (format!("kid-2 {KEY}"), "cannot create the account: "),
        (format!("kid-1 {}", KEY.to_lowercase()), "cannot create the account: "),
        (KEY.to_owned(), "cannot read tls-external-account: "),
    ] {
        fs::write(&file, content).expect("our own folder");
        pebble.forget_wait();
        let error = failure(&bound);
        assert!(error.starts_with(expected) && !error.contains(KEY), "{error}");
    }
    fs::write(&file, format!("kid-1\n{KEY}\n")).expect("our own folder");
    pebble.forget_wait();
    assert!(obtained(&mut pebble.client(bound.clone(), &board)).chain.facts().covers("a.test"));
    // The account exists, so another name needs neither the file nor the setting.
    fs::remove_file(&file).expect("it was written");
    let more = pebble.settings(&["a.test", "b.test"], Validation::TlsAlpn01);
    assert!(obtained(&mut pebble.client(more, &board)).chain.facts().covers("b.test"));
}

#[test]
#[ignore = "needs pebble and curl: cargo xtask test --only unit"]
fn a_wildcard_is_validated_by_dns() {
    let pebble = Pebble::start(0);
    let command = pebble.scratch.0.join("dns");
    let url = format!("http://{}", pebble.names());
    let script = format!(
        "#!/bin/sh\nexec curl --silent --fail --data \"{{\\\"host\\\":\\\"$2.\\\",\\\"value\\\":\\\"$3\\\"}}\" {url}/$1-txt\n"
    );
    fs::write(&command, script).expect("our own folder");
    fs::set_permissions(&command, fs::Permissions::from_mode(0o700)).expect("our own file");
    let settings = pebble.settings(&["*.a.test", "a.test"], Validation::Dns01 { command });
    let stored = obtained(&mut pebble.client(settings, &crate::authority::board()));
    assert!(stored.chain.facts().covers("any.a.test") && stored.chain.facts().covers("a.test"));
}

#[test]
#[ignore = "needs pebble and curl: cargo xtask test --only unit"]
fn a_failed_validation_is_reported_and_the_next_attempt_succeeds() {
    let pebble = Pebble::start(0);
    let settings = pebble.settings(NAMES, Validation::TlsAlpn01);
    let mut client = pebble.client(settings.clone(), &crate::authority::board());
    let Some(AcmeEvent::Failed { error, retry }) = client.step().event else { panic!("no server answers") };
    let error = error.to_string();
    assert!(error.starts_with("cannot validate the names: ") && error.contains("a.test: "), "{error}");
    assert!((45..=75).contains(&retry.as_secs()), "{retry:?}");
    let step = client.step();
    assert!(
        step.event.is_none() && step.wait > Duration::from_secs(30),
        "an attempt before its time: {step:?}"
    );
    let (board, _responder) = pebble.responder();
    let mut client = pebble.client(settings.clone(), &board);
    assert!(client.step().event.is_none(), "a restart shortens the wait");
    pebble.forget_wait();
    obtained(&mut pebble.client(settings, &board));
}

#[test]
#[ignore = "needs pebble and curl: cargo xtask test --only unit"]
fn one_refused_name_does_not_stop_the_others() {
    let pebble = Pebble::start(0);
    let (board, _responder) = pebble.responder();
    // Nothing listens at this address.
    pebble.move_name("b.test", Ipv4Addr::LOCALHOST);
    let settings = pebble.settings(&["a.test", "b.test", "blocked.test"], Validation::TlsAlpn01);
    let names = |stored: &StoredCertificate| {
        settings.names.iter().filter(|name| stored.chain.facts().covers(name)).cloned().collect::<Vec<_>>()
    };
    let mut client = pebble.client(settings.clone(), &board);
    let step = client.step();
    let Some(AcmeEvent::Changed(stored)) = step.event else { panic!("no certificate: {step:?}") };
    assert_eq!(names(&stored), ["a.test"]);
    let mut refused: Vec<_> = step.refused.iter().map(|refused| refused.name.as_str()).collect();
    refused.sort_unstable();
    assert_eq!(refused, ["b.test", "blocked.test"]);
    for refused in &step.refused {
        let (text, retry) = (refused.error.to_string(), refused.retry.as_secs());
        assert!(text.contains(&refused.name) && (45..=75).contains(&retry), "{text}: {retry}");
    }
    for mut client in [client, pebble.client(settings.clone(), &board)] {
        let step = client.step();
        assert!(step.event.is_none() && step.refused.is_empty(), "a restart shortens the wait: {step:?}");
        assert!((1..=75).contains(&step.wait.as_secs()), "the refused names are not next: {step:?}");
    }
    pebble.move_name("b.test", pebble.address());
    pebble.forget_wait();
    let mut client = pebble.client(settings.clone(), &board);
    let stored = obtained(&mut client);
    assert_eq!(names(&stored), ["a.test", "b.test"]);
    // Only a refused name is due: no certificate is ordered for the other names.
    pebble.forget_wait();
    let step = pebble.client(settings.clone(), &board).step();
    assert!(step.event.is_none() && step.refused.len() == 1, "{step:?}");
}

#[test]
#[ignore = "needs pebble and curl: cargo xtask test --only unit"]
fn a_certificate_of_seconds_is_renewed_in_time() {
    const LIFETIME: Duration = Duration::from_secs(9);
    let pebble = Pebble::start_with(0, LIFETIME, "");
    let (board, _responder) = pebble.responder();
    let mut client = pebble.client(pebble.settings(&["a.test"], Validation::TlsAlpn01), &board);
    let first = obtained(&mut client);
    let mut step = client.step();
    // The authority and the client count whole seconds, so the wait may be a second longer or shorter.
    assert!(step.event.is_none() && step.wait <= LIFETIME * 2 / 3 + Duration::from_secs(1), "{step:?}");
    while step.event.is_none() {
        thread::sleep(step.wait);
        step = client.step();
    }
    let Some(AcmeEvent::Changed(second)) = step.event else { panic!("no certificate: {:?}", step.event) };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs();
    assert!(now.cast_signed() <= first.chain.facts().not_after, "the first certificate has expired");
    assert_ne!(first.chain.certificates, second.chain.certificates);
}

#[test]
#[ignore = "needs pebble and curl: cargo xtask test --only unit"]
fn an_unavailable_authority_is_only_an_event() {
    let mut pebble = Pebble::start(0);
    let (board, _responder) = pebble.responder();
    let settings = pebble.settings(NAMES, Validation::TlsAlpn01);
    let stored = obtained(&mut pebble.client(settings.clone(), &board));
    pebble.stop();
    let mut client = pebble.client(settings.clone(), &board);
    let step = client.step();
    assert!(
        step.event.is_none() && step.wait > Duration::from_secs(60),
        "a valid certificate fails: {step:?}"
    );
    let more = pebble.settings(&["b.test"], Validation::TlsAlpn01);
    let Some(AcmeEvent::Failed { error, .. }) = pebble.client(more.clone(), &board).step().event else {
        panic!("no authority issues")
    };
    assert!(error.to_string().starts_with("cannot reach the authority: "), "{error}");
    let kept = stored::load(&pebble.state()).expect("no error").expect("the former");
    assert_eq!(kept.chain.certificates, stored.chain.certificates);
    // The authority has lost its accounts: the first attempt detects it, and the second creates an account.
    pebble.restart();
    for is_last in [false, true] {
        pebble.forget_wait();
        let event = pebble.client(more.clone(), &board).step().event;
        assert_eq!(matches!(event, Some(AcmeEvent::Changed(_))), is_last, "{event:?}");
    }
}

#[test]
#[ignore = "needs pebble and curl: cargo xtask test --only unit"]
fn an_order_survives_rejected_nonces() {
    let (pebble, board, _responder, settings) = started(30);
    // After three rejections of a request, the attempt fails, and the next attempt resumes its order.
    let succeeds = |_| {
        pebble.forget_wait();
        matches!(pebble.client(settings.clone(), &board).step().event, Some(AcmeEvent::Changed(_)))
    };
    assert!((0..20).any(succeeds), "no certificate in twenty attempts");
}

#[test]
#[ignore = "needs pebble and curl: cargo xtask test --only unit"]
fn two_servers_obtain_one_certificate() {
    let (pebble, board, _responder, settings) = started(0);
    let mut clients = [(); 2].map(|()| pebble.client(settings.clone(), &board));
    let held = pebble.state().lock().expect("no error").expect("it is free");
    let step = clients[0].step();
    assert!(step.event.is_none() && step.wait <= Duration::from_secs(30), "the lock is ignored: {step:?}");
    drop(held);
    let first = obtained(&mut clients[0]);
    let second = obtained(&mut clients[1]);
    assert_eq!(first.chain.certificates, second.chain.certificates, "the second server obtained its own");
}

#[test]
#[ignore = "needs pebble and curl: cargo xtask test --only unit"]
fn a_disk_that_cannot_be_written_is_only_an_event() {
    let (pebble, board, _responder, settings) = started(0);
    // A folder blocks the file's name, and has the effect of a full disk.
    let (state, in_the_way) = (pebble.state(), pebble.scratch.0.join("state/.certificate.pem.new"));
    fs::create_dir(&in_the_way).expect("our own folder");
    let Some(AcmeEvent::Failed { error, .. }) = pebble.client(settings.clone(), &board).step().event else {
        panic!("it cannot be written")
    };
    assert!(error.to_string().starts_with("cannot store the certificate: cannot write "), "{error}");
    let order = state.read("order.json").expect("no error").expect("it is kept");
    fs::remove_dir(&in_the_way).expect("our own folder");
    pebble.forget_wait();
    let stored = obtained(&mut pebble.client(settings, &board));
    let key = stored.key.file_name().expect("a file").to_string_lossy().into_owned();
    assert!(String::from_utf8_lossy(&order).contains(&key), "the certificate is of another order");
    assert!(state.read("order.json").expect("no error").is_none());
}
