use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use super::*;
use crate::eventfd::EventFd;
use crate::mapping::Mapping;
use crate::socket::{ListenAddress, ListenOptions, Listener};

const SMALL: Sizes = Sizes { submissions: 16, completions: 32, buffers: 4, buffer_bytes: 256 };

fn ring() -> Ring {
    Ring::new(SMALL).expect("this kernel has io_uring")
}

/// A peer, and the socket that a ring works on.
fn pair() -> (UnixStream, Socket) {
    let (peer, ours) = UnixStream::pair().expect("there are descriptors");
    ours.set_nonblocking(true).expect("a mode of a socket");
    (peer, OwnedFd::from(ours).into())
}

/// Waits until `count` completions have come.
fn completions(ring: &mut Ring, count: usize) -> Vec<Completion> {
    let (begun, mut all) = (Instant::now(), Vec::new());
    while all.len() < count {
        assert!(begun.elapsed() < Duration::from_secs(20), "{} of {count} completions came", all.len());
        let mut some = Vec::new();
        ring.wait(Some(Duration::from_millis(100)), &mut some).expect("a ring can be waited for");
        all.append(&mut some);
    }
    assert_eq!(all.len(), count);
    all
}

fn one(ring: &mut Ring) -> Completion {
    completions(ring, 1).remove(0)
}

fn nothing_comes(ring: &mut Ring) {
    let mut some = Vec::new();
    ring.wait(Some(Duration::from_millis(50)), &mut some).expect("a ring can be waited for");
    assert!(some.is_empty());
}

#[test]
fn what_is_received_and_sent_comes_back_under_its_tag() {
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
fn an_accept_of_one_brings_one() {
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
fn a_connection_that_was_accepted_and_never_heard_of_is_closed_with_the_ring() {
    let mut ring = ring();
    let path = std::env::temp_dir().join(format!("tenfold-ring-{}", std::process::id()));
    let options = ListenOptions { backlog: 16, tcp_nodelay: true, ..ListenOptions::default() };
    let listener = Listener::bind(&ListenAddress::Unix(path.clone()), &options).expect("the name is free");
    ring.accept(listener.number(), 7);
    let mut peer = UnixStream::connect(&path).expect("it listens");
    std::fs::remove_file(path).expect("it was made here");
    // Submits, and reads nothing.
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
    // Behind a send that fails, the close is cancelled.
    let (peer, socket) = pair();
    drop(peer);
    let number = socket.number();
    ring.send(number, Bytes::Owned(b"lost".to_vec(), 0), false, true, 8);
    ring.close(socket, 9);
    let results: Vec<_> = completions(&mut ring, 2).iter().map(|done| (done.tag, done.result)).collect();
    assert_eq!(results, [(8, -libc::EPIPE), (9, -libc::ECANCELED)]);
    assert_eq!(rustix::io::fcntl_getfd(borrow(number)).err(), Some(rustix::io::Errno::BADF));
}

fn borrow<'a>(number: RawFd) -> std::os::fd::BorrowedFd<'a> {
    // SAFETY: the number is not -1, and it is asked for its flags alone.
    unsafe { std::os::fd::BorrowedFd::borrow_raw(number) }
}

#[test]
fn more_operations_than_there_are_places_complete_once_each() {
    let (mut ring, (mut peer, socket)) = (ring(), pair());
    for number in 0..200u64 {
        ring.send(socket.number(), Bytes::Owned(vec![number as u8; 10], 0), false, false, number);
    }
    let mut tags: Vec<_> = completions(&mut ring, 200).into_iter().map(|done| done.tag).collect();
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..200));
    let mut all = [0; 2000];
    peer.read_exact(&mut all).expect("all of them have arrived");
    assert!(all.chunks(10).zip(0..).all(|(chunk, number)| chunk == [number; 10]));
    assert_eq!(ring.in_flight(), 0);
}

/// The kernel breaks a chain at the end of a call: the operations behind would overtake the first, which
/// waits for room.
#[test]
fn a_chain_that_does_not_fit_the_queue_keeps_its_order() {
    const PIECE: usize = 100_000;
    for before in 0..16 {
        let (mut ring, (mut peer, socket)) = (ring(), pair());
        let events: Vec<_> = (0..before).map(|_| EventFd::new().expect("descriptors")).collect();
        events.iter().for_each(|event| ring.poll_read(event.number(), 1000));
        for number in 0..9u8 {
            let bytes = Bytes::Owned(vec![number; PIECE], 0);
            ring.send(socket.number(), bytes, false, number < 8, u64::from(number));
        }
        let mut some = Vec::new();
        ring.wait(Some(Duration::ZERO), &mut some).expect("a ring can be waited for");
        let reading = std::thread::spawn(move || {
            let mut all = vec![0; 9 * PIECE];
            peer.read_exact(&mut all).expect("all of them arrive");
            all
        });
        let left = 9 - some.len();
        completions(&mut ring, left);
        let all = reading.join().expect("the peer reads");
        let kept = all.chunks(PIECE).zip(0..).all(|(chunk, number)| chunk.iter().all(|&byte| byte == number));
        assert!(kept, "behind {before} operations the chain was in another order");
    }
}

