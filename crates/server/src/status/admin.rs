//! The admin listener: a page, metrics, the status, and health checks, over HTTP. Its process has no counters, and requests
//! each report from the supervisor.

mod giving_way;
mod page;
mod readings;

use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenfold_engine::{Accept, Bounds, Engine, Plan, Protocol, Sender, run};
use tenfold_http::{
    Answer, Connection, FieldName, FieldValue, Instant, Io, Limits, Method, Next, Peer, Request,
    ResponseWriter, Service, Session, clock, serve_connection,
};
use tenfold_sys::socket::Listener;
use tenfold_tls::internal::machine_names;

use super::metrics::{self, MetricsFormat};
use super::report::{self, StatusReport};
use crate::diagnostics::error;
use crate::sandbox;
use giving_way::Waiting;
use readings::Readings;

/// The longest wait for a report. The supervisor may be reading a configuration meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of a report.
const LONGEST_REPORT: u32 = 64 << 20;
/// The most concurrent connections. New connections replace idle connections, and some of the [`Waiting`].
const CONNECTIONS: usize = 64;
/// The request for a report.
const ASK: [u8; 1] = [b'?'];

/// The plan of the process: one loop. Fails if the engine is unavailable.
pub(crate) fn plan() -> Result<Plan, String> {
    let engine = if tenfold_engine::probe(Engine::Epoll).is_ok() { Engine::Epoll } else { Engine::Poll };
    let bounds = Bounds { connections: CONNECTIONS, ..Bounds::default() };
    let mut plan = Plan::new(engine, None, None, Sender::Copy, None, bounds)?;
    plan.confined = sandbox::CONFINES;
    // With one accept at a time, connections that give way close before the next accept.
    plan.accept = Accept::One;
    Ok(plan)
}

/// Serves on `listener` until a signal ends the process. Reports come over `supervisor`.
pub(crate) fn serve(plan: &Plan, listener: Listener, supervisor: UnixStream) -> Result<(), String> {
    let limits = Limits {
        max_head: 8 * 1024,
        head_timeout: Duration::from_secs(5),
        send_timeout: Duration::from_secs(10),
        ..Limits::default()
    };
    run(
        plan,
        &[listener],
        AdminProtocol(Arc::new(AdminService {
            supervisor: Mutex::new(supervisor),
            limits,
            names: machine_names(),
            waiting: Waiting::default(),
            readings: Mutex::default(),
        })),
    )
}

/// Sets the timeouts of the channel to the supervisor, before the sandbox starts.
pub(crate) fn prepare(supervisor: &UnixStream) -> io::Result<()> {
    supervisor.set_read_timeout(Some(PATIENCE))?;
    supervisor.set_write_timeout(Some(PATIENCE))
}

