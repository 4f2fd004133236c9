//! Starting the server, and running its other commands.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tenfold_testkit::program::{self, Program};

use crate::binary;
use crate::config::Config;
use crate::server::{Server, ask_status};
use crate::site::TempFolder;
use crate::time::{SOON, becomes_true};
use crate::tools;

/// A loopback address whose port the system chooses. The server reports the port.
pub const ANY_PORT: &str = "127.0.0.1:0";

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

    /// Starts it on a loopback port that the system chooses, after the addresses of its flags, and waits until it listens.
    #[track_caller]
    pub fn start(self) -> Server {
        self.flag("--listen", ANY_PORT).start_configured()
    }

    /// Starts it on the addresses of its flags and its file, and waits until it listens. The last TCP address, on
    /// loopback, is the address of the server.
    #[track_caller]
    pub fn start_configured(self) -> Server {
        let mut server = self.run();
        let last = server.listening().pop().expect("it listens on TCP");
        let loopback = if last.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        server.address =
            if last.ip().is_unspecified() { SocketAddr::new(loopback, last.port()) } else { last };
        server
    }

    /// Starts it on addresses that were given to it, and waits until it listens. This address becomes the address of the
    /// server.
    #[track_caller]
    pub fn start_at(self, address: SocketAddr) -> Server {
        let mut server = self.run();
        server.address = address;
        let ports: Vec<u16> = server.listening().iter().map(SocketAddr::port).collect();
        assert!(ports.contains(&address.port()), "it does not listen on {address}, but on {ports:?}");
        server
    }

    /// Starts the server and waits until it reports that it serves. If its log level hides the report, waits until its
    /// status reports that it serves.
    #[track_caller]
    fn run(self) -> Server {
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
        command.stdin(self.stream(0)).stdout(self.stream(1));
        let running = Program::from(command).start();
        if self.says {
            running.until(SOON, "it serves", |errors| errors.contains("  serves ").then_some(()));
        } else {
            let serves = || ask_status(&folder.at("control")).is_ok_and(|status| status["ready"] == true);
            becomes_true(SOON, "its status is ready", || serves() || running.ended().is_some());
        }
        let ended = running.ended();
        assert!(ended.is_none(), "it ended, {ended:?}; it said:\n{}", running.errors());
        let (process, address) = (running.process(), SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        Server { config: self.config, process, address, running, folder, attempts: self.attempts }
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
        if self.config.at_once().is_some() {
            // With few places, a connection gives way to a waiting one after this time. A client may pause for longer
            // than the 20 ms of other tests.
            command.env("TENFOLD_TEST_SLICE", "1000");
        }
        command
    }
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
