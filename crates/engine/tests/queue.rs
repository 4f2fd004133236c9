//! The queues between a loop and its pool, in every order of the threads. The source of the queues is compiled again
//! with loom's locks.

#[path = "../src/dispatch/queue.rs"]
#[allow(dead_code, reason = "the crate uses all of it")]
mod queue;

/// The locks of loom in place of those of the standard library.
mod sync {
    pub(super) use std::sync::PoisonError;

    pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
}

use std::time::Duration;

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Arc, Notify};
use loom::thread;
use tenfold_http::Instant;

use queue::{IMMEDIATELY, JobQueue, Mailbox, NextJob};

/// Tries every order of the threads with at most two preemptions. Practically every error occurs with two.
fn check(holds: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(holds);
}

#[test]
fn every_job_is_taken_once_or_given_back_and_threads_that_sleep_hear_of_it() {
    check(|| {
        let queue = Arc::new(JobQueue::new(1));
        let (taken, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let threads: Vec<_> = [None, Some(Duration::from_secs(1))]
            .into_iter()
            .map(|patience| {
                let (queue, taken, done) = (queue.clone(), taken.clone(), done.clone());
                thread::spawn(move || {
                    while let NextJob::Job(job) = queue.take(patience) {
                        taken.fetch_add(job, Ordering::SeqCst);
                        done.notify();
                    }
                })
            })
            .collect();
        let refused: usize = [1, 2].into_iter().filter_map(|job| queue.put(job).err()).sum();
        assert!(refused == 0 || refused == 2, "there is room for the first");
        while taken.load(Ordering::SeqCst) + refused < 3 {
            done.wait();
        }
        queue.close();
        assert_eq!(queue.put(4), Err(4));
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(taken.load(Ordering::SeqCst) + refused, 3);
    });
}

/// The loop's side: sleeps if the mailbox permits, and returns when it has messages.
fn hear(mailbox: &Mailbox<u32>, until: Instant, event: &Notify) -> Vec<u32> {
    let mut messages = Vec::new();
    while messages.is_empty() {
        if mailbox.fall_asleep(until) {
            event.wait();
        }
        mailbox.take(&mut messages);
    }
    messages
}

#[test]
fn a_loop_that_sleeps_is_woken_for_what_it_must_know() {
    // A message that is due immediately, one that is due before the loop would wake by itself, and any message if the
    // loop would sleep without a limit.
    for (by, until) in
        [(IMMEDIATELY, Instant(100)), (Instant(50), Instant(100)), (Instant::NEVER, Instant::NEVER)]
    {
        check(move || {
            let (mailbox, event) = (Arc::new(Mailbox::new()), Arc::new(Notify::new()));
            let threads: Vec<_> = [1, 2]
                .into_iter()
                .map(|message| {
                    let (mailbox, event) = (mailbox.clone(), event.clone());
                    thread::spawn(move || {
                        if mailbox.put(|| (message, by)) {
                            event.notify();
                        }
                    })
                })
                .collect();
            let mut messages = hear(&mailbox, until, &event);
            if messages.len() < 2 {
                messages.extend(hear(&mailbox, until, &event));
            }
            messages.sort_unstable();
            assert_eq!(messages, [1, 2]);
            threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        });
    }
}

#[test]
fn a_loop_that_hears_of_a_connection_has_its_task_back() {
    check(|| {
        let (mailbox, event) = (Arc::new(Mailbox::new()), Arc::new(Notify::new()));
        let ready = Arc::new(AtomicBool::new(false));
        let thread = {
            let (mailbox, event, ready) = (mailbox.clone(), event.clone(), ready.clone());
            thread::spawn(move || {
                let woken = mailbox.put(|| {
                    // The descriptor is registered, and ready immediately.
                    ready.store(true, Ordering::SeqCst);
                    event.notify();
                    (1, Instant(1000))
                });
                assert!(!woken, "the loop wakes in time by itself");
            })
        };
        let mut messages = Vec::new();
        loop {
            if mailbox.fall_asleep(Instant(100)) {
                event.wait();
            }
            let heard = ready.load(Ordering::SeqCst);
            let mut taken = Vec::new();
            mailbox.take(&mut taken);
            messages.extend(taken);
            assert!(!heard || messages == [1], "what is ready is there to be served");
            if heard {
                break;
            }
        }
        thread.join().expect("no panic");
    });
}
