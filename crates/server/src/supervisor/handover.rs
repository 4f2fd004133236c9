//! The state that a program passes to its successor in the same process, in a file in memory: sockets, ticket keys, and
//! the processes that it has started.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tenfold_sys::exec;
use tenfold_sys::process::{self, Pid};
use tenfold_sys::signal::{Signal, Signals};
use tenfold_sys::socket::{ListenAddress, Listener};
use zeroize::Zeroizing;

use super::end_bound::EndBound;
use super::tickets::HandedTickets;
use crate::status::report::{ReloadCounts, UpgradeCounts};

/// The version of [`HandoverState`]. A program that does not know it refuses to be the successor.
pub(super) const VERSION: u32 = 2;
/// The variable that tells a program to check the configuration, or the descriptor of the state.
const VARIABLE: &str = "TENFOLD_HANDOVER";
const CHECK: &str = "check:";
/// The most bytes of a state.
const LONGEST: u64 = 16 << 20;

/// The reason for the start of this program.
pub(super) enum Start {
    /// A user or a service manager started it.
    Fresh,
    /// A running server asks whether it could serve.
    Check,
    /// It replaces the former program of this process.
    Successor(Box<Handover>),
}

/// A listening socket.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct HandedSocket {
    number: RawFd,
    address: String,
    file: Option<(u64, u64)>,
}

impl HandedSocket {
    /// Its address.
    ///
    /// # Errors
    /// In words: it is none.
    pub(super) fn address(&self) -> Result<ListenAddress, String> {
        self.address.parse()
    }

    /// Describes a socket.
    ///
    /// # Errors
    /// In words: its path cannot be written.
    pub(super) fn of(listener: &Listener) -> Result<HandedSocket, String> {
        let address = listener.address().to_string();
        match address.parse().as_ref() == Ok(listener.address()) {
            true => Ok(HandedSocket { number: listener.number(), address, file: listener.file() }),
            false => Err(format!("the path of {address} is not UTF-8, so the socket cannot be handed over")),
        }
    }
}

/// Worker processes of a former program. Only their ends are known of them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct FormerWorkers {
    pub(super) workers: Vec<i32>,
    /// The processes that answer them, with keys of certificates or accounts. They are killed when the workers have ended.
    pub(super) helpers: Vec<i32>,
    /// The bound of their end, if too many configurations came after theirs.
    #[serde(skip)]
    pub(super) ends: Option<EndBound>,
}

impl FormerWorkers {
    /// Sends a signal to all workers.
    pub(super) fn tell(&self, signal: Signal) {
        self.workers.iter().for_each(|pid| send(*pid, signal));
    }

    /// Notes that a process has ended.
    pub(super) fn lost(&mut self, pid: Pid) {
        let pid = pid.as_raw_nonzero().get();
        self.workers.retain(|worker| *worker != pid);
        self.helpers.retain(|helper| *helper != pid);
    }

    /// Whether all processes have ended. The helpers are killed when the workers have.
    pub(super) fn are_gone(&mut self) -> bool {
        // A process that was reaped before this program listened to signals is not reported again.
        let is_there = |pid: &i32| Pid::from_raw(*pid).is_some_and(process::is_child);
        self.workers.retain(is_there);
        if self.workers.is_empty() {
            self.helpers.iter().for_each(|helper| send(*helper, Signal::Kill));
            self.helpers.retain(is_there);
        }
        self.workers.is_empty() && self.helpers.is_empty()
    }
}

/// Another process can have the number of one that has ended. It is no child of this process.
fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid).filter(|pid| process::is_child(*pid)) {
        process::send_signal(pid, signal);
    }
}

/// The program of this process. A file to which its path leads later is the program of an upgrade.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Program {
    pub(super) path: OsString,
    /// The command line, including the name of the program.
    pub(super) arguments: Vec<OsString>,
}

impl Program {
    /// The running one, which listens on these addresses.
    pub(super) fn running(addresses: &[ListenAddress]) -> Program {
        let port = addresses.iter().find_map(|address| match address {
            ListenAddress::Internet(address) => Some(address.port()),
            ListenAddress::Unix(_) => None,
        });
        let arguments = with_port(std::env::args_os(), port.unwrap_or_default());
        let path = named_path().or_else(|| std::env::current_exe().ok()).map(OsString::from);
        let path = path.unwrap_or_else(|| arguments.first().cloned().unwrap_or_default());
        Program { path, arguments }
    }

    /// Whether the path leads to the file that this process executes.
    pub(super) fn is_same_file(&self) -> bool {
        is_own(Path::new(&self.path))
    }
}

/// The path by which this program was executed, which may be a link; `None` if it does not lead to this program, or does
/// so only in this process.
fn named_path() -> Option<PathBuf> {
    let path = std::path::absolute(exec::name()).ok()?;
    let is_of_process = path.starts_with("/proc") || path.starts_with("/dev/fd");
    (!is_of_process && is_own(&path)).then_some(path)
}

