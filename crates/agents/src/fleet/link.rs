//! The connection with one agent.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tenfold_sys::clock;
use tenfold_sys::poll::PollList;
use tenfold_sys::process::{Pid, send_signal_to_group};
use tenfold_sys::signal::Signal;

use super::event::FleetEvent;
use crate::frame::{self, FrameReader, is_later};
use crate::message::{MAGIC, Order, Report};
use crate::text::{LastWords, safe};

/// The most bytes before the first message: banners of login shells.
const MOST_BANNER: usize = 64 << 10;
/// The longest silence of an agent, which answers at least every second.
const LOST: Duration = Duration::from_secs(5);
/// The longest wait for the status of a program whose output has ended.
const ENDING: Duration = Duration::from_millis(500);
/// The interval of pings.
const PING: Duration = Duration::from_secs(1);
/// The pings in a row from which the clock of an agent is estimated.
pub(super) const FIRST_PINGS: u32 = 8;
/// The unsent bytes from which an agent that reads counts as alive.
const LONG: usize = 1 << 20;
/// The bytes that are read at once from an agent, so that no agent keeps the others waiting.
const PIECE: usize = 256 << 10;

/// The clock of an agent, from the shortest of the last eight round trips. Clocks drift, so older times do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockEstimate {
    /// Nanoseconds that the agent's monotonic clock is ahead of the clock of this machine.
    pub offset: i64,
    /// Nanoseconds of the round trip. The offset is exact to half of it.
    pub round_trip: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkState {
    /// The magic line did not arrive yet.
    Starting,
    Ready,
    /// Its output has ended since this time. Its errors and its status follow within a moment.
    Ending(Instant),
    /// It failed, and its event was reported.
    Gone,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) label: String,
    pub(super) name: String,
    pub(super) state: LinkState,
    child: Child,
    stream: UnixStream,
    errors: Option<UnixStream>,
    banner: Vec<u8>,
    input: FrameReader,
    output: Vec<u8>,
    pub(super) written: LastWords,
    heard: Instant,
    pinged: Instant,
    ping: Option<(u64, u64)>,
    next_ping: u64,
    pub(super) pongs: u32,
    /// The last estimates, one for each ping.
    clocks: VecDeque<ClockEstimate>,
}

impl Link {
    /// Starts the program of an agent. A signal of the terminal does not reach it.
    pub(super) fn start(label: String, name: String, words: &[String]) -> io::Result<Link> {
        let ((stream, of_child), (errors, of_errors)) = (UnixStream::pair()?, UnixStream::pair()?);
        let output: OwnedFd = of_child.try_clone()?.into();
        let child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(OwnedFd::from(of_child))
            .stdout(output)
            .stderr(Stdio::from(OwnedFd::from(of_errors)))
            .process_group(0)
            .spawn()?;
        stream.set_nonblocking(true)?;
        errors.set_nonblocking(true)?;
        let now = Instant::now();
        Ok(Link {
            label,
            name,
            state: LinkState::Starting,
            child,
            stream,
            errors: Some(errors),
            banner: Vec::new(),
            input: FrameReader::default(),
            output: Vec::new(),
            written: LastWords::default(),
            heard: now,
            pinged: now,
            ping: None,
            next_ping: 1,
            pongs: 0,
            clocks: VecDeque::new(),
        })
    }

    pub(super) fn watch(&self, list: &mut PollList, word: u64) {
        if matches!(self.state, LinkState::Starting | LinkState::Ready) {
            list.set(self.stream.as_raw_fd(), word, true, !self.output.is_empty());
        }
        if let Some(errors) = &self.errors {
            list.set(errors.as_raw_fd(), word, true, false);
        }
    }

    /// Returns the clock of the agent, if it has answered a ping.
    pub(super) fn clock(&self) -> Option<ClockEstimate> {
        self.clocks.iter().min_by_key(|clock| clock.round_trip).copied()
    }

