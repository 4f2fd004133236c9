//! A trial starts a subject, checks it, loads it, reads its resources, and stops it.

pub mod bench;
mod check;
mod client;
mod conclusion;
pub mod far;
mod host;
mod in_process;
pub mod link;
mod museum;
mod peers;
pub mod remote;
pub(crate) mod server;
pub mod site;
pub mod survey;
pub(crate) mod tracer;

use crate::experiment::subject::Cell;
use crate::record::Trial;
use crate::trial::bench::{Workbench, interrupted};
use crate::trial::conclusion::conclude;
use crate::trial::far::FarMachines;
use crate::trial::host::{CheckedSubject, SubjectHost, TrialOrder, since_1970};

impl Workbench {
    /// Runs one trial of a cell. A failure is part of the trial. Returns `None` if interrupted.
    pub fn run(
        &self,
        machines: Option<&mut FarMachines>,
        name: &str,
        cell: &Cell,
        milliseconds: u64,
        seed: u64,
    ) -> Option<Trial> {
        let mut trial = Trial { at: since_1970().as_secs(), ..Trial::default() };
        let milliseconds = cell.load.milliseconds.unwrap_or(milliseconds);
        let order = TrialOrder { name: name.to_owned(), cell: cell.clone(), milliseconds, seed };
        let result = match machines {
            Some(machines) => machines.trial(self, order, &mut trial),
            None if cell.subject.is_in_process() => {
                in_process::measure(cell, milliseconds, seed, self).map(|(values, flags)| {
                    trial.values = values;
                    trial.flags = flags;
                })
            }
            None => self.serve(order, &mut trial),
        };
        if interrupted() {
            return None;
        }
        trial.failed = result.err();
        Some(trial)
    }

    fn serve(&self, order: TrialOrder, trial: &mut Trial) -> Result<(), String> {
        let mut host = SubjectHost::start(self, order.clone())?;
        trial.server = host.command().to_vec();
        let words = self.words_of_load(&order, &host.check()?)?;
        trial.client.clone_from(&words);
        host.begin();
        let loaded = client::run(self, &words, order.milliseconds)?;
        conclude(&order.cell.load, &loaded, host.end(0.0)?, trial)
    }

    /// The command of the load of a trial.
    fn words_of_load(&self, order: &TrialOrder, subject: &CheckedSubject) -> Result<Vec<String>, String> {
        let urls =
            subject.urls.as_ref().map(|urls| survey::write_urls(self, &order.name, urls)).transpose()?;
        let target = client::LoadTarget {
            address: subject.address,
            path: &subject.path,
            status: subject.status,
            file: subject.file.as_ref(),
            urls: urls.as_deref(),
            seed: order.seed,
        };
        Ok(client::words(&order.cell.load, &target, order.milliseconds))
    }
}
