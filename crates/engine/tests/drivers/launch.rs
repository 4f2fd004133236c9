//! The server of a test: its start, its queries, its signals, and its end after any result of the test.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tenfold_sys::process::{Pid, send_signal};
use tenfold_sys::signal::Signal;

use crate::client::{Client, PATIENCE};
use crate::configuration::Configuration;
use crate::seal::Certificate;
use crate::{pattern, server};

pub(crate) struct Server {
    child: Child,
    listens: String,
    /// The certificate that clients trust, with TLS.
    certificate: Option<&'static Certificate>,
    left: bool,
}

impl Server {
    /// Starts a server with the bounds of the tests.
    pub(crate) fn start(configuration: &Configuration) -> Server {
        Server::start_with(configuration, &[])
    }

    /// Starts a server whose connections have small send buffers.
    pub(crate) fn start_with_little_room(configuration: &Configuration) -> Server {
        Server::start_with(configuration, &[("send-buffer", "40000")])
    }

    /// Starts a server. `more` are settings in the format of [`server::main`].
    pub(crate) fn start_with(configuration: &Configuration, more: &[(&str, &str)]) -> Server {
        let program = std::env::current_exe().expect("a running program has a name");
        let mut command = Command::new(program);
        command.arg(server::ROLE).stdout(Stdio::piped());
        let mut set = |name: &str, value: &str| {
            command.arg(format!("{name}={value}"));
        };
        set("engine", &configuration.engine.to_string());
        set("topology", &configuration.topology.to_string());
        set("sender", &configuration.sender.to_string());
        if let Some(triggers) = configuration.triggers {
            set("triggers", &triggers.to_string());
        }
        set("dispatch", &configuration.dispatch.to_string());
        if let Some(method) = configuration.method {
            set("method", &method.to_string());
        }
        let certificate = configuration.tls.then(Certificate::of_this_run);
        if let Some(certificate) = certificate {
            set("certificate", &certificate.chain);
            set("key", &certificate.key);
        }
        set("scarce", &configuration.scarce.to_string());
        set("large", &pattern::large_file().to_string_lossy());
        more.iter().for_each(|(name, value)| set(name, value));
        let mut child = command.spawn().expect("this program can be started again");
        let mut listens = String::new();
        let output = child.stdout.take().expect("it was piped");
        BufReader::new(output).read_line(&mut listens).expect("a server says where it listens");
        let listens = listens.trim().to_owned();
        assert!(!listens.is_empty(), "the server ended before it listened");
        Server { child, listens, certificate, left: false }
    }

    pub(crate) fn connect(&self) -> Client {
        let tls = self.certificate.map(Certificate::client);
        match self.listens.strip_prefix("unix:") {
            Some(path) => Client::connect_unix(&PathBuf::from(path), tls),
            None => Client::connect(self.address(), tls),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listens.parse().expect("it listens on an address")
    }

    /// Returns the server's counter `name`, over a separate connection.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.counts()(name)
    }

    fn counts(&self) -> impl Fn(&str) -> u64 + use<> {
        let body = self.connect().get("/counters").body;
        let text = String::from_utf8(body).expect("counters are text");
        move |name| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.parse().ok()).expect("this is counted")
        }
    }

    /// Waits until the counter `name` is at least `least`.
    pub(crate) fn has_counted(&self, name: &str, least: u64) {
        eventually(|| self.count(name) >= least, || format!("{name} is not counted {least} times"));
    }

    /// Waits until the server uses no processor time. A loop that spins never gets there.
    pub(crate) fn falls_asleep(&self) {
        let sleeps = || {
            let before = self.work();
            std::thread::sleep(Duration::from_millis(300));
            self.work() - before <= Duration::from_millis(50)
        };
        eventually(sleeps, || "the loop spins".into());
    }

    /// Waits until the server has received all bytes that `client` has sent, according to the kernel (`man 5
    /// proc_pid_net`, /proc/net/tcp).
    pub(crate) fn has_taken(&self, client: &Client) {
        let (ours, theirs) = (format!(":{:04X}", self.address().port()), format!(":{:04X}", client.port()));
        let taken = || {
            let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux has it");
            let mut rows = table.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
            let row = rows.find(|row| row.len() > 4 && row[1].ends_with(&ours) && row[2].ends_with(&theirs));
            row.is_some_and(|row| row[4].ends_with(":00000000"))
        };
        eventually(taken, || "what was sent is not received".into());
    }

    /// The number of open connections, without the connection of this query.
    pub(crate) fn others(&self) -> i64 {
        let counted = self.counts();
        // If a process serves the query, its connection is counted a moment after it is served.
        counted("accepted") as i64 - counted("closed") as i64 - 1
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32).expect("a process has a number")
    }

    pub(crate) fn number(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, and waits until a thread of the server has received it (`man 5 proc_pid_status`, ShdPnd). On a
    /// busy machine, delivery can take longer than the pause of the test.
    pub(crate) fn tell(&self, signal: Signal) {
        send_signal(self.pid(), signal);
        let taken = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
            let status = status.unwrap_or_default();
            let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
            status.contains("\nState:\tZ")
                || pending.is_none_or(|bits| bits.trim().bytes().all(|bit| bit == b'0'))
        };
        eventually(taken, || "the signal is still pending".into());
    }

    /// The number of the server's eventfds.
    pub(crate) fn eventfds(&self) -> usize {
        let folder = std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).expect("it runs");
        let links = folder.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
        links.filter(|link| link.to_string_lossy().contains("eventfd")).count()
    }

    /// The names of the server's threads.
    pub(crate) fn threads(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it runs");
        let names = tasks.flatten().map(|task| std::fs::read_to_string(task.path().join("comm")));
        names.map(Result::unwrap_or_default).collect()
    }

    /// The processor time that the server has used so far.
    pub(crate) fn work(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it runs");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |place: usize| fields[place].parse::<u64>().expect("a time is a number");
        // Fields 14 and 15 of `man 5 proc_pid_stat`, in hundredths of a second. The split begins with field 3.
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }

    /// Whether the process is still there.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_none()
    }

    /// Waits for the end of the server, and returns its exit status. Panics after `within`.
    pub(crate) fn end(&mut self, within: Duration) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                self.left = true;
                return status;
            }
            assert!(begun.elapsed() < within, "the server has not left within {within:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops the server, and asserts that it ends without a panic or a report of a sanitizer.
    pub(crate) fn stop(mut self) {
        self.tell(Signal::Interrupt);
        let status = self.end(PATIENCE);
        assert!(status.success(), "{status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.left {
            self.tell(Signal::Interrupt);
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_secs(2) {
                if matches!(self.child.try_wait(), Ok(Some(_))) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Waits until `holds` returns true. Panics after [`PATIENCE`].
pub(crate) fn eventually(mut holds: impl FnMut() -> bool, why: impl Fn() -> String) {
    let begun = Instant::now();
    // With `fork`, each query is a process. It counts as open until its parent has waited for it: once a second, or at
    // the next query. Queries that are faster than the ends of processes would always count each other.
    let mut pause = Duration::from_millis(10);
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{}", why());
        std::thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(1300));
    }
}
