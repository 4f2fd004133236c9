//! The server of a test: its start, its queries, its signals, and its end after any result of the test.

use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitStatus;
use std::thread;
use std::time::Duration;

use tenfold_sys::process::{Pid, send_signal};
use tenfold_sys::signal::Signal;
use tenfold_testkit::process::Process;
use tenfold_testkit::program::{Program, Running};
use tenfold_testkit::seal::certificate_folder;
use tenfold_testkit::time::{PATIENCE, becomes_true, within};
use tenfold_testkit::wire::{self, Wire};

use crate::configuration::Configuration;
use crate::{pattern, server};

/// A request whose head has at least 64 bytes.
pub(crate) fn request(target: &str) -> Vec<u8> {
    wire::request("GET", target, &[("User-Agent", "driver-tests")])
}

/// A duration in the format of the settings.
pub(crate) fn milliseconds(duration: Duration) -> String {
    duration.as_millis().to_string()
}

pub(crate) struct Server {
    running: Running,
    listens: String,
    /// Whether clients use TLS.
    tls: bool,
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
        let mut settings = vec![
            ("engine", configuration.engine.to_string()),
            ("topology", configuration.topology.to_string()),
            ("sender", configuration.sender.to_string()),
            ("dispatch", configuration.dispatch.to_string()),
            ("scarce", configuration.scarce.to_string()),
            ("large", pattern::large_file().display().to_string()),
        ];
        settings.extend(configuration.triggers.map(|triggers| ("triggers", triggers.to_string())));
        settings.extend(configuration.method.map(|method| ("method", method.to_string())));
        let certificate = configuration.tls.then(certificate_folder);
        settings.extend(certificate.map(|folder| ("certificate", folder.display().to_string())));
        settings.extend(more.iter().map(|&(name, value)| (name, value.to_owned())));
        let program = std::env::current_exe().expect("a running program has a name");
        let words = settings.iter().map(|(name, value)| format!("{name}={value}"));
        let mut program = Program::new(program).args([server::ROLE.to_owned()].into_iter().chain(words));
        if let Some((_, milliseconds)) = more.iter().find(|(name, _)| *name == "slice") {
            program = program.env("TENFOLD_TEST_SLICE", milliseconds);
        }
        let running = program.start();
        let listens = running.until(PATIENCE, "it listens", |errors| {
            let (_, rest) = errors.split_once(server::LISTENS)?;
            Some(rest.split_once('\n')?.0.to_owned())
        });
        Server { running, listens, tls: configuration.tls }
    }

    /// Starts a server that has answered a client. `more` are settings as above.
    #[track_caller]
    pub(crate) fn with_client(configuration: &Configuration, more: &[(&str, &str)]) -> (Server, Wire) {
        let server = Server::start_with(configuration, more);
        let mut client = server.connect();
        assert_eq!(client.fetch("/small").body, server::SMALL);
        (server, client)
    }

    pub(crate) fn connect(&self) -> Wire {
        let wire = match self.listens.strip_prefix("unix:") {
            Some(path) => Wire::connect_unix(Path::new(path)),
            None => Wire::connect(self.address()),
        };
        let wire = wire.acknowledges();
        if self.tls { wire.with_tls() } else { wire }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listens.parse().expect("it listens on an address")
    }

    /// Returns the server's counter `name`, over a separate connection.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.counts()(name)
    }

    fn counts(&self) -> impl Fn(&str) -> u64 + use<> {
        let body = self.connect().fetch("/counters").body;
        let text = String::from_utf8(body).expect("counters are text");
        move |name| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.parse().ok()).expect("this is counted")
        }
    }

    /// Waits until the counter `name` is at least `least`.
    pub(crate) fn has_counted(&self, name: &str, least: u64) {
        let what = format!("{name} is counted {least} times");
        becomes_true(PATIENCE, &what, || self.count(name) >= least);
    }

    /// Waits until the server uses no processor time. A loop that spins never gets there.
    pub(crate) fn falls_asleep(&self) {
        becomes_true(PATIENCE, "the loop sleeps", || {
            let before = self.process().processor_time();
            // Processor time is counted in ticks, so a shorter time shows nothing on a busy machine.
            thread::sleep(Duration::from_millis(300));
            self.process().processor_time() - before <= Duration::from_millis(50)
        });
    }

    /// Waits until the server has received all bytes that `client` has sent, according to the kernel (`man 5
    /// proc_pid_net`, /proc/net/tcp).
    pub(crate) fn has_taken(&self, client: &Wire) {
        let client = client.socket().local_addr().expect("it is connected");
        let (ours, theirs) = (format!(":{:04X}", self.address().port()), format!(":{:04X}", client.port()));
        becomes_true(PATIENCE, "the server receives what was sent", || {
            let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux has it");
            let mut rows = table.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
            let row = rows.find(|row| row.len() > 4 && row[1].ends_with(&ours) && row[2].ends_with(&theirs));
            row.is_some_and(|row| row[4].ends_with(":00000000"))
        });
    }

    /// The number of open connections, without the connection of this query.
    pub(crate) fn others(&self) -> i64 {
        let counted = self.counts();
        // If a process serves the query, its connection is counted a moment after it is served.
        counted("accepted") as i64 - counted("closed") as i64 - 1
    }

    /// Waits until so many connections are open, without the connection of the query.
    #[track_caller]
    pub(crate) fn has_others(&self, count: i64) {
        let mut others = 0;
        let found = within(PATIENCE, || {
            others = self.others();
            (others == count).then_some(())
        });
        assert!(found.is_some(), "{others} connections are open instead of {count}");
    }

    pub(crate) fn process(&self) -> Process {
        self.running.process()
    }

    pub(crate) fn number(&self) -> u32 {
        self.process().0
    }

    /// Sends a signal, and waits until a thread of the server has received it (`man 5 proc_pid_status`, ShdPnd). On a
    /// busy machine, delivery can take longer than the pause of the test.
    pub(crate) fn tell(&self, signal: Signal) {
        send_signal(Pid::from_raw(self.number() as i32).expect("a process has a number"), signal);
        becomes_true(PATIENCE, "the signal is delivered", || {
            let pending = self.process().status("ShdPnd");
            !self.process().is_running() || pending.is_none_or(|bits| bits.bytes().all(|bit| bit == b'0'))
        });
    }

    /// The number of the server's eventfds.
    pub(crate) fn eventfds(&self) -> usize {
        self.process().descriptors().iter().filter(|target| target.contains("eventfd")).count()
    }

    /// Whether the process is still there.
    pub(crate) fn runs(&self) -> bool {
        self.running.ended().is_none()
    }

    /// Waits for the end of the server, and returns its exit status.
    #[track_caller]
    pub(crate) fn end(&self, within: Duration) -> ExitStatus {
        self.running.ends_within(within)
    }

    /// Stops the server, and asserts that it ends without a panic or a report of a sanitizer.
    #[track_caller]
    pub(crate) fn stop(self) {
        self.tell(Signal::Interrupt);
        let status = self.end(PATIENCE);
        assert!(status.success(), "{status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", self.running.errors());
        }
    }
}