#[test]
fn completions_that_do_not_fit_are_kept() {
    let mut ring = ring();
    let zero: Readable = Arc::new(File::open("/dev/zero").expect("there are zeros"));
    for number in 0..300 {
        ring.read(zero.clone(), 0, vec![1; 64], number);
    }
    let all = completions(&mut ring, 300);
    assert!(all.iter().all(|done| done.result == 64 && done.memory.as_deref() == Some(&[0; 64][..])));
    assert_eq!(ring.in_flight(), 0);
}

#[test]
fn without_a_free_buffer_a_receive_says_so_and_its_bytes_wait() {
    let mut ring = ring();
    let pairs: Vec<_> = (0..5).map(|_| pair()).collect();
    for ((peer, socket), tag) in pairs.iter().zip(0..) {
        (&mut &*peer).write_all(b"waiting").expect("a peer may send");
        ring.receive(socket.number(), tag);
    }
    let mut all = completions(&mut ring, 5);
    all.sort_by_key(|done| done.result);
    let refused = all.remove(0);
    assert_eq!((refused.result, refused.buffer.is_none()), (-libc::ENOBUFS, true));
    assert!(all.iter().all(|done| done.buffer.as_deref() == Some(b"waiting")));
    drop(all);
    let (_, socket) = &pairs[refused.tag as usize];
    ring.receive(socket.number(), 9);
    assert_eq!(one(&mut ring).buffer.as_deref(), Some(&b"waiting"[..]));
}

#[test]
fn a_look_without_a_wait_brings_what_has_happened() {
    let (mut ring, event) = (ring(), EventFd::new().expect("descriptors"));
    ring.poll_read(event.number(), 7);
    let mut some = Vec::new();
    ring.wait(Some(Duration::ZERO), &mut some).expect("a ring can be waited for");
    assert!(some.is_empty());
    event.signal();
    // Nothing is handed over meanwhile.
    ring.wait(Some(Duration::ZERO), &mut some).expect("a ring can be waited for");
    assert_eq!(some.iter().map(|done| done.tag).collect::<Vec<_>>(), [7]);
}

#[test]
fn a_wait_ends_with_its_time() {
    let (mut ring, begun) = (ring(), Instant::now());
    nothing_comes(&mut ring);
    assert!((40..5000).contains(&begun.elapsed().as_millis()));
}

#[test]
fn a_read_past_the_end_is_short_and_one_behind_it_is_empty() {
    let mut ring = ring();
    let file: Readable = Arc::new(File::open(std::env::current_exe().expect("a name")).expect("this file"));
    let size = rustix::fs::fstat(&file).expect("it is open").st_size as u64;
    for (offset, expected) in [(0, 100), (size - 3, 3), (size, 0)] {
        ring.read(file.clone(), offset, vec![0; 100], 1);
        assert_eq!(one(&mut ring).result, expected);
    }
}

#[test]
fn a_ring_may_end_with_operations_in_flight() {
    let (peer, socket) = pair();
    let mut ring = ring();
    ring.receive_on(socket.number(), 1);
    // More than there is room for: the kernel holds on to the bytes.
    ring.send(socket.number(), Bytes::Owned(vec![7; 4 << 20], 0), false, false, 2);
    let mut some = Vec::new();
    ring.wait(Some(Duration::ZERO), &mut some).expect("a ring can be waited for");
    assert!(some.is_empty() && ring.in_flight() == 2);
    drop(ring);
    let kept = RETIRED.lock().expect("nobody panics with it");
    assert!(kept.iter().flatten().any(|(tag, held)| *tag == 2 && matches!(held, Held::Bytes(_))));
    drop((peer, socket));
}

#[test]
#[should_panic(expected = "written to while it was free")]
#[cfg(debug_assertions)]
fn a_write_to_a_buffer_that_is_free_is_found_out() {
    let pool = Rc::new(Pool::new(2, 64));
    let mut buffer = pool.take(0, 0);
    let stale = buffer.whole().as_mut_ptr();
    drop(buffer);
    // SAFETY: the buffer has 64 bytes.
    let inside = unsafe { stale.add(40) };
    // SAFETY: the memory of a pool is never freed; this is the fault that is looked for.
    unsafe { inside.write(1) };
    pool.take(0, 10);
}

/// A ring on which this goes wrong.
fn faulty_ring(fault: faults::Fault) -> Ring {
    // Rings of other tests that begin meanwhile would have it, too.
    let mut ring = ring();
    ring.faults = faults::Faults::of(&[fault]);
    ring
}

#[test]
fn an_operation_that_is_to_fail_fails_as_it_is_told_and_the_next_one_works() {
    use faults::{Fault, Operation, Wrong};
    for number in [libc::ENOBUFS, libc::ECANCELED, libc::EINTR, libc::ENOMEM] {
        let fault = Fault { operation: Operation::Receive, wrong: Wrong::Fails(number), every: 1, times: 1 };
        let (mut ring, (mut peer, socket)) = (faulty_ring(fault), pair());
        peer.write_all(b"hello").expect("a peer may send");
        ring.receive_on(socket.number(), 7);
        let failed = one(&mut ring);
        assert_eq!((failed.tag, failed.result, failed.more), (7, -number, false));
        ring.receive_on(socket.number(), 7);
        assert_eq!(one(&mut ring).buffer.as_deref(), Some(&b"hello"[..]), "nothing is lost");
    }
}

