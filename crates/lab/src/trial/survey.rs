//! The survey of the responses for a user's folder, and the check of some of them before each trial.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::experiment::served::{RequestedPath, ServedSite};
use crate::experiment::subject::Cell;
use crate::record;
use crate::trial::bench::{Workbench, interrupted};
use crate::trial::check;
use crate::trial::server::RunningServer;

/// The largest response that is measured. A trial would end before a larger response.
pub const MOST_BYTES: u64 = 64 << 20;
/// Paths that are checked before each trial.
const CHECKED_PATHS: usize = 64;
/// The bytes after which the check before a trial stops.
const CHECKED_BYTES: u64 = 4 << 20;

/// The responses of the default settings to a mix of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteSurvey {
    /// Paths with status 200, in the given order.
    pub requests: Vec<RequestedPath>,
    /// The number of paths with another status.
    pub refused: usize,
    /// The number of paths whose responses are above [`MOST_BYTES`].
    pub large: usize,
    /// The number of paths that were not tried for lack of time.
    pub late: usize,
}

impl Workbench {
    /// Requests each path from a server with the default settings, for at most `time` after its start. Returns `None`
    /// if interrupted.
    pub fn survey(&self, wanted: &[(String, u64)], time: Duration) -> Result<Option<SiteSurvey>, String> {
        let server = RunningServer::start(self, "survey", &Cell::default(), None)?;
        let until = Instant::now() + time;
        let mut survey = SiteSurvey::default();
        for (path, weight) in wanted {
            if interrupted() {
                return Ok(None);
            }
            if Instant::now() > until {
                survey.late += 1;
                continue;
            }
            let found = check::observe(self, server.address, path, MOST_BYTES);
            let found = found.map_err(|why| server.explain(why))?;
            match (found.status.as_str(), found.bytes) {
                ("200", ..=MOST_BYTES) => survey.requests.push(RequestedPath {
                    path: path.clone(),
                    weight: *weight,
                    bytes: found.bytes,
                    sha256: digits(&found.hash),
                }),
                ("200", _) => survey.large += 1,
                _ => survey.refused += 1,
            }
        }
        Ok(Some(survey))
    }
}

/// Compares the responses for some random paths with the survey.
pub(super) fn check_some(
    bench: &Workbench,
    address: SocketAddr,
    served: &ServedSite,
    seed: u64,
) -> Result<(), String> {
    let mut order: Vec<&RequestedPath> = served.requests.iter().collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut order);
    let mut left = CHECKED_BYTES;
    for one in order.into_iter().take(CHECKED_PATHS) {
        let found = check::observe(bench, address, &one.path, MOST_BYTES)?;
        let same = found.status == "200" && found.bytes == one.bytes && digits(&found.hash) == one.sha256;
        if !same {
            return Err(format!(
                "{} was answered with status {} and {} bytes, and not as by the default: status 200, {} bytes",
                one.path, found.status, found.bytes, one.bytes
            ));
        }
        left = left.saturating_sub(one.bytes);
        if left == 0 {
            break;
        }
    }
    Ok(())
}

/// Writes the file of URLs for the load generator.
pub(super) fn write_urls(bench: &Workbench, name: &str, urls: &str) -> Result<PathBuf, String> {
    let path = bench.kept.join(format!("{name}.urls"));
    record::write(&path, urls)?;
    Ok(path)
}

fn digits(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
