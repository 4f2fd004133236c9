//! Observers and their reports.

use std::sync::Mutex;

use super::*;

/// Stages `bytes` with an observer after them, which records its report.
fn observed(out: &mut Out, bytes: &[u8], reports: &Arc<Mutex<Vec<SendReport>>>) {
    out.stage(bytes);
    let reports = reports.clone();
    out.observe(Box::new(move |report| reports.lock().expect("no panic").push(report)));
}

#[test]
fn observers_get_the_number_of_pieces_of_their_bytes() {
    let (mut out, reports) = (Out::new(), Arc::default());
    observed(&mut out, b"0123456789", &reports);
    observed(&mut out, b"01234", &reports);
    observed(&mut out, b"0123456789", &reports);
    // The second call ends the first response and begins the next. Three bytes of the last response are
    // dropped.
    [4, 8, 3, 7].into_iter().for_each(|count| out.advance(count));
    out.clear(0);
    let expected = [(0, 2), (0, 2), (3, 1)].map(|(unsent, sends)| SendReport { unsent, sends });
    assert_eq!(*reports.lock().expect("no panic"), expected);
}

#[test]
fn appended_output_follows_and_keeps_its_observers() {
    for before in [&b""[..], b"first "] {
        let (mut out, mut other, reports) = (Out::new(), Out::new(), Arc::default());
        out.stage(before);
        other.stage(b"gone");
        other.advance(4);
        observed(&mut other, b"staged ", &reports);
        other.push(Part::Shared(b"shared"[..].into(), 0..6));
        other.stage(b" last");
        out.append(other);
        let mut slices = [IoSlice::new(&[]); 8];
        let (filled, more) = out.memory(&mut slices);
        let text: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
        assert_eq!((text, more), ([before, b"staged shared last"].concat(), false));
        out.advance(out.len());
        assert_eq!(*reports.lock().expect("no panic"), [SendReport { unsent: 0, sends: 1 }]);
    }
}

#[test]
fn output_taken_by_a_driver_is_one_piece() {
    let (mut out, reports) = (Out::new(), Arc::default());
    for _ in 0..2 {
        observed(&mut out, b"head", &reports);
        assert!(out.pop_memory(Vec::new()).is_some());
        assert_eq!(out.pop_memory(Vec::new()), None);
        // The observer waits until the driver reports that the bytes are sent.
        assert!(!out.is_empty());
        out.advance(0);
    }
    out.stage(b"unobserved");
    assert!(out.pop_memory(Vec::new()).is_some());
    observed(&mut out, b"head", &reports);
    out.advance(4);
    assert_eq!(*reports.lock().expect("no panic"), [SendReport { unsent: 0, sends: 1 }; 3]);
}

#[test]
fn an_observer_hears_of_bytes_that_were_taken_over_and_never_left() {
    let (mut out, reports) = (Out::new(), Arc::default());
    observed(&mut out, b"0123456789", &reports);
    assert!(out.pop_memory(Vec::new()).is_some());
    out.lose(7);
    out.clear(0);
    assert_eq!(*reports.lock().expect("no panic"), [SendReport { unsent: 7, sends: 1 }]);
}

#[test]
fn an_observer_after_a_taken_file_is_called_when_it_was_sent() {
    let file = Arc::new(OpenFile::new(File::open("/dev/null").expect("Linux has it"), 9));
    for (lost, unsent) in [(None, 0), (Some(4), 4)] {
        let (mut out, reports) = (Out::new(), Arc::default());
        out.push(Part::File(file.clone(), 0..9));
        observed(&mut out, b"", &reports);
        [5, 4].into_iter().for_each(|count| out.pop_bytes(count));
        assert!(out.file().is_none() && !out.is_empty());
        assert_eq!(*reports.lock().expect("no panic"), [], "the driver has not reported the result yet");
        match lost {
            None => out.advance(0),
            Some(count) => {
                out.lose(count);
                out.clear(0);
            }
        }
        assert!(out.is_empty());
        assert_eq!(*reports.lock().expect("no panic"), [SendReport { unsent, sends: 2 }]);
    }
}

#[test]
fn an_observer_can_move_after_other_bytes() {
    let (mut out, mut below, reports) = (Out::new(), Out::new(), Arc::default());
    observed(&mut out, b"head", &reports);
    assert!(out.pop_observer().is_none(), "bytes precede it");
    assert!(out.pop_memory(Vec::new()).is_some());
    below.stage(b"<sealed head>");
    below.observe(out.pop_observer().expect("it is at the front now"));
    assert!(out.is_empty());
    below.advance(12);
    assert!(reports.lock().expect("no panic").is_empty(), "a byte is still unsent");
    below.advance(1);
    assert_eq!(*reports.lock().expect("no panic"), [SendReport { unsent: 0, sends: 2 }]);
}

