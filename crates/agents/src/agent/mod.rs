//! The side of the other machine: `tenfold agent`.

pub(crate) mod task;
mod warden;

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::poll::PollList;
use tenfold_sys::process::{self, Fork};
use tenfold_sys::{clock, wait};

use self::task::Task;
use self::warden::{BEAT, LAST, Watch};
use crate::build;
use crate::frame::{self, FrameReader, is_later};
use crate::message::{MAGIC, Order, Report, SILENCE};

/// Bytes for the controller in memory, above which the task waits.
const MOST_UNSENT: usize = 1 << 20;
/// Reads of the rest of a task's messages after its end.
const LAST_READS: usize = 64;
/// The longest time of a task.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

/// Serves a controller on standard input and output until the input ends.
///
/// # Errors
/// Standard input is a terminal, the system refuses an operation, or the controller sends something else than messages.
pub fn serve(tasks: &[(&str, Task)]) -> Result<(), String> {
    if io::stdin().is_terminal() || io::stdout().is_terminal() {
        return Err(
            "an agent talks to a controller, not to a terminal; start it by `tenfold bench --on NAME`, \
                    or keep a container up with --wait TIME"
                .to_owned(),
        );
    }
    let failed = |attempt: &str, error: io::Error| format!("cannot {attempt}: {error}");
    process::adopt_orphans().map_err(|error| failed("adopt processes", error))?;
    let id = build::id().map_err(|error| failed("read this program in /proc", error))?;
    let unbuffered = |stream: BorrowedFd<'_>| -> io::Result<File> {
        wait::never_block(stream)?;
        Ok(stream.try_clone_to_owned()?.into())
    };
    let prepared = |error: io::Error| failed("prepare standard input and output", error);
    // A line break ends the line of a banner.
    let mut agent = Agent {
        tasks,
        reader: unbuffered(io::stdin().as_fd()).map_err(prepared)?,
        writer: unbuffered(io::stdout().as_fd()).map_err(prepared)?,
        input: FrameReader::default(),
        output: format!("\n{MAGIC} {id}\n").into_bytes(),
        heard: Instant::now(),
        work: None,
    };
    let result = agent.run();
    // The warden ends the task at the end of its connection.
    drop(agent.work);
    process::end_descendants(LAST);
    result
}

/// Keeps a container up for `time`, so that a controller can start agents in it, and reaps their orphans. Ends earlier
/// by INT, TERM or QUIT.
///
/// # Errors
/// The system refuses to install handlers of signals.
pub fn wait(time: Duration) -> Result<(), String> {
    const TICK: Duration = Duration::from_millis(100);
    lifecycle::install_worker_signals().map_err(|error| format!("cannot catch signals: {error}"))?;
    let until = Instant::now() + time;
    while lifecycle::phase() == Phase::Serving && Instant::now() < until {
        while let Ok(Some(_)) = process::reap() {}
        thread::sleep(TICK);
    }
    Ok(())
}

struct Agent<'a> {
    tasks: &'a [(&'a str, Task)],
    reader: File,
    writer: File,
    input: FrameReader,
    output: Vec<u8>,
    heard: Instant,
    work: Option<Work>,
}

/// A task that runs.
struct Work {
    data: UnixStream,
    control: UnixStream,
    from_task: FrameReader,
    to_task: Vec<u8>,
    /// The last sign of life of the warden.
    heard: Instant,
    /// The last words of the warden.
    said: Vec<u8>,
    is_over: bool,
}

impl Agent<'_> {
    fn run(&mut self) -> Result<(), String> {
        let mut beat = Instant::now();
        self.write()?;
        loop {
            self.wait().map_err(|error| format!("cannot wait for messages: {error}"))?;
            if !self.read()? {
                return Ok(());
            }
            self.exchange();
            self.write()?;
            if self.heard.elapsed() > SILENCE {
                return Err(format!("no message of the controller for {} s", SILENCE.as_secs()));
            }
            if beat.elapsed() >= BEAT {
                beat = Instant::now();
                self.tell_warden(warden::ALIVE);
            }
        }
    }

    fn wait(&self) -> io::Result<()> {
        let mut list = PollList::new();
        list.set(self.reader.as_raw_fd(), 0, true, false);
        if !self.output.is_empty() {
            list.set(self.writer.as_raw_fd(), 0, false, true);
        }
        if let Some(work) = &self.work {
            let (read, write) = (self.output.len() < MOST_UNSENT, !work.to_task.is_empty());
            if !work.is_over && (read || write) {
                list.set(work.data.as_raw_fd(), 0, read, write);
            }
            list.set(work.control.as_raw_fd(), 0, true, false);
        }
        list.wait(Some(BEAT.as_millis() as u32), |_| {})
    }

    /// Reads and follows orders. Returns false at the end of the input.
    fn read(&mut self) -> Result<bool, String> {
        let mut buffer = [0; 64 << 10];
        match self.reader.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => self.input.add(&buffer[..count]),
            Err(error) if is_later(&error) => return Ok(true),
            Err(error) => return Err(format!("cannot read standard input: {error}")),
        }
        let wrong = |why: &dyn std::fmt::Display| format!("standard input is not from a controller: {why}");
        while let Some(content) = self.input.next().map_err(|error| wrong(&error))? {
            let order = serde_json::from_slice(content).map_err(|error| wrong(&error))?;
            self.heard = Instant::now();
            follow(order, self.tasks, &mut self.work, &mut self.output);
        }
        Ok(true)
    }

    /// Moves messages between the controller and the task, and ends the work of a warden that ended or stopped.
    fn exchange(&mut self) {
        let Some(work) = &mut self.work else { return };
        if !work.to_task.is_empty() {
            match (&work.data).write(&work.to_task) {
                Ok(count) => drop(work.to_task.drain(..count)),
                Err(error) if is_later(&error) => {}
                // The task has ended; the warden reports it.
                Err(_) => work.to_task.clear(),
            }
        }
        if self.output.len() < MOST_UNSENT {
            work.relay(&mut self.output);
        }
        let how = match work.hear_warden() {
            true if work.heard.elapsed() <= SILENCE => return,
            true => "was ended, because its warden stopped".to_owned(),
            false => match work.said.split_first() {
                Some((&warden::ENDED, how)) => String::from_utf8_lossy(how).into_owned(),
                _ => "was ended, because its warden was killed".to_owned(),
            },
        };
        // The last messages of the task are in the socket. They come before its end.
        for _ in 0..LAST_READS {
            if !work.relay(&mut self.output) {
                break;
            }
        }
        self.work = None;
        process::end_descendants(LAST);
        push(&mut self.output, &Report::Ended(how.into()));
    }

    fn write(&mut self) -> Result<(), String> {
        if self.output.is_empty() {
            return Ok(());
        }
        match self.writer.write(&self.output) {
            Ok(count) => drop(self.output.drain(..count)),
            Err(error) if is_later(&error) => {}
            Err(error) => return Err(format!("cannot write to the controller: {error}")),
        }
        Ok(())
    }

    fn tell_warden(&self, byte: u8) {
        if let Some(work) = &self.work {
            // A full socket means that the warden stopped.
            let _ = (&work.control).write(&[byte]);
        }
    }
}

