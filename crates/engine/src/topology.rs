//! Topologies: one worker, or several threads, on one listening socket or on several.
//!
//! The supervisor starts processes; each process runs one worker here, on its own sockets.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::limits;
use tenfold_sys::seccomp::Call;
use tenfold_sys::socket::Listener;

use crate::drivers::blocking::accept::accept_each;
use crate::plan::Plan;
use crate::plan::choice::{Engine, Sender, Topology};
use crate::plan::mechanism::Facility;
use crate::protocol::{Event, Protocol};
use crate::table::run_model;
use crate::worker::confine::confine;
use crate::worker::handoff::Handoff;
use crate::worker::intake::Intake;

/// Serves `protocol` on `listeners` by `plan` in this process, until the [`lifecycle::phase`] ends it. If each thread
/// has sockets of its own, `listeners` holds the sockets of the first thread, then those of the second, and so on.
///
/// # Errors
/// A worker cannot start or continue; the others are stopped.
pub fn run<P: Protocol>(plan: &Plan, listeners: &[Listener], protocol: P) -> Result<(), String> {
    let copies = listeners.iter().find(|listener| !listener.permits_zerocopy());
    if let (Sender::Zerocopy, Some(listener)) = (plan.sender, copies) {
        return Err(format!(
            "sender zerocopy needs TCP sockets with SO_ZEROCOPY, and {} is not one",
            listener.address()
        ));
    }
    let denied = if plan.confined { denied(plan) } else { Vec::new() };
    let plan = &Plan { denied, ..plan.clone() };
    match plan.topology {
        Topology::Single | Topology::ReuseportProcesses => {
            worker(plan, &Intake::listeners(listeners), &protocol)
        }
        Topology::Threads => threads(plan, &protocol, |_| Intake::listeners(listeners), |_| Ok(())),
        Topology::ReuseportThreads => {
            let each = listeners.len() / plan.workers;
            let own = |number| Intake::listeners(&listeners[number * each..(number + 1) * each]);
            threads(plan, &protocol, own, |_| Ok(()))
        }
        Topology::Handoff => handoff(plan, listeners, &protocol),
    }
}

/// Fails with the facility that `engine` needs and this kernel lacks, and the system's error.
pub fn probe(engine: Engine) -> Result<(), (Facility, String)> {
    (engine.model().probe)()
}

/// Runs a worker on each of several threads, and `meanwhile` on this one.
fn threads<'a, P: Protocol>(
    plan: &'a Plan,
    protocol: &P,
    intake: impl Fn(usize) -> Intake<'a>,
    meanwhile: impl FnOnce(&P) -> Result<(), String>,
) -> Result<(), String> {
    thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.workers)
            .map(|number| {
                let (protocol, intake) = (protocol.clone(), intake(number));
                let work = move || {
                    let worked = catch_unwind(AssertUnwindSafe(|| worker(plan, &intake, &protocol)));
                    stop_all_on_error(worked.unwrap_or_else(|_| Err("a worker panicked".into())))
                };
                thread::Builder::new()
                    .name(format!("worker-{number}"))
                    .spawn_scoped(scope, work)
                    .map_err(|error| format!("cannot start worker {number}: {error}"))
            })
            .map(stop_all_on_error)
            .collect();
        // The filter of this thread does not apply to the workers, which have their own.
        let mut result = stop_all_on_error(confine(plan, true).and_then(|()| meanwhile(protocol)));
        for worker in workers {
            let ended =
                worker.and_then(|handle| handle.join().unwrap_or_else(|_| Err("a worker panicked".into())));
            result = result.and(ended);
        }
        result
    })
}

/// Stops the other workers if one fails.
fn stop_all_on_error<T>(result: Result<T, String>) -> Result<T, String> {
    if result.is_err() {
        lifecycle::advance(Phase::Stopping);
    }
    result
}

/// Accepts on this thread, and gives connections to the workers in turn, except workers with a full queue. If all
/// queues are full, the connection is refused.
fn handoff<P: Protocol>(plan: &Plan, listeners: &[Listener], protocol: &P) -> Result<(), String> {
    let queues: Result<Vec<_>, _> =
        (0..plan.workers).map(|_| Handoff::new(plan.bounds.handoff_queue)).collect();
    let queues = queues.map_err(|error| format!("cannot make an eventfd: {error}"))?;
    protocol.join();
    let accept = |protocol: &P| {
        let mut next = 0;
        let accepted = accept_each(
            listeners,
            true,
            protocol,
            || (),
            |socket, peer, listener| {
                let mut connection = Some((socket, peer, listener));
                for ahead in 0..queues.len() {
                    let worker = (next + ahead) % queues.len();
                    connection = connection.and_then(|connection| queues[worker].put(connection).err());
                    if connection.is_none() {
                        next = worker + 1;
                        return;
                    }
                }
                protocol.observe(Event::TooMany);
            },
        );
        queues.iter().for_each(Handoff::close);
        accepted
    };
    threads(plan, protocol, |number| Intake::handed(&queues[number]), accept)
}

/// The calls that serving threads are denied: the waits of other models, and the calls of the start.
fn denied(plan: &Plan) -> Vec<Call> {
    let start = [Call::IO_URING_REGISTER, Call::IO_URING_SETUP, Call::SECCOMP];
    plan.others_waits().into_iter().chain(start).collect()
}

fn worker<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    // A worker of `uring` first makes its ring.
    if plan.engine != Engine::Uring {
        if plan.sender == Sender::Zerocopy {
            let halved = limits::halve_locked_memory(|| ());
            halved.map_err(|error| format!("cannot lower the limit of locked memory: {error}"))?;
        }
        confine(plan, plan.blocking())?;
    }
    run_model(plan, intake, protocol)
}
