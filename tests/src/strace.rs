//! System calls of running processes, observed with `strace`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::Process;
use crate::site::TempFolder;
use crate::time::{SOON, becomes_true, eventually};
use crate::tools;

/// `strace` attached to some processes and their descendants.
#[derive(Debug)]
pub struct Tracer {
    strace: Child,
    folder: TempFolder,
    /// The processes with injected failures.
    failing: Vec<Process>,
}

/// Calls that fail by injection (`man 1 strace`, "Tampering").
#[derive(Clone, Copy, Debug)]
pub struct CallFailure {
    /// Their names, separated by commas; `?` before a name that some architectures lack.
    pub calls: &'static str,
    /// The name of the error.
    pub error: &'static str,
    /// The affected calls, counted per task: `1`, `1..3`, or `1+` for all.
    pub when: &'static str,
}

/// The observed calls.
#[derive(Debug)]
pub struct Calls {
    /// Lines of `strace`, each a call with its arguments and result; an interrupted call is one line.
    pub lines: Vec<String>,
}

impl Tracer {
    /// Attaches to all threads of these processes.
    #[track_caller]
    pub fn attach(processes: &[Process]) -> Tracer {
        Tracer::start(processes, &[])
    }

    /// Attaches to all threads of these processes, and injects failures, also in descendants.
    #[track_caller]
    pub fn inject(processes: &[Process], faults: &[CallFailure]) -> Tracer {
        Tracer::start(processes, &injected(faults)).failing(processes)
    }

    /// Injects failures only into calls for the file at `path`.
    #[track_caller]
    pub fn inject_at(processes: &[Process], path: &Path, faults: &[CallFailure]) -> Tracer {
        let at = ["-P".to_owned(), path.display().to_string()];
        Tracer::start(processes, &[injected(faults), at.to_vec()].concat()).failing(processes)
    }

    fn failing(mut self, processes: &[Process]) -> Tracer {
        self.failing = processes.to_vec();
        self
    }

    #[track_caller]
    fn written(&self) -> String {
        fs::read_to_string(self.folder.at("calls")).expect("strace writes its file")
    }

    /// The number of lines so far that contain this text.
    #[track_caller]
    pub fn lines_with(&self, text: &str) -> usize {
        self.written().lines().filter(|line| line.contains(text)).count()
    }

    /// The number of failures of this fault so far.
    #[track_caller]
    pub fn failed(&self, fault: &CallFailure) -> usize {
        let text = self.written();
        let error = format!(" {} ", fault.error);
        let names = || fault.calls.split(',').map(|name| name.trim_start_matches('?'));
        let of_it = |line: &&str| {
            line.contains("(INJECTED)") && line.contains(&error) && names().any(|name| line.contains(name))
        };
        text.lines().filter(of_it).count()
    }

    #[track_caller]
    fn start(processes: &[Process], more: &[String]) -> Tracer {
        let folder = TempFolder::new("strace");
        let mut command = Command::new(tools::program("strace"));
        command.args(["-f", "-q", "-s", "64", "-o"]).arg(folder.at("calls")).args(more);
        command.args(processes.iter().flat_map(|process| ["-p".to_owned(), process.0.to_string()]));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let strace = command.spawn().unwrap_or_else(|error| panic!("run strace: {error}"));
        let tracer = strace.id().to_string();
        // The message of strace comes too early. strace seizes a task, which the kernel shows, and then interrupts it;
        // in between, calls are not traced. When strace sleeps, it has interrupted all tasks. With a server that never
        // waits, strace hardly sleeps, but has written calls by then.
        becomes_true(SOON, "strace attaches (run as root, or with kernel.yama.ptrace_scope=0)", || {
            // A process may have ended in the meantime.
            let mut running = processes.iter().filter(|process| process.is_running()).peekable();
            running.peek().is_some()
                && running.all(|process| {
                    let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", process.0)) else { return false };
                    tasks.flatten().all(|task| {
                        let status = fs::read_to_string(task.path().join("status")).unwrap_or_default();
                        status.contains(&format!("TracerPid:\t{tracer}\n"))
                    })
                })
                && (Process(strace.id()).is_sleeping()
                    || fs::read(folder.at("calls")).is_ok_and(|calls| !calls.is_empty()))
        });
        Tracer { strace, folder, failing: Vec::new() }
    }

