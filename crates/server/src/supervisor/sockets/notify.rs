//! Reports to a service manager: ready, reloading, stopping, and signs of life (`man 3 sd_notify`).

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use tenfold_sys::clock;
use tenfold_sys::process;

use crate::diagnostics::{debug, warning};

/// The longest wait for a service manager that does not read.
const PATIENCE: Duration = Duration::from_secs(1);

/// The service manager, if one asked for reports.
#[derive(Debug, Default)]
pub(crate) struct ServiceManager {
    address: Option<SocketAddr>,
    watchdog: Option<Watchdog>,
    /// Whether the begin of a reload was reported, and its end was not.
    reloading: bool,
    /// Whether the log has a failure to send.
    failed: bool,
}

/// Signs of life, at half of the time after which the service manager would restart the server.
#[derive(Debug)]
struct Watchdog {
    interval: Duration,
    next: Instant,
}

impl ServiceManager {
    /// Reads `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID`.
    pub(crate) fn from_environment() -> ServiceManager {
        let Some(name) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
            return ServiceManager::default();
        };
        let address = match address(&name) {
            Ok(address) => address,
            Err(error) => {
                warning!("cannot notify the service manager at {}: {error}", name.display());
                return ServiceManager::default();
            }
        };
        let variable = |name| env::var(name).ok();
        let own = process::own().as_raw_nonzero().get();
        let interval =
            interval(variable("WATCHDOG_PID").as_deref(), variable("WATCHDOG_USEC").as_deref(), own);
        let watchdog = interval.map(|interval| Watchdog { interval, next: Instant::now() });
        ServiceManager { address: Some(address), watchdog, ..ServiceManager::default() }
    }

    /// Reports that the server serves.
    pub(crate) fn ready(&mut self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// Notes that the former program of this process has reported the begin of a reload.
    pub(crate) fn is_reloading(&mut self) {
        self.reloading = true;
    }

    /// Reports that a reload begins.
    pub(crate) fn reloading(&mut self) {
        self.reloading = true;
        let now = clock::monotonic() / 1000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={now}\nSTATUS=reading the configuration again"));
    }

    /// Reports that a reload has ended, if its begin was reported.
    pub(crate) fn reloaded(&mut self, status: &str) {
        if std::mem::take(&mut self.reloading) {
            self.ready(status);
        }
    }

    /// Reports that the server leaves.
    pub(crate) fn stopping(&mut self, status: &str) {
        self.reloading = false;
        self.tell(&format!("STOPPING=1\nSTATUS={}", one_line(status)));
    }

    /// Reports why the server cannot start.
    pub(crate) fn cannot_start(&mut self, why: &str) {
        self.tell(&format!("STATUS={}", one_line(why)));
    }

    /// The time of the next sign of life.
    pub(crate) fn by(&self) -> Option<Instant> {
        Some(self.watchdog.as_ref()?.next)
    }

    /// Sends a sign of life if that is due.
    pub(crate) fn beat(&mut self) {
        let now = Instant::now();
        let Some(watchdog) = self.watchdog.as_mut().filter(|watchdog| watchdog.next <= now) else { return };
        watchdog.next = now + watchdog.interval;
        self.tell("WATCHDOG=1");
    }

    /// Sends a message. The socket is closed afterwards, so that no worker inherits it.
    fn tell(&mut self, message: &str) {
        let Some(address) = &self.address else { return };
        let sent = UnixDatagram::unbound().and_then(|socket| {
            socket.set_write_timeout(Some(PATIENCE))?;
            socket.send_to_addr(message.as_bytes(), address)
        });
        match sent {
            Ok(_) => self.failed = false,
            Err(error) if !std::mem::replace(&mut self.failed, true) => {
                warning!("cannot notify the service manager at {address:?}: {error}");
            }
            Err(error) => debug!("cannot notify the service manager: {error}"),
        }
    }
}

/// A path, or an abstract name that begins with `@` (`man 7 unix`).
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(name),
        _ => Err(io::Error::other("NOTIFY_SOCKET is neither a path nor an abstract name such as @name")),
    }
}

/// Half of the watchdog's time, if it is for the process `own`.
fn interval(pid: Option<&str>, microseconds: Option<&str>, own: i32) -> Option<Duration> {
    let is_ours = pid.is_none_or(|pid| pid.parse() == Ok(own));
    let microseconds: u64 = microseconds?.parse().ok().filter(|time| *time > 0 && is_ours)?;
    Some(Duration::from_micros(microseconds.div_ceil(2)))
}

/// Replaces line breaks: a line ends a variable.
fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_of_life_come_at_half_of_the_time_if_they_are_for_this_process() {
        let half = Some(Duration::from_millis(500));
        assert_eq!(interval(None, Some("1000000"), 7), half);
        assert_eq!(interval(Some("7"), Some("1000000"), 7), half);
        for (pid, time) in
            [(Some("8"), Some("1000000")), (None, None), (None, Some("0")), (None, Some("soon"))]
        {
            assert_eq!(interval(pid, time, 7), None, "{pid:?} {time:?}");
        }
    }

    #[test]
    fn the_address_is_a_path_or_an_abstract_name() {
        assert!(address(OsStr::new("/run/notify")).is_ok_and(|at| at.as_pathname().is_some()));
        let named = address(OsStr::new("@a/b")).expect("an abstract name");
        assert_eq!(named.as_abstract_name(), Some(&b"a/b"[..]));
        assert!(address(OsStr::new("vsock:2:1")).is_err());
    }
}
