//! The execution of a plan.

pub(crate) mod controller;
mod live;
pub(crate) mod task;
mod workers;

use std::net::TcpStream;
use std::time::Duration;

use tenfold_sys::connect::Remote;
use tenfold_sys::shared::SharedRows;
use tenfold_sys::{lifecycle, limits};

use self::live::LiveDisplay;
use self::workers::Course;
use crate::error::{LoadError, failed};
use crate::message::http2::PreparedRequest;
use crate::message::request::EncodedRequest;
use crate::plan::url;
use crate::plan::{LoadPlan, RequestVersion};
use crate::report::environment;
use crate::report::summary::{LoadReport, RunSummary};
use crate::tls::{self, TlsTarget};
use crate::worker::Targets;

/// Descriptors that a process, and each of its threads, needs in addition to connections.
const SPARE: (u64, u64) = (32, 4);

/// Runs `plan`, once or repeatedly, and returns the results. `live` shows progress on standard error. With several
/// processes, the calling process must have a single thread. Handlers for INT and TERM are installed: a signal ends
/// the current run, whose results so far are reported.
pub fn run(plan: &LoadPlan, live: bool) -> Result<LoadReport, LoadError> {
    plan.check()?;
    let io = plan.choose_io()?;
    check_descriptors(plan)?;
    let targets = find(plan)?;
    let environment = environment::find();
    lifecycle::install_worker_signals().map_err(|error| failed("install signal handlers", &error))?;
    let mut runs = Vec::new();
    for number in 1..=plan.repeat {
        let mut display = LiveDisplay::new(plan, number, live);
        let watch = &mut |rows: &SharedRows| display.update(&live::sums(rows));
        let (_, record) = workers::run(plan, &targets, io.means, Course { begin: None, watch })?;
        display.end();
        if let Some(why) = record.failure {
            return Err(LoadError::Failed(why));
        }
        let summary = RunSummary::new(plan, &record);
        let interrupted = summary.interrupted;
        runs.push(summary);
        if interrupted {
            break;
        }
    }
    let urls = plan.urls.iter().map(ToString::to_string).collect();
    let agents = Vec::new();
    Ok(LoadReport {
        label: None,
        urls,
        plan: plan.to_string(),
        settings: plan.settings(),
        io,
        environment,
        agents,
        runs,
    })
}

fn check_descriptors(plan: &LoadPlan) -> Result<(), LoadError> {
    let most =
        limits::raise_descriptors().map_err(|error| failed("raise the limit of descriptors", &error))?;
    let (process, thread) = SPARE;
    let all =
        (plan.all_connections() * u64::from(plan.workers_here())).div_ceil(u64::from(plan.workers().max(1)));
    let needed = all.div_ceil(u64::from(plan.processes)) + process + thread * u64::from(plan.threads);
    if needed <= most {
        return Ok(());
    }
    let processes = all.div_ceil(most.saturating_sub(process + thread * u64::from(plan.threads)).max(1));
    Err(LoadError::Usage(format!(
        "{all} connections in {} process{} need {needed} descriptors each, and the limit is {most}; use --processes {processes}, or raise `ulimit -n`",
        plan.processes,
        if plan.processes == 1 { "" } else { "es" },
    )))
}

/// Resolves names and encodes requests.
fn find(plan: &LoadPlan) -> Result<Targets, LoadError> {
    let mut servers = Vec::new();
    let mut targets = Targets {
        encoded: Vec::new(),
        prepared: Vec::new(),
        remotes: Vec::new(),
        tls: Vec::new(),
        lists: Vec::new(),
    };
    let config = plan.has_tls().then(|| tls::config(plan)).transpose()?;
    for (index, url) in (0..).zip(&plan.urls) {
        let number = match servers.iter().position(|server| *server == url.origin()) {
            Some(number) => number,
            None => {
                let target = |config| TlsTarget::new(config, url, plan.tls.sni.as_deref());
                targets.tls.push(config.clone().filter(|_| url.tls).map(target).transpose()?);
                targets.remotes.push(resolve(plan, &url.server)?);
                targets.lists.push(Vec::new());
                servers.push(url.origin());
                servers.len() - 1
            }
        };
        targets.lists[number].push(index);
    }
    match plan.version {
        RequestVersion::Http2 => targets.prepared = PreparedRequest::all(plan),
        _ => targets.encoded = plan.urls.iter().map(|url| EncodedRequest::new(plan, url)).collect(),
    }
    Ok(targets)
}

/// Returns the first address that accepts a connection. A single address is not tried.
fn resolve(plan: &LoadPlan, server: &url::ServerAddress) -> Result<Remote, LoadError> {
    let shown = server.authority(80);
    let all = server.resolve().map_err(|error| failed(format!("resolve {shown}"), &error))?;
    let source = plan.sources.nth(0);
    let suits = |remote: &&Remote| match (remote, source) {
        (Remote::Internet(at), Some(source)) => at.is_ipv4() == source.is_ipv4(),
        _ => true,
    };
    let suitable: Vec<&Remote> = all.iter().filter(suits).collect();
    let answers = |remote: &&&Remote| match remote {
        Remote::Internet(at) => TcpStream::connect_timeout(at, Duration::from_secs(3)).is_ok(),
        Remote::Unix(_) => true,
    };
    let found = match suitable.as_slice() {
        [] => None,
        [only] => Some(only),
        several => several.iter().find(answers).or(several.first()),
    };
    found
        .map(|remote| (*remote).clone())
        .ok_or_else(|| LoadError::Failed(format!("{shown} has no address of the same family as --source")))
}
