//! TLS below the protocol: handshakes, records without plaintext, and alerts.

use std::time::Duration;

use rustls::{AlertDescription, Error};
use tenfold_engine::Driver;
use tenfold_sys::signal::Signal;

use crate::Statement;
use crate::client::{Client, End, request};
use crate::configuration::Configuration;
use crate::launch::Server;
use crate::pattern;
use crate::server::SMALL;

pub(crate) const STATEMENTS: &[Statement] = &[
    ("a_handshake_needs_no_request", tls, a_handshake_needs_no_request),
    ("keys_are_updated_on_an_idle_connection", tls, keys_are_updated_on_an_idle_connection),
    ("a_peer_that_never_completes_its_hello_is_closed", tls, a_peer_that_never_completes_its_hello),
    ("a_wrong_hello_gets_an_alert_and_an_end", tls, a_wrong_hello),
    ("a_changed_record_gets_an_alert_and_an_end", tls, a_changed_record),
    ("a_closing_record_leaves_the_answer_whole", tls, a_closing_record_leaves_the_answer_whole),
    ("a_hello_is_no_answer_for_a_server_that_drains", tls_on_a_loop, a_hello_is_no_answer),
];

fn tls(configuration: &Configuration) -> bool {
    configuration.tls
}

fn tls_on_a_loop(configuration: &Configuration) -> bool {
    configuration.tls && configuration.driver() != Driver::Blocking
}

/// The connection ends after this alert, without plaintext.
fn ends_with(client: &mut Client, alert: AlertDescription) {
    assert_eq!(client.rest(), (Vec::new(), End::Ended));
    assert_eq!((client.tls().error(), client.tls().is_closed()), (Some(Error::AlertReceived(alert)), false));
}

fn a_handshake_needs_no_request(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut client = server.connect();
    assert!(client.greet(), "no hello came");
    // The connection is idle now.
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(client.get("/small").body, SMALL);
    drop(client);
    let mut early = server.connect().sends_early();
    assert_eq!(early.get("/small").body, SMALL);
    drop(early);
    server.stop();
}

fn a_hello_is_no_answer(configuration: &Configuration) {
    let server = Server::start(configuration);
    let (mut greeted, mut answered) = (server.connect(), server.connect());
    assert!(greeted.greet(), "no hello came");
    assert_eq!(answered.get("/small").body, SMALL);
    server.tell(Signal::Quit);
    answered.ends();
    assert_eq!(greeted.get("/small").body, SMALL);
    server.stop();
}

fn keys_are_updated_on_an_idle_connection(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.get("/small").body, SMALL);
        let update = client.tls().update_keys();
        assert!(client.try_send_raw(&update));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(client.get("/small").body, SMALL);
    drop(client);
    server.stop();
}

fn a_peer_that_never_completes_its_hello(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("head-timeout", "3000")]);
    let mut clients = [1, 3, 20].map(|count| {
        let mut client = server.connect();
        let hello = client.tls().hello();
        assert!(client.try_send_raw(&hello[..count]));
        client
    });
    clients.iter_mut().for_each(Client::ends);
    assert_eq!(server.connect().get("/small").body, SMALL);
    server.stop();
}

fn a_wrong_hello(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut plaintext = server.connect().without_tls();
    plaintext.send(&request("/small"));
    assert_eq!(plaintext.response().status, 400);
    plaintext.ends();
    let mut other = server.connect();
    let mut hello = other.tls().hello();
    // The type of the message: a Finished (RFC 8446 §4).
    hello[5] = 20;
    assert!(other.try_send_raw(&hello));
    ends_with(&mut other, AlertDescription::UnexpectedMessage);
    assert_eq!(server.connect().get("/small").body, SMALL);
    server.stop();
}

fn a_changed_record(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut client = server.connect();
    assert_eq!(client.get("/small").body, SMALL);
    let mut record = client.tls().seal(&request("/small"));
    record[10] ^= 0x40;
    assert!(client.try_send_raw(&record));
    ends_with(&mut client, AlertDescription::BadRecordMac);
    assert_eq!(server.connect().get("/small").body, SMALL);
    server.stop();
}

fn a_closing_record_leaves_the_answer_whole(configuration: &Configuration) {
    let server = Server::start_with_little_room(configuration);
    for target in ["/large?3000000", "/shared?900000"] {
        let mut client = server.connect();
        client.take_little();
        client.ask(target);
        let length = crate::client::length(&client.head());
        let close = client.tls().close();
        assert!(client.try_send_raw(&close));
        assert!(client.exactly(length) == pattern::large()[..length], "the answer is another one");
        client.ends();
        assert!(client.tls().is_closed(), "the server closes in order");
    }
    server.stop();
}
