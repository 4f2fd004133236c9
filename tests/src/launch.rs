//! Starting the server, and running its other commands.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

use tenfold_testkit::program;

use crate::binary;
use crate::config::Config;
use crate::process::Process;
use crate::server::Server;
use crate::site::TempFolder;
use crate::time::{SOON, becomes_true, eventually};
use crate::tools;

/// The command line of a server.
#[derive(Debug)]
pub struct Launch {
    config: Config,
    wrapper: Vec<String>,
    flags: Vec<String>,
    logs: bool,
    says: bool,
    accounts: bool,
    attempts: bool,
    passed: Vec<OwnedFd>,
    program: Option<PathBuf>,
}

impl Launch {
    /// A server with this configuration and root, and with its own access log.
    pub fn new(config: &Config, root: &Path) -> Launch {
        Launch::bare(config).word(root.display())
    }

    /// A server with this configuration and without a root.
    pub fn bare(config: &Config) -> Launch {
        let (wrapper, flags, passed) = (Vec::new(), config.flags(), Vec::new());
        Launch {
            config: *config,
            wrapper,
            flags,
            logs: true,
            says: true,
            accounts: false,
            attempts: false,
            passed,
            program: None,
        }
    }

    /// Adds a word to the command line.
    pub fn word(mut self, word: impl ToString) -> Launch {
        self.flags.push(word.to_string());
        self
    }

    /// Adds a flag and its value.
    pub fn flag(mut self, name: &str, value: impl ToString) -> Launch {
        let value = value.to_string();
        self.logs &= name != "--access-log";
        self.says &= name != "--log-level" || !["error", "warn"].contains(&value.as_str());
        self.flags.extend([name.to_owned(), value]);
        self
    }

    /// Removes a flag of its configuration, because a file sets it.
    pub fn without(mut self, name: &str) -> Launch {
        if let Some(place) = self.flags.iter().position(|flag| flag == name) {
            self.flags.drain(place..place + 2);
        }
        self
    }

    /// Adds members in a database in its own folder.
    pub fn members(mut self) -> Launch {
        self.accounts = true;
        self
    }

    /// Expects the sandbox to refuse calls, for tests that make them.
    pub fn attempts(mut self) -> Launch {
        self.attempts = true;
        self
    }

    /// Starts it through another program, which executes it.
    pub fn through(mut self, program: &str, words: &[&str]) -> Launch {
        self.wrapper.push(tools::program(program).display().to_string());
        self.wrapper.extend(words.iter().map(|&word| word.to_owned()));
        self
    }

    /// Passes it this descriptor as a service manager would (`man 3 sd_listen_fds`), the first of at most two.
    pub fn passing(mut self, socket: impl Into<OwnedFd>) -> Launch {
        const TAKE: [&str; 2] = ["3<&0 </dev/null", "3<&0 4>&1 </dev/null >/dev/null"];
        self.passed.push(socket.into());
        let count = self.passed.len();
        let script = format!(
            "LISTEN_PID=$$ LISTEN_FDS={count} LISTEN_FDNAMES=first:second exec \"$@\" {}",
            TAKE[count - 1]
        );
        self.wrapper.clear();
        self.through("sh", &["-c", &script, "sh"])
    }

    /// Starts this copy of the server.
    pub fn program(mut self, path: &Path) -> Launch {
        self.program = Some(path.to_owned());
        self
    }

    /// Limits the descriptors of each process.
    pub fn descriptors(self, count: u32) -> Launch {
        let limit = format!("--nofile={count}:{count}");
        self.through("prlimit", &[&limit])
    }

    /// Starts it on a free address and waits until it listens.
    #[track_caller]
    pub fn start(self) -> Server {
        let address = free_address();
        self.flag("--listen", address).start_at(address)
    }

    /// Starts the server and waits until it reports that it listens at this address. If its log level hides the report,
    /// waits until its status reports that it serves.
    #[track_caller]
    pub fn start_at(self, address: SocketAddr) -> Server {
        let folder = TempFolder::new("server");
        let mut command = self.command();
        command.arg("--control").arg(folder.at("control"));
        if self.logs {
            command.arg("--access-log").arg(folder.at("access.log"));
        }
        if self.accounts {
            // If this runs as root, the workers are another user.
            folder.allow(".", 0o777);
            command.arg("--accounts").arg(format!("sqlite:{}", folder.at("members.db").display()));
        }
        command.stdin(self.stream(0)).stdout(self.stream(1)).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("run {command:?}: {error}"));
        let errors = Arc::new(Mutex::new(String::new()));
        let reader =
            program::collect(child.stderr.take().expect("its standard error is a pipe"), errors.clone());
        let process = Process(child.id());
        let (config, child, attempts) = (self.config, Mutex::new(child), self.attempts);
        let server = Server { config, process, address, child, folder, errors, attempts };
        // The server also prints addresses on which it cannot listen, and the command that tries an internal
        // certificate.
        let sign = format!(":{}/", address.port());
        let is_up = || match self.says {
            true => server.errors().split_once("  serves ").is_some_and(|(_, block)| block.contains(&sign)),
            false => says_it_serves(&server.folder.at("control")),
        };
        eventually(SOON, &format!("{command:?} says that it listens"), || {
            if let Some(status) = server.ended() {
                // Its last output may still be in the pipe.
                becomes_true(SOON, "all that it said is read", || reader.is_finished());
                panic!("{command:?} ended at once, {status}, and said:\n{}", server.errors());
            }
            is_up().then_some(())
        });
        server
    }

    /// Runs it to its end, for invalid command lines.
    #[track_caller]
    pub fn refused(self) -> Output {
        let mut command = self.command();
        program::run(command.stdin(self.stream(0)))
    }

    /// Standard input or output: first the passed descriptors.
    fn stream(&self, place: usize) -> Stdio {
        match self.passed.get(place) {
            Some(socket) => Stdio::from(socket.try_clone().expect("a descriptor is left")),
            None => Stdio::null(),
        }
    }

    fn command(&self) -> Command {
        let binary = binary::server().unwrap_or_else(|why| panic!("{why}"));
        let mut words = self.wrapper.clone();
        let program = self.program.as_ref().unwrap_or(&binary.path);
        words.extend([program.display().to_string(), "serve".into()]);
        words.extend_from_slice(&self.flags);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }
}

/// Whether the status of a server reports that it serves.
fn says_it_serves(control: &Path) -> bool {
    let mut said = String::new();
    let asked = UnixStream::connect(control).and_then(|mut stream| stream.read_to_string(&mut said));
    asked.is_ok() && said.contains("\"state\":\"serving\"")
}

/// Runs another command of the server to its end.
#[track_caller]
pub fn tenfold(words: &[&str]) -> Output {
    program::run(&mut command(words))
}

/// Runs a slow command of the server to its end.
#[track_caller]
pub fn tenfold_slowly(words: &[&str]) -> Output {
    command(words).output().expect("the server runs")
}

fn command(words: &[&str]) -> Command {
    let binary = binary::server().unwrap_or_else(|why| panic!("{why}"));
    let mut command = Command::new(&binary.path);
    command.args(words).stdin(Stdio::null());
    command
}

/// A free address below the range of ephemeral ports. No other server of this run gets it.
pub fn free_address() -> SocketAddr {
    const FIRST: u16 = 12_000;
    const COUNT: u16 = 20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % 97).expect("it is below 97") * 200;
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(step < COUNT, "no port is free");
        let port = FIRST + (start + step) % COUNT;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        // A test by bind would leave the socket in concurrently forked processes until their exec.
        if TcpStream::connect(address).is_err() {
            return address;
        }
    }
}
