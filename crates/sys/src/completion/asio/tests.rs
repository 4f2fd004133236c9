use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};

use super::CompletionContext;
use super::buffer::AsioCompletion;
use crate::completion::{Bytes, ROOM, Readable};
use crate::memory::mapping::{Mapped, Mapping};
use crate::net::socket::{ListenAddress, ListenOptions, Listener, Socket};
use crate::readiness::eventfd::EventFd;

const SOON: Duration = Duration::from_secs(20);

fn listener() -> (Listener, SocketAddr) {
    let listener = Listener::bind(&"127.0.0.1:0".parse().expect("an address"), &ListenOptions::default());
    let listener = listener.expect("loopback has a free port");
    listener.set_nonblocking(true).expect("it is open");
    let ListenAddress::Internet(at) = *listener.address() else { panic!("it is bound to a port") };
    (listener, at)
}

fn pair() -> (Socket, UnixStream) {
    let (ours, peer) = UnixStream::pair().expect("descriptors");
    peer.set_read_timeout(Some(SOON)).expect("it is open");
    (OwnedFd::from(ours).into(), peer)
}

/// Returns the next `count` completions.
fn next(proactor: &mut CompletionContext, count: usize) -> Vec<AsioCompletion> {
    let (mut all, begun) = (Vec::new(), Instant::now());
    while all.len() < count {
        assert!(begun.elapsed() < SOON, "{} of {count} have completed", all.len());
        proactor.wait(Some(Duration::from_millis(100)), &mut all).expect("memory");
    }
    assert_eq!(all.len(), count);
    all
}

fn results(all: &[AsioCompletion]) -> Vec<(u64, i32)> {
    all.iter().map(|completion| (completion.tag, completion.result)).collect()
}

/// Returns completions that should not exist.
fn rest(proactor: &mut CompletionContext) -> Vec<(u64, i32)> {
    let mut all = Vec::new();
    for _ in 0..5 {
        proactor.wait(Some(Duration::ZERO), &mut all).expect("memory");
    }
    results(&all)
}

/// More bytes than a socket takes.
const MUCH: usize = 3 << 20;

#[test]
fn a_connection_is_accepted_read_written_and_closed() {
    let mut proactor = CompletionContext::new().expect("Asio");
    let (listener, at) = listener();
    for round in 0..3 {
        proactor.accept(listener.number(), 1);
        let mut peer = TcpStream::connect(at).expect("it listens");
        let mut accepted = next(&mut proactor, 1).remove(0);
        let socket = accepted.socket.take().expect("an accept brings a socket");
        assert_eq!((accepted.tag, accepted.result, accepted.more), (1, socket.number(), false), "{round}");
        proactor.receive(socket.number(), 2);
        assert_eq!(rest(&mut proactor), []);
        peer.write_all(b"hello").expect("a peer may send");
        let received = next(&mut proactor, 1).remove(0);
        assert_eq!((received.tag, received.result), (2, 5));
        let mut buffer = received.buffer.expect("a receive brings a buffer");
        buffer.consume(1);
        buffer[0] = b'E';
        assert_eq!(&buffer[..], b"Ello");
        proactor.send(socket.number(), Bytes::Owned(b"..wo".to_vec(), 2), true, 3);
        proactor.send(socket.number(), Bytes::Shared(Arc::from(&b"<rld>"[..]), 1..4), false, 4);
        proactor.close(socket, 5);
        let all = next(&mut proactor, 3);
        assert_eq!(results(&all), [(3, 2), (4, 3), (5, 0)]);
        assert_eq!(all[0].memory.as_deref(), Some(&b"..wo"[..]), "memory comes back");
        let mut got = Vec::new();
        peer.read_to_end(&mut got).expect("it was sent");
        assert_eq!(got, b"world");
    }
}

#[test]
fn sends_that_find_no_room_go_on_in_their_order_and_a_close_waits_for_them() {
    let mut proactor = CompletionContext::new().expect("Asio");
    let (socket, mut peer) = pair();
    for tag in 0..3 {
        proactor.send(socket.number(), Bytes::Owned(vec![tag as u8; MUCH], 0), false, tag);
    }
    proactor.close(socket, 3);
    assert_eq!(rest(&mut proactor), []);
    let reader = std::thread::spawn(move || {
        let mut got = Vec::new();
        peer.read_to_end(&mut got).map(|_| got)
    });
    let much = MUCH as i32;
    assert_eq!(results(&next(&mut proactor, 4)), [(0, much), (1, much), (2, much), (3, 0)]);
    let got = reader.join().expect("it does not panic").expect("it was sent");
    let expected: Vec<u8> = (0..3).flat_map(|tag| vec![tag; MUCH]).collect();
    assert!(got == expected);
}

#[test]
fn an_end_is_no_bytes_and_a_failed_send_fails_later_sends() {
    let mut proactor = CompletionContext::new().expect("Asio");
    let (socket, peer) = pair();
    proactor.receive(socket.number(), 1);
    drop(peer);
    let all = next(&mut proactor, 1);
    assert_eq!(results(&all), [(1, 0)]);
    assert!(all[0].buffer.is_none());
    proactor.send(socket.number(), Bytes::Owned(vec![0; 10], 0), false, 2);
    proactor.send(socket.number(), Bytes::Owned(vec![0; 10], 0), false, 3);
    proactor.close(socket, 4);
    assert_eq!(results(&next(&mut proactor, 3)), [(2, -libc::EPIPE), (3, -libc::ECANCELED), (4, 0)]);
}