/// Whether the process requested a report. The supervisor calls this; it reads the received bytes, and ignores their
/// content. Fails if the process has ended.
pub(crate) fn was_asked(channel: &mut UnixStream) -> io::Result<bool> {
    let mut asked = [0; 16];
    match channel.read(&mut asked) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The bytes of a report, as the channel has them.
pub(crate) fn message(report: &StatusReport) -> Vec<u8> {
    let text = serde_json::to_vec(report).expect("a report is made of numbers and strings");
    let length = u32::try_from(text.len()).expect("a report is shorter than 4 GiB");
    [&length.to_be_bytes()[..], &text].concat()
}

fn ask(mut supervisor: &UnixStream) -> io::Result<Vec<u8>> {
    supervisor.write_all(&ASK)?;
    let mut length = [0; 4];
    supervisor.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > LONGEST_REPORT {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length as usize];
    supervisor.read_exact(&mut text)?;
    Ok(text)
}

#[derive(Clone)]
struct AdminProtocol(Arc<AdminService>);

impl Protocol for AdminProtocol {
    type State = Session;

    async fn serve<I: Io>(&self, io: &mut I, state: &mut Session) -> Next {
        let peer = io.connection().peer;
        self.0.waiting.bounded(peer, serve_connection(io, &*self.0, &self.0.limits, state, None)).await
    }

    async fn serve_anywhere<I: Io + Send>(&self, io: &mut I, state: &mut Session) -> Next {
        let peer = io.connection().peer;
        self.0.waiting.bounded(peer, serve_connection(io, &*self.0, &self.0.limits, state, None)).await
    }

    fn first_bytes_by(&self) -> Instant {
        clock::now() + self.0.limits.head_timeout
    }

    fn next_request_by(&self) -> Instant {
        clock::now() + self.0.limits.idle_timeout
    }
}

struct AdminService {
    supervisor: Mutex<UnixStream>,
    limits: Limits,
    /// The host names of this machine.
    names: Vec<String>,
    waiting: Waiting,
    readings: Mutex<Readings>,
}

const SECURITY_POLICY: FieldName<'static> = FieldName::constant("Content-Security-Policy");
const REFERRER_POLICY: FieldName<'static> = FieldName::constant("Referrer-Policy");

struct AdminResponse {
    status: u16,
    content_type: &'static str,
    body: Vec<u8>,
}

impl AdminResponse {
    fn text(status: u16, text: &str) -> AdminResponse {
        AdminResponse { status, content_type: "text/plain; charset=utf-8", body: text.into() }
    }
}

impl Service for AdminService {
    fn answer(
        &self,
        request: &Request<'_>,
        connection: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        let made = match request.method {
            _ if self.is_misdirected(request, &connection.peer) => AdminResponse::text(
                421,
                "use an IP address or localhost: with another name, a web page could read this (DNS rebinding)\n",
            ),
            Method::Get | Method::Head => self.respond(request),
            _ => AdminResponse::text(405, "only GET and HEAD are allowed\n"),
        };
        let mut head = response.head(made.status);
        head.content_type(FieldValue::constant(made.content_type));
        head.content_length(made.body.len() as u64);
        head.field(FieldName::CACHE_CONTROL, FieldValue::constant("no-store"));
        head.field(FieldName::X_CONTENT_TYPE_OPTIONS, FieldValue::constant("nosniff"));
        let policy = FieldValue::new(page::POLICY.as_bytes()).expect("words and digests are a field value");
        head.field(SECURITY_POLICY, policy);
        head.field(REFERRER_POLICY, FieldValue::constant("no-referrer"));
        if made.status == 405 {
            head.field(FieldName::ALLOW, FieldValue::constant("GET, HEAD"));
        }
        head.end();
        if request.method != Method::Head {
            response.body(&made.body);
        }
        Answer::Done
    }
}

impl AdminService {
    /// Whether a browser on this machine requests another host name. The owner of that name may have pointed it to this
    /// address to read the responses (DNS rebinding).
    fn is_misdirected(&self, request: &Request<'_>, peer: &Peer) -> bool {
        let is_here = matches!(peer, Peer::Internet(at) if at.ip().to_canonical().is_loopback());
        let host = request.host().unwrap_or_default();
        let name = host.rsplit_once(':').filter(|_| !host.ends_with(']')).map_or(host, |(name, _)| name);
        let name = name.trim_end_matches('.').trim_start_matches('[').trim_end_matches(']');
        let is_own = name.is_empty() || self.names.iter().any(|own| own.eq_ignore_ascii_case(name));
        is_here && !is_own && name.parse::<IpAddr>().is_err()
    }

    fn respond(&self, request: &Request<'_>) -> AdminResponse {
        let path = request.target.path;
        if !["/", "/metrics", "/status", "/healthz", "/readyz"].contains(&path) {
            return AdminResponse::text(
                404,
                "not found; there are /, /metrics, /status, /healthz and /readyz\n",
            );
        }
        let text = self.report();
        if path == "/status" {
            return AdminResponse { status: 200, content_type: "application/json", body: text };
        }
        let report: StatusReport =
            serde_json::from_slice(&text).expect("the supervisor sends what this version reads");
        let report = Arc::new(report);
        let mut readings = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let at = std::time::Instant::now();
        readings.note(&report, at);
        match path {
            "/" => {
                let page = page::html(&report, &readings.intervals(at), report::now());
                AdminResponse {
                    status: 200,
                    content_type: "text/html; charset=utf-8",
                    body: page.into_bytes(),
                }
            }
            "/metrics" => {
                let format = MetricsFormat::accepted(request.values("accept"));
                let body = metrics::text_of(report, format).into_bytes();
                AdminResponse { status: 200, content_type: format.content_type(), body }
            }
            "/healthz" => AdminResponse::text(200, "ok\n"),
            _ if report.ready => AdminResponse::text(200, "ready\n"),
            _ if report.draining => AdminResponse::text(503, "draining\n"),
            _ if report.workers.iter().any(|worker| worker.state == "stuck") => {
                AdminResponse::text(503, "a worker is stuck\n")
            }
            _ => AdminResponse::text(503, "starting\n"),
        }
    }

    /// Requests a report from the supervisor. Without an answer, the process ends, and the supervisor replaces it: a
    /// late answer would be taken for the answer to a later request.
    fn report(&self) -> Vec<u8> {
        let supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
        ask(&supervisor).unwrap_or_else(|error| {
            error!("admin: the supervisor does not answer: {error}");
            std::process::exit(1)
        })
    }
}
