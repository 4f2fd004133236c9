//! System calls of running processes, as `strace` sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::Process;
use crate::site::Folder;
use crate::time::{SOON, becomes_true, eventually};
use crate::tools;

/// `strace` at work on some processes and what they start.
#[derive(Debug)]
pub struct Tracer {
    strace: Child,
    folder: Folder,
    /// Those whose calls it lets fail.
    failing: Vec<Process>,
}

/// Calls that are made to fail (`man 1 strace`, "Tampering").
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Their names, with commas; `?` before one that not every machine has.
    pub calls: &'static str,
    /// The name of the error.
    pub error: &'static str,
    /// Which of them, counted for each task: `1`, `1..3`, or `1+` for all.
    pub when: &'static str,
}

/// What was called.
#[derive(Debug)]
pub struct Calls {
    /// Lines of `strace`, each a call with its arguments and result; one that was interrupted by another
    /// thread's stands once.
    pub lines: Vec<String>,
}

impl Tracer {
    /// Attaches to all threads of these processes.
    ///
    /// # Panics
    /// When `strace` is missing or may not attach.
    #[track_caller]
    pub fn attach(processes: &[Process]) -> Tracer {
        Tracer::start(processes, &[])
    }

    /// Attaches to all threads of these processes, and lets calls of theirs, and of what they start, fail.
    ///
    /// # Panics
    /// When `strace` is missing or may not attach.
    #[track_caller]
    pub fn inject(processes: &[Process], faults: &[Fault]) -> Tracer {
        Tracer::start(processes, &injected(faults)).failing(processes)
    }

    /// Does so with calls alone that are about the file at `path`.
    ///
    /// # Panics
    /// When `strace` is missing or may not attach.
    #[track_caller]
    pub fn inject_at(processes: &[Process], path: &Path, faults: &[Fault]) -> Tracer {
        let at = ["-P".to_owned(), path.display().to_string()];
        Tracer::start(processes, &[injected(faults), at.to_vec()].concat()).failing(processes)
    }

    fn failing(mut self, processes: &[Process]) -> Tracer {
        self.failing = processes.to_vec();
        self
    }

    /// How many calls this fault has made fail so far.
    #[track_caller]
    pub fn failed(&self, fault: &Fault) -> usize {
        let text = fs::read_to_string(self.folder.at("calls")).expect("strace writes its file");
        let error = format!(" {} ", fault.error);
        let names = || fault.calls.split(',').map(|name| name.trim_start_matches('?'));
        let of_it = |line: &&str| {
            line.contains("(INJECTED)") && line.contains(&error) && names().any(|name| line.contains(name))
        };
        text.lines().filter(of_it).count()
    }

    #[track_caller]
    fn start(processes: &[Process], more: &[String]) -> Tracer {
        let folder = Folder::new("strace");
        let mut command = Command::new(tools::program("strace"));
        command.args(["-f", "-q", "-s", "64", "-o"]).arg(folder.at("calls")).args(more);
        command.args(processes.iter().flat_map(|process| ["-p".to_owned(), process.0.to_string()]));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let strace = command.spawn().unwrap_or_else(|error| panic!("run strace: {error}"));
        let tracer = strace.id().to_string();
        // The kernel says whether a task is traced; what strace says of it comes too early.
        becomes_true(SOON, "strace attaches (run as root, or with kernel.yama.ptrace_scope=0)", || {
            // A process that was ending when it was named may be gone by now.
            let mut running = processes.iter().filter(|process| process.is_running()).peekable();
            running.peek().is_some()
                && running.all(|process| {
                    let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", process.0)) else { return false };
                    tasks.flatten().all(|task| {
                        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
                        status.contains(&format!("TracerPid:\t{tracer}\n"))
                    })
                })
        });
        Tracer { strace, folder, failing: Vec::new() }
    }

    /// Words that start a program under `strace`, for [`crate::launch::Launch::through`]: the program keeps its
    /// process, and [`Calls::from_start`] reads what it called of `calls`, a class or a list of names.
    pub fn from_start<'a>(calls: &'a str, into: &'a str) -> [&'a str; 9] {
        ["-D", "-f", "-q", "-s", "64", "-e", calls, "-o", into]
    }

    /// Detaches and says what was called.
    #[track_caller]
    pub fn detach(mut self) -> Calls {
        self.between_calls();
        Process(self.strace.id()).signal(Signal::INT);
        self.strace.wait().expect("our own child");
        self.failing.iter().for_each(|process| process.signal(Signal::CONT));
        let text = fs::read_to_string(self.folder.at("calls")).expect("strace wrote its file");
        Calls::of(&text)
    }

    /// Stops those whose calls fail. A call that is made to fail is replaced when it begins by one that there is not, and
    /// given its error when it ends: who is let go in between is told ENOSYS. Nobody is stopped there.
    fn between_calls(&self) {
        self.failing.iter().for_each(|process| process.signal(Signal::STOP));
        let begun = Instant::now();
        while begun.elapsed() < SOON && !self.failing.iter().all(|process| self.has_stopped(*process)) {
            sleep(Duration::from_millis(2));
        }
    }

    /// Whether all threads of a process that is there are seen to be stopped.
    fn has_stopped(&self, process: Process) -> bool {
        let text = fs::read_to_string(self.folder.at("calls")).unwrap_or_default();
        let stopped: BTreeSet<&str> = text
            .lines()
            .filter(|line| line.ends_with("--- stopped by SIGSTOP ---"))
            .filter_map(|line| line.split_ascii_whitespace().next())
            .collect();
        let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", process.0)) else { return true };
        tasks.flatten().all(|task| stopped.contains(&*task.file_name().to_string_lossy()))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        if matches!(self.strace.try_wait(), Ok(None)) {
            Process(self.strace.id()).signal(Signal::INT);
            let _ = self.strace.wait();
        }
    }
}

