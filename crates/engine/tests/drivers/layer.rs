//! The layer below the protocol: hellos, records without plaintext, and alerts.

use std::time::Duration;

use tenfold_engine::Driver;
use tenfold_engine::layer::framed::record::{Alert, RecordKind};

use tenfold_sys::signal::Signal;

use crate::Statement;
use crate::client::{Client, End, request};
use crate::configuration::Configuration;
use crate::launch::Server;
use crate::pattern;
use crate::server::SMALL;

pub(crate) const STATEMENTS: &[Statement] = &[
    ("a_hello_is_answered_before_any_plaintext", layered, a_hello_is_answered_before_any_plaintext),
    ("a_note_is_answered_on_an_idle_connection", layered, a_note_is_answered_on_an_idle_connection),
    ("a_peer_that_never_completes_its_hello_is_closed", layered, a_peer_that_never_completes_its_hello),
    ("a_wrong_hello_gets_an_alert_and_an_end", layered, a_wrong_hello),
    ("a_changed_record_gets_an_alert_and_an_end", layered, a_changed_record),
    ("a_closing_record_leaves_the_answer_whole", layered, a_closing_record_leaves_the_answer_whole),
    ("a_hello_is_no_answer_for_a_server_that_drains", layered_loop, a_hello_is_no_answer),
];

fn layered(configuration: &Configuration) -> bool {
    configuration.layered
}

fn layered_loop(configuration: &Configuration) -> bool {
    configuration.layered && configuration.driver() != Driver::Blocking
}

/// The connection ends behind this alert, without plaintext.
fn ends_with(client: &mut Client, alert: Alert) {
    assert_eq!(client.rest(), (Vec::new(), End::Ended));
    let received = client.layer().received;
    assert_eq!((received.alert, received.close), (Some(alert as u8), false));
}

fn a_hello_is_answered_before_any_plaintext(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut client = server.connect();
    assert!(client.greet(), "no hello came");
    // The connection is idle now.
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(client.get("/small").body, SMALL);
    assert_eq!(client.layer().received.notes, 2, "a ticket, and the answer to the first note");
    drop(client);
    let mut early = server.connect().sends_early(true);
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

fn a_note_is_answered_on_an_idle_connection(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut client = server.connect();
    for round in 0..3 {
        assert_eq!(client.get("/small").body, SMALL);
        let note = client.layer().ask();
        assert!(client.try_send_raw(&note));
        while client.layer().received.notes < 3 + round {
            assert!(matches!(client.receive_once(), Ok(1..)), "no answer to a note");
        }
    }
    drop(client);
    server.stop();
}

fn a_peer_that_never_completes_its_hello(configuration: &Configuration) {
    let server = Server::start_with(configuration, &[("head-timeout", "3000")]);
    let mut clients = [1, 3, 20].map(|count| {
        let mut client = server.connect();
        let hello = client.layer().hello();
        assert!(client.try_send_raw(&hello[..count]));
        client
    });
    clients.iter_mut().for_each(Client::ends);
    assert_eq!(server.connect().get("/small").body, SMALL);
    server.stop();
}

fn a_wrong_hello(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut plaintext = server.connect();
    assert!(plaintext.try_send_raw(&request("/small")));
    ends_with(&mut plaintext, Alert::Malformed);
    let mut other = server.connect();
    let mut hello = other.layer().hello();
    hello[6] ^= 1;
    assert!(other.try_send_raw(&hello));
    ends_with(&mut other, Alert::BadTag);
    assert_eq!(server.connect().get("/small").body, SMALL);
    server.stop();
}

fn a_changed_record(configuration: &Configuration) {
    let server = Server::start(configuration);
    let mut client = server.connect();
    assert_eq!(client.get("/small").body, SMALL);
    let mut record = client.layer().record(RecordKind::Data, &request("/small"));
    record[10] ^= 0x40;
    assert!(client.try_send_raw(&record));
    ends_with(&mut client, Alert::BadTag);
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
        let close = client.layer().close();
        assert!(client.try_send_raw(&close));
        assert!(client.exactly(length) == pattern::large()[..length], "the answer is another one");
        client.ends();
        assert!(client.layer().received.close, "the server closes in order");
    }
    server.stop();
}
