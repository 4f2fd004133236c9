//! Arbitrary messages at the accounts' end: each is a valid question, or is dropped and its descriptors are closed.
//! This is also a fuzz target: `cargo xtask fuzz --minutes 10 accounts`.

use std::io::{ErrorKind, Read};
use std::sync::atomic::{AtomicUsize, Ordering};

use tenfold_accounts::ask::ClientIdentity;

use super::*;

/// A message of a worker with a text in it.
fn written(choice: u8, text: &str) -> Vec<u8> {
    let text = || text.to_owned();
    let from = || ClientIdentity { address: text(), known: Some(text()) };
    let request = match choice % 8 {
        0 => Query::Check { session: text() },
        1 => Query::Overview { session: text() },
        2 => Query::Login { name: text(), password: text(), from: from(), former: Some(text()) },
        3 => Query::Register { name: text(), password: text(), invitation: None, from: from() },
        4 => Query::Logout { session: text() },
        5 => Query::EndOthers { session: text() },
        6 => Query::ChangePassword { session: text(), old: text(), new: text(), from: from() },
        _ => Query::Remove { session: text(), password: text(), from: from() },
    };
    serde_json::to_vec(&request).expect("a question can be written")
}

/// Sends `message` with `count` copies of a descriptor to the accounts' end. Returns the other end of that descriptor.
fn send(client: &AccountsClient, message: &[u8], count: usize) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let rights = [theirs.as_fd(), theirs.as_fd()];
    messages::send(&client.0, message, &rights[..count]).expect("there is room");
    ours
}

#[test]
fn any_message_is_a_question_or_is_dropped() {
    let (client, inside) = open().expect("a pair of sockets");
    let (mut room, taken) = (AccountsServer::room(), AtomicUsize::new(0));
    let room = std::sync::Mutex::new(&mut room);
    bolero::check!().with_iterations(2000).with_max_len(64).with_type::<(u8, u8, Vec<u8>)>().for_each(
        |(form, choice, bytes)| {
            let whole = written(*choice, &String::from_utf8_lossy(bytes));
            let (message, count) = match form % 8 {
                0 => (bytes.clone(), 1),
                1 => (whole[..whole.len() - 1].to_vec(), 1),
                2 => (whole.iter().copied().chain(bytes.iter().copied()).collect(), 1),
                3 => (whole.clone(), 0),
                4 => (whole.clone(), 2),
                5 => (whole.iter().map(|byte| byte ^ (choice & 1)).collect(), 1),
                _ => (whole.clone(), 1),
            };
            let mut ours = send(&client, &message, count);
            let mut room = room.lock().expect("no other thread has it");
            let question = inside.next(&mut room).expect("a message is no error");
            let is_whole = message == whole;
            assert!(question.is_some() || !(is_whole && count == 1), "a question was dropped");
            assert!(question.is_none() || count > 0, "nobody waits for its answer");
            if let Some(question) = question {
                let (request, answer) = question.apart();
                if is_whole {
                    assert_eq!(serde_json::to_vec(&request).expect("a question can be written"), whole);
                    taken.fetch_add(1, Ordering::Relaxed);
                }
                drop(answer);
            }
            ours.set_nonblocking(true).expect("it is a socket");
            let end = ours.read(&mut [0]).map_err(|error| error.kind());
            // The end or a reset shows that no copy is left open.
            assert!(matches!(end, Ok(0) | Err(ErrorKind::ConnectionReset)), "{end:?}");
        },
    );
    // The test is only meaningful if some messages are questions.
    assert!(taken.into_inner() > 100, "hardly any message was a question");
}
