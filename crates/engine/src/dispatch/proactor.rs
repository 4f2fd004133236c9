//! Dispatch `proactor`: the loop reads and writes, and a pool of threads works out the answers.
//!
//! It is a service around another one: what is asked is copied, a thread answers it into an output of its
//! own, and the loop, which is woken, puts that behind what it sends. No driver knows of it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tenfold_http::{
    Answer, Body, Connection, Instant, Out, Refusal, Reply, Request, ResponseWriter, Service,
};

use super::handover::Queue;
use super::offload::promise;
use crate::protocol::read_clock;

type Job = Box<dyn FnOnce() + Send>;

/// A service whose answers are worked out by a pool of threads. The threads end with it.
pub struct Proactor<S> {
    service: Arc<S>,
    queue: Arc<Queue<Job>>,
    threads: Vec<JoinHandle<()>>,
}

/// The work of a pool's thread beside answering.
#[derive(Debug)]
pub struct Resting<S> {
    /// After an answer: see [`crate::Protocol::rest`].
    pub rest: fn(&S) -> Instant,
    /// Before the thread ends: see [`crate::Protocol::leave`].
    pub leave: fn(&S),
}

impl<S: Service + 'static> Proactor<S> {
    /// Starts `width` threads for `service`; at most `bound` requests wait for them. The process is not forked any more.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(
        service: Arc<S>,
        (width, bound): (usize, usize),
        Resting { rest, leave }: Resting<S>,
    ) -> Result<Proactor<S>, String> {
        let queue = Arc::new(Queue::new(bound));
        let mut proactor = Proactor { service, queue, threads: Vec::with_capacity(width) };
        for number in 0..width {
            let (service, queue) = (proactor.service.clone(), proactor.queue.clone());
            let thread = thread::Builder::new().name(format!("proactor-{number}"));
            let started = thread.spawn(move || work(&*service, &queue, rest, leave));
            let failed = |error| format!("cannot start thread {number} of the pool: {error}");
            proactor.threads.push(started.map_err(failed)?);
        }
        Ok(proactor)
    }

    /// Has a thread do `work`; the response comes when it has.
    fn hand_over(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
        work: impl FnOnce(&S, &Request<'_>, &mut ResponseWriter<'_>) -> Answer + Send + 'static,
    ) -> Answer {
        let (promise, coming) = promise();
        let (service, owned, format) = (self.service.clone(), request.to_owned(), response.format());
        let job = move || {
            promise.keep(catch_unwind(AssertUnwindSafe(|| {
                let mut made = Out::new();
                let mut response = ResponseWriter::detached(format, &mut made);
                let answer = owned.read(|request| work(&service, request, &mut response));
                (made, answer)
            })));
        };
        if self.queue.put(Box::new(job)).is_err() {
            response.close();
            self.service.refuse(Refusal::Busy, request.line, connection, response);
            return Answer::Close;
        }
        Answer::later(async move {
            let made = coming.await;
            Box::new(move |response: &mut ResponseWriter<'_>| match made {
                Some(Ok((made, answer))) => {
                    response.append(made);
                    answer
                }
                // A panic is the connection's, wherever it happened.
                Some(Err(panic)) => resume_unwind(panic),
                None => Answer::Close,
            }) as Reply
        })
    }
}

fn work<S>(service: &S, queue: &Queue<Job>, rest: fn(&S) -> Instant, leave: fn(&S)) {
    queue.work(|job| {
        read_clock();
        if let Some(job) = job {
            job();
        }
        rest(service)
    });
    read_clock();
    leave(service);
}

impl<S: Service + 'static> Service for Proactor<S> {
    fn answer(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        // Whether content is needed is asked here: the loop reads it before there is a response.
        if request.body != Body::Empty {
            return self.service.answer(request, connection, response);
        }
        let from = *connection;
        self.hand_over(request, connection, response, move |service, request, response| {
            match service.answer(request, &from, response) {
                Answer::NeedBody { .. } => service.answer_body(request, b"", &from, response),
                answer => answer,
            }
        })
    }

    fn answer_body(
        &self,
        request: &Request<'_>,
        body: &[u8],
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        let (from, body) = (*connection, body.to_vec());
        self.hand_over(request, connection, response, move |service, request, response| {
            service.answer_body(request, &body, &from, response)
        })
    }

    fn refuse(
        &self,
        refusal: Refusal,
        first_line: &[u8],
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) {
        self.service.refuse(refusal, first_line, connection, response);
    }
}

impl<S> Drop for Proactor<S> {
    fn drop(&mut self) {
        self.queue.close();
        for thread in self.threads.drain(..) {
            // The connection of a job that panicked has been told.
            let _ = thread.join();
        }
    }
}
