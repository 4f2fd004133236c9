//! Messages between workers and the accounts process.

use std::io::{Read, Write};

use tenfold_sys::wait;

use super::*;

/// Waits for a message. Returns its question, or `None` for an invalid message.
pub(crate) fn received(server: &AccountsServer) -> Option<Question> {
    wait::for_input(&[server.as_fd()], None).expect("somebody sends");
    server.next(&mut AccountsServer::room()).expect("a message has come")
}

fn check() -> Query {
    Query::Check { session: "a".repeat(43) }
}

fn send_raw(client: &AccountsClient, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
    messages::send(&client.0, bytes, descriptors).expect("there is room");
}

fn is_closed(server: &AccountsServer) -> bool {
    wait::for_input(&[server.as_fd()], Some(Duration::ZERO)).expect("it is open")[0].hung_up
}

#[test]
fn h76_a_message_that_is_no_question_is_passed_over_and_is_not_the_end() {
    let (client, server) = open().expect("a pair of sockets");
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let question = serde_json::to_vec(&check()).expect("it can be written");
    let long = [&question[..], &vec![b' '; LONGEST]].concat();
    let socket = theirs.as_fd();
    let messages: [(&[u8], &[BorrowedFd<'_>]); 7] = [
        (b"", &[]),
        (b"", &[socket]),
        (&question, &[]),
        (&question[..question.len() - 1], &[socket]),
        (&long, &[socket]),
        (b"\xff\x00", &[socket]),
        (&question, &[socket, socket]),
    ];
    for (bytes, descriptors) in messages {
        send_raw(&client, bytes, descriptors);
        assert!(received(&server).is_none());
        assert!(!is_closed(&server));
    }
    drop(theirs);
    ours.set_nonblocking(true).expect("it is a socket");
    assert_eq!((&ours).read(&mut [0]).expect("no descriptor is left open"), 0);
    drop(client);
    assert!(is_closed(&server));
}

#[test]
fn each_query_gets_its_own_reply() {
    let (client, server) = open().expect("a pair of sockets");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let kept: Vec<_> = (0..8).map(|_| received(&server).expect("a question")).collect();
            for question in kept.into_iter().rev() {
                let (request, answer) = question.apart();
                let Query::Check { session } = request else { panic!("nothing else was asked") };
                answer.answer(&Reply::Member { name: session });
            }
        });
        for number in 0..8 {
            let client = &client;
            scope.spawn(move || {
                let session = number.to_string();
                let reply = client.ask(&Query::Check { session: session.clone() });
                assert_eq!(reply, Reply::Member { name: session });
            });
        }
    });
}

#[test]
fn h76_a_message_without_an_end_is_given_up() {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
    theirs.write_all(&[b'x'; 101]).expect("there is room");
    let soon = || Instant::now() + Duration::from_millis(100);
    assert!(read_to_end(&ours, 100, soon()).is_err(), "it is too much");
    let late = read_to_end(&ours, 100, soon()).expect_err("nothing comes");
    assert!(matches!(late.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{late}");
}

#[test]
fn h76_an_answer_by_drops_is_given_up() {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
    let asked = PendingQuestion { answer: ours, by: Instant::now() + Duration::from_millis(300) };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while theirs.write_all(b"x").is_ok() {
                // No pause between two bytes is too long.
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        assert!(asked.answer().is_err(), "its time is over, though bytes come");
    });
}

#[test]
fn a_query_fails_when_the_process_dies() {
    let (client, server) = open().expect("a pair of sockets");
    std::thread::scope(|scope| {
        scope.spawn(|| drop(received(&server).expect("a question")));
        assert_eq!(client.ask(&check()), Reply::Unavailable);
    });
}

#[test]
fn a_full_channel_rejects_without_waiting() {
    let (client, _inside) = open().expect("a pair of sockets");
    let mut sent = 0;
    while sent < 100_000 {
        let (_, theirs) = UnixStream::pair().expect("a pair of sockets");
        if messages::send(&client.0, b"{}", &[theirs.as_fd()]).is_err() {
            break;
        }
        sent += 1;
    }
    assert!(sent < 100_000);
    assert_eq!(client.ask(&check()), Reply::Unavailable);
}