/// A mapping of `length` bytes, and its file.
fn mapped(length: usize) -> (File, Bytes) {
    let mut file = File::from(memfd_create("sent", MemfdFlags::CLOEXEC).expect("descriptors"));
    let content: Vec<u8> = (0..length).map(|place| (place / 3) as u8).collect();
    file.write_all(&content).expect("memory");
    let range = 0..length as u64;
    let mapping = Arc::new(Mapping::new(&file, range.clone()).expect("it can be mapped"));
    (file, Bytes::Mapped(Mapped { mapping, range }))
}

/// If a lost page ends a write early, the socket has room, so no event reports room.
#[test]
fn a_mapping_of_a_cut_file_fails_although_the_socket_has_room() {
    const KEPT: usize = 64 * 1024;
    let mut proactor = CompletionContext::new().expect("Asio");
    let (listener, at) = listener();
    let mut peer = TcpStream::connect(at).expect("it listens");
    proactor.accept(listener.number(), 1);
    let socket = next(&mut proactor, 1).remove(0).socket.expect("an accept brings a socket");
    // From here on the library waits for room without querying the kernel first.
    proactor.poll_write(socket.number(), 2);
    assert_eq!(results(&next(&mut proactor, 1)), [(2, ROOM)]);
    let (file, bytes) = mapped(2 * KEPT);
    file.set_len(KEPT as u64).expect("it is ours");
    proactor.send(socket.number(), bytes, false, 3);
    assert_eq!(results(&next(&mut proactor, 1)), [(3, -libc::EFAULT)]);
    // The socket stays usable.
    proactor.send(socket.number(), Bytes::Owned(b"behind".to_vec(), 0), false, 4);
    proactor.close(socket, 5);
    assert_eq!(results(&next(&mut proactor, 2)), [(4, 6), (5, 0)]);
    let mut got = Vec::new();
    peer.read_to_end(&mut got).expect("it was sent");
    assert!(got.ends_with(b"behind") && got.len() > 6, "the first write ended in the middle: {}", got.len());
    assert!(got.len() <= KEPT + 6);
}

#[test]
fn a_mapping_is_sent_whole_to_a_peer_that_takes_its_time() {
    let mut proactor = CompletionContext::new().expect("Asio");
    let (socket, mut peer) = pair();
    for tag in 1..3 {
        proactor.send(socket.number(), mapped(MUCH).1, false, tag);
    }
    proactor.close(socket, 3);
    let mut got = Vec::new();
    let mut all = Vec::new();
    let begun = Instant::now();
    while all.len() < 3 {
        assert!(begun.elapsed() < SOON, "{} bytes came", got.len());
        proactor.wait(Some(Duration::ZERO), &mut all).expect("memory");
        let mut buffer = [0; 10_000];
        peer.set_nonblocking(true).expect("it is open");
        got.extend(peer.read(&mut buffer).map_or(&[][..], |count| &buffer[..count]));
    }
    peer.set_nonblocking(false).expect("it is open");
    peer.read_to_end(&mut got).expect("it was sent");
    assert_eq!(results(&all), [(1, MUCH as i32), (2, MUCH as i32), (3, 0)]);
    let half: Vec<u8> = (0..MUCH).map(|place| (place / 3) as u8).collect();
    assert!(got == [&half[..], &half[..]].concat());
}

/// In every state of the library: the result is stored, it waits for room, or it retries.
#[test]
fn sends_are_cancelled_and_given_up_at_any_time() {
    for turns in 0..6 {
        for map in [false, true] {
            let much = || if map { mapped(3 << 20).1 } else { Bytes::Owned(vec![0; 3 << 20], 0) };
            let mut proactor = CompletionContext::new().expect("Asio");
            let (socket, _peer) = pair();
            proactor.send(socket.number(), much(), false, 1);
            proactor.send(socket.number(), much(), false, 2);
            let mut early = Vec::new();
            for _ in 0..turns {
                proactor.wait(Some(Duration::ZERO), &mut early).expect("memory");
            }
            assert_eq!(results(&early), []);
            proactor.cancel(socket.number());
            let all = results(&next(&mut proactor, 2));
            assert_eq!(all, [1, 2].map(|tag| (tag, -libc::ECANCELED)), "after {turns} turns, mapped: {map}");
            proactor.send(socket.number(), much(), false, 3);
            for _ in 0..turns {
                proactor.wait(Some(Duration::ZERO), &mut early).expect("memory");
            }
            proactor.discard(socket);
            assert_eq!((results(&early), rest(&mut proactor)), (vec![], vec![]));
        }
    }
}

