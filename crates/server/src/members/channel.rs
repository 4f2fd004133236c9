//! The channel between the processes that ask the accounts and the process that has them: a pair of sockets that keeps
//! the bounds of messages.
//!
//! Every process of the server has one end, and the accounts have the other. A question brings a descriptor with it
//! (`man 7 unix`, SCM_RIGHTS), to which the answer is written: so questions of many threads and processes need no
//! numbers, who asked and went away is nobody, and the process of the accounts can be replaced at the other end.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tenfold_accounts::{Query, Reply};
use tenfold_sys::messages;
use tenfold_sys::socket::refuse_descriptors;

/// Bytes of a question at most: a form, and what JSON makes of its characters.
const LONGEST: usize = 128 * 1024;
/// Bytes of an answer at most.
const LONGEST_ANSWER: usize = 16 * 1024;
/// How long an answer may take. It is less than a request waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// The end of those who ask.
#[derive(Debug)]
pub(crate) struct AccountsClient(OwnedFd);

/// A question that was asked: where its answer comes.
#[derive(Debug)]
pub(crate) struct PendingQuestion {
    answer: UnixStream,
    by: Instant,
}

/// The end of the accounts.
#[derive(Debug)]
pub(crate) struct AccountsServer(OwnedFd);

/// A question, and where its answer goes.
pub(crate) struct Question {
    request: Query,
    answer: OwnedFd,
}

/// A channel, by both of its ends.
///
/// # Errors
/// The error of `socketpair(2)`.
pub(crate) fn open() -> io::Result<(AccountsClient, AccountsServer)> {
    let (client, server) = messages::pair()?;
    refuse_descriptors(&client);
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

    /// Asks, and waits for the answer. Where none comes it is [`Reply::Unavailable`].
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
        refuse_descriptors(&ours);
        messages::send(&self.0, &question, &[theirs.as_fd()])?;
        Ok(PendingQuestion { answer: ours, by: Instant::now() + PATIENCE })
    }
}

impl PendingQuestion {
    /// Until when it is waited for.
    pub(crate) fn by(&self) -> Instant {
        self.by
    }

    /// Waits for the answer, until its time is over however it comes.
    ///
    /// # Errors
    /// None comes.
    pub(crate) fn answer(self) -> io::Result<Reply> {
        Ok(serde_json::from_slice(&read_to_end(&self.answer, LONGEST_ANSWER, self.by)?)?)
    }

    /// Waits for the answer at most for `patience` from now on.
    ///
    /// # Errors
    /// None comes.
    pub(crate) fn answer_within(self, patience: Duration) -> io::Result<Reply> {
        let by = self.by.min(Instant::now() + patience);
        PendingQuestion { by, ..self }.answer()
    }
}

