//! Waits for replies with a hash.
//!
//! The accounts process bounds the waiting forms for the whole server. A pool of waiting threads would be a second queue
//! in front of that queue, so one thread of a worker waits for all of its replies.

use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tenfold_accounts::{Query, Reply};
use tenfold_engine::offload::{OffloadResult, Promise, QueueFull, promise};
use tenfold_sys::eventfd::EventFd;
use tenfold_sys::wait;

use crate::members::channel::{AccountsClient, PendingQuestion};

/// The timeout of the rest of an answer after its first byte, because other answers wait meanwhile.
const REST: Duration = Duration::from_secs(1);

/// The queue of the waiting thread. The thread starts with the first query, so the process may fork before that.
#[derive(Default)]
pub(crate) struct Answers(Mutex<Option<Arc<Entrance>>>);

struct Entrance {
    new: Mutex<New>,
    event: EventFd,
}

/// Queries that the thread has not taken yet.
#[derive(Default)]
struct New {
    waiting: Vec<AwaitedReply>,
    /// No more queries will come.
    over: bool,
}

struct AwaitedReply {
    asked: PendingQuestion,
    promise: Promise<Reply>,
}

impl Answers {
    /// Sends a query, and does not wait. It fails if the channel is full, or the system gives no thread or descriptor.
    pub(crate) fn ask(
        &self,
        client: &AccountsClient,
        request: &Query,
    ) -> Result<OffloadResult<Reply>, QueueFull> {
        let asked = client.begin(request).map_err(|_| QueueFull)?;
        let (promise, coming) = promise();
        let mut entrance = lock(&self.0);
        let entrance = match &mut *entrance {
            Some(entrance) => entrance,
            none => none.insert(begin().map_err(|_| QueueFull)?),
        };
        lock(&entrance.new).waiting.push(AwaitedReply { asked, promise });
        entrance.event.signal();
        Ok(coming)
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        if let Some(entrance) = lock(&self.0).take() {
            lock(&entrance.new).over = true;
            entrance.event.signal();
        }
    }
}

fn begin() -> io::Result<Arc<Entrance>> {
    let entrance = Arc::new(Entrance { new: Mutex::default(), event: EventFd::new()? });
    let inside = entrance.clone();
    thread::Builder::new().name("answers".into()).spawn(move || wait_for_all(&inside))?;
    Ok(entrance)
}

/// Waits for all answers, each until its deadline. A dropped promise reports that no answer came.
fn wait_for_all(entrance: &Entrance) {
    let mut waiting: Vec<AwaitedReply> = Vec::new();
    loop {
        {
            let mut new = lock(&entrance.new);
            if new.over {
                return;
            }
            waiting.append(&mut new.waiting);
        }
        let now = Instant::now();
        waiting.retain(|one| one.asked.by() > now);
        for place in come(entrance, &waiting, now).into_iter().rev() {
            let AwaitedReply { asked, promise } = waiting.swap_remove(place);
            promise.keep(asked.answer_within(REST).unwrap_or(Reply::Unavailable));
        }
    }
}

/// The indices of the queries whose answers have come; empty after a new query or a deadline.
fn come(entrance: &Entrance, waiting: &[AwaitedReply], now: Instant) -> Vec<usize> {
    let earliest = waiting.iter().map(|one| one.asked.by()).min();
    let left = earliest.map(|by| by.saturating_duration_since(now) + Duration::from_millis(1));
    let answers = waiting.iter().map(|one| one.asked.as_fd());
    let all: Vec<_> = std::iter::once(entrance.event.as_fd()).chain(answers).collect();
    let Ok(reported) = wait::for_input(&all, left) else {
        // EINTR.
        return Vec::new();
    };
    entrance.event.clear();
    let ready = reported[1..].iter().enumerate().filter(|(_, answer)| answer.any);
    ready.map(|(place, _)| place).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Wake, Waker};

    use super::*;
    use crate::members::channel::{self, tests::received};

    struct Unpark(thread::Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    fn result(coming: OffloadResult<Reply>) -> Option<Reply> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut coming = pin!(coming);
        let begun = Instant::now();
        loop {
            if let Poll::Ready(reply) = coming.as_mut().poll(&mut Context::from_waker(&waker)) {
                return reply;
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "no answer has come");
            thread::park_timeout(Duration::from_secs(1));
        }
    }

    fn check(session: usize) -> Query {
        Query::Check { session: session.to_string() }
    }

    #[test]
    fn many_queries_wait_and_each_gets_its_own_reply() {
        const MANY: usize = 100;
        let (client, server) = channel::open().expect("a pair of sockets");
        let answers = Answers::default();
        let (mut coming, mut kept) = (Vec::new(), Vec::new());
        for number in 0..MANY {
            coming.push(answers.ask(&client, &check(number)).expect("there is room"));
            kept.push(received(&server).expect("a question"));
        }
        for question in kept.into_iter().rev() {
            let (request, answer) = question.apart();
            let Query::Check { session } = request else { panic!("nothing else was asked") };
            answer.answer(&Reply::Member { name: session });
        }
        for (number, coming) in coming.into_iter().enumerate() {
            assert_eq!(result(coming), Some(Reply::Member { name: number.to_string() }));
        }
    }

    #[test]
    fn h76_a_part_of_an_answer_holds_up_no_other_for_long() {
        let (client, server) = channel::open().expect("a pair of sockets");
        let answers = Answers::default();
        let ask = |number| {
            let coming = answers.ask(&client, &check(number)).expect("there is room");
            (coming, received(&server).expect("a question").apart().1)
        };
        let ((stalled, part), (coming, whole)) = (ask(1), ask(2));
        let begun = Instant::now();
        part.send_part();
        // The client has the part by now.
        thread::sleep(Duration::from_millis(100));
        whole.answer(&Reply::Done);
        assert_eq!(result(coming), Some(Reply::Done));
        assert_eq!(result(stalled), Some(Reply::Unavailable));
        assert!(begun.elapsed() < 5 * REST, "{:?}", begun.elapsed());
        drop(part);
    }

    #[test]
    fn a_query_fails_when_the_process_dies() {
        let (client, server) = channel::open().expect("a pair of sockets");
        let answers = Answers::default();
        let coming = answers.ask(&client, &check(1)).expect("there is room");
        drop(received(&server).expect("a question"));
        assert_eq!(result(coming), Some(Reply::Unavailable));
    }

    #[test]
    fn a_full_channel_rejects_without_waiting() {
        let (client, _server) = channel::open().expect("a pair of sockets");
        let answers = Answers::default();
        let refused = (0..100_000).any(|number| answers.ask(&client, &check(number)).is_err());
        assert!(refused);
    }

    #[test]
    fn the_thread_ends_with_its_queue() {
        let (client, _server) = channel::open().expect("a pair of sockets");
        let answers = Answers::default();
        let coming = answers.ask(&client, &check(1)).expect("there is room");
        drop(answers);
        assert_eq!(result(coming), None);
    }
}
