//! How workers stand to listening sockets: the same model once, or on several threads.
//!
//! Processes are the supervisor's business: each of them runs one worker here, on sockets of its own.

use std::thread;

use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::socket::Listener;

use crate::models;
use crate::plan::{Plan, Topology};
use crate::protocol::Protocol;
use crate::table::{Engine, Facility};

/// Serves `protocol` on `listeners` as `plan` says, on this process, until [`lifecycle::phase`] says
/// otherwise.
///
/// # Errors
/// In words, when a worker can not begin or go on; the others are stopped then.
pub fn run<P: Protocol>(plan: &Plan, listeners: &[Listener], protocol: P) -> Result<(), String> {
    match plan.topology {
        Topology::Single | Topology::ReuseportProcesses => worker(plan, listeners, &protocol),
        Topology::Threads => threads(plan, listeners, &protocol),
    }
}

/// What `engine` needs and this kernel does not give, with what the system said.
///
/// # Errors
/// The facilities that are missing.
pub fn probe(engine: Engine) -> Result<(), Vec<(Facility, String)>> {
    let missing = match engine {
        Engine::Uring => models::uring::probe(),
        _ => Vec::new(),
    };
    if missing.is_empty() { Ok(()) } else { Err(missing) }
}

fn threads<P: Protocol>(plan: &Plan, listeners: &[Listener], protocol: &P) -> Result<(), String> {
    thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.workers)
            .map(|number| {
                let protocol = protocol.clone();
                let work = move || {
                    let result = worker(plan, listeners, &protocol);
                    if result.is_err() {
                        lifecycle::advance(Phase::Stopping);
                    }
                    result
                };
                thread::Builder::new()
                    .name(format!("worker-{number}"))
                    .spawn_scoped(scope, work)
                    .map_err(|error| format!("cannot start worker {number}: {error}"))
            })
            .collect();
        let mut result = Ok(());
        for worker in workers {
            let ended = match worker {
                Ok(handle) => handle.join().unwrap_or_else(|_| Err("a worker panicked".into())),
                Err(error) => {
                    lifecycle::advance(Phase::Stopping);
                    Err(error)
                }
            };
            result = result.and(ended);
        }
        result
    })
}

fn worker<P: Protocol>(plan: &Plan, listeners: &[Listener], protocol: &P) -> Result<(), String> {
    match plan.engine {
        Engine::Naive => models::naive::run(plan, listeners, protocol),
        Engine::Fork => models::fork::run(plan, listeners, protocol),
        Engine::Thread => models::thread::run(plan, listeners, protocol),
        Engine::Pool => models::pool::run(plan, listeners, protocol),
        Engine::Busy => models::busy::run(plan, listeners, protocol),
        Engine::Select => models::select::run(plan, listeners, protocol),
        Engine::Poll => models::poll::run(plan, listeners, protocol),
        Engine::Epoll => models::epoll::run(plan, listeners, protocol),
        Engine::Uring => models::uring::run(plan, listeners, protocol),
    }
}
