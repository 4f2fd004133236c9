//! TLS below the protocol: handshakes, records without plaintext, and alerts.

use std::time::{Duration, Instant};

use rustls::AlertDescription;
use tenfold_engine::Driver;
use tenfold_sys::signal::Signal;
use tenfold_testkit::time::{SOON, becomes_true, not_before, with_deadlines};
use tenfold_testkit::wire::Wire;

use crate::Statement;
use crate::configuration::Configuration;
use crate::launch::{Server, milliseconds, request};
use crate::pattern;
use crate::server::SMALL;

pub(crate) const STATEMENTS: &[Statement] = statements![
    tls: a_handshake_needs_no_request, keys_are_updated_on_an_idle_connection,
        a_peer_that_never_completes_its_hello_is_closed, a_wrong_hello_gets_an_alert_and_an_end,
        a_changed_record_gets_an_alert_and_an_end, a_closing_record_leaves_the_answer_whole;
    tls_on_a_loop: a_hello_is_no_answer_for_a_server_that_drains;
];

fn tls(configuration: &Configuration) -> bool {
    configuration.tls
}

fn tls_on_a_loop(configuration: &Configuration) -> bool {
    configuration.tls && configuration.driver() != Driver::Blocking
}

fn a_handshake_needs_no_request(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut client = server.connect();
    client.greet().expect("a hello");
    // The connection is idle now.
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(client.fetch("/small").body, SMALL);
    drop(client);
    let mut early = server.connect().sends_early(true);
    assert_eq!(early.fetch("/small").body, SMALL);
    drop(early);
    server.stop();
}

fn a_hello_is_no_answer_for_a_server_that_drains(configuration: &Configuration) {
    let server = Server::start(configuration);
    let (mut greeted, mut answered) = (server.connect(), server.connect());
    greeted.greet().expect("a hello");
    assert_eq!(answered.fetch("/small").body, SMALL);
    server.tell(Signal::Quit);
    answered.expect_end_of_stream();
    assert_eq!(greeted.fetch("/small").body, SMALL);
    server.stop();
}

fn keys_are_updated_on_an_idle_connection(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.fetch("/small").body, SMALL);
        let update = client.tls().update_keys();
        client.send_raw(&update);
        // The update comes by itself, before the next request.
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(client.fetch("/small").body, SMALL);
    drop(client);
    server.stop();
}

fn a_peer_that_never_completes_its_hello_is_closed(configuration: &Configuration) {
    with_deadlines(|deadline| {
        let server = Server::start_with(configuration, &[("head-timeout", &milliseconds(deadline))]);
        let begun = Instant::now();
        let mut clients = [1, 3, 20].map(|count| {
            let mut client = server.connect();
            let hello = client.tls().hello();
            // A server that gets no byte in time has closed the connection.
            let _ = client.try_send_raw(&hello[..count]);
            client
        });
        if begun.elapsed() > deadline / 2 {
            return false;
        }
        clients.iter_mut().for_each(Wire::expect_end_of_stream);
        not_before(deadline, begun);
        becomes_true(SOON, "a hello in time is answered", || {
            let mut client = server.connect();
            client.try_send(&request("/small")).is_ok() && client.try_response().is_some()
        });
        server.stop();
        true
    });
}

fn a_wrong_hello_gets_an_alert_and_an_end(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut plaintext = server.connect().without_tls();
    plaintext.send(request("/small"));
    assert_eq!(plaintext.response().status, 400);
    plaintext.expect_end_of_stream();
    let mut other = server.connect();
    let mut hello = other.tls().hello();
    // The type of the message: a Finished (RFC 8446 §4).
    hello[5] = 20;
    other.send_raw(&hello);
    other.expect_alert(AlertDescription::UnexpectedMessage);
    assert_eq!(server.connect().fetch("/small").body, SMALL);
    server.stop();
}

fn a_changed_record_gets_an_alert_and_an_end(configuration: &Configuration) {
    let (server, mut client) = Server::with_client(configuration, &[]);
    let mut record = client.tls().seal(&request("/small"));
    record[10] ^= 0x40;
    client.send_raw(&record);
    client.expect_alert(AlertDescription::BadRecordMac);
    assert_eq!(server.connect().fetch("/small").body, SMALL);
    server.stop();
}

fn a_closing_record_leaves_the_answer_whole(configuration: &Configuration) {
    let server = Server::start_with_little_room(configuration);
    for target in ["/large?3000000", "/shared?900000"] {
        let mut client = server.connect();
        client.take_little();
        client.get(target);
        let length = client.head().promised();
        let close = client.tls().close();
        client.send_raw(&close);
        assert!(client.take(length) == pattern::large()[..length], "the answer is another one");
        client.expect_end_of_stream();
        assert!(client.tls().is_closed(), "the server closes in order");
    }
    server.stop();
}