#[test]
fn a_failure_within_a_chain_cancels_what_comes_behind() {
    use faults::{Fault, Operation, Wrong};
    let fault = Fault { operation: Operation::Send, wrong: Wrong::Fails(libc::ENOMEM), every: 2, times: 1 };
    let (mut ring, (mut peer, socket)) = (faulty_ring(fault), pair());
    for (word, linked) in [(1, true), (2, true), (3, false)] {
        ring.send(socket.number(), Bytes::Owned(vec![b'x'; 4], 0), false, linked, word);
    }
    let results: Vec<_> = completions(&mut ring, 3).iter().map(|done| (done.tag, done.result)).collect();
    assert_eq!(results, [(1, 4), (2, -libc::ENOMEM), (3, -libc::ECANCELED)]);
    drop(socket);
    let mut all = Vec::new();
    peer.read_to_end(&mut all).expect("the end comes");
    assert_eq!(all, b"xxxx");
}

#[test]
fn a_send_that_is_cut_short_has_failed_and_a_multishot_receive_may_end_at_once() {
    use faults::{Fault, Operation, Wrong};
    let short = Fault { operation: Operation::Send, wrong: Wrong::Short, every: 1, times: 1 };
    let (mut ring, (mut peer, socket)) = (faulty_ring(short), pair());
    ring.send(socket.number(), Bytes::Owned(b"12345678".to_vec(), 0), false, false, 7);
    assert_eq!(one(&mut ring).result, -libc::EPIPE);
    let mut four = [0; 4];
    peer.read_exact(&mut four).expect("half has arrived");
    let once = Fault { operation: Operation::Receive, wrong: Wrong::Once, every: 1, times: 1 };
    let (mut ring, (mut peer, socket)) = (faulty_ring(once), pair());
    ring.receive_on(socket.number(), 7);
    peer.write_all(b"hello").expect("a peer may send");
    let received = one(&mut ring);
    assert_eq!((received.result, received.more), (5, false));
    assert_eq!(ring.in_flight(), 0);
}

/// A peer by TCP, and the socket that a ring works on.
fn internet_pair() -> (TcpStream, Socket) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let peer = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
    let (ours, _) = listener.accept().expect("somebody connects");
    ours.set_nonblocking(true).expect("a mode of a socket");
    (peer, OwnedFd::from(ours).into())
}

fn mapped(name: &str, length: usize) -> (File, Arc<Mapping>, Vec<u8>) {
    let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
    let path = std::env::temp_dir().join(format!("tenfold-ring-{name}-{}", std::process::id()));
    std::fs::write(&path, &content).expect("a folder for temporary files");
    let file = File::options().read(true).write(true).open(&path).expect("it was just written");
    std::fs::remove_file(&path).expect("it is ours");
    let mapping = Mapping::new(&file, 0..length as u64).expect("a file of ours can be mapped");
    (file, Arc::new(mapping), content)
}

fn part(mapping: &Arc<Mapping>, range: Range<u64>) -> Bytes {
    Bytes::Mapped(Mapped { mapping: mapping.clone(), range })
}

#[test]
fn a_mapped_file_is_sent_and_one_that_shrank_is_an_error() {
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
fn bytes_that_are_held_are_released_by_a_second_completion() {
    let (mut ring, (mut peer, socket)) = (ring(), internet_pair());
    assert!(Ring::sends_held().expect("a ring can be asked"), "Linux 6.2 says what was copied");
    let (_, mapping, content) = mapped("held", 50_000);
    ring.send_held(socket.number(), Mapped { mapping: mapping.clone(), range: 0..50_000 }, false, 7);
    let mut got = vec![0; 50_000];
    let mut all = completions(&mut ring, 1);
    assert_eq!((all[0].tag, all[0].result, all[0].more, all[0].released), (7, 50_000, true, None));
    assert!(Arc::strong_count(&mapping) > 1, "it is still held");
    peer.read_exact(&mut got).expect("it has arrived");
    assert!(got == content);
    all = completions(&mut ring, 1);
    assert_eq!((all[0].tag, all[0].released, all[0].more), (7, Some(true), false));
    assert_eq!((Arc::strong_count(&mapping), ring.in_flight()), (1, 0));
}

#[test]
fn a_socket_without_held_sends_says_so() {
    let (mut ring, (_peer, socket)) = (ring(), pair());
    let (_, mapping, _) = mapped("refused", 5000);
    ring.send_held(socket.number(), Mapped { mapping: mapping.clone(), range: 0..5000 }, false, 7);
    let done = one(&mut ring);
    assert_eq!((done.result, done.released), (-libc::EOPNOTSUPP, None));
    nothing_comes(&mut ring);
    assert_eq!((Arc::strong_count(&mapping), ring.in_flight()), (1, 0));
}
