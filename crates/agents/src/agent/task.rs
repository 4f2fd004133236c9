//! A task: work in a process of its own, which talks to the controller.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenfold_sys::lifecycle::{self, Phase};

use crate::frame::{self, FrameReader};
use crate::message::Report;

/// A task by its name. It returns at its end; an error is a sentence for the user.
pub type Task = fn(&mut TaskPipe) -> Result<(), String>;

/// The connection of a task with its controller.
#[derive(Debug)]
pub struct TaskPipe {
    stream: UnixStream,
    input: FrameReader,
}

impl TaskPipe {
    pub(crate) fn new(stream: UnixStream) -> TaskPipe {
        TaskPipe { stream, input: FrameReader::default() }
    }

    /// Waits for a message of the controller. `None` at the end of the input, or after a signal that stops.
    ///
    /// # Errors
    /// The message is not a `T`, or the connection fails.
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>, String> {
        let failed = |error: io::Error| format!("cannot read a message of the controller: {error}");
        let mut buffer = vec![0; 64 << 10];
        loop {
            if let Some(content) = self.input.next().map_err(failed)? {
                return serde_json::from_slice(content).map(Some).map_err(|error| failed(error.into()));
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(count) => self.input.add(&buffer[..count]),
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(failed(error)),
                Err(_) if lifecycle::phase() == Phase::Serving => {}
                Err(_) => return Ok(None),
            }
        }
    }

    /// Sends a message to the controller.
    pub fn send(&mut self, message: &impl Serialize) -> Result<(), String> {
        let raw = serde_json::value::to_raw_value(message).map_err(|error| error.to_string())?;
        self.report(&Report::Say(&raw))
    }

    pub(super) fn report(&mut self, report: &Report<'_>) -> Result<(), String> {
        let sent = frame::frame(report).and_then(|bytes| self.stream.write_all(&bytes));
        sent.map_err(|error| format!("cannot send a message to the controller: {error}"))
    }
}
