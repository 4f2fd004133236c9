//! The server's own protocol: HTTP over a site, counted and logged.

mod members;
mod passwords;
mod request_ids;
mod respond;
mod server_timing;
mod transport;

use std::sync::{Arc, Weak};
use std::time;

use tenfold_accounts::web::counted_address;
use tenfold_engine::dispatch::proactor::Proactor;
use tenfold_engine::offload::QueueFull;
use tenfold_engine::{Dispatch, Plan, Protocol};
use tenfold_http::semantics::forwarded::TrustedProxies;
use tenfold_http::{
    Answer, Connection, FieldName, FieldValue, Http2Counts, Instant, Io, Limits, Method, Next, Out,
    OwnedRequest, ParkedHttp2, Peer, Refusal, Request, RequestSummary, Response, ResponseWriter, Service,
    Session, clock, echo, serve_connection,
};
use tenfold_site::{Answered, Hosts, Need, ResponseSummary, Work};
use tenfold_sys::shared::SharedRows;
use tenfold_tls::challenges::{ChallengeBoard, HTTP_PREFIX};

use crate::admission::Admission;
use crate::admission::lane::WorkLane;
use crate::admission::shared_places::SharedPlaces;
use crate::config::values::Settings;
use crate::config::values::bounds::WORK_QUEUE;
use crate::log::line::{LogFields, Times};
use crate::members::client::WorkerMembers;
use crate::status::counters::Counter;
use crate::worker::shared::{WorkerShared, worker_hooks};
use passwords::Passwords;
use request_ids::RequestIds;
use server_timing::ServerTiming;
pub(crate) use transport::TransportRules;

/// HTTP over a site. Each thread has a clone.
#[derive(Clone)]
pub(crate) struct App {
    shared: Arc<SharedService>,
    /// The threads that produce answers, with dispatch `proactor`.
    proactor: Option<Arc<Proactor<SharedService>>>,
}

impl App {
    /// Creates the service that answers requests for `hosts`. The rules in `before` apply before the rules of a host.
    ///
    /// # Errors
    /// The threads of the plan cannot be started.
    pub(crate) fn new(
        hosts: Hosts,
        settings: &Settings,
        admission: Option<Admission>,
        before: RequestRules,
        plan: &Plan,
        worker: Arc<WorkerShared>,
    ) -> Result<App, String> {
        let RequestRules { members, challenges, transport } = before;
        let passwords = Passwords::new(plan, settings)
            .map_err(|error| format!("cannot allocate memory to count passwords: {error}"))?;
        let places = SharedPlaces::of(plan, settings.work_threads)
            .map_err(|error| format!("cannot allocate memory to bound work: {error}"))?;
        let reported =
            SharedRows::new(1, 2).map_err(|error| format!("cannot allocate memory for reports: {error}"))?;
        let shared = Arc::new_cyclic(|this| SharedService {
            this: this.clone(),
            hosts,
            echo: settings.echo.clone(),
            guarded: settings.echo.is_some()
                || members.is_some()
                || settings.uses_tls()
                || challenges.is_some()
                || admission.as_ref().is_some_and(Admission::throttles),
            members,
            challenges,
            admission,
            amends: transport.has_hsts() || settings.request_id || settings.server_timing,
            transport,
            timing: settings.server_timing.then(|| ServerTiming::new(plan)),
            limits: settings.limits.clone(),
            http2: settings.http2().then(ParkedHttp2::default),
            measures: worker.measures(),
            shows_user: worker.shows_user(),
            observed: worker.is_observed(),
            worker,
            lane: WorkLane::new(plan, settings.work_threads, WORK_QUEUE).with_shared(places),
            passwords,
            reported,
            describes: settings.request_id || settings.proxies.any(),
            proxies: settings.proxies.clone(),
            request_ids: settings.request_id.then(RequestIds::new),
        });
        let proactor = match plan.dispatch {
            Dispatch::Proactor => Some(Arc::new(proactor(&shared, plan)?)),
            Dispatch::Inline | Dispatch::Reactor => None,
        };
        Ok(App { shared, proactor })
    }

