//! The other role of this program: a server whose answers are made for the tests.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tenfold_engine::dispatch::proactor::Proactor;
use tenfold_engine::faults::{FaultKind, FaultyOperation, InjectedFault};
use tenfold_engine::layer::Layered;
use tenfold_engine::offload::{OffloadPool, promise};
use tenfold_engine::{Bounds, Dispatch, Engine, Event, Plan, Protocol, faults, run};
use tenfold_http::{
    Answer, Connection, Instant, Io, Limits, Next, OpenFile, Part, Refusal, Request, RequestSummary,
    Response, ResponseWriter, Service, Session, clock, serve_connection,
};
use tenfold_sys::lifecycle::install_worker_signals;
use tenfold_sys::shared::SharedRows;
use tenfold_sys::socket::{ListenOptions, Listener};
use tenfold_sys::uring::Sizes;
use tenfold_tls::connection::{TlsServer, prepare};

use crate::mux::{self, Mux};
use crate::pattern;

/// The first word of this role.
pub(crate) const ROLE: &str = "serve-for-tests";

/// The begin of the line with its address.
pub(crate) const LISTENS: &str = "listens on ";

/// The body of `/small`.
pub(crate) const SMALL: &[u8] = b"a small body\n";
/// The bytes that `/mix` sends between and after its files.
pub(crate) const TAIL: &[u8] = b"and this is behind the file";

/// A ring of which everything runs out: places for operations, for completions, and buffers.
const SCARCE: Sizes = Sizes { submissions: 16, completions: 32, buffers: 4, buffer_bytes: 256 };

const COUNTERS: [&str; 12] = [
    "accepted",
    "closed",
    "too-many",
    "exhausted",
    "expired",
    "panicked",
    "sent",
    "substituted",
    "released",
    "copied",
    "evicted",
    "slow",
];

/// Settings, as `name=value`.
struct Settings(HashMap<String, String>);

impl Settings {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn is_set(&self, name: &str) -> bool {
        self.text(name) == Some("true")
    }

    fn value<T: FromStr>(&self, name: &str, otherwise: T) -> T {
        self.text(name).map_or(otherwise, |text| text.parse().ok().expect("a setting of the tests is right"))
    }

    /// `faults=OPERATION:WRONG:EVERY:TIMES`; an error is its number.
    fn faults(&self) -> Vec<InjectedFault> {
        let number = |text: &str| text.parse().expect("a fault of the tests has numbers");
        let fault = |text: &str| {
            let parts: Vec<&str> = text.split(':').collect();
            let operation = match parts[0] {
                "accept" => FaultyOperation::Accept,
                "receive" => FaultyOperation::Receive,
                "send" => FaultyOperation::Send,
                "send-held" => FaultyOperation::SendHeld,
                "poll" => FaultyOperation::Poll,
                "read" => FaultyOperation::Read,
                "cancel" => FaultyOperation::Cancel,
                "close" => FaultyOperation::Close,
                other => panic!("no operation {other}"),
            };
            let wrong = match parts[1] {
                "short" => FaultKind::Short,
                "once" => FaultKind::Once,
                "late" => FaultKind::Late(20),
                "silent" => FaultKind::Silent,
                error => FaultKind::Fails(error.parse().expect("an error is its number")),
            };
            InjectedFault { operation, wrong, every: number(parts[2]), times: number(parts[3]) }
        };
        self.text("faults").map(fault).into_iter().collect()
    }

    fn milliseconds(&self, name: &str, otherwise: Duration) -> Duration {
        self.text(name).map_or(otherwise, |text| Duration::from_millis(text.parse().expect("a number")))
    }
}

