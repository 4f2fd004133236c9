//! The messages between a controller and an agent.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The line before the first frame of an agent begins with this word. The build id follows.
pub(crate) const MAGIC: &str = "tenfold-agent";

/// The time without a message after which an agent, or a warden, ends.
pub const SILENCE: Duration = Duration::from_secs(10);

/// A message to an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order<'a> {
    /// Asks for the time of the agent's monotonic clock.
    Ping(u64),
    /// Begins a task.
    Begin {
        /// Its name.
        task: Cow<'a, str>,
        /// The seconds after which it is killed.
        seconds: u64,
    },
    /// A message for the task.
    #[serde(borrow)]
    Say(&'a RawValue),
    /// Sends SIGINT to the task.
    Interrupt,
    /// Kills the task.
    End,
}

/// A message from an agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Report<'a> {
    /// The answer to [`Order::Ping`].
    Pong {
        /// The number of the ping.
        number: u64,
        /// Nanoseconds of the agent's monotonic clock.
        clock: u64,
    },
    /// A message of the task.
    #[serde(borrow)]
    Say(&'a RawValue),
    /// The task failed for this reason. [`Report::Ended`] follows.
    Failed(Cow<'a, str>),
    /// The task has ended: empty if it exited with 0, otherwise the way.
    Ended(Cow<'a, str>),
}
