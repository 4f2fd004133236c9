//! A subject as a process: started on its processors, stopped by its number.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
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
use crate::trial::bench::{Workbench, interrupted};
use crate::trial::{museum, peers};

/// Time in which a server has to listen.
const START: Duration = Duration::from_secs(10);
/// Time after which a server that does not stop is killed.
const STOP: Duration = Duration::from_secs(2);

/// A server that runs until this value is dropped.
#[derive(Debug)]
pub(crate) struct RunningServer {
    child: Child,
    /// The address that it listens on.
    pub(crate) address: SocketAddr,
    /// Its command.
    pub(crate) command: Vec<String>,
    said: PathBuf,
}

impl RunningServer {
    /// Starts the subject of a cell, and waits until it listens.
    pub(crate) fn start(bench: &Workbench, name: &str, cell: &Cell) -> Result<RunningServer, String> {
        let address = free_address().map_err(|error| format!("cannot find a free port: {error}"))?;
        let words = match cell.subject {
            Subject::Tenfold => tenfold(bench, cell, address),
            Subject::Museum => museum::words(bench, cell, address)?,
            peer => peers::words(bench, peer, name, address)?,
        };
        let said = bench.kept.join(format!("{name}.err"));
        let failed = |error: io::Error| format!("cannot start {}: {error}", words[0]);
        let output = File::create(&said).map_err(failed)?;
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .stdin(Stdio::null())
            .stderr(output.try_clone().map_err(failed)?)
            .stdout(output);
        // Settings in variables of the user would change what is measured.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TENFOLD_") {
                command.env_remove(name);
            }
        }
        let child = spawn_pinned(command, &bench.server_processors).map_err(failed)?;
        let mut server = RunningServer { child, address, command: words, said };
        server.wait_until_it_listens()?;
        Ok(server)
    }

    fn wait_until_it_listens(&mut self) -> Result<(), String> {
        let begin = Instant::now();
        loop {
            // The port was free a moment ago. Another program that took it since would be measured in its place.
            let answers = TcpStream::connect_timeout(&self.address, START).is_ok();
            if answers && processes::listens(self.child.id(), self.address.port()) {
                return Ok(());
            }
            if !self.is_alive() {
                return Err(self.explain("the server did not start".to_owned()));
            }
            if interrupted() || begin.elapsed() > START {
                return Err(self.explain(format!("the server does not listen after {} s", START.as_secs())));
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Its number.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// An error with the last line that the server wrote.
    pub(crate) fn explain(&self, why: String) -> String {
        let said = fs::read_to_string(&self.said).unwrap_or_default();
        match said.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!("{why}; it wrote: {line}"),
            None => why,
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let begin = Instant::now();
        if let Some(number) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // Stops at once; a drain would wait for idle connections. The child is not reaped yet, so it is its number.
            send_signal(number, Signal::Interrupt);
        }
        while self.is_alive() {
            if begin.elapsed() > STOP {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
            thread::sleep(Duration::from_millis(2));
        }
        if fs::metadata(&self.said).is_ok_and(|file| file.len() == 0) {
            let _ = fs::remove_file(&self.said);
        }
    }
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

/// Starts a process on processors; on all of them if there are none named. A signal of the terminal reaches this
/// program alone, which stops what it started.
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

/// An address that is free, with a port below those of outgoing connections (`man 7 ip`, `ip_local_port_range`): one of
/// these could take the port before the server does.
fn free_address() -> io::Result<SocketAddr> {
    const FIRST: u16 = 10_000;
    const COUNT: u16 = 22_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Other programs that search at the same time begin elsewhere.
    let begin = std::process::id().wrapping_mul(7_919);
    for _ in 0..COUNT {
        let number = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % u32::from(COUNT);
        if let Ok(free) = TcpListener::bind((Ipv4Addr::LOCALHOST, FIRST + number as u16)) {
            return free.local_addr();
        }
    }
    Err(io::ErrorKind::AddrInUse.into())
}
