//! Operations fail as injected, and later ones succeed.

use std::io::{Read, Write};

use super::*;
use crate::completion::uring::faults::{FaultKind, FaultyOperation};

#[test]
fn an_injected_failure_fails_one_operation() {
    for number in [libc::ENOBUFS, libc::ECANCELED, libc::EINTR, libc::ENOMEM] {
        let fault = InjectedFault {
            operation: FaultyOperation::Receive,
            wrong: FaultKind::Fails(number),
            every: 1,
            times: 1,
        };
        let (mut ring, (mut peer, socket)) = (faulty_ring(&[fault]), pair());
        peer.write_all(b"hello").expect("a peer may send");
        ring.receive_on(socket.number(), 7);
        let failed = one(&mut ring);
        assert_eq!((failed.tag, failed.result, failed.more), (7, -number, false));
        ring.receive_on(socket.number(), 7);
        assert_eq!(one(&mut ring).buffer.as_deref(), Some(&b"hello"[..]), "nothing is lost");
    }
}

#[test]
fn a_failure_within_a_chain_cancels_the_rest() {
    let fault = InjectedFault {
        operation: FaultyOperation::Send,
        wrong: FaultKind::Fails(libc::ENOMEM),
        every: 2,
        times: 1,
    };
    let (mut ring, (mut peer, socket)) = (faulty_ring(&[fault]), pair());
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
    let short =
        InjectedFault { operation: FaultyOperation::Send, wrong: FaultKind::Short, every: 1, times: 1 };
    let (mut ring, (mut peer, socket)) = (faulty_ring(&[short]), pair());
    ring.send(socket.number(), Bytes::Owned(b"12345678".to_vec(), 0), false, false, 7);
    assert_eq!(one(&mut ring).result, -libc::EPIPE);
    let mut four = [0; 4];
    peer.read_exact(&mut four).expect("half has arrived");
    let once =
        InjectedFault { operation: FaultyOperation::Receive, wrong: FaultKind::Once, every: 1, times: 1 };
    let (mut ring, (mut peer, socket)) = (faulty_ring(&[once]), pair());
    ring.receive_on(socket.number(), 7);
    peer.write_all(b"hello").expect("a peer may send");
    let received = one(&mut ring);
    assert_eq!((received.result, received.more), (5, false));
    assert_eq!(ring.in_flight(), 0);
}

#[test]
#[should_panic(expected = "an error number is greater than 0")]
fn h88_a_failure_without_an_error_number_is_refused() {
    faulty_ring(&[InjectedFault {
        operation: FaultyOperation::Accept,
        wrong: FaultKind::Fails(-5),
        every: 1,
        times: 1,
    }]);
}