/// Serves until a signal says otherwise.
pub(crate) fn main(words: impl Iterator<Item = String>) -> ExitCode {
    let pairs =
        words.filter_map(|word| word.split_once('=').map(|(name, value)| (name.into(), value.into())));
    let settings = Settings(pairs.collect());
    match serve(&settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(settings: &Settings) -> Result<(), String> {
    // Panics that are asked for say nothing.
    std::panic::set_hook(Box::new(|panic| {
        if !panic.to_string().contains("asked for") {
            eprintln!("{panic}");
        }
    }));
    let engine: Engine = settings.value("engine", Engine::Epoll);
    let bounds = Bounds {
        connections: settings.value("connections", 2000),
        pool_threads: settings.value("pool-threads", Bounds::default().pool_threads),
        pool_queue: settings.value("pool-queue", Bounds::default().pool_queue),
        linger_time: settings.milliseconds("linger-time", Bounds::default().linger_time),
        linger_wait: settings.milliseconds("linger-wait", Bounds::default().linger_wait),
        ..Bounds::default()
    };
    let topology = settings.text("topology").map(|text| text.parse()).transpose()?;
    let workers = topology.map(|topology| if topology == tenfold_engine::Topology::Single { 1 } else { 2 });
    let triggers = settings.text("triggers").map(|text| text.parse()).transpose()?;
    let sender = settings.text("sender").unwrap_or("auto").parse()?;
    let dispatch = settings.text("dispatch").unwrap_or("inline").parse()?;
    let plan = Plan::new(engine, topology, workers, sender, triggers, bounds)?.with_dispatch(dispatch)?;
    let plan = match settings.text("method") {
        Some(method) => plan.with_method(method.parse()?, triggers)?,
        None => plan,
    };
    if settings.is_set("scarce") {
        faults::use_rings_of(SCARCE);
    }
    faults::inject(&settings.faults());
    let listeners = listeners(settings, plan.sockets_per_address())?;
    install_worker_signals().map_err(|error| error.to_string())?;
    let unit = Unit::new(settings, &plan)?;
    let limits = Limits {
        head_timeout: settings.milliseconds("head-timeout", Duration::from_secs(20)),
        idle_timeout: settings.milliseconds("idle-timeout", Duration::from_secs(60)),
        send_timeout: settings.milliseconds("send-timeout", Duration::from_secs(30)),
        later_timeout: settings.milliseconds("later-timeout", Duration::from_secs(20)),
        min_rate: 1,
        ..Limits::default()
    };
    let (unit, limits) = (Arc::new(unit), Arc::new(limits));
    let proactor = match plan.dispatch {
        Dispatch::Proactor => Some(Arc::new(proactor(&unit, &plan)?)),
        Dispatch::Inline | Dispatch::Reactor => None,
    };
    let tarries = settings.milliseconds("tarries", Duration::ZERO);
    let protocol = Http { unit, limits, proactor, tarries };
    eprintln!("{LISTENS}{}", listeners[0].address());
    if let Some(most) = settings.text("descriptors") {
        let most = Some(most.parse().expect("a number"));
        setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most }).expect("a limit can be lowered");
    }
    if settings.text("protocol") == Some("mux") {
        let lane = OffloadPool::new(&plan, 16, 64);
        let later = move |milliseconds| {
            if milliseconds == 0 {
                let (promise, coming) = promise();
                promise.keep(());
                return coming;
            }
            // The work of an answer that takes time.
            let wait = move || std::thread::sleep(Duration::from_millis(u64::from(milliseconds)));
            lane.run(wait).expect("no more is asked for than may wait")
        };
        let mux = Mux {
            idle: settings.milliseconds("idle-timeout", mux::PATIENCE),
            released: Arc::new(SharedRows::new(1, 1).map_err(|error| error.to_string())?),
            later: Arc::new(later),
        };
        return match tls(settings) {
            Some(tls) => run(&plan, &listeners, Layered::new(Some(tls), mux, &plan)),
            None => run(&plan, &listeners, mux),
        };
    }
    match tls(settings) {
        Some(tls) => run(&plan, &listeners, Layered::new(Some(tls), protocol, &plan)),
        None => run(&plan, &listeners, protocol),
    }
}

