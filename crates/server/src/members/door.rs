//! The way to the accounts: a pair of sockets that keeps the bounds of messages.
//!
//! Every process of the server has one end, and the accounts have the other. A question brings a descriptor with it
//! (`man 7 unix`, SCM_RIGHTS), to which the answer is written: so questions of many threads and processes need no
//! numbers, who asked and went away is nobody, and the process of the accounts can be replaced behind the same door.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use tenfold_accounts::{Reply, Request};

/// Bytes of a question at most: a form, and what JSON makes of its characters.
const LONGEST: usize = 128 * 1024;
/// Bytes of an answer at most.
const LONGEST_ANSWER: u64 = 16 * 1024;
/// How long an answer may take. It is less than a request waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// The end of those who ask.
#[derive(Debug)]
pub(crate) struct Door(OwnedFd);

/// A question that was asked: where its answer comes.
#[derive(Debug)]
pub(super) struct Asked {
    answer: UnixStream,
    by: Instant,
}

/// The end of the accounts.
#[derive(Debug)]
pub(crate) struct Inside(OwnedFd);

/// A question, and where its answer goes.
pub(crate) struct Question {
    request: Request,
    answer: UnixStream,
}

/// A door with both of its ends.
///
/// # Errors
/// What `socketpair(2)` says.
pub(crate) fn open() -> io::Result<(Door, Inside)> {
    let (door, inside) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    Ok((Door(door), Inside(inside)))
}

impl Door {
    /// The same door for another who asks.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn share(&self) -> io::Result<Door> {
        self.0.try_clone().map(Door)
    }

    /// Asks, and waits for the answer. Where none comes it is [`Reply::Unavailable`].
    pub(crate) fn ask(&self, request: &Request) -> Reply {
        self.try_ask(request).unwrap_or(Reply::Unavailable)
    }

    fn try_ask(&self, request: &Request) -> io::Result<Reply> {
        self.begin(request)?.answer()
    }

    /// Asks, and does not wait.
    ///
    /// # Errors
    /// The door is full, or no descriptor is left.
    pub(super) fn begin(&self, request: &Request) -> io::Result<Asked> {
        let question = serde_json::to_vec(request)?;
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_read_timeout(Some(PATIENCE))?;
        self.send(&question, theirs)?;
        Ok(Asked { answer: ours, by: Instant::now() + PATIENCE })
    }

    /// A door behind which too many wait is closed: who asks is told so at once.
    fn send(&self, question: &[u8], theirs: UnixStream) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let rights = [theirs.as_fd()];
        control.push(SendAncillaryMessage::ScmRights(&rights));
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&self.0, &[IoSlice::new(question)], &mut control, flags)?;
        Ok(())
    }
}

impl Asked {
    /// Until when it is waited for.
    pub(super) fn by(&self) -> Instant {
        self.by
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// None comes.
    pub(super) fn answer(mut self) -> io::Result<Reply> {
        let mut bytes = Vec::new();
        (&mut self.answer).take(LONGEST_ANSWER).read_to_end(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

impl AsFd for Asked {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.answer.as_fd()
    }
}

impl Inside {
    /// The same end for another process of accounts.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn share(&self) -> io::Result<Inside> {
        self.0.try_clone().map(Inside)
    }

    /// Waits for a question. None where a signal came instead, or what came was no question.
    ///
    /// # Errors
    /// Nobody is left who could ask, or what `recvmsg(2)` says.
    pub(crate) fn next(&self, bytes: &mut [u8]) -> io::Result<Option<Question>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received =
            match recvmsg(&self.0, &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC) {
                Ok(received) => received,
                Err(Errno::INTR) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        let rights = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        if received.bytes == 0 && rights.is_none() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let whole = !received.flags.contains(ReturnFlags::TRUNC);
        let request = serde_json::from_slice(&bytes[..received.bytes]).ok();
        Ok(match (request, rights) {
            (Some(request), Some(rights)) if whole => Some(Question { request, answer: rights.into() }),
            _ => None,
        })
    }

    /// Room for a question.
    pub(crate) fn room() -> Vec<u8> {
        vec![0; LONGEST]
    }
}

impl AsFd for Inside {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Question {
    /// Takes the question apart: what is asked, and where the answer goes.
    pub(crate) fn apart(self) -> (Request, Answerer) {
        (self.request, Answerer(self.answer))
    }
}

/// Where an answer goes.
pub(crate) struct Answerer(UnixStream);

impl Answerer {
    /// Answers. Who has gone away meanwhile is told nothing.
    pub(crate) fn answer(mut self, reply: &Reply) {
        let bytes = serde_json::to_vec(reply).unwrap_or_default();
        let _ = self.0.write_all(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check() -> Request {
        Request::Check { session: "a".repeat(43) }
    }

    #[test]
    fn each_who_asks_gets_the_own_answer() {
        let (door, inside) = open().expect("a pair of sockets");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut room = Inside::room();
                let mut kept = Vec::new();
                while let Ok(question) = inside.next(&mut room) {
                    kept.extend(question);
                    if kept.len() == 8 {
                        break;
                    }
                }
                for question in kept.into_iter().rev() {
                    let (request, answer) = question.apart();
                    let Request::Check { session } = request else { panic!("nothing else was asked") };
                    answer.answer(&Reply::Member { name: session });
                }
            });
            for number in 0..8 {
                let door = &door;
                scope.spawn(move || {
                    let session = number.to_string();
                    let reply = door.ask(&Request::Check { session: session.clone() });
                    assert_eq!(reply, Reply::Member { name: session });
                });
            }
        });
    }

    #[test]
    fn who_asks_a_process_that_dies_is_told_at_once() {
        let (door, inside) = open().expect("a pair of sockets");
        std::thread::scope(|scope| {
            scope.spawn(|| drop(inside.next(&mut Inside::room()).expect("somebody asks")));
            assert_eq!(door.ask(&check()), Reply::Unavailable);
        });
    }

    #[test]
    fn a_full_door_turns_away_and_does_not_wait() {
        let (door, _inside) = open().expect("a pair of sockets");
        let mut sent = 0;
        while sent < 100_000 {
            let (_, theirs) = UnixStream::pair().expect("a pair of sockets");
            if door.send(b"{}", theirs).is_err() {
                break;
            }
            sent += 1;
        }
        assert!(sent < 100_000);
        assert_eq!(door.ask(&check()), Reply::Unavailable);
    }
}