    /// Whether `peer` may begin a TLS handshake now.
    pub(crate) fn admit_handshake(&self, peer: &Peer) -> bool {
        let admitted = self.shared.admission.as_ref().is_none_or(|admission| admission.admit_handshake(peer));
        if !admitted {
            self.shared.worker.with(|local| local.tally.add(Counter::HandshakesOfAddress, 1));
        }
        admitted
    }
}

/// A pool for each worker of this process; they share their threads.
fn proactor(shared: &Arc<SharedService>, plan: &Plan) -> Result<Proactor<SharedService>, String> {
    let pools = plan.workers / plan.processes();
    let pool = (pools * plan.bounds.pool_threads, pools * plan.bounds.pool_queue);
    let before_wait = |shared: &SharedService| shared.worker.before_wait(false);
    Proactor::start(shared.clone(), pool, before_wait, |shared| shared.worker.drain())
}

impl Protocol for App {
    type State = Session;

    async fn serve<I: Io>(&self, io: &mut I, state: &mut Session) -> Next {
        let service: &dyn Service = match &self.proactor {
            None => &*self.shared,
            Some(proactor) => &**proactor,
        };
        serve_connection(io, service, &self.shared.limits, state, self.shared.http2.as_ref()).await
    }

    async fn serve_anywhere<I: Io + Send>(&self, io: &mut I, state: &mut Session) -> Next {
        serve_connection(io, &*self.shared, &self.shared.limits, state, self.shared.http2.as_ref()).await
    }

    fn first_bytes_by(&self) -> Instant {
        clock::now() + self.shared.limits.head_timeout
    }

    fn next_request_by(&self) -> Instant {
        clock::now() + self.shared.limits.idle_timeout
    }

    #[inline]
    fn admit(&self, peer: &Peer) -> bool {
        let Some(admission) = &self.shared.admission else { return true };
        let admitted = admission.admit(peer);
        if !admitted {
            self.shared.worker.with(|local| local.tally.add(Counter::TooManyOfAddress, 1));
        }
        admitted
    }

    #[inline]
    fn on_close(&self, peer: impl FnOnce() -> Peer) {
        if let Some(admission) = &self.shared.admission {
            admission.on_close(&peer());
        }
    }

    fn farewell(&self, session: &mut Session, out: &mut Out) {
        if let Some(http2) = &self.shared.http2 {
            let counts = http2.farewell(*session, out);
            self.shared.count_http2(counts);
        }
    }

    #[inline]
    fn release(&self, session: Session) {
        if let Some(http2) = &self.shared.http2 {
            http2.release(session);
        }
    }

    fn has_answered(session: &Session) -> bool {
        session.has_answered()
    }

    worker_hooks!(shared.worker);
}

impl Service for SharedService {
    fn answer(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        match self.is_described(connection) {
            true => self.for_client(request, connection, |request, connection| {
                self.respond(request, connection, response)
            }),
            false => self.respond(request, connection, response),
        }
    }

    fn answer_body(
        &self,
        request: &Request<'_>,
        body: &[u8],
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        match self.is_described(connection) {
            true => self.for_client(request, connection, |request, connection| {
                self.respond_to_body(request, body, connection, response)
            }),
            false => self.respond_to_body(request, body, connection, response),
        }
    }

    fn refuse(
        &self,
        refusal: Refusal,
        request: RequestSummary<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) {
        self.amend(connection, response);
        let whole = !request.is_head();
        let page = self.hosts.refuse(refusal.status(), whole, response);
        let body = page.unwrap_or_else(|| response.refusal(refusal, whole));
        self.worker.with(|local| {
            local.tally.refuse(refusal);
            if let Some(writer) = local.writer.as_mut() {
                writer.add(
                    &connection.peer,
                    request,
                    refusal.status(),
                    body,
                    LogFields {
                        reason: Some(refusal.words()),
                        tls: connection.tls.as_ref(),
                        ..LogFields::default()
                    },
                    Times::default(),
                );
            }
        });
    }

    fn count_http2(&self, counts: Http2Counts) {
        self.worker.with(|local| local.tally.count_http2(counts));
    }
}

