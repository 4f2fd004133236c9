//! The table of senders. `tenfold engines` and the tests read it.

use tenfold_sys::seccomp::Call;

use crate::plan::choice::{Engine, Sender};
use crate::plan::mechanism::Driver;

/// The static description of a sender.
#[derive(Debug)]
pub struct SenderRow {
    /// The sender.
    pub sender: Sender,
    /// A summary in one line.
    pub summary: &'static str,
    /// The system calls of a response with a file, on engines that make calls.
    pub calls: &'static str,
    /// The operations of such a response on a ring, and additional calls.
    pub operations: &'static str,
    /// The operations of such a response on Asio; empty if Asio cannot send this way.
    pub begun: &'static str,
    /// The calls that it adds to those of the model, for the sandbox.
    pub adds: &'static [Call],
    /// The file that implements it.
    pub file: &'static str,
}

/// Every sender, in the order in which they are shown.
pub static SENDERS: &[SenderRow] = &[
    SenderRow {
        sender: Sender::Auto,
        summary: "small responses whole from memory, the rest by sendfile",
        calls: "write or writev; for larger files as sendfile",
        operations: "IORING_OP_SEND; for larger files as sendfile",
        begun: "async_write_some (send); for larger files as sendfile",
        adds: &[Call::SENDMSG, Call::SENDFILE],
        file: "crates/engine/src/senders/sender.rs",
    },
    SenderRow {
        sender: Sender::Copy,
        summary: "read into a buffer, then send the buffer",
        calls: "sendmsg, pread and write",
        operations: "IORING_OP_SEND, IORING_OP_READ and IORING_OP_SEND",
        begun: "async_write_some (send), the plain pread and async_write_some",
        adds: &[Call::SENDMSG],
        file: "crates/engine/src/senders/copy.rs",
    },
    SenderRow {
        sender: Sender::Mmap,
        summary: "map the file, then write from the mapping",
        calls: "mmap, writev and fstat, munmap",
        operations: "mmap, IORING_OP_SEND and fstat, munmap",
        begun: "mmap, async_write_some (send) and fstat, munmap",
        adds: &[Call::WRITEV],
        file: "crates/engine/src/senders/mmap.rs",
    },
    SenderRow {
        sender: Sender::Sendfile,
        summary: "the kernel moves the file to the socket",
        calls: "sendmsg, sendfile",
        operations: "IORING_OP_SEND, the plain sendfile, IORING_OP_POLL_ADD",
        begun: "async_write_some (send), the plain sendfile, async_wait",
        adds: &[Call::SENDMSG, Call::SENDFILE],
        file: "crates/engine/src/senders/sender.rs",
    },
    SenderRow {
        sender: Sender::Splice,
        summary: "the kernel moves pages of the file to a pipe, then to the socket",
        calls: "sendmsg, splice and splice, pipe2 if no pipe is free, fstat after bytes waited in one",
        operations: "IORING_OP_SEND, the plain splice and splice, IORING_OP_POLL_ADD",
        begun: "async_write_some (send), the plain splice and splice, async_wait",
        adds: &[Call::SENDMSG, Call::SPLICE, Call::PIPE2],
        file: "crates/engine/src/senders/splice.rs",
    },
    SenderRow {
        sender: Sender::Zerocopy,
        summary: "map the file, and the kernel sends its pages without copying them",
        calls: "sendmsg, mmap, send with MSG_ZEROCOPY and fstat, recvmsg from the error queue, munmap",
        operations: "IORING_OP_SEND, mmap, IORING_OP_SEND_ZC and fstat, munmap",
        begun: "",
        adds: &[Call::SENDMSG, Call::RECVMSG],
        file: "crates/engine/src/senders/zerocopy.rs",
    },
];

impl Sender {
    /// The sender's line of the table.
    pub fn row(self) -> &'static SenderRow {
        SENDERS.iter().find(|row| row.sender == self).expect("every sender has its line in the table")
    }
}

impl SenderRow {
    /// Returns its system calls on this engine.
    pub fn calls_of(&self, engine: Engine) -> &'static str {
        match engine.model().driver {
            Driver::Blocking | Driver::Readiness => self.calls,
            Driver::Completion if engine == Engine::AsioProactor => self.begun,
            Driver::Completion => self.operations,
        }
    }
}