    /// Forgives a silence in which this process did not listen.
    pub(super) fn forgive(&mut self, pause: Duration) {
        self.heard += pause;
    }

    /// Returns the bytes in memory of messages that are incomplete.
    pub(super) fn held(&self) -> usize {
        self.input.held()
    }

    /// Sends an order to a ready agent.
    pub(super) fn order(&mut self, order: &Order<'_>) -> io::Result<()> {
        if self.state == LinkState::Ready {
            self.output.extend(frame::frame(order)?);
        }
        Ok(())
    }

    /// Reads and writes as far as possible. Adds the events of this agent.
    ///
    /// # Errors
    /// The reason why the agent is lost or did not start.
    pub(super) fn exchange(&mut self, ours: &str, events: &mut VecDeque<FleetEvent>) -> Result<(), String> {
        self.read_errors();
        match self.state {
            LinkState::Gone => return Ok(()),
            LinkState::Ending(since) => return self.end(since),
            LinkState::Starting | LinkState::Ready => self.read(ours, events)?,
        }
        if self.state == LinkState::Ready {
            self.ping()?;
            if self.heard.elapsed() > LOST {
                return Err(format!("has not answered for {} s", LOST.as_secs()));
            }
        }
        self.write()
    }

    fn read_errors(&mut self) {
        let Some(errors) = &mut self.errors else { return };
        let mut buffer = [0; 16 << 10];
        match errors.read(&mut buffer) {
            Ok(0) => self.errors = None,
            Ok(count) => self.written.add(&buffer[..count]),
            Err(error) if is_later(&error) => {}
            Err(_) => self.errors = None,
        }
    }

    fn read(&mut self, ours: &str, events: &mut VecDeque<FleetEvent>) -> Result<(), String> {
        let mut buffer = vec![0; PIECE];
        let count = match self.stream.read(&mut buffer) {
            Ok(0) => {
                self.state = LinkState::Ending(Instant::now());
                return Ok(());
            }
            Ok(count) => count,
            Err(error) if is_later(&error) => return Ok(()),
            Err(error) => return Err(format!("cannot be read: {error}")),
        };
        match self.state {
            LinkState::Ready => self.input.add(&buffer[..count]),
            _ => {
                self.banner.extend_from_slice(&buffer[..count]);
                if !self.find_magic(ours)? {
                    return Ok(());
                }
                events.push_back(FleetEvent::Ready);
            }
        }
        let wrong = |error: &dyn std::fmt::Display| {
            format!("sent no message of an agent: {}", safe(&error.to_string()))
        };
        while let Some(content) = self.input.next().map_err(|error| wrong(&error))? {
            let report = serde_json::from_slice(content).map_err(|error| wrong(&error))?;
            match report {
                Report::Pong { number, clock: theirs } => {
                    let Some((_, sent)) = self.ping.filter(|(expected, _)| *expected == number) else {
                        return Err("answered a ping that was not sent".to_owned());
                    };
                    self.ping = None;
                    self.pongs = self.pongs.saturating_add(1);
                    self.heard = Instant::now();
                    let found = estimate(sent, clock::monotonic(), theirs);
                    self.clocks.truncate(FIRST_PINGS as usize - 1);
                    self.clocks.push_front(found);
                }
                Report::Say(message) => events.push_back(FleetEvent::Said(message.get().to_owned())),
                Report::Failed(why) => events.push_back(FleetEvent::Failed(safe(&why))),
                Report::Ended(how) => events.push_back(FleetEvent::Ended(safe(&how))),
            }
        }
        Ok(())
    }