impl SharedService {
    /// Whether requests of this connection have an identifier, or their fields name their client.
    #[inline]
    fn is_described(&self, connection: &Connection) -> bool {
        self.describes && (self.request_ids.is_some() || self.proxies.reads(&connection.peer))
    }

    /// Adds the fields of every response of this worker to the next head.
    #[inline]
    fn amend(&self, connection: &Connection, response: &mut ResponseWriter<'_>) {
        if self.amends {
            self.add_fields(connection, response);
        }
    }

    fn add_fields(&self, connection: &Connection, response: &mut ResponseWriter<'_>) {
        self.transport.secure(connection, response);
        if let Some(timing) = &self.timing
            && let Some(row) = self.worker.with(|local| local.place)
        {
            timing.describe(row, response);
        }
    }

    /// The start time of an answer, if the log or an admin listener shows its duration.
    #[inline]
    fn began(&self) -> Option<time::Instant> {
        (self.measures || self.observed).then(time::Instant::now)
    }

    /// Defers a response until its work is done.
    #[cold]
    fn later(&self, work: Work, asked: DeferredRequest) -> Answer {
        // The service is there while it answers.
        let Some(this) = self.this.upgrade() else { return Answer::Close };
        Answer::later(async move { this.respond_after(work, asked).await })
    }

    /// Does the work of a response off the loop, in as many steps as the site asks for, and responds. The work begins
    /// when earlier responses have been sent, so that a client that does not read them holds no result.
    async fn respond_after(&self, mut work: Work, asked: DeferredRequest) -> Response {
        loop {
            let (work_lane, step) = match work.need() {
                Need::Membership => return self.respond_to_membership(asked).await,
                Need::Password => (&self.passwords.lane, self.passwords.count(work, &asked.connection)),
                Need::Thread => (&self.lane, work),
            };
            let (step, otherwise) = step.split();
            let coming = work_lane.run_awaited(&counted_address(&asked.connection), step);
            let pending = self.count_work(coming.is_ok());
            let result = match coming {
                Ok(coming) => Ok(coming.await),
                Err(QueueFull) => Err(otherwise),
            };
            drop(pending);
            let staged = self.stage(&asked, |request, response| {
                let answered = match result {
                    Ok(Some(finish)) => self.hosts.finish(finish, request, response),
                    Ok(None) => self.hosts.failed(request, response).into(),
                    Err(otherwise) => self.hosts.busy(otherwise, request, response).into(),
                };
                if matches!(&answered, Answered::Staged(outcome) if outcome.status() == 429) {
                    self.worker.with(|local| local.tally.add(Counter::Throttled, 1));
                }
                answered
            });
            work = match staged {
                Ok(response) => return response,
                Err(more) => more,
            };
        }
    }

    /// Returns the response that `respond` writes, counted and logged, or the work that it needs first.
    fn stage(
        &self,
        asked: &DeferredRequest,
        respond: impl FnOnce(&Request<'_>, &mut ResponseWriter<'_>) -> Answered,
    ) -> Result<Response, Work> {
        let mut response = Response::default();
        let mut writer = response.writer();
        self.amend(&asked.connection, &mut writer);
        asked.keep_private(&mut writer);
        asked.request.read(|request| match respond(request, &mut writer) {
            Answered::Staged(outcome) => {
                self.record(outcome, request, &asked.connection, &mut writer, asked.began);
                Ok(())
            }
            Answered::Work(work) => Err(work),
        })?;
        drop(writer);
        Ok(response)
    }

