//! The state that a program passes to its successor in the same process: descriptors by name, and the numbers of the
//! processes that it has started. A file in memory has the state, and another one the ticket keys.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tenfold_sys::exec;
use tenfold_sys::process;
use tenfold_sys::socket::{ListenAddress, Listener};

use super::former::FormerWorkers;
use crate::status::report::{ReloadCounts, UpgradeCounts};

/// The version of [`HandoverState`]. A program with another version refuses to be the successor.
pub(crate) const VERSION: u32 = 3;
/// The exit code of a check that succeeded. A program that knows no checks does not end with it.
pub(crate) const CAN_SERVE: u8 = 42;
/// Asks a program to check the configuration, or has the descriptor of the state.
const VARIABLE: &str = "TENFOLD_HANDOVER";
/// The port that `--port auto` chose: another program would find it taken.
const PORT: &str = "TENFOLD_HANDOVER_PORT";
const CHECK: &str = "check:";

/// The reason for the start of this program.
pub(crate) enum Start {
    /// A user or a service manager started it.
    Fresh,
    /// A running server asks whether it could serve.
    Check,
    /// It replaces the former program of this process.
    Successor(Box<Handover>),
}

/// A descriptor that passes to another program.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HandedDescriptor {
    name: String,
    number: RawFd,
    /// The device and inode of a Unix socket's file.
    file: Option<(u64, u64)>,
}

/// The state of a supervisor for its successor.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HandoverState {
    pub(crate) version: u32,
    pub(crate) program: OsString,
    /// The command line, including the name of the program.
    pub(crate) arguments: Vec<OsString>,
    /// The reason why a successor went back.
    pub(crate) failure: Option<String>,
    pub(crate) uptime_seconds: u64,
    pub(crate) generations: u32,
    pub(crate) reloads: ReloadCounts,
    pub(crate) upgrades: UpgradeCounts,
    /// Whether a service manager passed the sockets.
    pub(crate) passed: bool,
    pub(crate) port: Option<u16>,
    pub(crate) descriptors: Vec<HandedDescriptor>,
    pub(crate) former: Vec<FormerWorkers>,
}

impl HandoverState {
    /// Adds a descriptor.
    pub(crate) fn pass<'a>(
        &mut self,
        name: &str,
        descriptor: &'a impl AsFd,
        file: Option<(u64, u64)>,
    ) -> BorrowedFd<'a> {
        let number = exec::number(descriptor);
        self.descriptors.push(HandedDescriptor { name: name.to_owned(), number, file });
        descriptor.as_fd()
    }

    /// Executes `program` with this state and its descriptors. Returns only if that failed.
    pub(crate) fn execute(&self, program: &Path, passed: &[BorrowedFd<'_>]) -> io::Result<Infallible> {
        let state = exec::message(|file| serde_json::to_writer(file, self).map_err(io::Error::from))?;
        let variables = environment(exec::number(&state).to_string(), self.port);
        let variables = env::vars_os().filter(|(name, _)| name != VARIABLE && name != PORT).chain(variables);
        let passed: Vec<_> = passed.iter().copied().chain([state.as_fd()]).collect();
        Err(exec::execute(program, self.arguments.iter().cloned(), variables, &passed))
    }
}

/// The state that this program got, with its descriptors.
pub(crate) struct Handover {
    pub(crate) state: HandoverState,
    /// Open until this program serves, because the former one may need them.
    descriptors: BTreeMap<RawFd, OwnedFd>,
}

impl Handover {
    fn take(number: RawFd) -> io::Result<Handover> {
        let bytes = exec::read_message(exec::inherit(number)?)?;
        let state: HandoverState = serde_json::from_slice(&bytes)?;
        let numbers = state.descriptors.iter().map(|handed| handed.number);
        let descriptors = numbers.map(|number| Ok((number, exec::inherit(number)?)));
        Ok(Handover { descriptors: descriptors.collect::<io::Result<_>>()?, state })
    }

