//! `splice`: move pages of the file into a pipe, and from the pipe to the socket.
//!
//! A connection borrows a pipe from the pool of its process for as long as bytes are in it: what the socket
//! had no room for waits there. A pipe that is given back with bytes in it is closed.
//!
//! System calls of a response: sendmsg of the head, then splice from the file and splice to the socket,
//! repeated; pipe2 where the pool has none.

use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenfold_sys::pipe::Pipe;
use tenfold_sys::select::FD_SETSIZE;
use tenfold_sys::socket::Socket;

use super::{Piece, Step, unless_ended};
use crate::plan::Plan;
use crate::table::Engine;

/// What one connection has of the pool.
pub(super) struct Splicer {
    lent: Option<Lent>,
    /// Pipes that the process has at most.
    most: usize,
    /// The least number that their descriptors may have.
    lowest: RawFd,
}

impl Splicer {
    pub(super) fn new(plan: &Plan) -> Splicer {
        // Those that fit into the sets of `select` are for connections.
        let lowest = if plan.engine == Engine::Select { FD_SETSIZE } else { 0 };
        Splicer { lent: None, most: plan.bounds.pipes, lowest: lowest as RawFd }
    }

    pub(super) fn clear(&mut self) {
        self.lent = None;
    }

    pub(super) fn send(&mut self, socket: &Socket, piece: &Piece<'_>) -> Step {
        let lent = match self.lent.take() {
            Some(lent) => Some(lent),
            None => lend(self.most, self.lowest),
        };
        let Some(mut lent) = lent else { return Ok(None) };
        if lent.pipe().held() == 0 {
            unless_ended(lent.pipe().fill(&piece.file.file, piece.offset, piece.count))?;
        }
        let more = piece.more_behind(lent.pipe().held());
        let sent = lent.pipe().empty_into(socket, more);
        if lent.pipe().held() > 0 {
            self.lent = Some(lent);
        }
        // A file that became shorter takes its pages back, also out of a pipe.
        unless_ended(sent).map(Some)
    }
}

/// Pipes of this process that nobody has, and how many there are in all. A process that forks has none: it
/// sends no files.
struct Pool {
    free: Vec<Pipe>,
    made: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { free: Vec::new(), made: 0 });

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An empty pipe; none where there are `most`, or no descriptors are left.
fn lend(most: usize, lowest: RawFd) -> Option<Lent> {
    let mut pool = pool();
    if let Some(pipe) = pool.free.pop() {
        return Some(Lent(Some(pipe)));
    }
    if pool.made >= most {
        return None;
    }
    let pipe = Pipe::new(lowest).ok()?;
    pool.made += 1;
    Some(Lent(Some(pipe)))
}

/// A pipe that is borrowed.
struct Lent(Option<Pipe>);

impl Lent {
    fn pipe(&mut self) -> &mut Pipe {
        self.0.as_mut().expect("a pipe is lent until it is given back")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(pipe) = self.0.take() else { return };
        let mut pool = pool();
        if pipe.held() == 0 {
            pool.free.push(pipe);
        } else {
            pool.made -= 1;
        }
    }
}
