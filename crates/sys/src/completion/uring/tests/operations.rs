//! The effect and the result of each operation.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;

use io_uring::opcode;
use io_uring::register::Restriction;

use super::*;
use crate::net::socket::{ListenAddress, ListenOptions, Listener};

#[test]
fn receives_and_sends_complete_with_their_tags() {
    let (mut ring, (mut peer, socket)) = (ring(), pair());
    ring.receive(socket.number(), 7);
    peer.write_all(b"hello").expect("a peer may send");
    let received = one(&mut ring);
    assert_eq!((received.tag, received.result, received.more), (7, 5, false));
    assert_eq!(received.buffer.as_deref(), Some(&b"hello"[..]));
    ring.send(socket.number(), Bytes::Owned(b"..world".to_vec(), 2), false, false, 8);
    let sent = one(&mut ring);
    assert_eq!((sent.tag, sent.result), (8, 5));
    assert_eq!(sent.memory.as_deref(), Some(&b"..world"[..]));
    ring.send(socket.number(), Bytes::Shared(Arc::from(&b"<shared>"[..]), 1..7), false, false, 9);
    assert_eq!(one(&mut ring).result, 6);
    let mut all = [0; 11];
    peer.read_exact(&mut all).expect("both have arrived");
    assert_eq!(&all, b"worldshared");
    assert_eq!(ring.in_flight(), 0);
}

#[test]
fn a_multishot_receive_goes_on_until_the_end_or_until_it_is_cancelled() {
    let (mut ring, (mut peer, socket)) = (ring(), pair());
    ring.receive_on(socket.number(), 7);
    for text in [&b"one"[..], b"two"] {
        peer.write_all(text).expect("a peer may send");
        let received = one(&mut ring);
        assert_eq!((received.buffer.as_deref(), received.more), (Some(text), true));
    }
    ring.cancel(7, 8);
    let mut results: Vec<_> = completions(&mut ring, 2).iter().map(|done| (done.tag, done.result)).collect();
    results.sort_unstable();
    assert_eq!(results, [(7, -libc::ECANCELED), (8, 0)]);
    ring.receive_on(socket.number(), 9);
    drop(peer);
    let end = one(&mut ring);
    assert_eq!((end.tag, end.result, end.more), (9, 0, false));
    assert_eq!(ring.in_flight(), 0);
}

#[test]
fn bytes_are_discarded_without_a_buffer() {
    fn discards(mut peer: impl Write, socket: &Socket) {
        let mut ring = ring();
        ring.discard_input(socket.number(), 7);
        peer.write_all(&[7; 1000]).expect("a peer may send");
        let discarded = one(&mut ring);
        assert_eq!((discarded.tag, discarded.result, discarded.more), (7, 1000, false));
        assert!(discarded.buffer.is_none());
        ring.discard_input(socket.number(), 8);
        ring.cancel(8, 9);
        let mut results: Vec<_> =
            completions(&mut ring, 2).iter().map(|done| (done.tag, done.result)).collect();
        results.sort_unstable();
        assert_eq!(results, [(8, -libc::ECANCELED), (9, 0)]);
        drop(peer);
        ring.discard_input(socket.number(), 10);
        let end = one(&mut ring);
        assert_eq!((end.tag, end.result), (10, 0));
        assert_eq!(ring.in_flight(), 0);
    }
    let (peer, socket) = pair();
    discards(peer, &socket);
    let (peer, socket) = internet_pair();
    discards(peer, &socket);
}

