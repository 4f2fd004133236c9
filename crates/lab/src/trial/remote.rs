//! The side of a subject on another machine: the task of an agent.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenfold_agents::TaskPipe;

use crate::machine::doctor::{self, Diagnosis, MachinePart};
use crate::machine::environment::LabEnvironment;
use crate::machine::hosts::{HostFacts, InterfaceFacts, LinkFacts};
use crate::measure::Measure;
use crate::trial::bench::{self, OwnServer, Workbench};
use crate::trial::host::{CheckedSubject, SubjectHost, SubjectUse, TrialOrder};
use crate::trial::{in_process, link};

/// The name of the task.
pub const SUBJECT_TASK: &str = "subject";

/// A message to the task.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToHost {
    /// Describe the machine.
    Describe,
    /// Examine the machine.
    Examine(MachinePart),
    /// Listen for the measurement of links.
    Listen {
        /// The address.
        address: Ipv4Addr,
        /// The number of measurements.
        clients: usize,
    },
    /// Measure the link to this listener.
    Link {
        /// Its address.
        to: SocketAddr,
        /// The milliseconds of the transfer.
        milliseconds: u64,
    },
    /// Describe the interface of this address.
    Interface(Ipv4Addr),
    /// Prepare for trials.
    Prepare {
        /// The address of subjects.
        address: Ipv4Addr,
        /// Their processors.
        processors: Vec<usize>,
    },
    /// Start the subject of a trial, and check it.
    Start(Box<TrialOrder>),
    /// The load begins.
    Begin,
    /// The load has ended. It used these seconds of the processors of this machine.
    End(f64),
    /// Stop the subject of a trial that failed elsewhere. There is no answer.
    Stop,
    /// Make a trial in process.
    Measure(Box<TrialOrder>),
    /// End the task.
    Leave,
}

/// An answer of the task.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromHost {
    Host(Box<HostFacts>),
    Diagnoses(Vec<Diagnosis>),
    Listening(SocketAddr),
    Link(LinkFacts),
    Interface(InterfaceFacts),
    Prepared,
    /// The command of the subject, and the target or the reason of a failure.
    Started(Vec<String>, Result<Box<CheckedSubject>, String>),
    Begun,
    Ended(Box<SubjectUse>),
    /// Values and disturbances.
    Measured(BTreeMap<Measure, f64>, Vec<String>),
    /// The reason why an order was not carried out.
    Failed(String),
}

/// Serves a controller that runs the laboratory: describes this machine, and makes the server's side of trials. See
/// [`tenfold_agents::Task`].
pub fn task(pipe: &mut TaskPipe, own: &OwnServer) -> Result<(), String> {
    bench::prepare()?;
    while let Some(message) = pipe.receive()? {
        let answer = match message {
            ToHost::Prepare { address, processors } => {
                let bench = bench::far(own.clone(), address, processors)?;
                pipe.send(&FromHost::Prepared)?;
                return trials(pipe, &bench);
            }
            ToHost::Leave => return Ok(()),
            ToHost::Describe => Ok(FromHost::Host(Box::new(HostFacts::here(&LabEnvironment::find())))),
            ToHost::Examine(part) => {
                Ok(FromHost::Diagnoses(doctor::examine_for(&LabEnvironment::find(), part)))
            }
            ToHost::Listen { address, clients } => link::listen(address, clients).map(FromHost::Listening),
            ToHost::Link { to, milliseconds } => {
                link::measure(to, Duration::from_millis(milliseconds)).map(FromHost::Link)
            }
            ToHost::Interface(address) => Ok(FromHost::Interface(link::interface(address))),
            _ => return Err("a trial came before its preparation".to_owned()),
        };
        pipe.send(&answer.unwrap_or_else(FromHost::Failed))?;
    }
    Ok(())
}

/// Makes the server's side of trials.
fn trials(pipe: &mut TaskPipe, bench: &Workbench) -> Result<(), String> {
    let mut subject: Option<SubjectHost<'_>> = None;
    while let Some(message) = pipe.receive()? {
        let answer = match message {
            ToHost::Leave => return Ok(()),
            ToHost::Stop => {
                subject = None;
                continue;
            }
            ToHost::Start(order) => {
                // The last subject of a trial that failed may run.
                drop(subject.take());
                start(bench, *order).map(|(started, answer)| {
                    subject = started;
                    answer
                })
            }
            ToHost::Begin => subject.as_mut().ok_or_else(missing).map(|subject| {
                subject.begin();
                FromHost::Begun
            }),
            ToHost::End(load) => subject
                .take()
                .ok_or_else(missing)
                .and_then(|subject| subject.end(load))
                .map(|used| FromHost::Ended(Box::new(used))),
            ToHost::Measure(order) => in_process::measure(&order.cell, order.milliseconds, order.seed, bench)
                .map(|(values, flags)| FromHost::Measured(values, flags)),
            _ => return Err("an order came during trials".to_owned()),
        };
        pipe.send(&answer.unwrap_or_else(FromHost::Failed))?;
    }
    Ok(())
}

fn missing() -> String {
    "no subject runs".to_owned()
}

/// Starts and checks a subject. A subject that fails the check is dropped.
fn start(bench: &Workbench, order: TrialOrder) -> Result<(Option<SubjectHost<'_>>, FromHost), String> {
    let mut subject = SubjectHost::start(bench, order)?;
    let command = subject.command().to_vec();
    Ok(match subject.check() {
        Ok(checked) => (Some(subject), FromHost::Started(command, Ok(Box::new(checked)))),
        Err(why) => (None, FromHost::Started(command, Err(why))),
    })
}