    fn named(&self, name: &str) -> impl Iterator<Item = (&HandedDescriptor, &OwnedFd)> {
        let own = self.state.descriptors.iter().filter(move |handed| handed.name == name);
        own.filter_map(|handed| Some((handed, self.descriptors.get(&handed.number)?)))
    }

    /// Returns handles to the listening sockets of this name.
    pub(crate) fn listeners(&self, name: &str) -> Result<Vec<Listener>, String> {
        let all =
            self.named(name).map(|(handed, socket)| Listener::inherit(socket.try_clone()?, handed.file));
        let all: io::Result<_> = all.collect();
        all.map_err(|error| format!("cannot take over the sockets of {name}: {error}"))
    }

    /// Returns a handle to the file with the ticket keys.
    pub(crate) fn tickets(&self) -> Option<OwnedFd> {
        self.named("tickets").next().and_then(|(_, file)| file.try_clone().ok())
    }

    /// Executes the former program with the same state. Returns the reason if that failed, or if this program is the
    /// former one.
    pub(crate) fn go_back(&mut self, why: &str) -> String {
        if let Some(first) = &self.state.failure {
            return format!("{first}; the former program cannot serve either, so the server ends");
        }
        self.state.failure = Some(why.to_owned());
        let passed: Vec<_> = self.descriptors.values().map(AsFd::as_fd).collect();
        let program = self.named("program").next();
        let program = program.map(|(handed, _)| PathBuf::from(format!("/proc/self/fd/{}", handed.number)));
        let Err(error) = self.state.execute(&program.unwrap_or_default(), &passed);
        format!("{why}, and the former program cannot be executed, so the server ends: {error}")
    }
}

/// The name of the listening sockets of a process.
pub(crate) fn site(process: usize) -> String {
    format!("site {process}")
}

/// The port of the first TCP address.
pub(crate) fn port_of(addresses: &[ListenAddress]) -> Option<u16> {
    addresses.iter().find_map(|address| match address {
        ListenAddress::Internet(address) => Some(address.port()),
        ListenAddress::Unix(_) => None,
    })
}

/// The port that `--port auto` chose in the former program.
pub(crate) fn handed_port() -> Option<u16> {
    env::var(PORT).ok()?.parse().ok()
}

/// The path by which this program was executed, which may be a link; the program's file if the path leads elsewhere.
pub(crate) fn own_path() -> PathBuf {
    let is_of_process = |path: &PathBuf| path.starts_with("/proc") || path.starts_with("/dev/fd");
    let named = std::path::absolute(exec::name()).ok().filter(|path| !is_of_process(path) && is_own(path));
    named.or_else(|| env::current_exe().ok()).unwrap_or_default()
}

/// Whether the path leads to the file that this process executes.
pub(crate) fn is_own(path: &Path) -> bool {
    let file = |path: &Path| fs::metadata(path).map(|facts| (facts.dev(), facts.ino())).ok();
    let own = file(Path::new("/proc/self/exe"));
    own.is_some() && own == file(path)
}

/// Reads the reason for the start of this program from its environment.
pub(crate) fn start() -> Result<Start, String> {
    let Ok(value) = env::var(VARIABLE) else { return Ok(Start::Fresh) };
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
    let handover = Handover::take(number).map_err(|error| {
        format!("cannot take over from the former program: {error}; unset {VARIABLE} to start a server")
    })?;
    Ok(Start::Successor(Box::new(handover)))
}

/// The variables that ask a program to check.
pub(crate) fn check_environment(port: Option<u16>) -> impl Iterator<Item = (OsString, OsString)> {
    environment(format!("{CHECK}{VERSION}"), port)
}

fn environment(value: String, port: Option<u16>) -> impl Iterator<Item = (OsString, OsString)> {
    let port = port.map(|port| (PORT.into(), port.to_string().into()));
    std::iter::once((VARIABLE.into(), value.into())).chain(port)
}