    /// Finds the magic line after a banner, and compares the build ids.
    fn find_magic(&mut self, ours: &str) -> Result<bool, String> {
        let magic = format!("{MAGIC} ");
        let mut begin = 0;
        while let Some(length) = self.banner[begin..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.banner[begin..begin + length]).into_owned();
            begin += length + 1;
            let Some(theirs) = line.strip_prefix(&magic) else { continue };
            if theirs != ours {
                let theirs = safe(theirs);
                return Err(format!(
                    "is another program: build {theirs}, and this is build {ours}; copy this program there, or add --on-copy"
                ));
            }
            self.input.add(&self.banner[begin..]);
            self.banner = Vec::new();
            self.state = LinkState::Ready;
            self.heard = Instant::now();
            return Ok(true);
        }
        match self.banner.len() <= MOST_BANNER {
            true => Ok(false),
            false => {
                Err(format!("sent {} KiB, and not the line of an agent{}", MOST_BANNER >> 10, self.quoted()))
            }
        }
    }

    /// The last line that came before the magic line.
    pub(super) fn quoted(&self) -> String {
        let text = String::from_utf8_lossy(&self.banner);
        match text.lines().rev().map(safe).find(|line| !line.is_empty()) {
            Some(line) => format!("; its output ends with: {line}"),
            None => String::new(),
        }
    }

    /// Waits for the status of the program whose output has ended.
    fn end(&mut self, since: Instant) -> Result<(), String> {
        let how = match self.child.try_wait() {
            Ok(None) if since.elapsed() < ENDING => return Ok(()),
            Ok(Some(status)) => format!(" ({status})"),
            _ => String::new(),
        };
        self.read_errors();
        Err(format!("ended{how}{}", self.quoted()))
    }

    /// Sends the next ping when it is due. Each also tells the agent that this process is alive.
    fn ping(&mut self) -> Result<(), String> {
        let is_due = self.pongs < FIRST_PINGS || self.pinged.elapsed() >= PING;
        if self.ping.is_some() || !is_due {
            return Ok(());
        }
        let number = self.next_ping;
        self.next_ping += 1;
        self.pinged = Instant::now();
        self.ping = Some((number, clock::monotonic()));
        self.order(&Order::Ping(number)).map_err(|error| error.to_string())
    }

    fn write(&mut self) -> Result<(), String> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => {
                    if self.output.len() > LONG {
                        // An answer waits until the agent has read the rest.
                        self.heard = Instant::now();
                    }
                    self.output.drain(..count);
                }
                Err(error) if is_later(&error) => return Ok(()),
                // The reader finds the reason.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => self.output.clear(),
                Err(error) => return Err(format!("cannot be written to: {error}")),
            }
        }
        Ok(())
    }

    /// Ends the input of the agent, which then ends.
    pub(super) fn close(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// Whether the program that started the agent has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        // A program that waits for room in its output would never end.
        let mut buffer = [0; 64 << 10];
        let _ = self.stream.read(&mut buffer);
        self.read_errors();
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills the program with its process group.
    pub(super) fn kill(&mut self) {
        if let Some(leader) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            send_signal_to_group(leader, Signal::Kill);
        }
        let _ = self.child.wait();
    }
}

/// Estimates the clock of an agent that read it between `sent` and `received`.
fn estimate(sent: u64, received: u64, theirs: u64) -> ClockEstimate {
    let round_trip = received.saturating_sub(sent);
    let middle = sent.saturating_add(round_trip / 2);
    let offset = i128::from(theirs) - i128::from(middle);
    let offset = offset.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    ClockEstimate { offset: i64::try_from(offset).unwrap_or_default(), round_trip }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_offset_of_a_clock_is_exact_to_half_a_round_trip(
            sent in 0u64..1 << 40, there in 0u64..1 << 30, back in 0u64..1 << 30, ahead in -(1i64 << 39)..1 << 39,
        ) {
            let read = (sent + there) as i64 + ahead;
            let found = estimate(sent, sent + there + back, read.unsigned_abs());
            if read >= 0 {
                prop_assert!(found.offset.abs_diff(ahead) <= found.round_trip / 2 + 1, "{found:?}");
            }
        }
    }

    #[test]
    fn any_clock_of_an_agent_is_a_number() {
        assert_eq!(estimate(10, 5, u64::MAX).offset, i64::MAX);
        assert_eq!(estimate(u64::MAX, u64::MAX, 0).offset, i64::MIN);
    }
}
