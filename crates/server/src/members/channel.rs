//! The channel between workers and the accounts process: a pair of sockets that preserves message boundaries.
//!
//! All workers share one end, and the accounts process has the other end. A query carries a descriptor (`man 7 unix`,
//! SCM_RIGHTS) for its reply. So queries of many threads and processes need no numbers, a client that has ended needs no
//! handling, and the accounts process can be replaced.

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
/// The timeout of an answer, shorter than any wait of a request.
const PATIENCE: Duration = Duration::from_secs(20);

/// The end of the workers.
#[derive(Debug)]
pub(crate) struct AccountsClient(OwnedFd);

/// A pending answer.
#[derive(Debug)]
pub(crate) struct PendingQuestion {
    answer: UnixStream,
    by: Instant,
}

/// The end of the accounts process.
#[derive(Debug)]
pub(crate) struct AccountsServer(OwnedFd);

/// A question, and the descriptor for its answer.
pub(crate) struct Question {
    request: Query,
    answer: OwnedFd,
}

/// Returns both ends of a new channel.
pub(crate) fn open() -> io::Result<(AccountsClient, AccountsServer)> {
    let (client, server) = messages::pair()?;
    Ok((AccountsClient(client), AccountsServer(server)))
}

impl AccountsClient {
    /// Duplicates this end for another process.
    pub(crate) fn share(&self) -> io::Result<AccountsClient> {
        self.0.try_clone().map(AccountsClient)
    }

    /// Sends a query and waits for its reply: [`Reply::Unavailable`] if none comes.
    pub(crate) fn ask(&self, request: &Query) -> Reply {
        self.begin(request).and_then(PendingQuestion::answer).unwrap_or(Reply::Unavailable)
    }

    /// Sends a query, and does not wait. It fails if the channel is full.
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
    pub(crate) fn answer(self) -> io::Result<Reply> {
        Ok(serde_json::from_slice(&read_to_end(&self.answer, LONGEST_ANSWER, self.by)?)?)
    }

    /// Waits for the answer, at most for `patience`.
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
    /// Receives a query without waiting ([`io::ErrorKind::WouldBlock`] if there is no message). Returns `None` for an
    /// invalid message: empty, cut or too long, or without exactly one socket. The end of the stream looks like an empty
    /// message; `poll(2)` reports it as POLLHUP.
    pub(crate) fn next(&self, bytes: &mut [u8]) -> io::Result<Option<Question>> {
        let received = messages::receive(&self.0, bytes)?;
        let whole = received.whole;
        let request = serde_json::from_slice(&bytes[..received.length]).ok();
        Ok(match (request, received.into_descriptor()) {
            (Some(request), Some(answer)) if whole => Some(Question { request, answer }),
            _ => None,
        })
    }

    /// A buffer for [`AccountsServer::next`].
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
    /// The query, and the stream for its reply.
    pub(crate) fn apart(self) -> (Query, Answerer) {
        (self.request, Answerer(self.answer))
    }
}

/// The stream for an answer.
pub(crate) struct Answerer(OwnedFd);

impl Answerer {
    /// Writes the reply without waiting. A client that does not read, or has ended, gets nothing.
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