/// TLS on the only listener, if there is a folder with `cert.pem` and `key.pem`.
fn tls(settings: &Settings) -> Option<TlsServer> {
    let folder = Path::new(settings.text("certificate")?);
    let certificate = CertificateDer::from_pem_file(folder.join("cert.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).expect("a key");
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key);
    let mut config = config.expect("the key matches");
    prepare(&mut config);
    Some(TlsServer::new(Arc::new(config), &[true], |_| ()))
}

fn proactor(unit: &Arc<Unit>, plan: &Plan) -> Result<Proactor<Unit>, String> {
    let pool = (plan.bounds.pool_threads, plan.bounds.pool_queue);
    Proactor::start(unit.clone(), pool, |_| Instant::NEVER, |_| ())
}

fn listeners(settings: &Settings, count: usize) -> Result<Vec<Listener>, String> {
    let reuse_port = count > 1;
    let zerocopy = settings.text("sender") == Some("zerocopy");
    let options =
        ListenOptions { backlog: 1024, tcp_nodelay: true, zerocopy, reuse_port, ..ListenOptions::default() };
    let mut address = settings.text("listen").unwrap_or("127.0.0.1:0").parse()?;
    let mut listeners = Vec::new();
    for _ in 0..count {
        let listener = Listener::bind(&address, &options).map_err(|error| format!("{address}: {error}"))?;
        if let Some(bytes) = settings.text("send-buffer") {
            let bytes = bytes.parse().expect("a number");
            rustix::net::sockopt::set_socket_send_buffer_size(&listener, bytes).expect("an option is set");
        }
        if let Some(bytes) = settings.text("receive-buffer") {
            let bytes = bytes.parse().expect("a number");
            rustix::net::sockopt::set_socket_recv_buffer_size(&listener, bytes).expect("an option is set");
        }
        // The others share the port that the system chose for the first.
        address = listener.address().clone();
        listeners.push(listener);
    }
    Ok(listeners)
}

#[derive(Clone)]
struct Http {
    unit: Arc<Unit>,
    limits: Arc<Limits>,
    proactor: Option<Arc<Proactor<Unit>>>,
    /// Between the end of the service and the word of it.
    tarries: Duration,
}

impl Protocol for Http {
    type State = Session;

    async fn serve<I: Io>(&self, io: &mut I, state: &mut Session) -> Next {
        let next = match &self.proactor {
            Some(proactor) => serve_connection(io, &**proactor, &self.limits, state, None).await,
            None => serve_connection(io, &*self.unit, &self.limits, state, None).await,
        };
        // A signal arrives meanwhile.
        std::thread::sleep(self.tarries);
        next
    }

    async fn serve_anywhere<I: Io + Send>(&self, io: &mut I, state: &mut Session) -> Next {
        let next = serve_connection(io, &*self.unit, &self.limits, state, None).await;
        // A signal arrives meanwhile.
        std::thread::sleep(self.tarries);
        next
    }

    fn has_answered(session: &Session) -> bool {
        session.has_answered()
    }

    fn first_bytes_by(&self) -> Instant {
        clock::now() + self.limits.head_timeout
    }

    fn next_request_by(&self) -> Instant {
        clock::now() + self.limits.idle_timeout
    }

    fn observe(&self, event: Event) {
        let (place, count) = match event {
            Event::Accepted => (0, 1),
            Event::Closed => (1, 1),
            Event::TooMany => (2, 1),
            Event::Exhausted => (3, 1),
            Event::Expired => (4, 1),
            Event::Panicked => (5, 1),
            Event::Evicted => (10, 1),
            Event::Trapped => return,
            Event::Sent(count) => (6, count),
            Event::Substituted(count) => (7, u64::from(count)),
            Event::Released { sends, copied } => {
                self.unit.counters()[9].fetch_add(u64::from(copied), Ordering::Relaxed);
                (8, u64::from(sends))
            }
        };
        self.unit.counters()[place].fetch_add(count, Ordering::Relaxed);
    }
}

/// The service.
struct Unit {
    large: Arc<OpenFile>,
    sparse: Option<Arc<OpenFile>>,
    /// Whether each answer finds the large file cold.
    cold: bool,
    shared: Arc<[u8]>,
    counters: SharedRows,
    lane: OffloadPool,
}

fn open(path: &str) -> Result<Arc<OpenFile>, String> {
    let file = File::open(path).map_err(|error| format!("{path}: {error}"))?;
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    Ok(Arc::new(OpenFile::new(file, size)))
}

impl Unit {
    fn new(settings: &Settings, plan: &Plan) -> Result<Unit, String> {
        Ok(Unit {
            large: open(settings.text("large").unwrap_or_default())?,
            sparse: settings.text("sparse").map(open).transpose()?,
            cold: settings.is_set("cold"),
            shared: pattern::bytes(1 << 20).into(),
            counters: SharedRows::new(1, COUNTERS.len()).map_err(|error| error.to_string())?,
            lane: OffloadPool::new(plan, 4, 64),
        })
    }

    fn counters(&self) -> &[AtomicU64] {
        self.counters.row(0)
    }

    fn count_text(&self) -> String {
        let lines = COUNTERS.iter().zip(self.counters());
        lines.map(|(name, count)| format!("{name} {}\n", count.load(Ordering::Relaxed))).collect()
    }

    /// Shared bytes, a file, staged bytes, another part of the file, and shared bytes again.
    fn mix(&self, response: &mut ResponseWriter<'_>) {
        let parts = [0..3000, 100_000..400_001, 17..18];
        let files: u64 = parts.iter().map(|part| part.end - part.start).sum();
        let shared = 3 * 5000;
        response.head(200).content_length(files + shared + 3 * TAIL.len() as u64);
        for part in parts {
            response.push(Part::Shared(self.shared.clone(), 0..5000));
            response.push(Part::File(self.large.clone(), part));
            response.body(TAIL);
        }
    }

    /// An answer after so many milliseconds on another thread.
    fn later(&self, milliseconds: u64) -> Answer {
        let work = move || {
            // The work of an answer that takes time.
            std::thread::sleep(Duration::from_millis(milliseconds));
            assert_ne!(milliseconds, 13, "asked for");
            SMALL
        };
        let Ok(coming) = self.lane.run(work) else { return Answer::Close };
        Answer::later(async move {
            let found = coming.await;
            let (status, body) = found.map_or((500, &b""[..]), |body| (200, body));
            Response::of(|response| respond(status, body, response))
        })
    }
}

fn respond(status: u16, body: &[u8], response: &mut ResponseWriter<'_>) {
    response.head(status).content_length(body.len() as u64);
    response.body(body);
}

impl Service for Unit {
    fn answer(&self, request: &Request<'_>, _: &Connection, response: &mut ResponseWriter<'_>) -> Answer {
        self.large.cold.fetch_or(self.cold, Ordering::Relaxed);
        let number = request.target.query.map(|query| query.parse().expect("a query here is a number"));
        let mut part = |length: u64, part: Part| {
            response.head(200).content_length(length);
            response.push(part);
        };
        match request.target.path {
            "/small" => respond(200, SMALL, response),
            "/slow" => {
                // Much work for few bytes.
                std::thread::sleep(Duration::from_millis(1));
                self.counters()[11].fetch_add(1, Ordering::Relaxed);
                respond(200, SMALL, response);
            }
            "/counters" => respond(200, self.count_text().as_bytes(), response),
            "/shared" => {
                let length = number.unwrap_or(self.shared.len() as u64);
                part(length, Part::Shared(self.shared.clone(), 0..length as usize));
            }
            "/large" => {
                let length = number.unwrap_or(self.large.size);
                part(length, Part::File(self.large.clone(), 0..length));
            }
            "/sparse" => {
                let file = self.sparse.clone().expect("a test that asks for the sparse file names one");
                part(file.size, Part::File(file.clone(), 0..file.size));
            }
            "/mix" => self.mix(response),
            "/later" => return self.later(number.unwrap_or(0)),
            "/never" => return Answer::later(std::future::pending()),
            "/sleep" => {
                // Other bytes arrive while the loop is held up.
                std::thread::sleep(Duration::from_millis(number.unwrap_or(0)));
                respond(200, SMALL, response);
            }
            "/panic" => panic!("asked for"),
            _ => respond(404, b"", response),
        }
        Answer::Done
    }

    fn refuse(
        &self,
        refusal: Refusal,
        _: RequestSummary<'_>,
        _: &Connection,
        response: &mut ResponseWriter<'_>,
    ) {
        respond(refusal.status(), refusal.words().as_bytes(), response);
    }
}
