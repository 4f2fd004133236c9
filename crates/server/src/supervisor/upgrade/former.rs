//! Processes that former programs of this process have started. This program only signals them and notices their end.

use serde::{Deserialize, Serialize};
use tenfold_sys::process::{self, Pid};
use tenfold_sys::signal::Signal;

use crate::supervisor::generation::end_bound::EndBound;

/// The workers of one configuration of a former program.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct FormerWorkers {
    pub(crate) workers: Vec<i32>,
    /// The accounts and signing processes of these workers. They are killed when the workers have ended.
    pub(crate) helpers: Vec<i32>,
    /// The bound of their end, if too many configurations came after theirs.
    #[serde(skip)]
    pub(crate) ends: Option<EndBound>,
}

impl FormerWorkers {
    /// Sends a signal to all workers.
    pub(crate) fn signal(&self, signal: Signal) {
        self.workers.iter().for_each(|pid| send(*pid, signal));
    }

    /// Notes that a process has ended.
    pub(crate) fn on_exit(&mut self, pid: Pid) {
        let pid = pid.as_raw_nonzero().get();
        self.workers.retain(|worker| *worker != pid);
        self.helpers.retain(|helper| *helper != pid);
    }

    /// Removes the processes that have ended. Kills a helper after the last worker that uses it: the accounts process
    /// serves all configurations of its program.
    pub(crate) fn remove_ended(all: &mut Vec<FormerWorkers>) {
        // A shell between two programs may have reaped a process.
        let is_there = |pid: &i32| Pid::from_raw(*pid).is_some_and(process::is_child);
        all.iter_mut().for_each(|former| former.workers.retain(is_there));
        let serving = all.iter().filter(|former| !former.workers.is_empty());
        let used: Vec<i32> = serving.flat_map(|former| former.helpers.clone()).collect();
        for former in all.iter_mut().filter(|former| former.workers.is_empty()) {
            former.helpers.retain(|helper| !used.contains(helper));
            former.helpers.iter().for_each(|helper| send(*helper, Signal::Kill));
            former.helpers.retain(is_there);
        }
        all.retain(|former| !former.workers.is_empty() || !former.helpers.is_empty());
    }
}

/// Signals a child. Another process can have the number of a child that was reaped.
fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid).filter(|pid| process::is_child(*pid)) {
        process::send_signal(pid, signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_no_child_is_no_former_worker() {
        let mut shell = std::process::Command::new("sh");
        // The background process is not a child of this process, like a process that has got the number of an ended
        // worker.
        shell.args(["-c", "sleep 60 >/dev/null 2>&1 & echo $!"]).stdout(std::process::Stdio::piped());
        let output = shell.output().expect("a shell");
        let number: i32 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number");
        let mut former = vec![FormerWorkers { workers: vec![number], helpers: vec![number], ends: None }];
        former[0].signal(Signal::Kill);
        FormerWorkers::remove_ended(&mut former);
        let is_gone = former.is_empty();
        let pid = Pid::from_raw(number).expect("it is not 0");
        let state = std::fs::read_to_string(format!("/proc/{number}/stat")).expect("it was not signalled");
        process::send_signal(pid, Signal::Kill);
        assert!(is_gone && !state.contains(" Z "), "{state}");
    }

    #[test]
    fn a_helper_lives_as_long_as_the_last_worker_that_uses_it() {
        let sleep = || std::process::Command::new("sleep").arg("60").spawn().expect("a process");
        let (mut worker, mut helper) = (sleep(), sleep());
        let number = |child: &std::process::Child| i32::try_from(child.id()).expect("a process id");
        let helpers = vec![number(&helper)];
        let of = |workers| FormerWorkers { workers, helpers: helpers.clone(), ends: None };
        let mut former = vec![of(vec![number(&worker)]), of(Vec::new())];
        FormerWorkers::remove_ended(&mut former);
        assert!(former.len() == 1 && helper.try_wait().expect("a child").is_none());
        worker.kill().and_then(|()| worker.wait()).expect("a child");
        FormerWorkers::remove_ended(&mut former);
        assert!(!helper.wait().expect("a child").success(), "it was killed");
        FormerWorkers::remove_ended(&mut former);
        assert!(former.is_empty());
    }
}
