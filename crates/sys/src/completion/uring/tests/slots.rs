//! Connections that the ring makes and keeps in slots.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use super::*;
use crate::completion::uring::held::{HeldResource, HeldTable};

const STEP: u64 = 1;
const CONNECT: u64 = 2;

fn ring() -> Ring {
    Ring::with_slots(SMALL, 4).expect("this kernel has slots")
}

fn listener(at: &str) -> (TcpListener, Arc<Address>) {
    let listener = TcpListener::bind(at).expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    (listener, Arc::new(address.into()))
}

/// Returns the results of the next completions, by their tags.
fn results(ring: &mut Ring, count: usize) -> Vec<(u64, i32)> {
    let mut all: Vec<_> = completions(ring, count).iter().map(|one| (one.tag, one.result)).collect();
    all.sort_unstable();
    all
}

/// Returns a peer whose connection is in `slot`.
fn connected(ring: &mut Ring, slot: u32, listener: &TcpListener, to: &Arc<Address>) -> TcpStream {
    ring.connect(slot, to, &[], STEP, CONNECT);
    assert_eq!(results(ring, 2), [(STEP, 0), (CONNECT, 0)]);
    listener.accept().expect("somebody connected").0
}

#[test]
fn this_kernel_connects() {
    assert!(Ring::connects().is_ok(), "{:?}", Ring::connects());
}

#[test]
fn a_connection_in_a_slot_sends_receives_throws_away_and_closes() {
    for at in ["127.0.0.1:0", "[::1]:0"] {
        let (listener, to) = listener(at);
        let mut ring = ring();
        ring.connect(3, &to, &[SocketOption::NoDelay, SocketOption::JoinAck], STEP, CONNECT);
        assert_eq!(results(&mut ring, 4), [(STEP, 0), (STEP, 0), (STEP, 0), (CONNECT, 0)]);
        ring.send_slot(3, Bytes::Owned(b"xhello".to_vec(), 1), 4);
        let sent = one(&mut ring);
        assert_eq!((sent.tag, sent.result, sent.memory), (4, 5, Some(b"xhello".to_vec())));
        // The last acknowledgement of the handshake arrived with the bytes.
        let (mut peer, from) = listener.accept().expect("somebody connected");
        assert_eq!(from.ip(), at.parse::<SocketAddr>().expect("an address").ip());
        let mut word = [0; 5];
        peer.read_exact(&mut word).expect("it was sent");
        assert_eq!(&word, b"hello");

        peer.write_all(&[7; 1000]).expect("it is open");
        ring.discard_slot(3, 990, 5);
        assert_eq!(results(&mut ring, 1), [(5, 990)]);
        ring.receive_slot(3, 6);
        let rest = one(&mut ring);
        assert_eq!((rest.tag, rest.buffer.as_deref()), (6, Some(&[7; 10][..])));

        ring.close_slot(3, 7);
        assert_eq!(results(&mut ring, 1), [(7, 0)]);
        assert_eq!(peer.read(&mut word).expect("it is closed in order"), 0);
        assert_eq!(ring.in_flight(), 0);
    }
}

#[test]
fn a_closed_port_refuses_the_connection() {
    let (listener, to) = listener("127.0.0.1:0");
    drop(listener);
    let mut ring = ring();
    ring.connect(0, &to, &[], STEP, CONNECT);
    assert_eq!(results(&mut ring, 2), [(STEP, 0), (CONNECT, -libc::ECONNREFUSED)]);
}

#[test]
fn nothing_comes_of_a_connect_whose_socket_could_not_be_made() {
    let (_listener, to) = listener("127.0.0.1:0");
    let mut ring = ring();
    // The ring has four slots.
    ring.connect(4, &to, &[SocketOption::NoDelay], STEP, CONNECT);
    let all = results(&mut ring, 3);
    assert!(all.contains(&(STEP, -libc::EINVAL)), "{all:?}");
    assert!(all.iter().all(|(_, result)| *result < 0), "{all:?}");
    assert_eq!(ring.in_flight(), 0);
}

#[test]
fn operations_on_a_slot_are_cancelled_and_the_slot_is_reused() {
    let (listener, to) = listener("127.0.0.1:0");
    let mut ring = ring();
    let mut first = connected(&mut ring, 0, &listener, &to);
    let _other = connected(&mut ring, 1, &listener, &to);
    ring.receive_slot(0, 4);
    ring.receive_slot(1, 5);
    nothing_comes(&mut ring);
    ring.cancel_slot(0, 6);
    ring.close_slot(0, 7);
    ring.connect(0, &to, &[], STEP, CONNECT);
    let all = results(&mut ring, 5);
    assert_eq!(all[..3], [(STEP, 0), (CONNECT, 0), (4, -libc::ECANCELED)]);
    assert!(all[3].0 == 6 && all[3].1 >= 0, "{all:?}");
    assert_eq!(all[4], (7, 0));
    assert_eq!(first.read(&mut [0]).expect("it is closed in order"), 0);
    let (mut second, _) = listener.accept().expect("it connected again");
    ring.receive_slot(0, 8);
    second.write_all(b"again").expect("it is open");
    let came = one(&mut ring);
    assert_eq!((came.tag, came.buffer.as_deref()), (8, Some(&b"again"[..])));
    assert_eq!(ring.in_flight(), 1, "the receive on the other slot still waits");
}

#[test]
fn bytes_and_addresses_outlive_a_dropped_ring() {
    let (listener, to) = listener("127.0.0.1:0");
    let mut ring = ring();
    let _peer = connected(&mut ring, 0, &listener, &to);
    let marked = vec![0x5e; 8 << 20];
    ring.send_slot(0, Bytes::Owned(marked, 0), 0xfeed);
    nothing_comes(&mut ring);
    assert_eq!(ring.in_flight(), 1);
    drop(ring);
    let is_it = |tag, held: &HeldResource| matches!(held, HeldResource::Bytes(bytes) if tag == 0xfeed && bytes.len() == 8 << 20);
    assert!(HeldTable::is_retired(is_it));
}
