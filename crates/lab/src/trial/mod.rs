//! A trial starts a subject, checks it, loads it, reads its resources, and stops it.

pub mod bench;
mod check;
mod client;
mod in_process;
mod museum;
mod peers;
pub(crate) mod server;
pub mod site;
pub mod survey;
pub(crate) mod tracer;

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenfold_load::RunSummary;

use crate::experiment::subject::{Cell, Subject, Workload};
use crate::machine::counters;
use crate::machine::noise::NoiseWatch;
use crate::machine::processes::{self, Resources};
use crate::measure::Measure;
use crate::record::Trial;
use crate::trial::bench::{Workbench, interrupted};
use crate::trial::server::RunningServer;
use crate::trial::tracer::TraceDetail;

/// The time for processes of connections to end before their CPU time is read.
const SETTLE: Duration = Duration::from_millis(20);

impl Workbench {
    /// Runs one trial of a cell. A failure is part of the trial. Returns `None` if interrupted.
    pub fn run(&self, name: &str, cell: &Cell, milliseconds: u64, seed: u64) -> Option<Trial> {
        let mut trial = Trial { at: since_1970().as_secs(), ..Trial::default() };
        let milliseconds = cell.load.milliseconds.unwrap_or(milliseconds);
        let result = if cell.subject.is_in_process() {
            in_process::measure(cell, milliseconds, seed, self).map(|(values, flags)| {
                trial.values = values;
                trial.flags = flags;
            })
        } else {
            self.serve(name, cell, milliseconds, seed, &mut trial)
        };
        if interrupted() {
            return None;
        }
        trial.failed = result.err();
        Some(trial)
    }

