//! Exhausted queues and buffers, waits, and the end of a ring.

use std::fs::File;
use std::io::{Read, Write};
use std::rc::Rc;

use super::*;
use crate::completion::uring::buffers::BufferPool;
use crate::completion::uring::held::{HeldResource, HeldTable};
use crate::process::alone::alone;
use crate::readiness::eventfd::EventFd;

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

/// The kernel breaks a chain at the end of a call: later operations would overtake the first, which waits for room.
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
fn without_a_free_buffer_a_receive_fails_and_its_bytes_wait() {
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
fn a_zero_timeout_returns_pending_completions() {
    let (mut ring, event) = (ring(), EventFd::new().expect("descriptors"));
    ring.poll_read(event.number(), 7);
    let mut some = Vec::new();
    ring.wait(Some(Duration::ZERO), &mut some).expect("a ring can be waited for");
    assert!(some.is_empty());
    event.signal();
    // Nothing is submitted meanwhile.
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
fn a_ring_may_end_with_operations_in_flight() {
    let (peer, socket) = pair();
    let mut ring = ring();
    ring.receive_on(socket.number(), 1);
    // The bytes exceed the room, so the kernel keeps them.
    ring.send(socket.number(), Bytes::Owned(vec![7; 4 << 20], 0), false, false, 2);
    let mut some = Vec::new();
    ring.wait(Some(Duration::ZERO), &mut some).expect("a ring can be waited for");
    assert!(some.is_empty() && ring.in_flight() == 2);
    drop(ring);
    assert!(HeldTable::is_retired(|tag, held| tag == 2 && matches!(held, HeldResource::Bytes(_))));
    drop((peer, socket));
}

#[test]
#[should_panic(expected = "written to while it was free")]
#[cfg(debug_assertions)]
fn a_write_to_a_buffer_that_is_free_is_found_out() {
    let pool = Rc::new(BufferPool::new(2, 64).expect("there is memory"));
    let mut buffer = pool.take(0, 0);
    let stale = buffer.whole().as_mut_ptr();
    drop(buffer);
    // SAFETY: the buffer has 64 bytes.
    let inside = unsafe { stale.add(40) };
    // SAFETY: the memory of a pool is never freed; this write is the fault that the test detects.
    unsafe { inside.write(1) };
    pool.take(0, 10);
}

#[test]
fn h88_uncountable_buffer_sizes_are_rejected() {
    for buffer_bytes in [usize::MAX, usize::MAX / 4 + 2, isize::MAX as usize] {
        assert!(Ring::new(Sizes { buffer_bytes, ..SMALL }).is_err(), "{buffer_bytes} bytes");
    }
}

/// The flags of the mappings of this process that `is_wanted` picks by their first line (`man 5 proc_pid_smaps`).
fn flags_of_mappings(is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let smaps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
    let (mut found, mut wanted) = (Vec::new(), false);
    for line in smaps.lines() {
        match line.strip_prefix("VmFlags:") {
            Some(flags) if wanted => found.push(flags.to_owned()),
            Some(_) => {}
            None if !line.split(' ').next().is_some_and(|word| word.ends_with(':')) => {
                wanted = is_wanted(line)
            }
            None => {}
        }
    }
    found
}

#[test]
fn h88_a_child_gets_no_memory_of_a_ring() {
    // The ring of another test is mapped for a moment before it is kept from children.
    alone(module_path!(), "h88_a_child_gets_no_memory_of_a_ring", || {
        let ring = ring();
        let buffers = ring.pool.address();
        let holds_buffers = |line: &str| {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let number = |text| u64::from_str_radix(text, 16).expect("a number");
            range.is_some_and(|(start, end)| (number(start)..number(end)).contains(&buffers))
        };
        let mut flags = flags_of_mappings(holds_buffers);
        assert_eq!(flags.len(), 1, "the ring of buffers is in one mapping");
        flags.extend(flags_of_mappings(|line| line.contains("io_uring")));
        assert!(flags.len() > 2, "the queues are mapped");
        for flags in flags {
            assert!(flags.split(' ').any(|flag| flag == "dc"), "it is copied into a child: {flags}");
        }
    });
}
