//! The pairs between generations, and the memory beside them.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenfold_sys::messages;
use tenfold_sys::shared::SharedRows;
use tenfold_sys::socket::{Socket, refuse_descriptors};

use super::message::MovedConnection;

/// The pairs of all places. Both ends stay with the supervisor.
#[derive(Debug)]
pub struct Successions {
    pub(super) rows: Arc<SharedRows>,
    pairs: Vec<Pair>,
}

#[derive(Debug)]
pub(super) struct Pair {
    pub(super) sender: OwnedFd,
    pub(super) receiver: OwnedFd,
}

/// The pair of one place, for its worker.
#[derive(Debug)]
pub struct Succession {
    rows: Arc<SharedRows>,
    place: usize,
    pub(super) pair: Pair,
    pub(super) generation: GenerationName,
    /// The number of listeners of each worker.
    pub(super) listeners: usize,
}

/// The words of a place. The era whose connections may move, which the supervisor writes; 0 if none may.
pub(super) const ERA: usize = 0;
/// The generation of the heir, which the supervisor writes.
const HEIR: usize = 1;
/// Messages sent so far: an engine without waits for events sees by it that some have come.
pub(super) const SENT: usize = 2;
/// Messages received so far.
pub(super) const RECEIVED: usize = 3;
/// From here on, the room of an heir, by its generation. Generations that live at once have different words.
const ROOM: usize = 4;
const GENERATIONS: u32 = 16;
const WORDS: usize = ROOM + GENERATIONS as usize;

/// The most messages that wait for an heir.
pub(super) const QUEUE: u64 = 64;

/// The name of a generation in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenerationName {
    /// Its own number.
    pub number: u32,
    /// The number of the first one whose connections it can serve, and which can serve its own.
    pub era: u64,
}

/// The result of sending a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It is on its way.
    Moved,
    /// The queue is full for now.
    Busy,
    /// The heir has no room, or the system passes no more descriptors (ETOOMANYREFS, `man 7 unix`).
    Refused,
}

impl Successions {
    /// A pair for each of `places` workers.
    ///
    /// # Errors
    /// There are no descriptors or no memory.
    pub fn new(places: usize) -> io::Result<Successions> {
        let rows = Arc::new(SharedRows::new(places.max(1), WORDS)?);
        let pair = || {
            let (sender, receiver) = messages::nonblocking_pair()?;
            refuse_descriptors(&sender);
            Ok(Pair { sender, receiver })
        };
        Ok(Successions { rows, pairs: (0..places).map(|_| pair()).collect::<io::Result<_>>()? })
    }

    /// Lets workers of generations of the same era hand over to `heir`. Without one, no worker hands over.
    pub fn open(&self, heir: Option<GenerationName>) {
        for place in 0..self.pairs.len() {
            let row = self.rows.row(place);
            row[HEIR].store(heir.map_or(0, |heir| heir.number.into()), Ordering::Relaxed);
            row[ERA].store(heir.map_or(0, |heir| heir.era), Ordering::Release);
        }
    }

    /// Takes the pairs of the workers of one process, which have `listeners` each. The others are closed.
    pub fn take(self, places: Range<usize>, generation: GenerationName, listeners: usize) -> Vec<Succession> {
        let own = self.pairs.into_iter().enumerate().filter(|(place, _)| places.contains(place));
        let rows = &self.rows;
        own.map(|(place, pair)| Succession { rows: rows.clone(), place, pair, generation, listeners })
            .collect()
    }
}

impl Succession {
    pub(super) fn word(&self, word: usize) -> &AtomicU64 {
        &self.rows.row(self.place)[word]
    }

    /// The number of connections that generation `number` has room for, up to [`QUEUE`].
    pub(super) fn room(&self, number: u64) -> &AtomicU64 {
        self.word(ROOM + (number % u64::from(GENERATIONS)) as usize)
    }

    /// Whether an heir serves the connections of this generation.
    pub(super) fn is_open(&self) -> bool {
        self.word(ERA).load(Ordering::Acquire) == self.generation.era
    }

    pub(super) fn send(&self, socket: &Socket, connection: &MovedConnection) -> Sent {
        let (sent, received) =
            (self.word(SENT).load(Ordering::Acquire), self.word(RECEIVED).load(Ordering::Acquire));
        match self.room(self.word(HEIR).load(Ordering::Relaxed)).load(Ordering::Relaxed) {
            0 => return Sent::Refused,
            room if sent.saturating_sub(received) >= room => return Sent::Busy,
            _ => {}
        }
        match messages::send(&self.pair.sender, connection.to_message().bytes(), &[socket.as_fd()]) {
            Ok(()) => {
                self.word(SENT).fetch_add(1, Ordering::Release);
                Sent::Moved
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Sent::Busy,
            Err(_) => Sent::Refused,
        }
    }

    pub(super) fn receiver(&self) -> RawFd {
        self.pair.receiver.as_raw_fd()
    }
}
