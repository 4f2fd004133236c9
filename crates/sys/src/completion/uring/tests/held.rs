//! Bytes that the kernel holds without copying: they live until its last notification.

use std::io::Read;
use std::sync::Weak;
use std::thread;

use super::*;
use crate::completion::uring::faults::{FaultKind, FaultyOperation};
use crate::completion::uring::held::{HeldResource, HeldTable};

/// A held send that fails every `every`th time.
const fn fault(wrong: FaultKind, every: u32) -> InjectedFault {
    InjectedFault { operation: FaultyOperation::SendHeld, wrong, every, times: u32::MAX }
}

/// Reads until the end.
fn reader(mut peer: TcpStream) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut all = Vec::new();
        peer.read_to_end(&mut all).expect("an end comes");
        all
    })
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
fn a_held_send_without_zero_copy_of_the_socket_is_an_error() {
    let (mut ring, (_peer, socket)) = (ring(), pair());
    let (_, mapping, _) = mapped("refused", 5000);
    ring.send_held(socket.number(), Mapped { mapping: mapping.clone(), range: 0..5000 }, false, 7);
    let done = one(&mut ring);
    assert_eq!((done.result, done.released), (-libc::EOPNOTSUPP, None));
    nothing_comes(&mut ring);
    assert_eq!((Arc::strong_count(&mapping), ring.in_flight()), (1, 0));
}

#[test]
fn a_failed_held_send_reports_its_error_once_and_keeps_its_bytes_until_the_last_completion() {
    for number in [libc::ENOMEM, libc::ENOBUFS, libc::EOPNOTSUPP, libc::EPIPE] {
        let (mut ring, (peer, socket)) =
            (faulty_ring(&[fault(FaultKind::Fails(number), 2)]), internet_pair());
        let (_, mapping, content) = mapped("failed", 20_000);
        let sent = |range| Mapped { mapping: mapping.clone(), range };
        ring.send_held(socket.number(), sent(0..10_000), false, 7);
        ring.send_held(socket.number(), sent(0..20_000), false, 8);
        let mut found = Vec::new();
        // No caller waits for the notification of the failed send.
        for RingCompletion { tag, result, released, .. } in completions(&mut ring, 3) {
            found.push((tag, result, released));
        }
        found.sort_unstable();
        assert_eq!(found, [(7, 0, Some(true)), (7, 10_000, None), (8, -number, None)]);
        nothing_comes(&mut ring);
        assert_eq!((Arc::strong_count(&mapping), ring.in_flight()), (1, 0));
        // A replacement send arrives in its place.
        ring.send(socket.number(), Bytes::Mapped(sent(10_000..20_000)), false, false, 9);
        assert_eq!(one(&mut ring).result, 10_000);
        drop(socket);
        assert!(reader(peer).join().expect("it reads") == content);
    }
}

#[test]
fn a_held_send_that_is_cut_short_has_failed_and_its_bytes_are_given_back_with_the_last_word() {
    let (mut ring, (peer, socket)) = (faulty_ring(&[fault(FaultKind::Short, 1)]), internet_pair());
    let (_, mapping, content) = mapped("short", 20_000);
    ring.send_held(socket.number(), Mapped { mapping: mapping.clone(), range: 0..20_000 }, false, 7);
    let done = one(&mut ring);
    assert_eq!((done.result, done.more, done.released), (-libc::EPIPE, true, None));
    drop(socket);
    assert!(reader(peer).join().expect("it reads") == content[..10_000]);
    nothing_comes(&mut ring);
    assert_eq!((Arc::strong_count(&mapping), ring.in_flight()), (1, 0));
}

#[test]
fn a_late_notification_is_awaited_without_delaying_results() {
    let (mut ring, (peer, socket)) = (faulty_ring(&[fault(FaultKind::Late(3), 1)]), internet_pair());
    let (_, mapping, _) = mapped("late", 20_000);
    ring.send_held(socket.number(), Mapped { mapping: mapping.clone(), range: 0..20_000 }, false, 7);
    assert_eq!(one(&mut ring).result, 20_000);
    let reading = reader(peer);
    for tag in [8, 9] {
        nothing_comes(&mut ring);
        assert_eq!((Arc::strong_count(&mapping), ring.in_flight()), (2, 1));
        ring.send(socket.number(), Bytes::Owned(vec![0; 10], 0), false, false, tag);
        assert_eq!((one(&mut ring).tag, ring.in_flight()), (tag, 1));
    }
    // The connection has ended by then.
    ring.close(socket, 10);
    let tags = completions(&mut ring, 2).iter().map(|done| (done.tag, done.released)).collect::<Vec<_>>();
    assert_eq!(tags, [(10, None), (7, Some(true))]);
    assert_eq!((Arc::strong_count(&mapping), ring.in_flight()), (1, 0));
    assert_eq!(reading.join().expect("it reads").len(), 20_020);
}