    /// Arguments that start a program under `strace`, for [`crate::launch::Launch::through`]. The program keeps its
    /// process, and [`Calls::from_start`] reads its calls of `calls`, a class or a list of names.
    pub fn from_start<'a>(calls: &'a str, into: &'a str) -> [&'a str; 9] {
        ["-D", "-f", "-q", "-s", "64", "-e", calls, "-o", into]
    }

    /// Detaches and returns the calls.
    #[track_caller]
    pub fn detach(mut self) -> Calls {
        let stopped = self.between_calls();
        Process(self.strace.id()).signal(Signal::INT);
        self.strace.wait().expect("our own child");
        stopped.iter().for_each(|process| process.signal(Signal::CONT));
        let text = self.written();
        Calls::of(&text)
    }

    /// Stops processes with injected failures, and their descendants, before the detach. strace replaces a call by an
    /// invalid call and sets its error at the return; a task detached in between would see ENOSYS. A stopped task is
    /// not inside a call. Returns the stopped processes.
    fn between_calls(&self) -> Vec<Process> {
        let begun = Instant::now();
        let mut stopped = Vec::new();
        // A process that does not stop at once may start further processes.
        while begun.elapsed() < SOON {
            let all: Vec<_> = self.failing.iter().flat_map(|process| process.with_descendants()).collect();
            let new: Vec<_> = all.iter().filter(|process| !stopped.contains(*process)).copied().collect();
            new.iter().for_each(|process| process.signal(Signal::STOP));
            stopped.extend(new);
            if all.iter().all(|process| !process.is_running() || self.has_stopped(*process)) {
                break;
            }
            // Each look reads the whole trace.
            sleep(Duration::from_millis(2));
        }
        stopped
    }

    /// Whether all threads of a live process are stopped.
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

/// Arguments that make `strace` inject failures.
fn injected(faults: &[CallFailure]) -> Vec<String> {
    let calls: Vec<_> = faults.iter().map(|fault| fault.calls).collect();
    let mut words = vec!["-e".to_owned(), format!("trace={}", calls.join(","))];
    for CallFailure { calls, error, when } in faults {
        words.extend(["-e".to_owned(), format!("inject={calls}:error={error}:when={when}")]);
    }
    words
}

/// The end of a line whose result follows in another line, after lines of other tasks.
const UNFINISHED: &str = " <unfinished ...>";

/// Whether a line begins a call, and is not a resumption, signal or exit. The checks of descriptors by a standard
/// library with debug assertions do not count.
fn is_call(line: &str) -> bool {
    let call = without_process(line);
    if call.starts_with("fcntl(") && call.contains("F_GETFD") {
        return false;
    }
    !call.starts_with("<...") && !call.starts_with("---") && !call.starts_with("+++") && call.contains('(')
}

/// Whether the call of a line has returned, and without an error.
pub fn has_succeeded(line: &str) -> bool {
    line.rsplit_once(" = ")
        .is_some_and(|(_, result)| result.starts_with(|first: char| first.is_ascii_digit()))
}

/// Each line begins with the number of the task.
fn without_process(line: &str) -> &str {
    line.trim_start_matches(|letter: char| letter.is_ascii_digit()).trim_start()
}

impl Calls {
    /// The calls of a program that was started under `strace` and has ended.
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

    /// Parses the output of `strace`, in the order in which calls began; the rest of an interrupted call is joined to
    /// its beginning.
    pub fn of(text: &str) -> Calls {
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

    /// The calls whose lines contain all of these words, in order.
    pub fn with(&self, words: &[&str]) -> Vec<&str> {
        let holds = |line: &&String| words.iter().all(|word| line.contains(word));
        self.lines.iter().filter(holds).map(String::as_str).collect()
    }

    /// The calls of this name that succeeded. A call without a result at the detach does not count.
    pub fn successes(&self, name: &str) -> Vec<&str> {
        let of_it = self.with(&[&format!(" {name}(")]);
        of_it.into_iter().filter(|line| has_succeeded(line)).collect()
    }

    /// The number of calls, by name.
    pub fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for line in &self.lines {
            let call = without_process(line);
            let name = call.split('(').next().unwrap_or(call);
            *counts.entry(name).or_default() += 1;
        }
        counts
    }

    /// The number of calls of these names.
    pub fn count(&self, names: &[&str]) -> usize {
        let counts = self.counts();
        names.iter().filter_map(|name| counts.get(name)).sum()
    }

    /// The lines of all other calls.
    pub fn others(&self, names: &[&str]) -> Vec<&str> {
        let other =
            |line: &&str| !names.iter().any(|name| without_process(line).starts_with(&format!("{name}(")));
        self.lines.iter().map(String::as_str).filter(other).collect()
    }
}
