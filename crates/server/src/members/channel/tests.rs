//! Messages between workers and the accounts process.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};

use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, sockopt};
use tenfold_sys::wait;

use super::*;

/// Waits for a message: a question, or none.
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
    let file = std::fs::File::open("/dev/null").expect("every system has it");
    let (socket, no_socket) = (theirs.as_fd(), file.as_fd());
    let messages: [(&[u8], &[BorrowedFd<'_>]); 8] = [
        (b"", &[]),
        (b"", &[socket]),
        (&question, &[]),
        (&question[..question.len() - 1], &[socket]),
        (&long, &[socket]),
        (b"\xff\x00", &[socket]),
        (&question, &[socket, socket]),
        (&question, &[no_socket]),
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

/// Sends a byte, or one of urgent data, and a descriptor with it.
fn attach(to: &UnixStream, descriptor: BorrowedFd<'_>, flags: SendFlags) -> rustix::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let rights = [descriptor];
    control.push(SendAncillaryMessage::ScmRights(&rights));
    sendmsg(to, &[IoSlice::new(b"x")], &mut control, flags)
}

#[test]
fn h76_a_socket_with_unread_bytes_and_descriptors_in_its_queue_is_not_answered() {
    let (client, server) = open().expect("a pair of sockets");
    let question = serde_json::to_vec(&check()).expect("it can be written");
    for flags in [SendFlags::empty(), SendFlags::OOB] {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        attach(&ours, ours.as_fd(), flags).expect("nothing refuses it yet");
        send_raw(&client, &question, &[theirs.as_fd()]);
        assert!(received(&server).is_none(), "{flags:?}");
    }
}

/// A TCP socket whose `close(2)` waits for this long.
fn lingering(time: Duration) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let peer = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
    let (socket, _) = listener.accept().expect("a connection waits");
    sockopt::set_socket_linger(&socket, Some(time)).expect("an option");
    while messages::send_bytes(&socket, &[0; 65_536]).is_ok() {}
    (socket, peer)
}

#[test]
fn h76_no_descriptors_come_with_an_answer_or_a_question_that_was_accepted() {
    let (client, server) = open().expect("a pair of sockets");
    let asked = client.begin(&check()).expect("there is room");
    let (_, Answerer(answer)) = received(&server).expect("a question").apart();
    let answer = UnixStream::from(answer);
    let (socket, _peer) = lingering(Duration::from_secs(8));
    let attached = attach(&answer, socket.as_fd(), SendFlags::empty());
    if attached.is_ok() && !knows_passrights() {
        return;
    }
    assert_eq!(attached, Err(Errno::PERM), "to the client");
    assert_eq!(attach(&asked.answer, socket.as_fd(), SendFlags::empty()), Err(Errno::PERM), "and back");
    // This process closes the socket and does not wait either.
    sockopt::set_socket_linger(&socket, None).expect("an option");
    drop(answer);
    assert!(asked.answer().is_err(), "nothing was answered");
}

/// Linux 6.16.
fn knows_passrights() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a file of the kernel");
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse::<u32>);
    let mut number = || numbers.next()?.ok();
    (number(), number()) >= (Some(6), Some(16))
}

#[test]
fn h76_an_answer_that_nobody_reads_does_not_wait() {
    let (client, server) = open().expect("a pair of sockets");
    let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let question = serde_json::to_vec(&check()).expect("it can be written");
    while messages::send_bytes(&theirs, &[0; 4096]).is_ok() {}
    send_raw(&client, &question, &[theirs.as_fd()]);
    let (_, answer) = received(&server).expect("a question").apart();
    assert!(answer.answer(&Reply::Done), "it is dropped");
    drop(ours);
    send_raw(&client, &question, &[theirs.as_fd()]);
    let (_, answer) = received(&server).expect("a question").apart();
    assert!(!answer.answer(&Reply::Done), "a client that has gone is no slow reader");
}

#[test]
fn each_who_asks_gets_the_own_answer() {
    let (client, server) = open().expect("a pair of sockets");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let kept: Vec<_> = (0..8).map(|_| received(&server).expect("a question")).collect();
            for question in kept.into_iter().rev() {
                let (request, answer) = question.apart();
                let Query::Check { session } = request else { panic!("nothing else was asked") };
                assert!(!answer.answer(&Reply::Member { name: session }));
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
fn h76_what_comes_without_an_end_is_given_up() {
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
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        assert!(asked.answer().is_err(), "its time is over, though bytes come");
    });
}

#[test]
fn who_asks_a_process_that_dies_is_told_at_once() {
    let (client, server) = open().expect("a pair of sockets");
    std::thread::scope(|scope| {
        scope.spawn(|| drop(received(&server).expect("a question")));
        assert_eq!(client.ask(&check()), Reply::Unavailable);
    });
}

#[test]
fn a_full_channel_turns_away_and_does_not_wait() {
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
