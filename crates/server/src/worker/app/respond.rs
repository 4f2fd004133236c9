//! A response to the client of a request, and its record in the counters and in the access log. The client is the peer
//! of the connection, or a client of a trusted proxy.

use std::sync::atomic::Ordering;
use std::time;
use std::time::Instant;

use tenfold_http::semantics::forwarded::ForwardedClient;
use tenfold_http::{Answer, Connection, Method, Request, RequestId, ResponseWriter, SendReport, clock, echo};
use tenfold_site::{Answered, MOST_CREDENTIALS, ResponseSummary, basic_user};

use crate::diagnostics::{error, warning};
use crate::log::combined::escape;
use crate::log::line::{LogFields, Times};
use crate::status::counters::{Counter, Tally};
use crate::status::latency::Until;
use crate::worker::app::{DeferredRequest, SharedService};

impl SharedService {
    /// Calls `respond` with the request and the connection as a trusted proxy describes its client's, and with an
    /// identifier of the request if requests have them.
    #[cold]
    pub(super) fn for_client(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        respond: impl FnOnce(&Request<'_>, &Connection) -> Answer,
    ) -> Answer {
        let client = match self.proxies.reads(&connection.peer) {
            true => self.proxies.client(request),
            false => ForwardedClient::default(),
        };
        if client.ambiguous && self.reported.row(0)[1].swap(1, Ordering::Relaxed) == 0 {
            warning!(
                "X-Forwarded-For and Forwarded of a trusted proxy name different clients: neither is used; name the \
                 field that the proxy sets with forwarded-fields (logged once)"
            );
        }
        let request_id =
            self.request_ids.as_ref().map(|ids| ids.of(request, &connection.peer, &self.proxies));
        let connection = Connection { request_id, ..client.connection(connection) };
        match client.host.and_then(|host| request.with_host(host)) {
            Some(request) => respond(&request, &connection),
            None => respond(request, &connection),
        }
    }

    #[inline]
    pub(super) fn respond(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        #[cfg(feature = "test-hooks")]
        crate::sandbox::attempt(request.target.path);
        self.amend(connection, response);
        if self.guarded
            && let Some(answer) = self.guard(request, connection, response)
        {
            return answer;
        }
        let began = self.began();
        match self.hosts.respond(request, response) {
            Answered::Staged(outcome) => {
                self.record(outcome, request, connection, response, began);
                Answer::Done
            }
            Answered::Work(work) => {
                let (request, connection) = (request.to_owned(), connection.clone());
                self.later(work, DeferredRequest { request, connection, began, private: false })
            }
        }
    }

    pub(super) fn respond_to_body(
        &self,
        request: &Request<'_>,
        body: &[u8],
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        self.amend(connection, response);
        if let Some(members) = &self.members
            && let Some(path) = members.path(request)
            && let wanted = members.web.submit(&path, request, body, connection)
            && let Some(answer) = self.member(wanted, request, connection, response)
        {
            return answer;
        }
        let began = self.began();
        let body = echo(request, body, response);
        self.record(ResponseSummary::of(200, body), request, connection, response, began);
        Answer::Done
    }

    /// Counts a staged answer, and logs it if there is a log.
    #[inline]
    pub(super) fn record(
        &self,
        outcome: ResponseSummary,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
        began: Option<time::Instant>,
    ) {
        self.worker.with(|local| {
            local.tally.answer(request.version);
            local.tally.respond(outcome.status());
        });
        if self.worker.has_log() || began.is_some() {
            self.log(outcome, request, connection, response, began);
        }
        if let Some(number) = outcome.failure() {
            self.complain(request, outcome, number);
        }
    }

    fn log(
        &self,
        outcome: ResponseSummary,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
        began: Option<time::Instant>,
    ) {
        let staged = began.filter(|_| self.measures).map(|began| {
            let now = time::Instant::now();
            (now - began, now)
        });
        // A file may be shorter than promised, and a client may leave: the log shows the bytes that were sent.
        let whole = response.is_plain() && staged.is_none();
        let mut room;
        // A rejected name is not a user.
        let user = match self.shows_user && outcome.status() != 401 {
            true => {
                room = [0; MOST_CREDENTIALS];
                basic_user(request, &mut room)
            }
            false => None,
        };
        let begun = self.worker.with(|local| {
            let writer = local.writer.as_mut()?;
            let fields = LogFields {
                user,
                request_id: connection.request_id.as_ref().map(RequestId::as_bytes),
                host: request.host(),
                path: Some(request.target.path),
                query: request.target.query,
                referer: first(request, "referer"),
                agent: first(request, "user-agent"),
                reason: outcome.reason(),
                tls: connection.tls.as_ref(),
            };
            if whole {
                writer.add(
                    &connection.peer,
                    request.summary(),
                    outcome.status(),
                    outcome.body,
                    fields,
                    Times::default(),
                );
                None
            } else {
                Some(writer.begin(&connection.peer, request.summary(), outcome.status(), fields))
            }
        });
        if let Some(begun) = begun.flatten() {
            let (worker, body) = (self.worker.clone(), outcome.body);
            response.observe(Box::new(move |SendReport { unsent, sends }| {
                let times = staged.map(|(process, staged)| Times {
                    process: Some(process),
                    send: (unsent == 0).then(|| staged.elapsed()),
                    sends: Some(sends),
                });
                let (bytes, times) = (body.saturating_sub(unsent), times.unwrap_or_default());
                worker.with(|local| local.writer.as_mut().map(|writer| writer.finish(&begun, bytes, times)));
            }));
        }
        if let Some(began) = began.filter(|_| self.observed) {
            self.observe_response(outcome, request.method, response, began);
        }
    }

    /// Reports the system's error for a file, at most once a second.
    #[cold]
    fn complain(&self, request: &Request<'_>, outcome: ResponseSummary, number: i32) {
        let second = clock::unix_seconds();
        if self.reported.row(0)[0].swap(second, Ordering::Relaxed) != second {
            let mut path = Vec::new();
            escape(&mut path, request.target.path.as_bytes());
            let (path, why) = (String::from_utf8_lossy(&path), std::io::Error::from_raw_os_error(number));
            error!("{path} was answered with {}: {why}", outcome.status());
        }
    }
}

fn first<'a>(request: &Request<'a>, name: &str) -> Option<&'a [u8]> {
    request.values(name).next()
}

