//! A subject as a process: started on its processors, stopped by its number.

use std::fs;
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
use crate::machine::{environment, processes};
use crate::record;
use crate::trial::bench::{Workbench, interrupted};
use crate::trial::museum;
use crate::trial::site::TrialSite;

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
            peer => peer_command(bench, peer, name, address)?,
        };
        let said = bench.kept.join(format!("{name}.err"));
        let failed = |error: io::Error| format!("cannot start {}: {error}", words[0]);
        let output = record::create(&said).map_err(failed)?;
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
        let number = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // Another process can have the number of a child that has ended.
        if let Some(number) = number.filter(|_| self.is_alive()) {
            // Stops at once; a drain would wait for idle connections.
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
    const COUNT: u16 = 2_000;
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

/// The command of a server of others. Its configuration is written first, into the folder of the run.
fn peer_command(
    bench: &Workbench,
    peer: Subject,
    name: &str,
    address: SocketAddr,
) -> Result<Vec<String>, String> {
    let program = environment::program(peer).ok_or_else(|| format!("{} is not installed", peer.name()))?;
    // In a configuration, another character may end the path.
    let is_plain = |character: char| character.is_alphanumeric() || "/._-+@~,=".contains(character);
    if let Some(other) = bench.kept.display().to_string().chars().find(|character| !is_plain(*character)) {
        let (peer, folder) = (peer.name(), bench.kept.display());
        return Err(format!("{peer} cannot be configured: {folder} contains {other:?}; name another folder"));
    }
    let file = bench.kept.join(format!("{name}.conf"));
    record::write(&file, configuration(peer, &bench.site, address, name))?;
    let (program, file) = (program.display().to_string(), file.display().to_string());
    let folder = bench.site.scratch().display().to_string();
    let words: Vec<&str> = match peer {
        Subject::Nginx => vec![&program, "-p", &folder, "-c", &file],
        Subject::Apache => vec![&program, "-D", "FOREGROUND", "-f", &file],
        Subject::Lighttpd => vec![&program, "-D", "-f", &file],
        _ => vec![&program, "-c", &file],
    };
    Ok(words.into_iter().map(str::to_owned).collect())
}

/// One worker, no access log, and as many connections as a trial opens: what all of them are given.
fn configuration(peer: Subject, site: &TrialSite, address: SocketAddr, name: &str) -> String {
    let (site, scratch, port) = (site.folder().display(), site.scratch().display(), address.port());
    match peer {
        Subject::Nginx => format!(
            "worker_processes 1;\ndaemon off;\npid {scratch}/{name}.pid;\nerror_log stderr crit;\n\
             worker_rlimit_nofile 20000;\nevents {{ worker_connections 10000; multi_accept on; }}\n\
             http {{\n    types {{ application/octet-stream bin; }}\n    access_log off;\n    sendfile on;\n    \
             tcp_nopush on;\n    keepalive_requests 1000000000;\n    open_file_cache max=10000 inactive=60s;\n    \
             server {{ listen {address} reuseport backlog=4096; root {site}; }}\n}}\n"
        ),
        Subject::Apache => format!(
            "ServerRoot {scratch}\nServerName localhost\nListen {address}\nPidFile {scratch}/{name}.pid\n\
             LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so\n\
             LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so\n\
             ServerLimit 1\nStartServers 1\nThreadLimit 200\nThreadsPerChild 200\nMaxRequestWorkers 200\n\
             MinSpareThreads 1\nMaxSpareThreads 200\nAsyncRequestWorkerFactor 50\nListenBacklog 4096\n\
             ErrorLog /dev/stderr\nLogLevel crit\nDocumentRoot {site}\nKeepAlive On\nMaxKeepAliveRequests 0\n\
             KeepAliveTimeout 60\n\
             User nobody\nGroup nogroup\nDefaultRuntimeDir {scratch}\n<Directory {site}>\n    Require all granted\n</Directory>\n"
        ),
        Subject::Lighttpd => format!(
            "server.document-root = \"{site}\"\nserver.bind = \"127.0.0.1\"\nserver.port = {port}\n\
             server.max-keep-alive-requests = 100000000\nserver.max-fds = 20000\nserver.max-connections = 8000\n\
             mimetype.assign = (\".bin\" => \"application/octet-stream\")\n"
        ),
        _ => format!(
            "num-threads: 1\nmax-connections: 10000\nhosts:\n  \"default\":\n    \
             listen: {{host: 127.0.0.1, port: {port}}}\n    paths:\n      \"/\":\n        file.dir: {site}\n"
        ),
    }
}