/// Reads a stream to its end: at most `most` bytes, and at most until `by` however they come.
///
/// # Errors
/// The error of `read(2)`, `TimedOut`, or an error for a stream that is too long.
pub(crate) fn read_to_end(mut stream: &UnixStream, most: usize, by: Instant) -> io::Result<Vec<u8>> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let left = by.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(count) if bytes.len() + count <= most => bytes.extend_from_slice(&piece[..count]),
            Ok(_) => return Err(io::Error::other("the stream is too long")),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
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
        Ok(match (request, received.into_socket()) {
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
    /// Takes the question apart: what is asked, and where the answer goes.
    pub(crate) fn apart(self) -> (Query, Answerer) {
        (self.request, Answerer(self.answer))
    }
}

/// The stream to which an answer goes.
pub(crate) struct Answerer(OwnedFd);

impl Answerer {
    /// Answers, without waiting for room: there is enough unless somebody has filled the socket. A client that has gone
    /// away is told nothing. Returns whether the answer was dropped because its reader does not read.
    #[must_use]
    pub(crate) fn answer(self, reply: &Reply) -> bool {
        let bytes = serde_json::to_vec(reply).unwrap_or_default();
        match messages::send_bytes(&self.0, &bytes) {
            Ok(sent) => sent < bytes.len(),
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
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
pub(crate) mod tests {
    use std::io::{IoSlice, Write};
    use std::mem::MaybeUninit;
    use std::net::{TcpListener, TcpStream};

    use rustix::io::Errno;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, sockopt};
    use tenfold_sys::wait;

    use super::*;

    /// Waits for a message: a question, or none.
    pub(crate) fn received(server: &AccountsServer) -> Option<Question> {
        wait::for_input(&[server.as_fd()], None).expect("somebody sends");
        server.next(&mut AccountsServer::room()).expect("a message has come")
    }

    fn check() -> Query {
        Query::Check { session: "a".repeat(43) }
    }

    fn send_raw(client: &AccountsClient, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
        messages::send(&client.0, bytes, descriptors).expect("there is room");
    }

    fn is_closed(server: &AccountsServer) -> bool {
        wait::for_input(&[server.as_fd()], Some(Duration::ZERO)).expect("it is open")[0].hung_up
    }

    #[test]
    fn h76_a_message_that_is_no_question_is_passed_over_and_is_not_the_end() {
        let (client, server) = open().expect("a pair of sockets");
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let question = serde_json::to_vec(&check()).expect("it can be written");
        let long = [&question[..], &vec![b' '; LONGEST]].concat();
        let file = std::fs::File::open("/dev/null").expect("every system has it");
        let (socket, no_socket) = (theirs.as_fd(), file.as_fd());
        let messages: [(&[u8], &[BorrowedFd<'_>]); 8] = [
            (b"", &[]),
            (b"", &[socket]),
            (&question, &[]),
            (&question[..question.len() - 1], &[socket]),
            (&long, &[socket]),
            (b"\xff\x00", &[socket]),
            (&question, &[socket, socket]),
            (&question, &[no_socket]),
        ];
        for (bytes, descriptors) in messages {
            send_raw(&client, bytes, descriptors);
            assert!(received(&server).is_none());
            assert!(!is_closed(&server));
        }
        drop(theirs);
        ours.set_nonblocking(true).expect("it is a socket");
        assert_eq!((&ours).read(&mut [0]).expect("no descriptor is left open"), 0);
        drop(client);
        assert!(is_closed(&server));
    }

    /// Sends a byte, or one of urgent data, and a descriptor with it.
    fn attach(to: &UnixStream, descriptor: BorrowedFd<'_>, flags: SendFlags) -> rustix::io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let rights = [descriptor];
        control.push(SendAncillaryMessage::ScmRights(&rights));
        sendmsg(to, &[IoSlice::new(b"x")], &mut control, flags)
    }

    #[test]
    fn h76_a_socket_with_unread_bytes_and_descriptors_in_its_queue_is_not_answered() {
        let (client, server) = open().expect("a pair of sockets");
        let question = serde_json::to_vec(&check()).expect("it can be written");
        for flags in [SendFlags::empty(), SendFlags::OOB] {
            let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
            attach(&ours, ours.as_fd(), flags).expect("nothing refuses it yet");
            send_raw(&client, &question, &[theirs.as_fd()]);
            assert!(received(&server).is_none(), "{flags:?}");
        }
    }

    /// A TCP socket whose `close(2)` waits for this long.
    fn lingering(time: Duration) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let peer = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
        let (socket, _) = listener.accept().expect("a connection waits");
        sockopt::set_socket_linger(&socket, Some(time)).expect("an option");
        while messages::send_bytes(&socket, &[0; 65_536]).is_ok() {}
        (socket, peer)
    }

    #[test]
    fn h76_no_descriptors_come_with_an_answer_or_a_question_that_was_accepted() {
        let (client, server) = open().expect("a pair of sockets");
        let asked = client.begin(&check()).expect("there is room");
        let (_, Answerer(answer)) = received(&server).expect("a question").apart();
        let answer = UnixStream::from(answer);
        let (socket, _peer) = lingering(Duration::from_secs(8));
        let attached = attach(&answer, socket.as_fd(), SendFlags::empty());
        if attached.is_ok() && !knows_passrights() {
            return;
        }
        assert_eq!(attached, Err(Errno::PERM), "to the client");
        assert_eq!(attach(&asked.answer, socket.as_fd(), SendFlags::empty()), Err(Errno::PERM), "and back");
        // This process closes the socket and does not wait either.
        sockopt::set_socket_linger(&socket, None).expect("an option");
        drop(answer);
        assert!(asked.answer().is_err(), "nothing was answered");
    }

    /// Linux 6.16.
    fn knows_passrights() -> bool {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a file of the kernel");
        let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse::<u32>);
        let mut number = || numbers.next()?.ok();
        (number(), number()) >= (Some(6), Some(16))
    }

    #[test]
    fn h76_an_answer_that_nobody_reads_does_not_wait() {
        let (client, server) = open().expect("a pair of sockets");
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let question = serde_json::to_vec(&check()).expect("it can be written");
        while messages::send_bytes(&theirs, &[0; 4096]).is_ok() {}
        send_raw(&client, &question, &[theirs.as_fd()]);
        let (_, answer) = received(&server).expect("a question").apart();
        assert!(answer.answer(&Reply::Done), "it is dropped");
        drop(ours);
        send_raw(&client, &question, &[theirs.as_fd()]);
        let (_, answer) = received(&server).expect("a question").apart();
        assert!(!answer.answer(&Reply::Done), "a client that has gone is no slow reader");
    }

    #[test]
    fn each_who_asks_gets_the_own_answer() {
        let (client, server) = open().expect("a pair of sockets");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let kept: Vec<_> = (0..8).map(|_| received(&server).expect("a question")).collect();
                for question in kept.into_iter().rev() {
                    let (request, answer) = question.apart();
                    let Query::Check { session } = request else { panic!("nothing else was asked") };
                    assert!(!answer.answer(&Reply::Member { name: session }));
                }
            });
            for number in 0..8 {
                let client = &client;
                scope.spawn(move || {
                    let session = number.to_string();
                    let reply = client.ask(&Query::Check { session: session.clone() });
                    assert_eq!(reply, Reply::Member { name: session });
                });
            }
        });
    }

    #[test]
    fn h76_what_comes_without_an_end_is_given_up() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
        theirs.write_all(&[b'x'; 101]).expect("there is room");
        let soon = || Instant::now() + Duration::from_millis(100);
        assert!(read_to_end(&ours, 100, soon()).is_err(), "it is too much");
        let late = read_to_end(&ours, 100, soon()).expect_err("nothing comes");
        assert!(matches!(late.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{late}");
    }

    #[test]
    fn h76_an_answer_by_drops_is_given_up() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair of sockets");
        let asked = PendingQuestion { answer: ours, by: Instant::now() + Duration::from_millis(300) };
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while theirs.write_all(b"x").is_ok() {
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
            assert!(asked.answer().is_err(), "its time is over, though bytes come");
        });
    }

    #[test]
    fn who_asks_a_process_that_dies_is_told_at_once() {
        let (client, server) = open().expect("a pair of sockets");
        std::thread::scope(|scope| {
            scope.spawn(|| drop(received(&server).expect("a question")));
            assert_eq!(client.ask(&check()), Reply::Unavailable);
        });
    }

    #[test]
    fn a_full_channel_turns_away_and_does_not_wait() {
        let (client, _inside) = open().expect("a pair of sockets");
        let mut sent = 0;
        while sent < 100_000 {
            let (_, theirs) = UnixStream::pair().expect("a pair of sockets");
            if messages::send(&client.0, b"{}", &[theirs.as_fd()]).is_err() {
                break;
            }
            sent += 1;
        }
        assert!(sent < 100_000);
        assert_eq!(client.ask(&check()), Reply::Unavailable);
    }
}