impl SharedService {
    /// Counts a response that is staged, and measures when it has left. The head of its request was complete when it
    /// `began`.
    ///
    /// A response in memory leaves with its first byte as a rule, so one reading of the clock is both. For any other, the
    /// first byte is ready now.
    pub(super) fn observe_response(
        &self,
        outcome: ResponseSummary,
        method: Method,
        response: &mut ResponseWriter<'_>,
        began: Instant,
    ) {
        let Some(tally) = self.worker.with(|local| local.tally) else { return };
        tally.request(method, outcome.status());
        if outcome.is_from_cache() {
            tally.add(Counter::CacheHits, 1);
        }
        let plain = response.is_plain();
        if !plain {
            tally.time(Until::FirstByte, nanoseconds(began));
        }
        response.observe(Box::new(move |report| {
            let time = nanoseconds(began);
            if plain {
                tally.time(Until::FirstByte, time);
            }
            if report.unsent == 0 {
                tally.time(Until::LastByte, time);
            }
        }));
    }

    /// Counts work that other threads do until its result comes, or the client goes.
    pub(super) fn count_work(&self, queued: bool) -> Option<PendingWork> {
        let tally = self.worker.with(|local| local.tally).filter(|_| self.observed)?;
        tally.add(if queued { Counter::WorkBegun } else { Counter::WorkRejected }, 1);
        queued.then_some(PendingWork(tally.among_others()))
    }
}

fn nanoseconds(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Work that is counted as pending until this is dropped.
pub(super) struct PendingWork(Tally);

impl Drop for PendingWork {
    fn drop(&mut self) {
        self.0.add(Counter::WorkEnded, 1);
    }
}
