//! Programs under test: their start, their output, and their end.

use std::ffi::OsStr;
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::Process;
use crate::time::{PATIENCE, SOON, eventually, lock};

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
        let errors = Collected::of(child.stderr.take().expect("its standard error is a pipe"));
        Running { what, process: Process(child.id()), child: Mutex::new(child), errors }
    }

    /// Runs the program to its end. Ends it if it uses much processor time.
    #[track_caller]
    pub fn run(mut self) -> Output {
        run(&mut self.0)
    }
}

impl From<Command> for Program {
    fn from(command: Command) -> Program {
        Program(command)
    }
}

/// A program that runs until this value is dropped.
#[derive(Debug)]
pub struct Running {
    what: String,
    process: Process,
    child: Mutex<Child>,
    errors: Arc<Collected>,
}

impl Running {
    /// Its process.
    pub fn process(&self) -> Process {
        self.process
    }

    /// Its standard error so far.
    pub fn errors(&self) -> String {
        self.errors.text()
    }

    /// Waits until `probe` finds a value in its standard error. Fails if the program ends before that.
    #[track_caller]
    pub fn until<T>(&self, bound: Duration, what: &str, probe: impl FnMut(&str) -> Option<T>) -> T {
        self.errors.find_within(bound, probe).unwrap_or_else(|| {
            let how = match self.errors.ends_within(Duration::ZERO) {
                true => format!("it ended, {}", self.ends_within(SOON)),
                false => format!("not within {bound:?}"),
            };
            panic!("{}: {what}: {how}; its errors:\n{}", self.what, self.errors())
        })
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

    /// Kills it and its descendants, if it runs. Returns whether it ran.
    pub fn kill(&self) -> bool {
        let runs = self.ended().is_none();
        if runs {
            self.process.with_descendants().into_iter().for_each(|process| process.signal(Signal::KILL));
            let _ = lock(&self.child).wait();
        }
        runs
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
        self.kill();
    }
}

/// Runs the command to its end, and ends it if it uses much processor time. Panics if it uses none for
/// [`PATIENCE`]: a program that a busy machine delays is not a program that hangs.
#[track_caller]
pub fn run(command: &mut Command) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("run {command:?}: {error}"));
    let process = Process(child.id());
    let stdout = Collected::of(child.stdout.take().expect("its standard output is a pipe"));
    let stderr = Collected::of(child.stderr.take().expect("its standard error is a pipe"));
    let mut used = Duration::ZERO;
    let status = loop {
        let (ended, now) = eventually(PATIENCE, &format!("{command:?} ends, or uses the processor"), || {
            let (ended, now) = (child.try_wait().expect("our own child"), process.processor_time());
            (ended.is_some() || now > used).then_some((ended, now))
        });
        if let Some(status) = ended {
            break status;
        }
        used = now;
        if used > SOON {
            process.signal(Signal::KILL);
        }
    };
    let whole = |stream: Arc<Collected>| {
        assert!(stream.ends_within(SOON), "{command:?} left a process with its output");
        stream.text().into_bytes()
    };
    Output { status, stdout: whole(stdout), stderr: whole(stderr) }
}

/// The text of a stream so far. A thread collects it.
#[derive(Debug, Default)]
pub struct Collected {
    text: Mutex<StreamText>,
    grew: Condvar,
}

#[derive(Debug, Default)]
struct StreamText {
    so_far: String,
    ended: bool,
}

impl Collected {
    /// Collects the text of a stream, on a thread that ends with it.
    pub fn of(mut from: impl Read + Send + 'static) -> Arc<Collected> {
        let collected = Arc::new(Collected::default());
        let into = collected.clone();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            let mut next = || {
                from.read(&mut buffer)
                    .ok()
                    .filter(|&count| count > 0)
                    .map(|count| String::from_utf8_lossy(&buffer[..count]).into_owned())
            };
            loop {
                let more = next();
                let mut text = lock(&into.text);
                match more {
                    Some(more) => text.so_far.push_str(&more),
                    None => text.ended = true,
                }
                into.grew.notify_all();
                if text.ended {
                    return;
                }
            }
        });
        collected
    }

    /// The text so far.
    pub fn text(&self) -> String {
        lock(&self.text).so_far.clone()
    }

    /// Waits until `find` returns a value for the text. Returns `None` if the stream ends before, or after `bound`.
    pub fn find_within<T>(&self, bound: Duration, mut find: impl FnMut(&str) -> Option<T>) -> Option<T> {
        let by = Instant::now() + bound;
        let mut text = lock(&self.text);
        loop {
            let found = find(&text.so_far);
            let left = by.saturating_duration_since(Instant::now());
            if found.is_some() || text.ended || left.is_zero() {
                return found;
            }
            text = self.grew.wait_timeout(text, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until the stream ends, for at most `bound`. Returns whether it has ended.
    pub fn ends_within(&self, bound: Duration) -> bool {
        self.find_within(bound, |_| None::<()>);
        lock(&self.text).ended
    }
}