/// Words that make `strace` let calls fail.
fn injected(faults: &[Fault]) -> Vec<String> {
    let calls: Vec<_> = faults.iter().map(|fault| fault.calls).collect();
    let mut words = vec!["-e".to_owned(), format!("trace={}", calls.join(","))];
    for Fault { calls, error, when } in faults {
        words.extend(["-e".to_owned(), format!("inject={calls}:error={error}:when={when}")]);
    }
    words
}

/// At the end of a call's line, where another task's comes before its result.
const UNFINISHED: &str = "<unfinished ...>";

/// Whether a line is the begin of a call: neither its resumption nor a signal or an exit. A standard library
/// that checks itself asks of each descriptor whether it is open before it closes it; that call is in no
/// build but those with debug assertions.
fn is_call(line: &str) -> bool {
    let call = without_process(line);
    if call.starts_with("fcntl(") && call.contains("F_GETFD") {
        return false;
    }
    !call.starts_with("<...") && !call.starts_with("---") && !call.starts_with("+++") && call.contains('(')
}

/// A line is led by the number of the task.
fn without_process(line: &str) -> &str {
    line.trim_start_matches(|letter: char| letter.is_ascii_digit()).trim_start()
}

impl Calls {
    /// What was called by a program that was started under `strace` and has ended.
    ///
    /// # Panics
    /// When `strace` does not see its end.
    #[track_caller]
    pub fn from_start(process: Process, into: &Path) -> Calls {
        let ended = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            words.next() == Some(&process.0.to_string()) && words.next() == Some("+++")
        };
        let text = eventually(SOON, "strace sees the end of the program", || {
            fs::read_to_string(into).ok().filter(|text| text.lines().any(ended))
        });
        Calls::of(&text)
    }

    /// The calls of what `strace` wrote, where each began; what is said of one after others came between is put
    /// behind its begin.
    fn of(text: &str) -> Calls {
        let mut lines: Vec<String> = Vec::new();
        let mut unfinished: BTreeMap<&str, usize> = BTreeMap::new();
        for line in text.lines() {
            let call = without_process(line);
            let task = line[..line.len() - call.len()].trim_end();
            if let Some((_, rest)) = call.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>"))
            {
                if let Some(begun) = unfinished.remove(task).and_then(|at| lines.get_mut(at)) {
                    begun.truncate(begun.len() - UNFINISHED.len());
                    begun.push_str(rest);
                }
            } else if is_call(line) {
                if line.ends_with(UNFINISHED) {
                    unfinished.insert(task, lines.len());
                }
                lines.push(line.to_owned());
            }
        }
        Calls { lines }
    }

    /// The calls whose lines hold all of these words, in order.
    pub fn with(&self, words: &[&str]) -> Vec<&str> {
        let holds = |line: &&String| words.iter().all(|word| line.contains(word));
        self.lines.iter().filter(holds).map(String::as_str).collect()
    }

    /// How often each was called.
    pub fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for line in &self.lines {
            let call = without_process(line);
            let name = call.split('(').next().unwrap_or(call);
            *counts.entry(name).or_default() += 1;
        }
        counts
    }

    /// How often any of these was called.
    pub fn count(&self, names: &[&str]) -> usize {
        let counts = self.counts();
        names.iter().filter_map(|name| counts.get(name)).sum()
    }

    /// Calls other than these, as lines.
    pub fn others(&self, names: &[&str]) -> Vec<&str> {
        let other =
            |line: &&str| !names.iter().any(|name| without_process(line).starts_with(&format!("{name}(")));
        self.lines.iter().map(String::as_str).filter(other).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_call_later_stands_where_it_began() {
        let text = "7 recvmsg(3,  <unfinished ...>\n8 close(4) = 0\n7 <... recvmsg resumed>\"ab\", 2) = 2\n\
            9 <... poll resumed>) = 1\n7 --- SIGTERM ---\n7 write(5, \"c\", 1 <unfinished ...>\n7 +++ exited +++";
        let expected =
            ["7 recvmsg(3,  \"ab\", 2) = 2", "8 close(4) = 0", "7 write(5, \"c\", 1 <unfinished ...>"];
        assert_eq!(Calls::of(text).lines, expected);
    }
}
