//! System calls by name, in a pass of their own: a tracer would inflate every other number.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tenfold_sys::process::{Pid, send_signal};
use tenfold_sys::signal::Signal;

use crate::machine::environment::installed;
use crate::machine::processes::descendants;
use crate::record;

/// Time in which a tracer has to attach, and in which it has to stop.
const PATIENCE: Duration = Duration::from_secs(5);

/// A tracer of a server and its descendants.
#[derive(Debug)]
pub(crate) struct Tracer {
    child: Child,
    table: std::path::PathBuf,
}

impl Tracer {
    /// Attaches to a process and all below it; the table of calls goes to a file in `folder`.
    pub(crate) fn attach(process: u32, folder: &Path, name: &str) -> Result<Tracer, String> {
        Tracer::start(process, folder, name, &["-c"])
    }

    /// Attaches likewise; each call with its time, arguments and result is a line of the file.
    pub(crate) fn attach_to_lines(process: u32, folder: &Path, name: &str) -> Result<Tracer, String> {
        Tracer::start(process, folder, name, &["-q", "-ttt", "-T", "-yy", "-s", "16"])
    }

    fn start(process: u32, folder: &Path, name: &str, options: &[&str]) -> Result<Tracer, String> {
        let program = installed("strace").ok_or("strace is not installed; install the package strace")?;
        let table = folder.join(format!("{name}.calls"));
        let all = descendants(process);
        // Otherwise a link of this name would lead elsewhere.
        record::create(&table).map_err(|error| format!("cannot write {}: {error}", table.display()))?;
        let mut command = Command::new(program);
        command.arg("-f").args(options).arg("-o").arg(&table);
        for number in &all {
            command.args(["-p", &number.to_string()]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("cannot start strace: {error}"))?;
        let mut tracer = Tracer { child, table };
        let begin = Instant::now();
        while !all.iter().all(|number| is_traced(*number)) {
            let ended = tracer.child.try_wait().is_ok_and(|status| status.is_some());
            if ended || begin.elapsed() > PATIENCE {
                return Err(
                    "strace cannot attach: allow it (sysctl kernel.yama.ptrace_scope=0), or run as root"
                        .to_owned(),
                );
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(tracer)
    }

    /// Detaches, and returns the number of calls by name.
    pub(crate) fn detach(self) -> Result<BTreeMap<String, u64>, String> {
        self.detach_lines().map(|text| calls(&text))
    }

    /// Detaches, and returns the file.
    pub(crate) fn detach_lines(mut self) -> Result<String, String> {
        self.stop();
        fs::read_to_string(&self.table)
            .map_err(|error| format!("cannot read {}: {error}", self.table.display()))
    }

    fn stop(&mut self) {
        if let Some(number) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            send_signal(number, Signal::Interrupt);
        }
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begin.elapsed() > PATIENCE {
                let _ = self.child.kill();
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop();
        }
    }
}

/// Whether a process is traced, or has ended meanwhile.
fn is_traced(process: u32) -> bool {
    let Ok(text) = fs::read_to_string(format!("/proc/{process}/status")) else { return true };
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    value("State:").starts_with('Z') || value("TracerPid:") != "0"
}

/// The table of `strace -c`: share, seconds, microseconds for each call, calls, errors if any, name.
fn calls(table: &str) -> BTreeMap<String, u64> {
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let count = fields.get(3)?.parse().ok()?;
        let name = fields.last().filter(|name| **name != "total")?;
        fields.first()?.parse::<f64>().ok().map(|_| ((*name).to_owned(), count))
    };
    table.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_strace_is_read() {
        let table = "% time     seconds  usecs/call     calls    errors syscall\n\
            ------ ----------- ----------- --------- --------- ----------------\n \
            60.00    0.000600           3       200           sendto\n \
            40.00    0.000400           2       201         7 recvfrom\n\
            ------ ----------- ----------- --------- --------- ----------------\n\
            100.00    0.001000           2       401         7 total\n";
        let found = calls(table);
        assert_eq!(found, BTreeMap::from([("recvfrom".to_owned(), 201), ("sendto".to_owned(), 200)]));
        assert!(calls("").is_empty());
    }
}