#[test]
fn a_response_waits_for_the_file_of_the_previous_response() {
    let mut out = Out::new();
    out.stage(b"head");
    assert!(!out.full());
    let path = std::env::temp_dir().join(format!("tenfold-out-{}", std::process::id()));
    std::fs::write(&path, b"content").expect("a temporary folder");
    let file = std::fs::File::open(&path).expect("it was written");
    out.push(Part::File(Arc::new(OpenFile::new(file, 7)), 0..7));
    assert!(out.full(), "a second file would need another descriptor");
    out.advance(11);
    assert!(out.is_empty() && !out.full());
    std::fs::remove_file(path).expect("our own file");
}

/// Parts of these lengths, alternately of bytes and of a file, and the number of parts that were made.
struct Parts(std::vec::IntoIter<u64>, Arc<AtomicUsize>);

impl Parts {
    fn new(lengths: &[u64]) -> (Box<Parts>, Arc<AtomicUsize>) {
        let made = Arc::new(AtomicUsize::new(0));
        (Box::new(Parts(Vec::from(lengths).into_iter(), made.clone())), made)
    }
}

impl PartSource for Parts {
    fn left(&self) -> u64 {
        self.0.as_slice().iter().sum()
    }

    fn next(&mut self) -> Part {
        let length = self.0.next().expect("it is asked for no more parts than it has");
        match self.1.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => Part::Shared(vec![b'm'; length as usize].into(), 0..length as usize),
            _ => {
                let file = File::open("/dev/null").expect("Linux has it");
                Part::File(Arc::new(OpenFile::new(file, length)), 0..length)
            }
        }
    }
}

/// A body of many files would otherwise keep all of them open.
#[test]
fn the_parts_of_a_source_are_made_when_earlier_output_has_left() {
    for by_taking in [false, true] {
        let (mut out, (source, made)) = (Out::new(), Parts::new(&[5, 7, 3]));
        let leave = |out: &mut Out, count| if by_taking { out.pop_bytes(count) } else { out.advance(count) };
        let made = || made.load(Ordering::Relaxed);
        out.stage(b"head");
        out.push_source(source);
        out.stage(b"next");
        assert_eq!((made(), out.len(), out.full()), (0, 23, true));
        assert_eq!(out.memory(&mut [IoSlice::new(&[]); 4]), (1, true), "the head, and more follows");
        assert!(out.next_file().is_none());
        leave(&mut out, 4);
        assert_eq!((made(), out.len()), (1, 19));
        assert_eq!(out.memory(&mut [IoSlice::new(&[]); 4]), (1, true));
        leave(&mut out, 2);
        assert_eq!(made(), 1);
        leave(&mut out, 3);
        assert_eq!(made(), 2);
        assert!(out.file().is_some_and(|(_, range, follows)| range == (0..7) && follows));
        leave(&mut out, 7);
        assert_eq!((made(), out.len()), (3, 7));
        assert_eq!(out.memory(&mut [IoSlice::new(&[]); 4]), (2, false));
        leave(&mut out, 3);
        leave(&mut out, 4);
        assert!(out.is_empty());
    }
}

#[test]
fn a_source_is_taken_from_the_front_in_any_steps() {
    for step in 1..=30 {
        let (mut body, mut out, reports) = (Out::new(), Out::new(), Arc::<Mutex<Vec<_>>>::default());
        let (source, made) = Parts::new(&[5, 7, 1, 9]);
        body.push_source(source);
        assert_eq!(made.load(Ordering::Relaxed), 1, "the front of a body is a part");
        let recorded = reports.clone();
        body.observe_later(Box::new(move |report| recorded.lock().expect("no panic").push(report)));
        let mut total = 0;
        while body.has_bytes() {
            let count = body.len().min(step);
            body.take_front(count, &mut out);
            total += count;
            assert_eq!((out.len(), body.len()), (total, 22 - total));
        }
        body.take_front(0, &mut out);
        assert!(body.is_empty());
        out.advance(22);
        assert_eq!(reports.lock().expect("no panic")[0].unsent, 0);
    }
}

#[test]
fn parts_of_dropped_output_are_not_made_and_count_as_unsent() {
    for by_observer in [false, true] {
        let (mut out, reports, (source, made)) = (Out::new(), Arc::default(), Parts::new(&[5, 7, 3]));
        out.stage(b"head");
        out.push_source(source);
        observed(&mut out, b"tail", &reports);
        out.advance(4);
        out.advance(2);
        match by_observer {
            true => {
                let (unsent, observer) = out.drop_to_observer();
                observer.expect("there is one")(SendReport { unsent, sends: 1 });
                assert_eq!(out.drop_to_observer().0, 0);
            }
            false => out.clear(0),
        }
        let unsent: Vec<_> = reports.lock().expect("no panic").iter().map(|report| report.unsent).collect();
        assert_eq!(unsent, [17]);
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }
}
