//! A subject as a process on the processors of servers.

use std::fs::{self, Permissions};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tenfold_sys::process::{Pid, send_signal};
use tenfold_sys::signal::Signal;
use tenfold_sys::usage;

use crate::experiment::subject::{Cell, Subject};
use crate::machine::processes;
use crate::record;
use crate::trial::bench::{Workbench, interrupted};
use crate::trial::tracer::{self, TraceDetail};
use crate::trial::{museum, peers};

/// The longest start of a server.
const START: Duration = Duration::from_secs(10);
/// The longest stop of a server before it is killed.
const STOP: Duration = Duration::from_secs(2);

/// The ports of subjects.
pub(super) const PORTS: std::ops::RangeInclusive<u16> = 10_000..=11_999;

/// Variables of the service manager of this process (`man 3 sd_notify`, `man 3 sd_listen_fds`). Subjects must not have
/// them.
const OF_MANAGER: [&str; 6] =
    ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"];

/// A server that runs until this value is dropped.
#[derive(Debug)]
pub(crate) struct RunningServer {
    /// The server, or the tracer that started it.
    child: Child,
    /// The file of the trace, if the server is traced.
    trace: Option<PathBuf>,
    /// The socket for the reports of Tenfold. It stays open, because a server also reports its stop.
    reports: Option<UnixDatagram>,
    /// The address of the server.
    pub(crate) address: SocketAddr,
    pub(crate) command: Vec<String>,
    said: PathBuf,
}

impl RunningServer {
    /// Starts the subject of a cell, by a tracer if `traced`, and waits until it serves.
    pub(crate) fn start(
        bench: &Workbench,
        name: &str,
        cell: &Cell,
        traced: Option<TraceDetail>,
    ) -> Result<RunningServer, String> {
        let address = free_address(bench)?;
        let words = match cell.subject {
            Subject::Tenfold => tenfold(bench, cell, address),
            Subject::Museum => museum::words(bench, cell, address)?,
            peer => peers::words(bench, peer, name, address)?,
        };
        let reports = (cell.subject == Subject::Tenfold).then(|| socket_for_reports(bench)).transpose()?;
        RunningServer::run(bench, name, address, words, traced, reports)
    }

    /// Starts a proxy that adds a round trip of this many milliseconds to the server.
    pub(crate) fn delay(
        bench: &Workbench,
        name: &str,
        server: SocketAddr,
        round_trip: u32,
    ) -> Result<RunningServer, String> {
        let address = free_address(bench)?;
        let words = museum::delay(bench, address, server, round_trip)?;
        RunningServer::run(bench, &format!("{name}.delay"), address, words, None, None)
    }