#[test]
fn an_accept_goes_on_until_it_is_cancelled() {
    let mut ring = ring();
    let options = ListenOptions { backlog: 16, tcp_nodelay: true, ..ListenOptions::default() };
    let any = ListenAddress::Internet("127.0.0.1:0".parse().expect("an address"));
    let listener = Listener::bind(&any, &options).expect("loopback has a free port");
    let ListenAddress::Internet(at) = *listener.address() else { panic!("it is bound to a port") };
    ring.accept(listener.number(), 7);
    for _ in 0..3 {
        let peer = std::net::TcpStream::connect(at).expect("it listens");
        let accepted = one(&mut ring);
        assert_eq!((accepted.tag, accepted.more), (7, true));
        let socket = accepted.socket.expect("an accept brings a socket");
        assert_eq!(socket.peer().expect("it is there"), peer.local_addr().ok());
    }
    ring.cancel_accept(7, 8);
    let mut results: Vec<_> = completions(&mut ring, 2).iter().map(|done| (done.tag, done.result)).collect();
    results.sort_unstable();
    assert_eq!(results, [(7, -libc::ECANCELED), (8, 0)]);
    let _late = std::net::TcpStream::connect(at).expect("the kernel queues it");
    nothing_comes(&mut ring);
}

#[test]
fn a_single_accept_accepts_one_connection() {
    let mut ring = ring();
    let any = ListenAddress::Internet("127.0.0.1:0".parse().expect("an address"));
    let listener = Listener::bind(&any, &ListenOptions::default()).expect("loopback has a free port");
    let ListenAddress::Internet(at) = *listener.address() else { panic!("it is bound to a port") };
    let peers = [(); 2].map(|()| std::net::TcpStream::connect(at).expect("it listens"));
    for peer in &peers {
        ring.accept_one(listener.number(), 7);
        let accepted = one(&mut ring);
        assert_eq!((accepted.tag, accepted.more), (7, false));
        let socket = accepted.socket.expect("an accept brings a socket");
        assert_eq!(socket.peer().expect("it is there"), peer.local_addr().ok());
        nothing_comes(&mut ring);
    }
    assert_eq!(ring.in_flight(), 0);
}

#[test]
fn an_accepted_connection_that_was_not_reported_is_closed_with_the_ring() {
    let mut ring = ring();
    let path = std::env::temp_dir().join(format!("tenfold-ring-{}", std::process::id()));
    let options = ListenOptions { backlog: 16, tcp_nodelay: true, ..ListenOptions::default() };
    let listener = Listener::bind(&ListenAddress::Unix(path.clone()), &options).expect("the name is free");
    ring.accept(listener.number(), 7);
    let mut peer = UnixStream::connect(&path).expect("it listens");
    std::fs::remove_file(path).expect("it was made here");
    // Submits without reading completions.
    ring.ring.submit_and_wait(1).expect("a connection waits");
    drop(ring);
    peer.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    assert_eq!(peer.read(&mut [0]).expect("an end comes"), 0);
}

#[test]
fn a_socket_is_closed_once_by_the_ring_or_when_it_was_cancelled() {
    let (mut ring, (mut peer, socket)) = (ring(), pair());
    ring.close(socket, 7);
    assert_eq!((one(&mut ring).result, peer.read(&mut [0]).expect("an end")), (0, 0));
    // After a failed send, the close is cancelled.
    let (peer, socket) = pair();
    drop(peer);
    let number = socket.number();
    let identity = || rustix::fs::fstat(borrow(number)).map(|stat| stat.st_ino);
    let open = identity();
    ring.send(number, Bytes::Owned(b"lost".to_vec(), 0), false, true, 8);
    ring.close(socket, 9);
    let results: Vec<_> = completions(&mut ring, 2).iter().map(|done| (done.tag, done.result)).collect();
    assert_eq!(results, [(8, -libc::EPIPE), (9, -libc::ECANCELED)]);
    // Another test may have reused its number since.
    assert!(open.is_ok() && identity() != open, "it is open: {open:?}");
}

fn borrow<'a>(number: RawFd) -> std::os::fd::BorrowedFd<'a> {
    // SAFETY: the number is not -1, and only its metadata is read.
    unsafe { std::os::fd::BorrowedFd::borrow_raw(number) }
}

#[test]
fn a_read_across_the_end_is_short_and_a_read_after_it_is_empty() {
    let mut ring = ring();
    let file: Readable = Arc::new(File::open(std::env::current_exe().expect("a name")).expect("this file"));
    let size = rustix::fs::fstat(&file).expect("it is open").st_size as u64;
    for (offset, expected) in [(0, 100), (size - 3, 3), (size, 0)] {
        ring.read(file.clone(), offset, vec![0; 100], 1);
        assert_eq!(one(&mut ring).result, expected);
    }
}