fn is_own(path: &Path) -> bool {
    let file = |path: &Path| fs::metadata(path).map(|facts| (facts.dev(), facts.ino())).ok();
    let own = file(Path::new("/proc/self/exe"));
    own.is_some() && own == file(path)
}

/// Replaces `--port auto` by the port that it chose: another program would find that port taken, and choose the next.
fn with_port(arguments: impl Iterator<Item = OsString>, port: u16) -> Vec<OsString> {
    let is_flag = |text: &str| match text.strip_prefix("--") {
        Some(name) => name == "port" || name == "port=",
        None => text.starts_with('-') && text.trim_end_matches('=').ends_with('p'),
    };
    let mut is_value = false;
    let replaced = arguments.map(|argument| {
        let text = argument.to_str().unwrap_or_default();
        let follows = std::mem::replace(&mut is_value, is_flag(text));
        match text.strip_suffix("auto") {
            Some("") if follows => port.to_string().into(),
            Some(flag) if is_flag(flag) => format!("{flag}{port}").into(),
            _ => argument,
        }
    });
    replaced.collect()
}

/// The state of a supervisor for its successor.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct HandoverState {
    pub(super) version: u32,
    pub(super) program: Program,
    /// The descriptor of the program before, to go back to it.
    pub(super) former_program: Option<RawFd>,
    /// The reason why a successor went back.
    pub(super) failure: Option<String>,
    pub(super) uptime_seconds: u64,
    pub(super) generations: u32,
    pub(super) reloads: ReloadCounts,
    pub(super) upgrades: UpgradeCounts,
    pub(super) sockets: Vec<Vec<HandedSocket>>,
    /// Whether a service manager passed them.
    pub(super) passed: bool,
    pub(super) control: Option<HandedSocket>,
    pub(super) admin: Option<HandedSocket>,
    /// The keys of TLS tickets.
    pub(super) tickets: HandedTickets,
    pub(super) former: Vec<FormerWorkers>,
}

impl HandoverState {
    fn numbers(&self) -> Vec<RawFd> {
        let sockets = self.sockets.iter().flatten().chain(&self.control).chain(&self.admin);
        sockets.map(|socket| socket.number).chain(self.former_program).collect()
    }

    /// Executes `program` with this state. Returns only if that failed.
    pub(super) fn execute(&self, program: &Path, passed: &[BorrowedFd<'_>]) -> io::Error {
        // Without a buffer, which would leave the keys in memory that is free.
        let state = exec::message(|file| serde_json::to_writer(file, self).map_err(io::Error::from));
        let state = match state {
            Ok(state) => state,
            Err(error) => return error,
        };
        let value = (OsString::from(VARIABLE), OsString::from(exec::number(&state).to_string()));
        let variables = std::env::vars_os().filter(|(name, _)| name != VARIABLE).chain([value]);
        let passed: Vec<_> = passed.iter().copied().chain([state.as_fd()]).collect();
        exec::execute(program, self.program.arguments.iter().cloned(), variables, &passed)
    }
}

/// The state that this program got, with its descriptors.
pub(crate) struct Handover {
    pub(super) state: HandoverState,
    /// They stay open until this program serves, because the former one may need them.
    descriptors: BTreeMap<RawFd, OwnedFd>,
}

impl Handover {
    fn take(number: RawFd) -> Result<Handover, String> {
        let failed = |error: io::Error| {
            format!("cannot take over from the former program: {error}; unset {VARIABLE} to start a server")
        };
        let bytes = exec::inherit(number).and_then(|file| exec::read_message(file, LONGEST));
        let bytes = Zeroizing::new(bytes.map_err(failed)?);
        let state: HandoverState = serde_json::from_slice(&bytes).map_err(io::Error::from).map_err(failed)?;
        let all = state.numbers().into_iter().map(|number| Ok((number, exec::inherit(number)?)));
        let descriptors = all.collect::<io::Result<_>>().map_err(failed)?;
        Ok(Handover { state, descriptors })
    }

    /// Returns a handle to a socket.
    ///
    /// # Errors
    /// In words: it does not listen, or no descriptor is left.
    pub(super) fn listener(&self, handed: &HandedSocket) -> Result<Listener, String> {
        let failed = |why: String| format!("cannot take over the socket of {}: {why}", handed.address);
        let address = handed.address.parse().map_err(failed)?;
        let socket =
            self.descriptors.get(&handed.number).ok_or_else(|| failed("it was not passed".into()))?;
        let listener = socket.try_clone().and_then(|socket| Listener::inherit(socket, address, handed.file));
        listener.map_err(|error| failed(error.to_string()))
    }

    /// The listening sockets.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &HandedSocket> {
        let state = &self.state;
        state.sockets.iter().flatten().chain(&state.control).chain(&state.admin)
    }

    /// Whether another program can go on. A program that came back from its successor has none.
    pub(super) fn has_former_program(&self) -> bool {
        self.state.former_program.is_some()
    }