#[test]
fn waits_for_room_and_operations_can_be_cancelled() {
    let mut proactor = CompletionContext::new().expect("Asio");
    let (socket, mut peer) = pair();
    proactor.poll_write(socket.number(), 1);
    assert_eq!(results(&next(&mut proactor, 1)), [(1, ROOM)]);
    proactor.send(socket.number(), Bytes::Owned(vec![0; 3 << 20], 0), false, 2);
    proactor.send(socket.number(), Bytes::Owned(vec![0; 8], 0), false, 3);
    proactor.receive(socket.number(), 4);
    assert_eq!(rest(&mut proactor), []);
    proactor.cancel(socket.number());
    let mut all = results(&next(&mut proactor, 3));
    all.sort_unstable();
    assert_eq!(all, [2, 3, 4].map(|tag| (tag, -libc::ECANCELED)));
    // The socket stays usable.
    proactor.receive(socket.number(), 5);
    peer.write_all(b"x").expect("it is open");
    assert_eq!(results(&next(&mut proactor, 1)), [(5, 1)]);
}

#[test]
fn operations_of_a_discarded_socket_do_not_reach_its_successor() {
    let mut proactor = CompletionContext::new().expect("Asio");
    let mut before = None;
    for round in 0..20 {
        let (socket, mut peer) = pair();
        let number = socket.number();
        proactor.receive(number, 1);
        proactor.send(number, Bytes::Owned(vec![0; 3 << 20], 0), false, 2);
        if round % 2 == 0 {
            peer.write_all(b"late").expect("it is open");
        }
        proactor.discard(socket);
        let (again, mut peer) = pair();
        before = before.max(Some(number));
        proactor.receive(again.number(), 3);
        peer.write_all(b"new").expect("it is open");
        let all = next(&mut proactor, 1);
        assert_eq!(results(&all), [(3, 3)], "round {round}");
        assert_eq!(all[0].buffer.as_deref(), Some(&b"new"[..]));
        proactor.discard(again);
    }
    assert_eq!(rest(&mut proactor), []);
    assert!(before < Some(1000), "numbers are used again");
}

#[test]
fn an_accept_is_cancelled_and_begun_again_and_a_number_that_is_no_socket_is_an_error() {
    let mut proactor = CompletionContext::new().expect("Asio");
    let (listener, at) = listener();
    proactor.accept(listener.number(), 1);
    assert_eq!(rest(&mut proactor), []);
    proactor.cancel_accept(listener.number());
    assert_eq!(results(&next(&mut proactor, 1)), [(1, -libc::ECANCELED)]);
    proactor.accept(listener.number(), 2);
    let _peer = TcpStream::connect(at).expect("it listens");
    assert_eq!(next(&mut proactor, 1)[0].tag, 2);
    proactor.receive(-1, 3);
    proactor.send(-1, Bytes::Owned(vec![0], 0), false, 4);
    proactor.poll_write(-1, 5);
    assert_eq!(results(&next(&mut proactor, 3)), [3, 4, 5].map(|tag| (tag, -libc::EBADF)));
    proactor.refuse(6, libc::EOPNOTSUPP);
    assert_eq!(results(&next(&mut proactor, 1)), [(6, -libc::EOPNOTSUPP)]);
}

#[test]
fn files_are_read_at_their_offset_and_eventfds_are_reported_once_a_wait() {
    let mut proactor = CompletionContext::new().expect("Asio");
    let event = EventFd::new().expect("descriptors");
    for tag in 1..4 {
        proactor.poll_read(event.number(), tag);
        assert_eq!(rest(&mut proactor), []);
        event.signal();
        assert_eq!(results(&next(&mut proactor, 1)), [(tag, 1)]);
        event.clear();
    }
    let zeros: Readable = Arc::new(std::fs::File::open("/dev/zero").expect("there are zeros"));
    proactor.read(&zeros, 7, vec![1; 10], 9);
    let all = next(&mut proactor, 1);
    assert_eq!(results(&all), [(9, 10)]);
    assert_eq!(all[0].memory.as_deref(), Some(&[0; 10][..]));
    let wrong: Readable = Arc::new(std::fs::File::open("/").expect("there is a root"));
    proactor.read(&wrong, 0, vec![1; 10], 10);
    assert_eq!(results(&next(&mut proactor, 1)), [(10, -libc::EISDIR)]);
}

#[test]
fn dropping_a_proactor_ends_operations_and_leaves_sockets_open() {
    let mut proactor = CompletionContext::new().expect("Asio");
    let (listener, at) = listener();
    let (socket, mut peer) = pair();
    proactor.receive(socket.number(), 1);
    proactor.send(socket.number(), Bytes::Owned(vec![7; 3 << 20], 0), false, 2);
    // This connection is accepted and never reported.
    let mut unheard = TcpStream::connect(at).expect("it listens");
    proactor.accept(listener.number(), 3);
    let event = EventFd::new().expect("descriptors");
    proactor.poll_read(event.number(), 4);
    drop(proactor);
    assert!(matches!(unheard.read(&mut [0; 1]), Ok(0) | Err(_)), "it is closed");
    peer.write_all(b"x").expect("it is open");
    assert_eq!(socket.receive(&mut [0; 8]).expect("it is open"), 1);
    listener.set_nonblocking(false).expect("it is open");
}