#[test]
fn a_mapped_file_is_sent_and_a_file_that_shrank_is_an_error() {
    let (mut ring, (mut peer, socket)) = (ring(), pair());
    let (file, mapping, content) = mapped("sent", 20_000);
    ring.send(socket.number(), part(&mapping, 100..20_000), false, false, 7);
    assert_eq!(one(&mut ring).result, 19_900);
    let mut got = vec![0; 19_900];
    peer.read_exact(&mut got).expect("it has arrived");
    assert!(got == content[100..]);
    file.set_len(0).expect("it is ours");
    ring.send(socket.number(), part(&mapping, 0..20_000), false, false, 8);
    assert_eq!(one(&mut ring).result, -libc::EFAULT);
}

#[test]
fn h88_a_tag_that_would_be_taken_for_another_operation_is_refused() {
    use crate::completion::uring::word::{ACCEPT, HELD};
    type Submit = fn(&mut Ring, &Socket, u64);
    let operations: [(&str, Submit); 9] = [
        ("accept", |ring, socket, tag| ring.accept(socket.number(), tag)),
        ("accept_one", |ring, socket, tag| ring.accept_one(socket.number(), tag)),
        ("receive", |ring, socket, tag| ring.receive(socket.number(), tag)),
        ("receive_on", |ring, socket, tag| ring.receive_on(socket.number(), tag)),
        ("poll_write", |ring, socket, tag| ring.poll_write(socket.number(), tag)),
        ("poll_read", |ring, socket, tag| ring.poll_read(socket.number(), tag)),
        ("cancel", |ring, _, tag| ring.cancel(0, tag)),
        ("cancel_accept", |ring, _, tag| ring.cancel_accept(0, tag)),
        ("cancel_all", |ring, socket, tag| ring.cancel_all(socket.number(), tag)),
    ];
    for (name, submit) in operations {
        for tag in [TAG_BOUND, ACCEPT | 7, HELD, HELD | 3, u64::MAX] {
            let (mut ring, (_peer, socket)) = (ring(), pair());
            let submitted = std::panic::AssertUnwindSafe(|| submit(&mut ring, &socket, tag));
            assert!(std::panic::catch_unwind(submitted).is_err(), "{name} took the tag {tag:#x}");
        }
    }
}

#[test]
fn h88_a_number_that_is_no_descriptor_is_an_error() {
    let mut ring = ring();
    for number in [-1, RawFd::MAX] {
        ring.accept(number, 1);
        ring.accept_one(number, 2);
        ring.receive(number, 3);
        ring.receive_on(number, 4);
        ring.send(number, Bytes::Owned(b"lost".to_vec(), 0), false, false, 5);
        ring.poll_write(number, 6);
        ring.poll_read(number, 7);
        let done = completions(&mut ring, 7);
        assert!(done.iter().all(|done| done.result == -libc::EBADF && done.socket.is_none()));
    }
    assert_eq!(ring.in_flight(), 0);
}

#[test]
fn h79_a_restricted_ring_has_only_the_operations_of_a_server() {
    let mut ring = ring();
    // SAFETY: the operation has no memory.
    let pushed = unsafe { ring.ring.submission().push(&opcode::Nop::new().build().user_data(7)) };
    assert!(pushed.is_ok(), "a new ring has room");
    ring.in_flight += 1;
    let refused = one(&mut ring);
    assert_eq!((refused.tag, refused.result), (7, -libc::EACCES), "an operation that is not listed");

    let registered = ring.ring.submitter().register_files_sparse(4);
    assert_eq!(registered.expect_err("it is none of its own").raw_os_error(), Some(libc::EACCES));
    let twice = ring.ring.submitter().register_restrictions(&mut [Restriction::sqe_op(opcode::Nop::CODE)]);
    assert!(twice.is_err(), "a list stays as it is");
}
