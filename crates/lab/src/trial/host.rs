//! The side of a trial that has the subject: its start, its check, and the resources that it uses under the load.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::experiment::subject::{Cell, Subject};
use crate::machine::counters;
use crate::machine::noise::NoiseWatch;
use crate::machine::processes::{self, Resources};
use crate::measure::Measure;
use crate::trial::bench::Workbench;
use crate::trial::server::RunningServer;
use crate::trial::site::SiteFile;
use crate::trial::tracer::{self, TraceDetail};
use crate::trial::{check, survey};

/// The time for processes of connections to end before their CPU time is read.
const SETTLE: Duration = Duration::from_millis(20);
/// The longest wait for an idle connection and its response.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A trial to make.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TrialOrder {
    /// Its name, which is also that of its files.
    pub(crate) name: String,
    /// Its cell.
    pub(crate) cell: Cell,
    /// The milliseconds of its load.
    pub(crate) milliseconds: u64,
    /// The seed of its random choices.
    pub(crate) seed: u64,
}

/// The target of the load, after the check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CheckedSubject {
    /// The address for clients: that of the proxy, if there is one.
    pub(crate) address: SocketAddr,
    /// The requested path.
    pub(crate) path: String,
    /// The expected status.
    pub(crate) status: u16,
    /// The expected file, if all responses have the same.
    pub(crate) file: Option<SiteFile>,
    /// Lines of URLs instead of the path.
    pub(crate) urls: Option<String>,
}

/// The effects of a load on the subject and its machine.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SubjectUse {
    /// Used resources.
    pub(crate) resources: Resources,
    /// Disturbances.
    pub(crate) flags: Vec<String>,
    /// Network events.
    pub(crate) events: BTreeMap<Measure, u64>,
    /// The proportional memory in kilobytes, if it can be read.
    pub(crate) pss: Option<u64>,
    /// The reason, if the subject ended.
    pub(crate) ended: Option<String>,
    /// With a tracer: the number of calls by name. Nothing else is measured then.
    pub(crate) calls: Option<BTreeMap<String, u64>>,
}

/// A subject that runs until this value is dropped.
#[derive(Debug)]
pub(crate) struct SubjectHost<'a> {
    bench: &'a Workbench,
    order: TrialOrder,
    begin: Option<BeginOfLoad>,
    idle: Vec<TcpStream>,
    proxy: Option<RunningServer>,
    server: RunningServer,
}

/// The machine at the begin of the load.
#[derive(Debug)]
struct BeginOfLoad {
    at: Duration,
    noise: NoiseWatch,
    counted: BTreeMap<Measure, u64>,
    server: Resources,
    proxy: f64,
}

impl<'a> SubjectHost<'a> {
    /// Starts the subject of a trial.
    pub(crate) fn start(bench: &'a Workbench, order: TrialOrder) -> Result<SubjectHost<'a>, String> {
        if bench.served.is_none() {
            bench.site.file(order.cell.load.file_bytes())?;
        }
        let detail = order.cell.load.trace.then_some(TraceDetail::Names);
        let server = RunningServer::start(bench, &order.name, &order.cell, detail)?;
        Ok(SubjectHost { bench, order, server, proxy: None, idle: Vec::new(), begin: None })
    }

    /// The command of the subject.
    pub(crate) fn command(&self) -> &[String] {
        &self.server.command
    }

    /// Starts the proxy, checks the response of the subject, and opens idle connections.
    pub(crate) fn check(&mut self) -> Result<CheckedSubject, String> {
        let (bench, name, seed) = (self.bench, &self.order.name, self.order.seed);
        let (load, server) = (&self.order.cell.load, self.server.address);
        let file = match bench.served {
            Some(_) => None,
            None => Some(bench.site.file(load.file_bytes())?),
        };
        let (path, status, expected) = match (&file, load.bare_url, load.missing) {
            (_, true, _) => ("/", 404, None),
            (_, _, true) => ("/no-such-file", 404, None),
            (Some(file), ..) => (file.path.as_str(), 200, Some(file)),
            (None, ..) => ("/", 200, None),
        };
        self.proxy =
            load.round_trip.map(|time| RunningServer::delay(bench, name, server, time)).transpose()?;
        let address = self.proxy.as_ref().map_or(server, |proxy| proxy.address);
        let mut urls = None;
        if let Some(served) = &bench.served {
            let checked = survey::check_some(bench, server, served, seed);
            checked.map_err(|why| self.server.explain(why))?;
            urls = Some(served.urls(address));
        } else if !(self.order.cell.subject == Subject::Museum && load.may_fail) {
            // An exhibit that truncates or loses responses would fail the check.
            let checked = check::check(bench, server, path, status, expected);
            checked.map_err(|why| self.server.explain(why))?;
        }
        if let (Some(files), None) = (load.page, &bench.served) {
            urls = Some(bench.site.page(address, files, load.file_bytes())?);
        }
        self.idle = open_idle(server, path, load.idle.unwrap_or(0))?;
        let file = expected.filter(|_| load.page.is_none()).cloned();
        Ok(CheckedSubject { address, path: path.to_owned(), status, file, urls })
    }

    /// Begins to measure. The load follows.
    pub(crate) fn begin(&mut self) {
        let (noise, counted) = (NoiseWatch::start(), counters::now());
        let (server, proxy) = (Resources::of(self.server.process()), self.forwarded());
        self.begin = Some(BeginOfLoad { at: since_1970(), noise, counted, server, proxy });
    }

    /// Measures the effects of the load, which has ended, and stops the subject. `load` is the processor time of the
    /// load in seconds, if other processes of this machine than descendants of this process made it.
    pub(crate) fn end(mut self, load: f64) -> Result<SubjectUse, String> {
        let begin = self.begin.take().ok_or("the load of the trial did not begin")?;
        if self.order.cell.load.trace {
            let within = begin.at..since_1970();
            let calls = Some(tracer::counts(&self.server.end_trace()?, &within));
            return Ok(SubjectUse { calls, ..SubjectUse::default() });
        }
        thread::sleep(SETTLE);
        let resources = Resources::of(self.server.process()).since(&begin.server);
        let mut events = counters::now();
        let flags = begin.noise.flags(resources.cpu + self.forwarded() - begin.proxy + load);
        let pss = processes::proportional_memory(self.server.process());
        self.idle.clear();
        let ended = !self.server.is_alive();
        let ended = ended.then(|| self.server.explain("the server ended during the trial".to_owned()));
        events.iter_mut().for_each(|(event, count)| *count = count.saturating_sub(begin.counted[event]));
        Ok(SubjectUse { resources, flags, events, pss, ended, calls: None })
    }

    /// The processor time of the proxy.
    fn forwarded(&self) -> f64 {
        self.proxy.as_ref().map_or(0.0, |proxy| Resources::of(proxy.process()).cpu)
    }
}

pub(super) fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Opens `count` idle connections. Each makes one request, so that the server has accepted it.
fn open_idle(address: SocketAddr, path: &str, count: u32) -> Result<Vec<TcpStream>, String> {
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let one = || -> std::io::Result<TcpStream> {
        let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.write_all(head.as_bytes())?;
        let mut buffer = [0; 16 * 1024];
        match stream.read(&mut buffer)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(stream),
        }
    };
    let mut all = Vec::new();
    for number in 0..count {
        all.push(one().map_err(|error| {
            format!("cannot open idle connection {} of {count}: {error}; raise `ulimit -n`", number + 1)
        })?);
    }
    Ok(all)
}
