//! The bounded queue of the mode `async`, from the serving threads to the writing thread.
//!
//! The queue is a buffer of whole lines, which the writing thread exchanges for an empty buffer. A line costs a lock,
//! held during one copy. The first line after a pause wakes the writing thread. It then waits a moment for more lines,
//! because a wake-up for each line would cost more than the line.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenfold_sys::lifecycle::{self, Phase};

use crate::config::values::log::Full;
use crate::diagnostics::pieces::count;
use crate::diagnostics::warning;
use crate::status::turns;

/// The time of collecting lines, which delays each line.
const GATHERING: Duration = Duration::from_millis(10);
/// The longest sleep of the writing thread before it checks whether to reopen the file.
const LONGEST_SLEEP: Duration = Duration::from_millis(500);
/// The longest wait for room before the thread checks whether the server stops.
const SLICE: Duration = Duration::from_millis(50);
/// The longest wait at the end of a process for a log that accepts nothing, if lines may be dropped.
const LAST_WORDS: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct LogQueue {
    /// The most bytes of waiting lines. The writing thread can have as many again.
    most: usize,
    state: Mutex<QueueState>,
    filled: Condvar,
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    lines: Vec<u8>,
    /// The writing thread sleeps until the queue has more bytes than this; `None` while the thread is busy.
    sleeps_until: Option<usize>,
    /// A thread waits for room.
    crowded: bool,
    /// No more lines will be added.
    ending: bool,
    /// The writing thread has ended.
    ended: bool,
    /// Lines that the writing thread has taken but not written.
    taken: u64,
    /// A full queue was logged.
    full: bool,
}

impl LogQueue {
    /// A queue with room for `most` bytes of lines.
    pub(super) fn new(most: usize) -> LogQueue {
        LogQueue { most, state: Mutex::default(), filled: Condvar::new(), emptied: Condvar::new() }
    }

    /// The bytes at which the writing thread stops collecting: half, so that there is room for lines while it writes.
    fn many(&self) -> usize {
        self.most / 2
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line to the queue. Without room it waits or drops the line, according to `full`. Returns whether the line
    /// was added.
    pub(super) fn put(&self, line: &[u8], full: Full) -> bool {
        let mut state = self.lock();
        while !state.lines.is_empty() && state.lines.len() + line.len() > self.most {
            if !std::mem::replace(&mut state.full, true) {
                match full {
                    Full::Block => warning!("the access log is slower than requests, which wait for it now"),
                    Full::Drop => {
                        warning!("the access log is slower than requests: lines are dropped and counted")
                    }
                }
            }
            if full == Full::Drop || lifecycle::phase() == Phase::Stopping {
                return false;
            }
            state.crowded = true;
            turns::pause();
            state = wait(&self.emptied, state, SLICE);
        }
        state.lines.extend_from_slice(line);
        let wakes = state.sleeps_until.is_some_and(|bytes| state.lines.len() > bytes);
        if wakes {
            state.sleeps_until = None;
        }
        // Unlocks first, so that the woken thread does not wait for the lock.
        drop(state);
        if wakes {
            self.filled.notify_one();
        }
        true
    }

    /// Moves all lines into `lines`, which is empty. Waits for lines, within a bound. Returns false if no more lines
    /// will come.
    pub(super) fn take(&self, lines: &mut Vec<u8>) -> bool {
        let mut state = self.lock();
        state.taken = 0;
        if state.lines.is_empty() && !state.ending {
            state = self.sleep(state, 0, LONGEST_SLEEP);
        }
        if (1..=self.many()).contains(&state.lines.len()) && !state.ending {
            state = self.sleep(state, self.many(), GATHERING);
        }
        if state.lines.is_empty() && state.ending {
            state.ended = true;
            self.emptied.notify_all();
            return false;
        }
        std::mem::swap(&mut state.lines, lines);
        state.taken = count(lines);
        state.full &= state.taken > 0;
        let crowded = std::mem::take(&mut state.crowded);
        drop(state);
        if crowded {
            self.emptied.notify_all();
        }
        true
    }

    /// Sleeps until there are more than `bytes` of lines, the queue has ended, or `most` has passed.
    fn sleep<'a>(
        &self,
        mut state: MutexGuard<'a, QueueState>,
        bytes: usize,
        most: Duration,
    ) -> MutexGuard<'a, QueueState> {
        state.sleeps_until = Some(bytes);
        state = wait(&self.filled, state, most);
        state.sleeps_until = None;
        state
    }

    /// Waits until all lines are written, within a bound. Returns the number of unwritten lines.
    pub(super) fn end(&self, full: Full) -> u64 {
        let by = Instant::now() + LAST_WORDS;
        let mut state = self.lock();
        state.ending = true;
        self.filled.notify_one();
        while !state.ended {
            let patient = full == Full::Block && lifecycle::phase() != Phase::Stopping;
            if !patient && Instant::now() >= by {
                return state.taken + count(&state.lines);
            }
            state = wait(&self.emptied, state, SLICE);
        }
        0
    }
}

fn wait<'a>(
    event: &Condvar,
    state: MutexGuard<'a, QueueState>,
    most: Duration,
) -> MutexGuard<'a, QueueState> {
    event.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    const MOST: usize = 64 * 1024;

    fn line() -> Vec<u8> {
        let mut line = vec![b'a'; 1023];
        line.push(b'\n');
        line
    }

    #[test]
    fn lines_past_the_bound_of_a_queue_that_may_drop_are_refused() {
        let queue = LogQueue::new(MOST);
        let room = MOST / 1024;
        assert_eq!((0..room + 10).filter(|_| queue.put(&line(), Full::Drop)).count(), room);
        let mut lines = Vec::new();
        assert!(queue.take(&mut lines));
        assert_eq!(lines.len(), MOST);
        assert!(queue.put(&line(), Full::Drop), "there is room again");
    }

    #[test]
    fn whoever_must_not_lose_a_line_waits_until_there_is_room() {
        const LINES: usize = 5000;
        let queue = LogQueue::new(MOST);
        thread::scope(|scope| {
            scope.spawn(|| {
                assert!((0..LINES).all(|_| queue.put(&line(), Full::Block)));
                assert_eq!(queue.end(Full::Block), 0);
            });
            let (mut lines, mut written) = (Vec::new(), 0);
            while queue.take(&mut lines) {
                assert!(lines.len() <= MOST);
                written += count(&lines);
                lines.clear();
            }
            assert_eq!(written as usize, LINES);
        });
    }

    #[test]
    fn the_writing_thread_is_woken_by_the_first_line_and_then_by_many() {
        let queue = LogQueue::new(MOST);
        queue.lock().sleeps_until = Some(0);
        assert!(queue.put(&line(), Full::Drop));
        assert_eq!(queue.lock().sleeps_until, None, "it sleeps no more");
        queue.lock().sleeps_until = Some(queue.many());
        assert!((1..queue.many() / 1024).all(|_| queue.put(&line(), Full::Drop)));
        assert_eq!(queue.lock().sleeps_until, Some(queue.many()), "they gather");
        assert!(queue.put(&line(), Full::Drop));
        assert_eq!(queue.lock().sleeps_until, None, "half of the room is taken");
    }

    #[test]
    fn a_log_that_takes_nothing_is_not_waited_for_where_lines_may_be_dropped() {
        let queue = LogQueue::new(MOST);
        assert!(queue.put(b"taken\n", Full::Drop));
        assert!(queue.take(&mut Vec::new()), "somebody writes it, and does not come back");
        assert!(queue.put(b"left\n", Full::Drop));
        assert_eq!(queue.end(Full::Drop), 2);
    }
}
