//! Programs under test: their start, their output, and their end.

use std::ffi::OsStr;
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::Signal;

use crate::process::Process;
use crate::time::{SOON, becomes_true, eventually, lock, within};

/// A command line, without standard input.
#[derive(Debug)]
pub struct Program(Command);

impl Program {
    /// Runs the program at `path`.
    pub fn new(path: impl AsRef<Path>) -> Program {
        let mut command = Command::new(path.as_ref());
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Program(command)
    }

    /// Adds words to the command line.
    #[must_use]
    pub fn args<W: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = W>) -> Program {
        self.0.args(words);
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Program {
        self.0.env(name, value);
        self
    }

    /// Sets its working directory.
    #[must_use]
    pub fn folder(mut self, path: &Path) -> Program {
        self.0.current_dir(path);
        self
    }

    /// Sets its standard input and output.
    #[must_use]
    pub fn streams(mut self, input: Stdio, output: Stdio) -> Program {
        self.0.stdin(input).stdout(output);
        self
    }

    /// Starts the program.
    #[track_caller]
    pub fn start(mut self) -> Running {
        let what = format!("{:?}", self.0);
        let spawned = self.0.stderr(Stdio::piped()).spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("run {what}: {error}"));
        let errors = Arc::new(Mutex::new(String::new()));
        let reader = collect(child.stderr.take().expect("its standard error is a pipe"), errors.clone());
        Running { what, process: Process(child.id()), child: Mutex::new(child), errors, reader }
    }

    /// Runs the program to its end. Ends it if it uses much processor time.
    #[track_caller]
    pub fn run(mut self) -> Output {
        run(&mut self.0)
    }
}

/// A program that runs until this value is dropped.
#[derive(Debug)]
pub struct Running {
    what: String,
    process: Process,
    child: Mutex<Child>,
    errors: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Running {
    /// Its process.
    pub fn process(&self) -> Process {
        self.process
    }

    /// Its standard error so far.
    pub fn errors(&self) -> String {
        lock(&self.errors).clone()
    }

    /// Waits until `probe` finds a value in its standard error. Fails if the program ends before that.
    #[track_caller]
    pub fn until<T>(&self, bound: Duration, what: &str, mut probe: impl FnMut(&str) -> Option<T>) -> T {
        let found = within(bound, || {
            // If it has ended, its last output may still be in the pipe.
            let ended = self.ended();
            if ended.is_some() {
                becomes_true(SOON, "its standard error is read", || self.reader.is_finished());
            }
            match (probe(&self.errors()), ended) {
                (Some(found), _) => Some(Ok(found)),
                (None, Some(status)) => Some(Err(format!("it ended, {status}"))),
                (None, None) => None,
            }
        });
        let found = found.unwrap_or_else(|| Err(format!("not within {bound:?}")));
        found.unwrap_or_else(|why| panic!("{}: {what}: {why}; its errors:\n{}", self.what, self.errors()))
    }

    /// Waits until its standard error contains `words`.
    #[track_caller]
    pub fn expect_report(&self, words: &str) {
        self.until(SOON, &format!("it reports {words:?}"), |errors| errors.contains(words).then_some(()));
    }

    /// Waits until the start block of a server has at least one Internet address. Returns all of its addresses.
    #[track_caller]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.until(SOON, "it listens", |errors| {
            // The line after the last address shows that no address is missing.
            let (_, block) = errors.split_once("  serves ")?;
            let (addresses, _) = block.split_once("\n  folder ")?;
            let links = addresses.split_ascii_whitespace().filter_map(|word| word.split_once("://"));
            let found: Vec<_> =
                links.filter_map(|(_, place)| place.trim_end_matches('/').parse().ok()).collect();
            (!found.is_empty()).then_some(found)
        })
    }

    /// The first of [`Running::addresses`].
    #[track_caller]
    pub fn address(&self) -> SocketAddr {
        self.addresses()[0]
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Its exit status, if it has ended.
    pub fn ended(&self) -> Option<ExitStatus> {
        lock(&self.child).try_wait().expect("our own child")
    }

    /// Waits until it has ended.
    #[track_caller]
    pub fn ends_within(&self, bound: Duration) -> ExitStatus {
        eventually(bound, &format!("{} ends", self.what), || self.ended())
    }

    /// Stops it by a signal. Fails if it ends with an error.
    #[track_caller]
    pub fn stop(self, signal: Signal, bound: Duration) {
        self.signal(signal);
        let status = self.ends_within(bound);
        assert!(status.success(), "{}: {status}; its errors:\n{}", self.what, self.errors());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended().is_none() {
            for process in self.process.with_descendants() {
                process.signal(Signal::KILL);
            }
            let _ = lock(&self.child).wait();
        }
    }
}

/// Runs the command to its end. Ends it if it uses much processor time.
#[track_caller]
pub fn run(command: &mut Command) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("run {command:?}: {error}"));
    let process = Process(child.id());
    let (out, err) = (Arc::new(Mutex::new(String::new())), Arc::new(Mutex::new(String::new())));
    let out_reader = collect(child.stdout.take().expect("its standard output is a pipe"), out.clone());
    let err_reader = collect(child.stderr.take().expect("its standard error is a pipe"), err.clone());
    let status = eventually(SOON, &format!("{command:?} ends"), || {
        let ended = child.try_wait().expect("our own child");
        if ended.is_none() && process.processor_time() > SOON {
            process.signal(Signal::KILL);
        }
        ended
    });
    out_reader.join().expect("the reader does not panic");
    err_reader.join().expect("the reader does not panic");
    Output { status, stdout: lock(&out).clone().into_bytes(), stderr: lock(&err).clone().into_bytes() }
}

/// Appends the output of a program to `into`, on a thread that ends with the output.
pub fn collect(mut from: impl Read + Send + 'static, into: Arc<Mutex<String>>) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            lock(&into).push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    })
}
