//! Resources of processes from `/proc`: CPU time, context switches, page faults, memory.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenfold_sys::process::{self, Pid, descendants};
use tenfold_sys::{usage, user};

/// Clock ticks per second in `/proc`; the same on every architecture since Linux 2.6.
const TICKS: f64 = 100.0;

/// Resources of a process and its descendants, up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    /// CPU seconds, user and system, including reaped descendants.
    pub cpu: f64,
    /// User ticks as seconds.
    pub user: f64,
    /// System ticks as seconds.
    pub system: f64,
    /// Context switches of live threads.
    pub switches: u64,
    /// Minor and major page faults.
    pub faults: u64,
    /// Resident kilobytes.
    pub memory: u64,
}

impl Resources {
    /// The resources of `root` and its descendants.
    pub fn of(root: u32) -> Resources {
        let mut total = Resources::default();
        for process in descendants(root) {
            let Some(stat) = stat(process) else { continue };
            let number = i32::try_from(process).ok().and_then(Pid::from_raw);
            let exact = number.and_then(|number| usage::cpu_time(number).ok());
            total.cpu += exact.map_or((stat.user + stat.system) / TICKS, |time: Duration| time.as_secs_f64());
            total.cpu += stat.children / TICKS;
            total.user += stat.user / TICKS;
            total.system += stat.system / TICKS;
            total.memory += status(&format!("/proc/{process}/status"), "VmRSS:");
            total.switches += switches(process);
            total.faults += stat.faults;
        }
        total
    }

    /// The difference to `before`. The exact CPU time is divided in the proportion of user ticks and system ticks.
    pub fn since(&self, before: &Resources) -> Resources {
        let cpu = (self.cpu - before.cpu).max(0.0);
        let (user, system) = ((self.user - before.user).max(0.0), (self.system - before.system).max(0.0));
        let share = if user + system > 0.0 { user / (user + system) } else { 0.0 };
        Resources {
            cpu,
            user: cpu * share,
            system: cpu * (1.0 - share),
            switches: self.switches.saturating_sub(before.switches),
            faults: self.faults.saturating_sub(before.faults),
            memory: self.memory,
        }
    }
}

struct Stat {
    user: f64,
    system: f64,
    children: f64,
    faults: u64,
}

fn stat(process: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may contain anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some(Stat {
        user: number(11)?,
        system: number(12)?,
        children: number(13)? + number(14)?,
        // Minor and major faults of the process and its reaped children.
        faults: (number(7)? + number(8)? + number(9)? + number(10)?) as u64,
    })
}

/// The proportional set size of `root` and its descendants in kilobytes: shared pages are divided among the processes
/// that map them (`man 5 proc`). `None` if the system hides a process.
pub(crate) fn proportional_memory(root: u32) -> Option<u64> {
    let of = |process: u32| {
        let text = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    descendants(root).into_iter().map(of).sum()
}

/// A child of a process.
pub(crate) fn child(parent: u32) -> Option<u32> {
    let is_child = |process: &u32| process::parent(*process) == Some(parent);
    descendants(parent).into_iter().find(is_child)
}

/// The reason why this process cannot read the memory of a Tenfold server, if there is one. A server is not dumpable,
/// so its own user cannot read it (`man 2 ptrace`, "access mode checking").
pub fn closed_memory() -> Option<String> {
    const CAP_SYS_PTRACE: u32 = 19;
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let set = text.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or_default();
    let may_read = set >> CAP_SYS_PTRACE & 1 == 1;
    (!may_read).then(|| "the memory of a server (pss) is closed to users without CAP_SYS_PTRACE".to_owned())
}

/// Whether `root` or a descendant has a TCP socket that listens on the port (`man 5 proc`, `/proc/net/tcp`). If the
/// descriptors of one of them are hidden, any socket of this user on the port counts.
pub(crate) fn listens(root: u32, port: u16) -> bool {
    let text = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let sockets: BTreeMap<String, u32> = text.lines().filter_map(|line| listener(line, port)).collect();
    if sockets.is_empty() {
        return false;
    }
    let mut hidden = false;
    for process in descendants(root) {
        match fs::read_dir(format!("/proc/{process}/fd")) {
            Ok(descriptors) => {
                let mut targets = descriptors.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
                if targets.any(|target| sockets.contains_key(&*target.to_string_lossy())) {
                    return true;
                }
            }
            Err(error) => hidden |= error.kind() == ErrorKind::PermissionDenied,
        }
    }
    hidden && sockets.values().any(|owner| *owner == user::own())
}

/// The name of a socket in `/proc/PID/fd` and its owner, from a line of `/proc/net/tcp`, if it listens on the port.
fn listener(line: &str, port: u16) -> Option<(String, u32)> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let here = fields.get(1)?.ends_with(&format!(":{port:04X}")) && *fields.get(3)? == LISTEN;
    let (owner, inode) = (fields.get(7)?.parse().ok()?, fields.get(9)?);
    here.then(|| (format!("socket:[{inode}]"), owner))
}