impl Work {
    /// Moves whole messages of the task into `output`. Returns whether bytes came.
    fn relay(&mut self, output: &mut Vec<u8>) -> bool {
        let mut buffer = [0; 64 << 10];
        let count = match (&self.data).read(&mut buffer) {
            Ok(0) => {
                self.is_over = true;
                return false;
            }
            Ok(count) => count,
            Err(_) => return false,
        };
        self.from_task.add(&buffer[..count]);
        while let Ok(Some(content)) = self.from_task.next() {
            output.extend_from_slice(&(content.len() as u32).to_be_bytes());
            output.extend_from_slice(content);
        }
        true
    }

    /// Reads the signs of life of the warden. Returns whether it still runs.
    fn hear_warden(&mut self) -> bool {
        let mut buffer = [0; 512];
        loop {
            match (&self.control).read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => {
                    self.heard = Instant::now();
                    for byte in &buffer[..count] {
                        if *byte == warden::ENDED || !self.said.is_empty() {
                            self.said.push(*byte);
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }
}

/// Follows an order of the controller.
fn follow(order: Order<'_>, tasks: &[(&str, Task)], work: &mut Option<Work>, output: &mut Vec<u8>) {
    match (order, work.as_mut()) {
        (Order::Ping(number), _) => push(output, &Report::Pong { number, clock: clock::monotonic() }),
        (Order::Begin { task, .. }, Some(_)) => {
            let why = format!("{task} cannot begin: another task runs");
            push(output, &Report::Failed(why.into()));
        }
        (Order::Begin { task, seconds }, None) => match begin(tasks, &task, Duration::from_secs(seconds)) {
            Ok(begun) => *work = Some(begun),
            Err(why) => {
                push(output, &Report::Failed(why.as_str().into()));
                push(output, &Report::Ended("did not begin".into()));
            }
        },
        (Order::Say(message), Some(work)) => {
            work.to_task.extend(frame::frame_of(message.get()).unwrap_or_default());
        }
        (Order::Interrupt, Some(work)) => drop((&work.control).write(&[warden::INTERRUPT])),
        (Order::End, Some(work)) => drop((&work.control).write(&[warden::END])),
        // The task has ended, and the report of it is on its way.
        (Order::Say(_) | Order::Interrupt | Order::End, None) => {}
    }
}

/// Starts the warden of a task.
fn begin(tasks: &[(&str, Task)], name: &str, limit: Duration) -> Result<Work, String> {
    let Some((_, task)) = tasks.iter().find(|(found, _)| *found == name) else {
        return Err(format!("there is no task {name:?}"));
    };
    let start = || -> io::Result<Work> {
        let ((data, of_task), (control, of_warden)) = (UnixStream::pair()?, UnixStream::pair()?);
        let agent = process::own();
        match process::fork()? {
            Fork::Child => {
                drop((data, control));
                let limit = limit.min(LONGEST);
                warden::run(Watch { task: *task, limit, data: of_task, control: of_warden, agent })
            }
            Fork::Parent(_) => {
                data.set_nonblocking(true)?;
                control.set_nonblocking(true)?;
                let (from_task, heard) = (FrameReader::default(), Instant::now());
                let (to_task, said, is_over) = (Vec::new(), Vec::new(), false);
                Ok(Work { data, control, from_task, to_task, heard, said, is_over })
            }
        }
    };
    start().map_err(|error| format!("cannot start a process: {error}"))
}

/// Adds a message to `output`.
fn push(output: &mut Vec<u8>, report: &Report<'_>) {
    // A report has no map with other keys than text, and no length of its own.
    output.extend(frame::frame(report).unwrap_or_default());
}
