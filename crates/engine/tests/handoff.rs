//! The hand-off from the accepting thread to a worker, in every order of the two threads. The source of the hand-off is
//! compiled again with loom's locks.

#[path = "../src/worker/handoff.rs"]
mod handoff;

/// The synchronisation primitives of the source.
mod sync {
    use std::io;
    pub(crate) use std::sync::PoisonError;

    use loom::sync::Notify;
    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard};

    /// An eventfd: a wait ends at the first signal, also at an earlier one, and consumes all signals.
    pub(crate) struct EventFd(Notify);

    impl EventFd {
        pub(crate) fn new() -> io::Result<EventFd> {
            Ok(EventFd(Notify::new()))
        }

        pub(crate) fn signal(&self) {
            self.0.notify();
        }

        pub(crate) fn wait(&self) {
            self.0.wait();
        }
    }
}

use std::os::fd::OwnedFd;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Notify};
use loom::thread;

use handoff::{AcceptedConnection, Handoff};

/// Tries every order of the threads with at most two preemptions.
fn check(holds: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(holds);
}

fn connection(number: u16) -> AcceptedConnection {
    let null = std::fs::File::open("/dev/null").expect("there is a null device");
    (OwnedFd::from(null).into(), None, number)
}

/// Runs a worker: it empties the queue, sleeps, and ends when the queue is closed. Returns the numbers that it took.
fn work(handoff: &Handoff, on_taken: impl Fn()) -> Vec<u16> {
    let mut taken = Vec::new();
    loop {
        while let Some((_, _, number)) = handoff.take() {
            taken.push(number);
            on_taken();
        }
        if handoff.is_over() {
            return taken;
        }
        handoff.event().wait();
    }
}

#[test]
fn every_connection_is_taken_once_in_order_or_given_back_and_no_worker_sleeps_through_it() {
    check(|| {
        let handoff = Arc::new(Handoff::new(2).expect("descriptors"));
        let (count, heard) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let worker = {
            let (handoff, count, heard) = (handoff.clone(), count.clone(), heard.clone());
            thread::spawn(move || {
                work(&handoff, || {
                    count.fetch_add(1, Ordering::SeqCst);
                    heard.notify();
                })
            })
        };
        let put = |number| handoff.put(connection(number)).map_err(|(_, _, number)| number);
        let mut refused = Vec::new();
        let handed: Vec<u16> =
            (1..=3).filter(|number| put(*number).map_err(|number| refused.push(number)).is_ok()).collect();
        // The worker is woken for each connection, and not only for the end.
        while count.load(Ordering::SeqCst) < handed.len() {
            heard.wait();
        }
        handoff.close();
        assert_eq!(worker.join().expect("no panic"), handed);
        assert!(refused.is_empty() || refused == [3], "there is room for two");
        assert!(handoff.is_over());
    });
}

#[test]
fn a_full_queue_gives_the_connection_back_and_a_closed_one_is_over_when_it_is_empty() {
    check(|| {
        let handoff = Handoff::new(2).expect("descriptors");
        assert!(handoff.put(connection(1)).is_ok() && handoff.put(connection(2)).is_ok());
        assert!(handoff.put(connection(3)).is_err());
        handoff.close();
        assert!(!handoff.is_over());
        assert!(handoff.take().is_some() && handoff.take().is_some() && handoff.take().is_none());
        assert!(handoff.is_over());
    });
}