    fn run(
        bench: &Workbench,
        name: &str,
        address: SocketAddr,
        words: Vec<String>,
        traced: Option<TraceDetail>,
        reports: Option<(UnixDatagram, PathBuf)>,
    ) -> Result<RunningServer, String> {
        let trace = traced.map(|_| bench.site.scratch().join(format!("{name}.calls")));
        let mut all = match trace.as_deref().zip(traced) {
            Some((file, detail)) => tracer::words(file, detail)?,
            None => Vec::new(),
        };
        all.extend_from_slice(&words);
        let said = bench.kept.join(format!("{name}.err"));
        let failed = |error: io::Error| format!("cannot start {}: {error}", all[0]);
        let output = record::create(&said).map_err(failed)?;
        let mut command = Command::new(&all[0]);
        command
            .args(&all[1..])
            .stdin(Stdio::null())
            .stderr(output.try_clone().map_err(failed)?)
            .stdout(output);
        // The user's TENFOLD_ variables would change the settings.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TENFOLD_") {
                command.env_remove(name);
            }
        }
        for name in OF_MANAGER {
            command.env_remove(name);
        }
        if let Some((_, path)) = &reports {
            command.env("NOTIFY_SOCKET", path);
        }
        let child = spawn_pinned(command, &bench.server_processors).map_err(failed)?;
        let reports = reports.map(|(socket, _)| socket);
        let mut server = RunningServer { child, trace, reports, address, command: words, said };
        server.wait_until_it_serves(bench.patience(START))?;
        Ok(server)
    }

    fn wait_until_it_serves(&mut self, most: Duration) -> Result<(), String> {
        let end = Instant::now() + most;
        while !self.serves() {
            if !self.is_alive() {
                return Err(self.explain("the server did not start".to_owned()));
            }
            if interrupted() || Instant::now() > end {
                let (address, seconds) = (self.address, most.as_secs());
                let lacks = match self.reports {
                    Some(_) => format!("did not report within {seconds} s that it serves {address}"),
                    None => format!("does not listen on {address} after {seconds} s"),
                };
                return Err(self.explain(format!("the server {lacks}")));
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Whether the server serves. Tenfold reports it, because its sockets are hidden from its own user. A peer must own
    /// the listening socket, because another program could have taken the port.
    fn serves(&self) -> bool {
        match &self.reports {
            Some(reports) => is_ready(reports),
            None => {
                TcpStream::connect_timeout(&self.address, START).is_ok()
                    && processes::listens(self.child.id(), self.address.port())
            }
        }
    }

    /// The process id of the server, without the tracer.
    pub(crate) fn process(&self) -> u32 {
        match self.trace {
            Some(_) => processes::child(self.child.id()).unwrap_or(self.child.id()),
            None => self.child.id(),
        }
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Adds the last line of the server's output to an error.
    pub(crate) fn explain(&self, why: String) -> String {
        let said = fs::read_to_string(&self.said).unwrap_or_default();
        match said.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("{why}; it wrote: {line}"),
            None => why,
        }
    }

    /// Stops the server, and returns the complete trace.
    pub(crate) fn end_trace(mut self) -> Result<String, String> {
        self.stop();
        let Some(file) = &self.trace else { return Ok(String::new()) };
        fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
    }

    fn stop(&mut self) {
        let begin = Instant::now();
        // Another process may have the id of a child that has ended.
        if self.is_alive() {
            // INT stops without the drain of idle connections. A tracer ends with its processes.
            self.signal(Signal::Interrupt);
        }
        while self.is_alive() {
            if begin.elapsed() > STOP {
                self.signal(Signal::Kill);
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(number) = i32::try_from(self.process()).ok().and_then(Pid::from_raw) {
            send_signal(number, signal);
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stop();
        if fs::metadata(&self.said).is_ok_and(|file| file.len() == 0) {
            let _ = fs::remove_file(&self.said);
        }
    }
}

/// A socket that replaces the service manager, and its path. Only this user and root can send to it.
fn socket_for_reports(bench: &Workbench) -> Result<(UnixDatagram, PathBuf), String> {
    let path = bench.site.scratch().join("reports");
    let _ = fs::remove_file(&path);
    let bound = UnixDatagram::bind(&path).and_then(|socket| {
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        socket.set_nonblocking(true).map(|()| socket)
    });
    match bound {
        Ok(socket) => Ok((socket, path)),
        Err(error) => {
            Err(format!("cannot bind {}: {error}; set TMPDIR to a folder with a short name", path.display()))
        }
    }
}

/// Whether a server has reported that it serves.
fn is_ready(reports: &UnixDatagram) -> bool {
    let mut report = [0; 4096];
    while let Ok(length) = reports.recv(&mut report) {
        if report[..length].split(|byte| *byte == b'\n').any(|line| line == b"READY=1") {
            return true;
        }
    }
    false
}

/// The command of this server.
fn tenfold(bench: &Workbench, cell: &Cell, address: SocketAddr) -> Vec<String> {
    let folder = bench.root().display().to_string();
    let mut words = vec![bench.own.program.display().to_string(), "serve".to_owned(), folder.clone()];
    let mut add = |name: &str, value: &str| words.extend([format!("--{name}"), value.to_owned()]);
    add("listen", &address.to_string());
    let fixed = [("access-log", "off"), ("control", "off"), ("log-level", "warn")];
    for (name, value) in fixed.iter().filter(|(name, _)| !cell.settings.contains_key(*name)) {
        add(name, value);
    }
    for (name, value) in &cell.settings {
        add(name, &value.replace("{folder}", &folder));
    }
    words
}

/// Starts a process on the given processors, or without pinning if there are none. The process has its own process
/// group, so a signal of the terminal reaches only this program, which then stops the process.
pub(crate) fn spawn_pinned(mut command: Command, processors: &[usize]) -> io::Result<Child> {
    command.process_group(0);
    if processors.is_empty() {
        return command.spawn();
    }
    // A process inherits the processors of the thread that starts it.
    thread::scope(|scope| {
        let started = scope.spawn(|| {
            usage::pin(processors)?;
            command.spawn()
        });
        started.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts it panicked")))
    })
}

/// A free port of the address of subjects.
fn free_address(bench: &Workbench) -> Result<SocketAddr, String> {
    let free = free_listener(bench.address).and_then(|listener| listener.local_addr());
    free.map_err(|error| match bench.address.is_loopback() {
        true => format!("cannot find a free port: {error}"),
        false => format!("cannot find a free port of {}: {error}", bench.address),
    })
}

/// A listener on a free port. Its number is below the range of outgoing connections (`man 7 ip`,
/// `ip_local_port_range`), so that no connection takes the port before the server.
pub(super) fn free_listener(address: Ipv4Addr) -> io::Result<TcpListener> {
    let count = u32::from(PORTS.end() - PORTS.start()) + 1;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Processes that search concurrently begin at different ports.
    let begin = std::process::id().wrapping_mul(7_919);
    for _ in 0..count {
        let number = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % count;
        match TcpListener::bind((address, PORTS.start() + number as u16)) {
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => return Err(error),
            Err(_) => {}
            found => return found,
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}
