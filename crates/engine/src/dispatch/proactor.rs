//! Dispatch `proactor`: the loop reads and writes, and a pool of threads computes responses.
//!
//! It wraps a service: a thread gets a copy of the request and writes a [`Response`], which the loop encodes into
//! the output of the connection. Drivers do not depend on it.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tenfold_http::{
    Answer, Body, Connection, Http2Counts, Instant, Refusal, Request, RequestSummary, Response,
    ResponseWriter, Service,
};

use super::offload::promise;
use super::queue::JobQueue;
use crate::worker::tick::read_clock;

type AnswerJob = Box<dyn FnOnce() + Send>;

/// A service whose responses are computed by a pool of threads. The threads end with it.
pub struct Proactor<S> {
    service: Arc<S>,
    queue: Arc<JobQueue<AnswerJob>>,
    threads: Vec<JoinHandle<()>>,
}

impl<S: Service + 'static> Proactor<S> {
    /// Starts `width` threads for `service`; at most `bound` requests wait for them. The process must not fork
    /// afterwards. A thread calls `before_wait` after an answer ([`crate::Protocol::before_wait`]), and `drain` before it
    /// ends.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(
        service: Arc<S>,
        (width, bound): (usize, usize),
        before_wait: fn(&S) -> Instant,
        drain: fn(&S),
    ) -> Result<Proactor<S>, String> {
        let queue = Arc::new(JobQueue::new(bound));
        let mut proactor = Proactor { service, queue, threads: Vec::with_capacity(width) };
        for number in 0..width {
            let (service, queue) = (proactor.service.clone(), proactor.queue.clone());
            let thread = thread::Builder::new().name(format!("proactor-{number}"));
            let started = thread.spawn(move || {
                queue.work(|job| {
                    read_clock();
                    if let Some(job) = job {
                        job();
                    }
                    before_wait(&service)
                });
                read_clock();
                drain(&service);
            });
            let failed = |error| format!("cannot start thread {number} of the pool: {error}");
            proactor.threads.push(started.map_err(failed)?);
        }
        Ok(proactor)
    }

    /// Queues `work` for a thread of the pool; the response is ready when the thread has finished.
    fn hand_over(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
        work: impl FnOnce(&S, &Request<'_>, &mut ResponseWriter<'_>) -> Answer + Send + 'static,
    ) -> Answer {
        let (promise, coming) = promise();
        let (service, owned) = (self.service.clone(), request.to_owned());
        let job = move || {
            promise.keep(catch_unwind(AssertUnwindSafe(|| {
                let mut response = Response::default();
                let answer = owned.read(|request| work(&service, request, &mut response.writer()));
                (response, answer)
            })));
        };
        if self.queue.put(Box::new(job)).is_err() {
            response.close();
            self.service.refuse(Refusal::Busy, request.summary(), connection, response);
            return Answer::Close;
        }
        Answer::in_progress(async move {
            let (mut response, answer) = match coming.await {
                Some(Ok(written)) => written,
                // A panic on a pool thread ends the connection, like a panic on the loop.
                Some(Err(panic)) => resume_unwind(panic),
                None => return Response::default(),
            };
            match answer {
                Answer::Done => {}
                Answer::Later(deferred) => return deferred.await,
                Answer::Close | Answer::NeedBody { .. } => response.writer().close(),
            }
            response
        })
    }
}

impl<S: Service + 'static> Service for Proactor<S> {
    fn answer(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        // The loop reads content before there is a response, so the service decides here whether it needs content.
        if request.body != Body::Empty {
            return self.service.answer(request, connection, response);
        }
        let from = connection.clone();
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
        let (from, body) = (connection.clone(), body.to_vec());
        self.hand_over(request, connection, response, move |service, request, response| {
            service.answer_body(request, &body, &from, response)
        })
    }

    fn refuse(
        &self,
        refusal: Refusal,
        request: RequestSummary<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) {
        self.service.refuse(refusal, request, connection, response);
    }

    fn count_http2(&self, counts: Http2Counts) {
        self.service.count_http2(counts);
    }
}

impl<S> Drop for Proactor<S> {
    fn drop(&mut self) {
        self.queue.close();
        for thread in self.threads.drain(..) {
            // If a job panicked, its connection already has an error response.
            let _ = thread.join();
        }
    }
}
