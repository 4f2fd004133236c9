//! The listeners that require PROXY headers, and the reports of connections without one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenfold_engine::layer::ProxyListeners;
use tenfold_http::proxy::ProxyError;
use tenfold_http::{Peer, clock};

use super::shared::WorkerShared;
use crate::config::values::Settings;
use crate::diagnostics::warning;
use crate::status::counters::Counter;

/// The listeners that require PROXY headers, if any. `worker` counts other connections to them, and reports at most one a
/// second.
pub(crate) fn listeners(settings: &Settings, worker: &Arc<WorkerShared>) -> Option<ProxyListeners> {
    let covered: Vec<_> = settings.listen.iter().map(|entry| entry.proxied).collect();
    if !covered.contains(&true) {
        return None;
    }
    let (worker, said) = (worker.clone(), AtomicU64::new(0));
    Some(ProxyListeners::new(&covered, &settings.proxies.proxies, move |peer, why| {
        worker.with(|local| local.tally.add(Counter::ProxyHeader, 1));
        let second = clock::unix_seconds();
        if said.swap(second, Ordering::Relaxed) != second {
            warn(peer, why);
        }
    }))
}

#[cold]
fn warn(peer: &Peer, why: ProxyError) {
    match peer {
        Peer::Internet(at) => warning!("closed a connection from {}: {why}", at.ip().to_canonical()),
        Peer::Unix => warning!("closed a connection to a Unix socket: {why}"),
    }
}