    /// Executes the former program again, which goes on as if there had been no upgrade. Returns only if that failed.
    pub(super) fn go_back(&mut self, why: &str) -> io::Error {
        let number = self.state.former_program.take();
        let Some((number, former)) = number.and_then(|number| self.descriptors.remove_entry(&number)) else {
            return io::Error::other("there is no former program");
        };
        self.state.failure = Some(why.to_owned());
        let error = self.execute(&of_descriptor(&former));
        // This program tries again, and may have to go back later.
        self.descriptors.insert(number, former);
        (self.state.former_program, self.state.failure) = (Some(number), None);
        error
    }

    /// Executes `program` with the same state. Returns only if that failed.
    pub(super) fn execute(&self, program: &Path) -> io::Error {
        let passed: Vec<_> = self.descriptors.values().map(AsFd::as_fd).collect();
        self.state.execute(program, &passed)
    }
}

fn of_descriptor(descriptor: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", exec::number(descriptor)).into()
}

/// Reads the reason for the start of this program from its environment.
///
/// # Errors
/// In words: the former program has another version of the state, or passed none.
pub(super) fn start() -> Result<Start, String> {
    let Ok(value) = std::env::var(VARIABLE) else { return Ok(Start::Fresh) };
    // The execve(2) before made the memory of this process readable again, and a check opens keys.
    process::hide_memory().map_err(|error| format!("cannot hide the memory of the process: {error}"))?;
    if let Some(version) = value.strip_prefix(CHECK) {
        return match version.parse() == Ok(VERSION) {
            true => Ok(Start::Check),
            false => Err(format!(
                "the running server hands over version {version}, and this program takes version {VERSION}; \
                 restart the server instead"
            )),
        };
    }
    let number =
        value.parse().map_err(|_| format!("{VARIABLE} is {value:?}, which is no descriptor; unset it"))?;
    // A shell between the programs unblocks signals, and one that comes before this program listens would end the server.
    drop(Signals::new());
    Ok(Start::Successor(Box::new(Handover::take(number)?)))
}

/// The variable that asks a program to check.
pub(super) fn check_variable() -> (&'static str, String) {
    (VARIABLE, format!("{CHECK}{VERSION}"))
}

/// The line by which a program reports that it could serve.
pub(super) fn ready_line() -> String {
    format!("tenfold takes handover version {VERSION}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_somebody_else_is_no_former_worker() {
        let mut shell = std::process::Command::new("sh");
        // The process in the background is no child of this one, like a process with the number of an ended worker.
        shell.args(["-c", "sleep 60 >/dev/null 2>&1 & echo $!"]).stdout(std::process::Stdio::piped());
        let output = shell.output().expect("a shell");
        let number: i32 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number");
        let mut former = FormerWorkers { workers: vec![number], helpers: vec![number], ends: None };
        former.tell(Signal::Kill);
        let is_gone = former.are_gone();
        let pid = Pid::from_raw(number).expect("it is not 0");
        let state = std::fs::read_to_string(format!("/proc/{number}/stat")).expect("it was not signalled");
        process::send_signal(pid, Signal::Kill);
        assert!(is_gone && !state.contains(" Z "), "{state}");
    }

    #[test]
    fn a_former_program_that_cannot_be_executed_can_be_tried_again() {
        let null = OwnedFd::from(std::fs::File::open("/dev/null").expect("every system has one"));
        let state = HandoverState {
            version: VERSION,
            program: Program { path: OsString::new(), arguments: Vec::new() },
            former_program: Some(exec::number(&null)),
            failure: None,
            uptime_seconds: 0,
            generations: 1,
            reloads: ReloadCounts::default(),
            upgrades: UpgradeCounts::default(),
            sockets: Vec::new(),
            passed: false,
            control: None,
            admin: None,
            tickets: HandedTickets::default(),
            former: Vec::new(),
        };
        let descriptors = BTreeMap::from([(exec::number(&null), null)]);
        let mut handover = Handover { state, descriptors };
        for _ in 0..2 {
            let error = handover.go_back("it has no workers");
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
            assert!(handover.has_former_program() && handover.state.failure.is_none());
        }
    }

    #[test]
    fn a_port_that_was_chosen_stays() {
        let replaced = |line: &str| {
            let words = with_port(line.split(' ').map(OsString::from), 8081);
            words
                .into_iter()
                .map(|word| word.into_string().expect("it was one"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(replaced("tenfold serve -p auto auto"), "tenfold serve -p 8081 auto");
        assert_eq!(replaced("tenfold serve --port auto"), "tenfold serve --port 8081");
        assert_eq!(
            replaced("tenfold serve -pauto -vp=auto --port=auto"),
            "tenfold serve -p8081 -vp=8081 --port=8081"
        );
        let others = "tenfold serve -p 80 --engine auto --send=auto up/auto";
        assert_eq!(replaced(others), others);
    }
}
