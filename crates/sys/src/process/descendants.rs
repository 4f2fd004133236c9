//! The processes below a process, and their end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

/// The interval between two rounds of signals.
const TICK: Duration = Duration::from_millis(2);

/// Returns `root` and every process below it.
pub fn descendants(root: u32) -> BTreeSet<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some((number, parent)) = number.and_then(|number| Some((number, parent(number)?))) {
            children.entry(parent).or_default().push(number);
        }
    }
    let (mut found, mut left) = (BTreeSet::new(), vec![root]);
    while let Some(process) = left.pop() {
        if found.insert(process) {
            left.extend(children.get(&process).into_iter().flatten());
        }
    }
    found
}

/// Returns the parent of a process (`man 5 proc_pid_stat`).
pub fn parent(process: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain anything.
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Makes this process the parent of its descendants whose own parent ends (`PR_SET_CHILD_SUBREAPER`), so that none of
/// them escapes [`end_descendants`].
pub fn adopt_orphans() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Kills and reaps every process below this one, for at most `limit`. Returns whether all have ended. A process that
/// waits for a disk can take longer.
pub fn end_descendants(limit: Duration) -> bool {
    let by = Instant::now() + limit;
    loop {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let own = std::process::id();
        let left: Vec<u32> = descendants(own).into_iter().filter(|process| *process != own).collect();
        if left.is_empty() {
            return true;
        }
        for process in left.into_iter().filter_map(|number| Pid::from_raw(i32::try_from(number).ok()?)) {
            // A process that has ended meanwhile is reaped in the next round.
            let _ = kill_process(process, Signal::KILL);
        }
        if by <= Instant::now() {
            return false;
        }
        thread::sleep(TICK);
    }
}