    /// Returns the response that precedes the site's, if any.
    #[cold]
    fn guard(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Option<Answer> {
        let wait = self.admission.as_ref().and_then(|admission| {
            let peer = &connection.peer;
            let is_named = !(self.proxies.reads(peer) && self.proxies.client(request).ambiguous);
            admission.throttle(peer, is_named)
        });
        if let Some(wait) = wait {
            let outcome = tenfold_site::too_many_requests(request, wait, response);
            self.worker.with(|local| local.tally.add(Counter::Throttled, 1));
            self.record(outcome, request, connection, response, self.began());
            return Some(Answer::Done);
        }
        if self.validate(request, connection, response) {
            return Some(Answer::Done);
        }
        if let Some(outcome) = self.transport.precede(request, connection, response) {
            self.record(outcome, request, connection, response, None);
            return Some(Answer::Done);
        }
        if let Some(members) = &self.members
            && let Some(path) = members.path(request)
            && let wanted = members.web.begin(&path, request, connection)
            && let Some(answer) = self.member(wanted, request, connection, response)
        {
            return Some(answer);
        }
        self.echoes(request).then(|| Answer::NeedBody { max: self.limits.max_body })
    }

    /// Whether this request is answered with its own body. TRACE is never served.
    fn echoes(&self, request: &Request<'_>) -> bool {
        self.echo.as_deref() == Some(request.target.path) && request.method != Method::Trace
    }

    /// Responds if an authority that validates names asks for the response to a challenge (RFC 8555 §8.3). Returns
    /// whether it did; other paths of the folder are the site's.
    fn validate(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> bool {
        let Some(board) = &self.challenges else { return false };
        let asked = request.target.path.strip_prefix(HTTP_PREFIX);
        let is_get = matches!(request.method, Method::Get | Method::Head);
        let body = asked.filter(|_| is_get).and_then(|token| board.http_response(token));
        let Some(body) = body else { return false };
        let sent = echo(request, body.as_bytes(), response);
        self.record(ResponseSummary::of(200, sent), request, connection, response, None);
        true
    }
}

/// The rules that apply before the rules of a site.
pub(crate) struct RequestRules {
    /// The members' pages and folders, if there are any.
    pub(crate) members: Option<WorkerMembers>,
    /// The responses to an authority that validates names, if one may ask for them.
    pub(crate) challenges: Option<ChallengeBoard>,
    /// The rules that follow from TLS.
    pub(crate) transport: TransportRules,
}

/// The service that all threads of a worker share.
struct SharedService {
    /// Itself, for deferred answers.
    this: Weak<SharedService>,
    hosts: Hosts,
    /// The path that echoes the bodies of requests, if any.
    echo: Option<String>,
    /// The bounds of addresses, if there are any.
    admission: Option<Admission>,
    /// The members' pages and folders, if there are any.
    members: Option<WorkerMembers>,
    transport: TransportRules,
    /// Whether responses may have fields of this worker in addition to the fields of the site.
    amends: bool,
    /// The serving model, if responses name it.
    timing: Option<ServerTiming>,
    /// The responses to an authority that validates names, if one may ask for them.
    challenges: Option<ChallengeBoard>,
    /// Whether anything precedes the site.
    guarded: bool,
    limits: Limits,
    /// The parked connections of HTTP/2; None: off.
    http2: Option<ParkedHttp2>,
    worker: Arc<WorkerShared>,
    /// Whether the log shows the times of responses.
    measures: bool,
    /// Whether the log shows the user of a request.
    shows_user: bool,
    /// Whether an admin listener shows the duration of responses.
    observed: bool,
    /// The threads for work that would delay other connections.
    lane: WorkLane,
    /// The verification of passwords of basic authentication.
    passwords: Passwords,
    /// Words that the processes of `fork` share: the time of the last report of a system error, in seconds since 1970,
    /// and whether it was reported that a proxy's fields name different clients.
    reported: SharedRows,
    /// Whether requests may have an identifier, or another client than the peer of their connection.
    describes: bool,
    /// The proxies whose fields name the clients of requests.
    proxies: TrustedProxies,
    /// The identifiers of requests, if they have any.
    request_ids: Option<RequestIds>,
}

/// A request with a deferred answer.
struct DeferredRequest {
    request: OwnedRequest,
    connection: Connection,
    /// The start time of its answer, if it is measured.
    began: Option<time::Instant>,
    /// Whether it is for one member only.
    private: bool,
}

impl DeferredRequest {
    /// Forbids caches to store a response that is for one member only (RFC 9111 §5.2.2).
    fn keep_private(&self, response: &mut ResponseWriter<'_>) {
        if self.private {
            response.replace_field(FieldName::CACHE_CONTROL, FieldValue::constant("private, no-store"));
        }
    }
}
