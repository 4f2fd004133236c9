//! Turns of handshakes on a loop. A step of a handshake takes much longer than a request, so a tick has few
//! steps, and other connections are served between ticks.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The most steps of handshakes in a tick.
const STEPS: usize = 4;

/// The steps of handshakes for the connections of a loop. Steps beyond the bound of a tick wait for a later
/// tick, in order.
///
/// A clone is for another loop, and starts with an empty queue.
#[derive(Debug)]
pub struct HandshakeTurns {
    /// `None`: unbounded, because a thread that blocks in a step delays no other connection.
    queue: Option<Mutex<TurnQueue>>,
    /// Whether this tick had a step; if not, the next tick needs no lock.
    used: AtomicBool,
}

#[derive(Debug)]
struct TurnQueue {
    /// The remaining steps of this tick; 0 while any connection waits.
    left: usize,
    /// The number of the first turn in `waiting`. Turns with smaller numbers have been granted.
    first: u64,
    /// The waiting tasks; `None` if the connection has ended.
    waiting: VecDeque<Option<Waker>>,
}

/// The position of a waiting connection in the queue.
#[derive(Debug, Default)]
pub(super) struct Turn(Option<u64>);

impl HandshakeTurns {
    /// Returns the turns of a loop.
    pub fn on_loop() -> HandshakeTurns {
        let queue = TurnQueue { left: STEPS, first: 0, waiting: VecDeque::new() };
        HandshakeTurns { queue: Some(Mutex::new(queue)), used: AtomicBool::new(false) }
    }

    /// Returns unbounded turns.
    pub fn unbounded() -> HandshakeTurns {
        HandshakeTurns { queue: None, used: AtomicBool::new(false) }
    }

    /// Begins the next tick, and wakes the connections that wait longest. The loop calls it before each of
    /// its waits.
    #[inline]
    pub fn next_tick(&self) {
        if self.used.load(Ordering::Relaxed) {
            self.refill();
        }
    }

    #[cold]
    fn refill(&self) {
        let Some(mut queue) = self.queue() else { return };
        queue.left = STEPS;
        while queue.left > 0
            && let Some(waiting) = queue.waiting.pop_front()
        {
            queue.first += 1;
            if let Some(waker) = waiting {
                queue.left -= 1;
                waker.wake();
            }
        }
        self.used.store(queue.left < STEPS, Ordering::Relaxed);
    }

    /// Takes a turn for one step, or waits for it.
    pub(super) fn poll_turn(&self, turn: &mut Turn, cx: &mut Context<'_>) -> Poll<()> {
        let Some(mut queue) = self.queue() else { return Poll::Ready(()) };
        self.used.store(true, Ordering::Relaxed);
        match turn.0 {
            None if queue.left > 0 => {
                queue.left -= 1;
                Poll::Ready(())
            }
            None => {
                turn.0 = Some(queue.first + queue.waiting.len() as u64);
                queue.waiting.push_back(Some(cx.waker().clone()));
                Poll::Pending
            }
            Some(number) if number < queue.first => {
                turn.0 = None;
                Poll::Ready(())
            }
            Some(number) => {
                *queue.waiter(number) = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Removes the turn of a connection that ends.
    pub(super) fn give_up(&self, turn: &mut Turn) {
        if let Some(number) = turn.0.take()
            && let Some(mut queue) = self.queue()
            && number >= queue.first
        {
            *queue.waiter(number) = None;
        }
    }

    fn queue(&self) -> Option<MutexGuard<'_, TurnQueue>> {
        self.queue.as_ref().map(|queue| queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Clone for HandshakeTurns {
    fn clone(&self) -> HandshakeTurns {
        if self.queue.is_some() { HandshakeTurns::on_loop() } else { HandshakeTurns::unbounded() }
    }
}

impl TurnQueue {
    fn waiter(&mut self, number: u64) -> &mut Option<Waker> {
        &mut self.waiting[(number - self.first) as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// A connection that needs a step.
    #[derive(Default)]
    struct Waiting {
        turn: Turn,
        woken: Arc<Woken>,
    }

    impl Waiting {
        fn takes(&mut self, turns: &HandshakeTurns) -> bool {
            let waker = self.woken.clone().into();
            turns.poll_turn(&mut self.turn, &mut Context::from_waker(&waker)).is_ready()
        }

        fn is_woken(&self) -> bool {
            self.woken.0.swap(false, Ordering::Relaxed)
        }
    }

    fn waiting(count: usize) -> Vec<Waiting> {
        std::iter::repeat_with(Waiting::default).take(count).collect()
    }

    fn begin_all(all: &mut [Waiting], turns: &HandshakeTurns) {
        let taken = all.iter_mut().map(|one| one.takes(turns)).filter(|taken| *taken).count();
        assert!(taken <= STEPS);
    }

    #[test]
    fn a_tick_has_a_bounded_number_of_steps_in_the_order_in_which_they_came() {
        let turns = HandshakeTurns::on_loop();
        let mut all = waiting(11);
        let taken: Vec<_> = all.iter_mut().map(|one| one.takes(&turns)).collect();
        assert_eq!(taken, [&[true; 4][..], &[false; 7]].concat());
        turns.next_tick();
        assert_eq!(all.iter().map(Waiting::is_woken).collect::<Vec<_>>(), {
            [&[false; 4][..], &[true; 4], &[false; 3]].concat()
        });
        // A new connection, and a task woken by another event, do not overtake.
        let mut newcomer = Waiting::default();
        assert!(!newcomer.takes(&turns) && !all[9].takes(&turns));
        assert!(all[4..8].iter_mut().all(|one| one.takes(&turns)));
        turns.next_tick();
        assert!(all[8..].iter().all(Waiting::is_woken) && newcomer.is_woken());
        assert!(all[8..].iter_mut().all(|one| one.takes(&turns)) && newcomer.takes(&turns));
        assert!(!newcomer.takes(&turns), "a turn is for one step");
    }

    #[test]
    fn a_connection_that_ends_leaves_its_turn_to_the_next() {
        let turns = HandshakeTurns::on_loop();
        let mut all = waiting(10);
        begin_all(&mut all, &turns);
        all[4..8].iter_mut().for_each(|one| turns.give_up(&mut one.turn));
        turns.next_tick();
        assert_eq!(all.iter().filter(|one| one.is_woken()).count(), 2);
        assert!(all[8..].iter_mut().all(|one| one.takes(&turns)));
        // A granted turn is given up: the positions of the others stay.
        turns.next_tick();
        let mut last = waiting(6);
        begin_all(&mut last, &turns);
        turns.next_tick();
        turns.give_up(&mut last[4].turn);
        assert!(last[5].is_woken() && last[5].takes(&turns));
    }

    #[test]
    fn a_clone_is_for_another_loop_and_blocking_threads_have_no_bound() {
        let turns = HandshakeTurns::on_loop();
        begin_all(&mut waiting(5), &turns);
        assert!(Waiting::default().takes(&turns.clone()));
        let unbounded = HandshakeTurns::unbounded().clone();
        assert!(waiting(100).iter_mut().all(|one| one.takes(&unbounded)));
    }
}