fn switches(process: u32) -> u64 {
    let mut sum = 0;
    for entry in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
        let path = entry.path().join("status").display().to_string();
        sum += status(&path, "voluntary_ctxt_switches:") + status(&path, "nonvoluntary_ctxt_switches:");
    }
    sum
}

pub(super) fn status(path: &str, name: &str) -> u64 {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_resources() {
        let before = Resources::of(std::process::id());
        assert!(before.memory > 100 && before.cpu > 0.0 && before.faults > 0, "{before:?}");
        let mut now = before;
        while now.cpu - before.cpu < 0.005 {
            now = Resources::of(std::process::id());
        }
        let used = now.since(&before);
        assert!((used.user + used.system - used.cpu).abs() < 1e-9, "{used:?}");
    }

    #[test]
    fn proportional_memory_is_at_most_the_resident() {
        let mut child = std::process::Command::new("sleep").arg("10").spawn().expect("sleep is there");
        let found = proportional_memory(child.id()).expect("a process of the same user is not hidden");
        let resident = status(&format!("/proc/{}/status", child.id()), "VmRSS:");
        assert!(found > 0 && found <= resident, "{found} of {resident}");
        child.kill().expect("it runs");
        child.wait().expect("it ended");
        assert_eq!(proportional_memory(u32::MAX), None);
    }

    #[test]
    fn a_port_of_another_process_is_not_its_own() {
        let socket = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let port = socket.local_addr().expect("it is bound").port();
        let mut other = std::process::Command::new("sleep").arg("10").spawn().expect("sleep is there");
        assert!(listens(std::process::id(), port));
        assert!(!listens(other.id(), port));
        drop(socket);
        // A child of another test has a copy until it executes its program.
        let begin = std::time::Instant::now();
        while listens(std::process::id(), port) {
            assert!(begin.elapsed() < Duration::from_secs(20), "the closed port is reported as open");
        }
        other.kill().expect("it runs");
        other.wait().expect("it ended");
    }

    #[test]
    fn a_socket_has_an_owner() {
        let line = "   0: 0100007F:2710 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 4711 1 0";
        assert_eq!(listener(line, 10_000), Some(("socket:[4711]".to_owned(), 1001)));
        assert_eq!(listener(line, 10_001), None);
        assert_eq!(listener(&line.replace(" 0A ", " 01 "), 10_000), None, "it does not listen");
    }

    #[test]
    fn a_child_is_a_descendant() {
        let mut child = std::process::Command::new("sleep").arg("10").spawn().expect("sleep is there");
        let all = descendants(std::process::id());
        assert!(all.contains(&child.id()) && all.contains(&std::process::id()));
        assert_eq!(super::child(child.id()), None);
        child.kill().expect("it runs");
        child.wait().expect("it ended");
    }
}