#[test]
fn without_a_last_word_bytes_outlive_their_ring() {
    const TAG: u64 = 0x51_1e27;
    let (mut ring, (peer, socket)) = (faulty_ring(&[fault(FaultKind::Silent, 1)]), internet_pair());
    let (_, mapping, _) = mapped("silent", 20_000);
    let weak = Arc::downgrade(&mapping);
    ring.send_held(socket.number(), Mapped { mapping, range: 0..20_000 }, false, TAG);
    assert_eq!(one(&mut ring).result, 20_000);
    drop((socket, peer));
    nothing_comes(&mut ring);
    assert_eq!(ring.in_flight(), 1);
    drop(ring);
    assert!(weak.upgrade().is_some(), "the kernel has not said that it is done");
    assert!(HeldTable::is_retired(
        |tag, held| tag == TAG && matches!(held, HeldResource::Bytes(Bytes::Mapped(_)))
    ));
}

/// A send of the test below: its bytes, whether they are surely held, and whether the notification came.
struct HeldSend {
    bytes: Weak<Mapping>,
    failed: bool,
    over: bool,
}

/// Whether sends fail, come short, late or never: memory that the kernel may still read is never freed, all other
/// memory is, and each send has one result.
#[test]
fn bytes_of_sends_live_until_the_last_notification() {
    let wrongs = [
        FaultKind::Fails(libc::ENOMEM),
        FaultKind::Fails(libc::ENOBUFS),
        FaultKind::Fails(libc::ECANCELED),
        FaultKind::Short,
        FaultKind::Late(1),
        FaultKind::Late(5),
        FaultKind::Silent,
    ];
    let (file, _, _) = mapped("whatever", 100_000);
    for seed in 1..=60u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = move |bound: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % bound
        };
        let faults: Vec<_> = (0..1 + random(3))
            .map(|_| fault(wrongs[random(wrongs.len() as u64) as usize], 1 + random(5) as u32))
            .collect();
        let (mut ring, (peer, socket)) = (faulty_ring(&faults), internet_pair());
        let (reading, mut sends, mut results) = (reader(peer), Vec::<HeldSend>::new(), 0);
        let mut hear = |ring: &mut Ring, sends: &mut Vec<HeldSend>, timeout| {
            let mut some = Vec::new();
            ring.wait(Some(timeout), &mut some).expect("a ring can be waited for");
            for RingCompletion { tag, result, more, released, .. } in some {
                let send = &mut sends[tag as usize];
                results += usize::from(released.is_none());
                send.failed |= result < 0;
                send.over |= !more;
            }
            for (number, send) in sends.iter().enumerate() {
                let lives = send.bytes.strong_count() > 0;
                assert!(lives || send.failed || send.over, "{faults:?}: {number} is freed while it is held");
                assert!(!lives || !send.over, "{faults:?}: {number} is kept for nothing");
            }
            results
        };
        for tag in 0..40 {
            let length = 1 + random(50_000);
            let mapping = Arc::new(Mapping::new(&file, 0..length).expect("a file of ours can be mapped"));
            let bytes = Arc::downgrade(&mapping);
            sends.push(HeldSend { bytes, failed: false, over: false });
            let mapped = Mapped { mapping, range: 0..length };
            match random(4) {
                0 => ring.send(socket.number(), Bytes::Mapped(mapped), false, false, tag),
                _ => ring.send_held(socket.number(), mapped, false, tag),
            }
            if random(3) == 0 {
                hear(&mut ring, &mut sends, Duration::from_millis(random(2)));
            }
        }
        let begun = Instant::now();
        while hear(&mut ring, &mut sends, Duration::from_millis(10)) < sends.len() {
            assert!(begun.elapsed() < Duration::from_secs(20), "{faults:?}: results are missing");
        }
        drop(socket);
        reading.join().expect("it reads to the end");
        // Delayed notifications wait for other results.
        for tag in 40..60 {
            let event = crate::readiness::eventfd::EventFd::new().expect("descriptors");
            event.signal();
            ring.poll_read(event.number(), tag);
            sends.push(HeldSend { bytes: Weak::new(), failed: true, over: false });
            hear(&mut ring, &mut sends, Duration::from_millis(20));
        }
        let kept = sends.iter().filter(|send| send.bytes.strong_count() > 0).count();
        let silent = faults.iter().any(|fault| fault.wrong == FaultKind::Silent);
        assert!(silent || kept == 0, "{faults:?}: {kept} sends are kept for ever");
        let bytes: Vec<_> = sends.iter().map(|send| send.bytes.clone()).collect();
        drop(ring);
        assert_eq!(bytes.iter().filter(|bytes| bytes.strong_count() > 0).count(), kept, "{faults:?}");
    }
}
