//! The channel between workers and the accounts process: a pair of sockets that preserves message boundaries.
//!
//! All workers share one end, and the accounts process has the other. A question carries a descriptor (`man 7 unix`,
//! SCM_RIGHTS) to which the answer is written. So questions of many threads and processes need no numbers, a client
//! that has left needs no handling, and the accounts process can be replaced.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tenfold_accounts::{Query, Reply};
use tenfold_sys::messages;

use crate::sandbox::apart::read_to_end;

/// The most bytes of a question: a form, with its characters escaped for JSON.
const LONGEST: usize = 128 * 1024;
/// The most bytes of an answer.
const LONGEST_ANSWER: usize = 16 * 1024;
/// The time in which an answer must come. It is shorter than any wait of a request.
const PATIENCE: Duration = Duration::from_secs(20);

/// The asking end.
#[derive(Debug)]
pub(crate) struct AccountsClient(OwnedFd);

/// A pending answer: the descriptor to which it comes.
#[derive(Debug)]
pub(crate) struct PendingQuestion {
    answer: UnixStream,
    by: Instant,
}

/// The answering end.
#[derive(Debug)]
pub(crate) struct AccountsServer(OwnedFd);

/// A question, and the descriptor for its answer.
pub(crate) struct Question {
    request: Query,
    answer: OwnedFd,
}

/// Makes a channel; returns both ends.
///
/// # Errors
/// The error of `socketpair(2)`.
pub(crate) fn open() -> io::Result<(AccountsClient, AccountsServer)> {
    let (client, server) = messages::pair()?;
    Ok((AccountsClient(client), AccountsServer(server)))
}

impl AccountsClient {
    /// The same end for another process.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn share(&self) -> io::Result<AccountsClient> {
        self.0.try_clone().map(AccountsClient)
    }

    /// Asks, and waits for the answer. Without one, returns [`Reply::Unavailable`].
    pub(crate) fn ask(&self, request: &Query) -> Reply {
        self.try_ask(request).unwrap_or(Reply::Unavailable)
    }

    fn try_ask(&self, request: &Query) -> io::Result<Reply> {
        self.begin(request)?.answer()
    }

    /// Asks, and does not wait.
    ///
    /// # Errors
    /// The channel is full, or no descriptor is left.
    pub(crate) fn begin(&self, request: &Query) -> io::Result<PendingQuestion> {
        let question = serde_json::to_vec(request)?;
        let (ours, theirs) = UnixStream::pair()?;
        messages::send(&self.0, &question, &[theirs.as_fd()])?;
        Ok(PendingQuestion { answer: ours, by: Instant::now() + PATIENCE })
    }
}

impl PendingQuestion {
    /// The deadline of the answer.
    pub(crate) fn by(&self) -> Instant {
        self.by
    }

    /// Waits for the whole answer, until its deadline.
    ///
    /// # Errors
    /// No answer came.
    pub(crate) fn answer(self) -> io::Result<Reply> {
        Ok(serde_json::from_slice(&read_to_end(&self.answer, LONGEST_ANSWER, self.by)?)?)
    }

    /// Waits for the answer at most for `patience` from now on.
    ///
    /// # Errors
    /// No answer came.
    pub(crate) fn answer_within(self, patience: Duration) -> io::Result<Reply> {
        let by = self.by.min(Instant::now() + patience);
        PendingQuestion { by, ..self }.answer()
    }
}

impl AsFd for PendingQuestion {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.answer.as_fd()
    }
}

impl AccountsServer {
    /// Receives a question without waiting for one. None if the message that came is no question: it is empty, cut or
    /// too long, or does not bring exactly one descriptor to answer to. The end of the stream looks like an empty
    /// message; only `poll(2)` tells it, as POLLHUP.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if nothing has come, or what `recvmsg(2)` says.
    pub(crate) fn next(&self, bytes: &mut [u8]) -> io::Result<Option<Question>> {
        let received = messages::receive(&self.0, bytes)?;
        let whole = received.whole;
        let request = serde_json::from_slice(&bytes[..received.length]).ok();
        Ok(match (request, received.into_descriptor()) {
            (Some(request), Some(answer)) if whole => Some(Question { request, answer }),
            _ => None,
        })
    }

    /// Room for a question.
    pub(crate) fn room() -> Vec<u8> {
        vec![0; LONGEST]
    }
}

impl AsFd for AccountsServer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Question {
    /// Splits a message into the question and the descriptor for the answer.
    pub(crate) fn apart(self) -> (Query, Answerer) {
        (self.request, Answerer(self.answer))
    }
}

/// The stream for an answer.
pub(crate) struct Answerer(OwnedFd);

impl Answerer {
    /// Answers without waiting. A client that has left gets nothing.
    pub(crate) fn answer(self, reply: &Reply) {
        let bytes = serde_json::to_vec(reply).unwrap_or_default();
        let _ = messages::send_bytes(&self.0, &bytes);
    }
}

#[cfg(test)]
impl Answerer {
    /// Sends the beginning of an answer.
    pub(crate) fn send_part(&self) {
        messages::send_bytes(&self.0, b"\"").expect("there is room");
    }
}

#[cfg(test)]
mod any;

#[cfg(test)]
pub(crate) mod tests;
