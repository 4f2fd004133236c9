//! The control socket: whoever connects is told the status, as JSON, and the connection ends.

use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tenfold_sys::socket::{ListenAddress, ListenOptions, Listener};

use super::accounts::Accounts;
use super::generation::Stage;
use super::sockets::bind_with_mode;
use super::{PAUSE, Supervisor};
use crate::diagnostics::{debug, warning};
use crate::settings::values::Control;
use crate::status::{self, Numbers, Report, RuntimeFolder, Worker};

/// The mode of the socket's file: only its owner may see what the server does.
const MODE: u32 = 0o600;
/// Connections that may wait to be answered.
const BACKLOG: i32 = 128;
/// How long somebody who asked may take to read the answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// Questions answered before signals are looked at again.
const MOST_AT_ONCE: usize = 16;

/// The socket and where it is.
pub(super) struct ControlSocket {
    listener: Listener,
    path: PathBuf,
}

impl ControlSocket {
    /// Opens the socket where it was asked for, or where it usually is: there it is done without where it
    /// can not be had.
    ///
    /// # Errors
    /// In words, where a path was asked for and can not be had.
    pub(super) fn open(
        control: &Control,
        addresses: &[ListenAddress],
    ) -> Result<Option<ControlSocket>, String> {
        let wrong =
            |path: &Path, error| format!("can not open the control socket {}: {error}", path.display());
        match control {
            Control::Off => Ok(None),
            Control::At(path) => ControlSocket::at(path).map(Some).map_err(|error| wrong(path, error)),
            Control::Usual => {
                let name = addresses.first().map(ListenAddress::to_string).unwrap_or_default();
                let folder = RuntimeFolder::find();
                let opened = folder
                    .open()
                    .and_then(|folder| ControlSocket::at(&folder.join(status::socket_name(&name))));
                match opened {
                    Ok(socket) => Ok(Some(socket)),
                    Err(error) => {
                        let why = format!("can not open a control socket: {error}");
                        warning!("{why}; `tenfold status` will not find this server");
                        Ok(None)
                    }
                }
            }
        }
    }

    fn at(path: &Path) -> io::Result<ControlSocket> {
        let path = std::path::absolute(path)?;
        let options = ListenOptions { backlog: BACKLOG, ..ListenOptions::default() };
        let listener = bind_with_mode(MODE, &ListenAddress::Unix(path.clone()), &options);
        let listener = listener.map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => io::Error::new(error.kind(), "another server or file has this name"),
            _ => error,
        })?;
        listener.set_nonblocking(true)?;
        Ok(ControlSocket { listener, path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, when the server leaves.
    pub(super) fn remove(&self) {
        self.listener.remove_file();
    }
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Supervisor {
    /// Tells everybody who has asked.
    pub(super) fn answer_control(&self) {
        let Some(control) = &self.control else { return };
        for _ in 0..MOST_AT_ONCE {
            let stream = match control.listener.accept(false) {
                Ok((socket, _)) => UnixStream::from(OwnedFd::from(socket)),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    return;
                }
                Err(error) => {
                    debug!("somebody asks for the status and can not be accepted: {error}");
                    return thread::sleep(PAUSE);
                }
            };
            if let Err(error) = tell(stream, &self.report()) {
                debug!("somebody asked for the status and did not take it: {error}");
            }
        }
    }

    fn report(&self) -> Report {
        let mut total = self.past.clone();
        let mut workers = Vec::new();
        for generation in &self.generations {
            for seen in generation.seen() {
                total.add_sums(&seen.sums);
                workers.push(Worker {
                    worker: seen.worker,
                    generation: generation.number,
                    process: seen.pid.map(|pid| pid.as_raw_nonzero().get()),
                    state: match (generation.stage, seen.pid) {
                        (Stage::Serving, None) => "restarting",
                        (Stage::Starting, _) => "starting",
                        (Stage::Serving, _) => "serving",
                        (Stage::Draining, _) => "draining",
                        (Stage::Failed, _) => "failed",
                    }
                    .to_owned(),
                    restarts: seen.restarts,
                    share: None,
                    numbers: Numbers::of(&seen.sums),
                });
            }
        }
        let requests: f64 = workers.iter().map(|worker| worker.numbers.requests as f64).sum();
        for worker in workers.iter_mut().filter(|worker| worker.worker.is_some() && requests > 0.0) {
            worker.share = Some(worker.numbers.requests as f64 / requests);
        }
        let mut total = Numbers::of(&total);
        let refused = self.accounts.as_ref().map_or(0, Accounts::refused_calls);
        total.refused_calls = total.refused_calls.saturating_add(refused);
        let plan = self.generations.last().map(|newest| &newest.blueprint.plan);
        Report {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            process: std::process::id(),
            uptime_seconds: self.began.elapsed().as_secs(),
            generation: self.count,
            leaving: self.leaving.is_some(),
            listen: self.addresses.iter().map(ListenAddress::to_string).collect(),
            engine: plan.map(|plan| plan.engine.to_string()).unwrap_or_default(),
            topology: plan.map(|plan| plan.topology.to_string()).unwrap_or_default(),
            send: plan.map(|plan| plan.sender.to_string()).unwrap_or_default(),
            accounts: self.accounts.as_ref().map(Accounts::seen),
            total,
            workers,
        }
    }
}

fn tell(mut stream: UnixStream, report: &Report) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut text = serde_json::to_vec(report)?;
    text.push(b'\n');
    stream.write_all(&text)
}
