//! The heir, and senders of which some are compromised.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use tenfold_http::{Connection, Instant, Io, Next, clock};

use tenfold_sys::messages;
use tenfold_sys::socket::Socket;

use super::heir::Heir;
use super::message::MovedConnection;
use super::pair::{ERA, GenerationName, QUEUE, Sent, Succession, Successions};
use crate::protocol::{MovedState, Protocol};

const NAME: GenerationName = GenerationName { number: 7, era: 3 };

#[derive(Clone)]
struct Counting;

impl Protocol for Counting {
    type State = u32;

    async fn serve<I: Io>(&self, _io: &mut I, _state: &mut u32) -> Next {
        Next::Close
    }

    async fn serve_anywhere<I: Io + Send>(&self, _io: &mut I, _state: &mut u32) -> Next {
        Next::Close
    }

    fn first_bytes_by(&self) -> Instant {
        clock::now() + Duration::from_secs(10)
    }

    fn take_over(&self, _connection: &Connection, moved: MovedState) -> Option<u32> {
        (moved.requests < 1000).then_some(moved.requests)
    }
}

fn succession(listeners: usize) -> Succession {
    let successions = Successions::new(2).expect("descriptors");
    successions.open(Some(NAME));
    successions.take(1..2, NAME, listeners).remove(0)
}

/// A connection of a client that has left, as the server has it, and the client's address.
fn connection() -> (Socket, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let client = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
    let (server, peer) = listener.accept().expect("a connection waits");
    server.set_nonblocking(true).expect("our own socket");
    drop(client);
    (OwnedFd::from(server).into(), peer)
}

fn moved() -> MovedConnection {
    let state = MovedState { requests: 5, ..MovedState::default() };
    MovedConnection { era: NAME.era, listener: 1, served: true, remaining: Duration::from_secs(4), state }
}

#[test]
fn h86_only_connections_are_taken_over() {
    let own = succession(2);
    let mut heir = Heir::new(Some(&own), 10);
    let (socket, peer) = connection();
    let send = |bytes: &[u8], descriptors: &[BorrowedFd<'_>]| {
        messages::send(&own.pair.sender, bytes, descriptors).expect("there is room");
    };
    let message = moved().to_message();
    let good = message.bytes();
    send(MovedConnection { era: 2, ..moved() }.to_message().bytes(), &[socket.as_fd()]);
    send(MovedConnection { listener: 2, ..moved() }.to_message().bytes(), &[socket.as_fd()]);
    let many = MovedState { requests: 1000, ..MovedState::default() };
    send(MovedConnection { state: many, ..moved() }.to_message().bytes(), &[socket.as_fd()]);
    send(good, &[socket.as_fd()]);
    let inherited = heir.receive(&Counting, (0, 10));
    let [one] = &inherited[..] else { panic!("{} were taken over", inherited.len()) };
    assert_eq!((one.peer, one.listener, one.served, one.memory), (peer, 1, true, 5));
    assert_eq!(one.deadline, clock::now() + Duration::from_secs(4));
    assert!(!heir.pending && heir.receive(&Counting, (1, 10)).is_empty());
    assert_eq!(heir.leave_if_spoiled(&Counting), None);
}

/// The close of what a compromised worker sends may take long, so there is one such message at most.
#[test]
fn h86_nothing_is_received_after_a_malformed_message() {
    let (socket, _) = connection();
    let null = std::fs::File::open("/dev/null").expect("Linux has it");
    let (blocking, _) = connection();
    rustix::io::ioctl_fionbio(&blocking, false).expect("our own socket");
    let (unix, _) = messages::nonblocking_pair().expect("descriptors");
    let (socket, null, blocking, unix) = (socket.as_fd(), null.as_fd(), blocking.as_fd(), unix.as_fd());
    let message = moved().to_message();
    let good = message.bytes();
    let (short, long, large) = (&good[1..], &[good, b"x"].concat()[..], &[7; 100_000][..]);
    let malformed: [(&[u8], &[BorrowedFd<'_>]); 9] = [
        (b"", &[socket]),
        (short, &[socket]),
        (long, &[socket]),
        (large, &[socket]),
        (good, &[]),
        (good, &[socket, socket]),
        (good, &[null]),
        (good, &[blocking]),
        (good, &[unix]),
    ];
    for (bytes, descriptors) in malformed {
        let own = succession(2);
        let mut heir = Heir::new(Some(&own), 10);
        let send = |bytes: &[u8], descriptors: &[BorrowedFd<'_>]| {
            messages::send(&own.pair.sender, bytes, descriptors).expect("there is room");
        };
        send(good, &[socket]);
        send(bytes, descriptors);
        send(good, &[socket]);
        assert_eq!(heir.receive(&Counting, (0, 10)).len(), 1, "{bytes:?} {descriptors:?}");
        assert_eq!(heir.leave_if_spoiled(&Counting), Some(own.receiver()));
        assert!(!heir.pending && heir.receive(&Counting, (1, 10)).is_empty(), "the rest stays in the queue");
        assert_eq!(own.send(&connection().0, &moved()), Sent::Refused);
    }
}

#[test]
fn no_more_is_sent_than_there_is_room_for() {
    let own = succession(2);
    let mut heir = Heir::new(Some(&own), 2);
    let (socket, _) = connection();
    let send = || own.send(&socket, &moved());
    assert_eq!([send(), send(), send()], [Sent::Moved, Sent::Moved, Sent::Busy]);
    assert_eq!(heir.receive(&Counting, (0, 2)).len(), 2);
    assert_eq!(send(), Sent::Refused, "it is full");
    assert!(heir.receive(&Counting, (1, 2)).is_empty());
    assert_eq!([send(), send()], [Sent::Moved, Sent::Busy], "one has ended");
    // Accepted connections have taken the place since.
    assert_eq!(heir.receive(&Counting, (2, 2)).len(), 1, "it is not lost");
    let _large = Heir::new(Some(&own), 100_000);
    assert_eq!((0..100).filter(|_| send() == Sent::Moved).count() as u64, QUEUE);
}

#[test]
fn h86_a_flood_of_connections_is_bounded() {
    let own = succession(2);
    let mut heir = Heir::new(Some(&own), 1);
    let (socket, _) = connection();
    let (mut taken, bytes) = (Vec::new(), moved().to_message());
    for _ in 0..4 {
        while messages::send(&own.pair.sender, bytes.bytes(), &[socket.as_fd()]).is_ok() {}
        heir.ready();
        taken.extend(heir.receive(&Counting, (taken.len(), 1)));
    }
    assert_eq!(taken.len(), 1 + crate::worker::eviction::MOST_LEAVING);
}

#[test]
fn connections_move_only_within_an_era() {
    let successions = Successions::new(1).expect("descriptors");
    let rows = successions.rows.clone();
    let own = successions.take(0..1, NAME, 1).remove(0);
    assert!(!own.is_open(), "there is no heir yet");
    for (era, expected) in [(NAME.era, true), (NAME.era + 1, false), (0, false)] {
        rows.row(0)[ERA].store(era, Ordering::Relaxed);
        assert_eq!(own.is_open(), expected, "era {era}");
    }
}
