//! The control socket: sends the status as JSON to each client, and closes the connection.

use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tenfold_sys::socket::{ListenAddress, ListenOptions, Listener};

use crate::config::values::Control;
use crate::diagnostics::{debug, warning};
use crate::status::place::{RuntimeFolder, socket_name};
use crate::status::report::StatusReport;
use crate::supervisor::upgrade::handover::Handover;

/// The mode of the socket's file: only its owner may read the status.
const MODE: u32 = 0o600;
/// Connections that may wait to be answered.
const BACKLOG: i32 = 128;
/// The time that a client may take to read the status.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause after an accept that failed because memory or descriptors ran out.
const PAUSE: Duration = Duration::from_millis(50);
/// The most clients served before signals are checked again.
const MOST_AT_ONCE: usize = 16;

/// The socket and its path.
pub(crate) struct ControlSocket {
    listener: Listener,
    path: PathBuf,
}

impl ControlSocket {
    /// Opens the socket at the configured path, or at the default path. If the default path is unavailable, the server
    /// runs without a control socket.
    pub(crate) fn open(
        control: &Control,
        addresses: &[ListenAddress],
    ) -> Result<Option<ControlSocket>, String> {
        let wrong =
            |path: &Path, error| format!("cannot open the control socket {}: {error}", path.display());
        match control {
            Control::Off => Ok(None),
            Control::At(path) => ControlSocket::at(path).map(Some).map_err(|error| wrong(path, error)),
            Control::Usual => {
                let name = addresses.first().map(ListenAddress::to_string).unwrap_or_default();
                let folder = RuntimeFolder::find();
                let opened =
                    folder.open().and_then(|folder| ControlSocket::at(&folder.join(socket_name(&name))));
                match opened {
                    Ok(socket) => Ok(Some(socket)),
                    Err(error) => {
                        let why = format!("cannot open a control socket: {error}");
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
        let listener = Listener::bind_with_mode(MODE, &ListenAddress::Unix(path.clone()), &options);
        let listener = listener.map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => io::Error::new(error.kind(), "another server or file has this name"),
            _ => error,
        })?;
        listener.set_nonblocking(true)?;
        Ok(ControlSocket { listener, path })
    }

    /// Takes the socket of the former program of this process; `None` if it had none.
    pub(crate) fn inherit(handover: &Handover) -> Result<Option<ControlSocket>, String> {
        let Some(listener) = handover.listeners("control")?.pop() else { return Ok(None) };
        match listener.address().clone() {
            ListenAddress::Unix(path) => Ok(Some(ControlSocket { listener, path })),
            ListenAddress::Internet(at) => Err(format!("the control socket has the address {at}")),
        }
    }

    pub(crate) fn listener(&self) -> &Listener {
        &self.listener
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Sends the report to every client that has connected.
    pub(crate) fn answer(&self, report: impl Fn() -> StatusReport) {
        for _ in 0..MOST_AT_ONCE {
            let stream = match self.listener.accept(false) {
                Ok((socket, _)) => UnixStream::from(OwnedFd::from(socket)),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    return;
                }
                Err(error) => {
                    debug!("cannot accept a client that asks for the status: {error}");
                    return thread::sleep(PAUSE);
                }
            };
            if let Err(error) = tell(stream, &report()) {
                debug!("a client that asked for the status did not take it: {error}");
            }
        }
    }

    /// Removes the file, when the server leaves.
    pub(crate) fn remove(&self) {
        self.listener.remove_file();
    }
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

fn tell(mut stream: UnixStream, report: &StatusReport) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut text = serde_json::to_vec(report)?;
    text.push(b'\n');
    stream.write_all(&text)
}