    fn serve(
        &self,
        name: &str,
        cell: &Cell,
        milliseconds: u64,
        seed: u64,
        trial: &mut Trial,
    ) -> Result<(), String> {
        let load = &cell.load;
        let file = match self.served {
            Some(_) => None,
            None => Some(self.site.file(load.file_bytes())?),
        };
        let detail = load.trace.then_some(TraceDetail::Names);
        let mut server = RunningServer::start(self, name, cell, detail)?;
        trial.server = server.command.clone();
        let (path, status, expected) = match (&file, load.bare_url, load.missing) {
            (_, true, _) => ("/", 404, None),
            (_, _, true) => ("/no-such-file", 404, None),
            (Some(file), ..) => (file.path.as_str(), 200, Some(file)),
            (None, ..) => ("/", 200, None),
        };
        let proxy = load.round_trip.map(|time| RunningServer::delay(self, name, server.address, time));
        let proxy = proxy.transpose()?;
        let address = proxy.as_ref().map_or(server.address, |proxy| proxy.address);
        let mut urls = None;
        if let Some(served) = &self.served {
            let checked = survey::check_some(self, server.address, served, seed);
            checked.map_err(|why| server.explain(why))?;
            urls = Some(survey::write_urls(self, name, &served.urls(address))?);
        } else if !(cell.subject == Subject::Museum && load.may_fail) {
            // An exhibit that truncates or loses responses would fail the check.
            let checked = check::check(self, server.address, path, status, expected);
            checked.map_err(|why| server.explain(why))?;
        }
        if let (Some(files), None) = (load.page, &self.served) {
            urls = Some(survey::write_urls(self, name, &self.site.page(address, files, load.file_bytes())?)?);
        }
        let idle = open_idle(server.address, path, load.idle.unwrap_or(0))?;
        let (urls, file) = (urls.as_deref(), expected.filter(|_| load.page.is_none()));
        let target = client::LoadTarget { address, path, status, file, urls, seed };
        let words = client::words(load, &target, milliseconds);
        trial.client = words.clone();
        if load.trace {
            let begin = since_1970();
            let loaded = client::run(self, &words, milliseconds)?;
            let within = begin..since_1970();
            return traced(&loaded, &tracer::counts(&server.end_trace()?, &within), trial);
        }
        let (noise, counted) = (NoiseWatch::start(), counters::now());
        let before = Resources::of(server.process());
        let forwarded =
            |since: f64| proxy.as_ref().map_or(0.0, |proxy| Resources::of(proxy.process()).cpu) - since;
        let by_proxy = forwarded(0.0);
        let loaded = client::run(self, &words, milliseconds)?;
        thread::sleep(SETTLE);
        let used = Resources::of(server.process()).since(&before);
        let events = counters::now();
        trial.flags = noise.flags(used.cpu + forwarded(by_proxy));
        let pss = processes::proportional_memory(server.process());
        drop(idle);
        if !server.is_alive() {
            return Err(server.explain("the server ended during the trial".to_owned()));
        }
        trial.notes.clone_from(&loaded.notes);
        if let Some(latency) = &loaded.latency_us {
            trial.latencies.clone_from(&latency.percentiles);
            trial.latencies.extend([("max".to_owned(), latency.max), ("mean".to_owned(), latency.mean)]);
        }
        trial.values = values(&loaded, &used);
        if load.page.is_some() {
            trial.values.insert(Measure::Page, loaded.elapsed * 1e3 / f64::from(load.pages()));
        }
        let since = |(measure, count): (_, u64)| (measure, count.saturating_sub(counted[&measure]) as f64);
        trial.values.extend(events.into_iter().map(since));
        trial.values.extend(pss.map(|kilobytes| (Measure::Pss, kilobytes as f64)));
        judge(load, &loaded, trial)
    }
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The responses of the whole run, including the warm-up.
fn responses(loaded: &RunSummary) -> u64 {
    loaded.answers + loaded.warm_up.answers
}

/// Adds the values of a trial under a tracer. The tracer inflates all other values, so they are left out.
fn traced(loaded: &RunSummary, calls: &BTreeMap<String, u64>, trial: &mut Trial) -> Result<(), String> {
    let responses = responses(loaded);
    if responses == 0 {
        return Err("no response arrived under the tracer".to_owned());
    }
    let each = |count: u64| count as f64 / responses as f64;
    let options = calls.get("setsockopt").copied().unwrap_or_default();
    trial.values.insert(Measure::Calls, each(calls.values().sum()));
    trial.values.insert(Measure::SocketOptions, each(options));
    trial.calls = calls.iter().map(|(name, count)| (name.clone(), each(*count))).collect();
    let named: Vec<String> = trial.calls.iter().map(|(name, count)| format!("{name} {count:.2}")).collect();
    trial.notes.push(format!("calls for each response: {}", named.join(", ")));
    Ok(())
}

/// Fails a trial in which requests failed, unless its cell allows it.
fn judge(load: &Workload, loaded: &RunSummary, trial: &mut Trial) -> Result<(), String> {
    if load.may_fail {
        return Ok(());
    }
    trial.flags.extend(loaded.invalid.iter().map(|why| format!("load: {why}")));
    match (loaded.errors(), responses(loaded)) {
        (0, 0) => Err("no response arrived".to_owned()),
        (0, _) => Ok(()),
        (count, all) => {
            let kinds = loaded.errors.iter();
            let kinds = kinds.map(|(kind, count)| format!("{count} {}", kind.name()));
            let kinds: Vec<String> = kinds.collect();
            Err(format!("{count} requests failed, {all} did not: {}", kinds.join(", ")))
        }
    }
}

fn values(loaded: &RunSummary, used: &Resources) -> BTreeMap<Measure, f64> {
    let responses = responses(loaded) as f64;
    let mut values = BTreeMap::from([
        (Measure::Rate, loaded.rate),
        (Measure::Bytes, loaded.bytes as f64 / loaded.measured.max(f64::MIN_POSITIVE) / 1e6),
        (Measure::Memory, used.memory as f64),
        (Measure::Responses, responses),
        (Measure::Errors, loaded.errors() as f64),
        (Measure::Unanswered, loaded.connections.never_answered as f64),
    ]);
    if responses > 0.0 {
        let each = |seconds: f64| seconds * 1e6 / responses;
        values.insert(Measure::Cpu, each(used.cpu));
        values.insert(Measure::User, each(used.user));
        values.insert(Measure::System, each(used.system));
        values.insert(Measure::Switches, used.switches as f64 / responses);
        values.insert(Measure::Faults, used.faults as f64 / responses);
        if let Some(latency) = &loaded.latency_us {
            values.insert(Measure::Latency, latency.mean);
            values.insert(Measure::Waiting, latency.mean - each(used.cpu));
        }
    }
    values.extend(loaded.fairness.map(|fairness| (Measure::Fairness, fairness)));
    if let Some(latency) = &loaded.latency_us {
        values.insert(Measure::Max, latency.max / 1e3);
        for (measure, percentile) in [(Measure::P50, "p50"), (Measure::P99, "p99")] {
            values.extend(latency.percentile(percentile).map(|microseconds| (measure, microseconds / 1e3)));
        }
    }
    values
}

/// The longest wait for an idle connection and its response.
const TIMEOUT: Duration = Duration::from_secs(10);

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
