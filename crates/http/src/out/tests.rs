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
