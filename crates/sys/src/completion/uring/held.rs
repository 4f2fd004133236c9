//! What operations in flight keep alive: bytes, files and sockets, until the kernel is done with them.

use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use super::address::Address;
use super::word::{HELD, word_of};
use crate::completion::{Bytes, Readable};

/// What an operation in flight keeps alive.
pub(super) enum Held {
    Bytes(Bytes),
    /// Bytes that were to be held, and were not taken. One more word of the kernel comes.
    Refused {
        _bytes: Bytes,
    },
    /// A file that is read, and the memory that it is read into.
    Read {
        memory: Vec<u8>,
        _file: Readable,
    },
    /// Where a socket connects to.
    Address {
        _address: Arc<Address>,
    },
    /// A socket that is closed. It is closed by dropping it when the kernel did not.
    Socket(OwnedFd),
    /// A place of which nothing is held, and the next one.
    Free(u32),
}

impl Held {
    /// A send that was to wait for room until all was sent, and came back short, has lost its peer.
    fn whole(&self, result: i32) -> i32 {
        match self {
            Held::Bytes(bytes) if result >= 0 && (result as usize) < bytes.len() => -libc::EPIPE,
            _ => result,
        }
    }

    /// What is left when the operation is done: memory to be used again.
    fn give_up(self, result: i32) -> Option<Vec<u8>> {
        match self {
            Held::Bytes(Bytes::Owned(memory, _)) | Held::Read { memory, .. } => Some(memory),
            Held::Bytes(Bytes::Shared(..) | Bytes::Mapped(..))
            | Held::Refused { .. }
            | Held::Address { .. }
            | Held::Free(_) => None,
            Held::Socket(socket) => {
                if result == -libc::ECANCELED {
                    drop(socket);
                } else {
                    // The kernel has closed it: the number is no longer ours.
                    let _ = socket.into_raw_fd();
                }
                None
            }
        }
    }
}

/// What is known of an operation by one of its results.
pub(super) struct Outcome {
    pub(super) tag: u64,
    pub(super) result: i32,
    pub(super) memory: Option<Vec<u8>>,
    /// As [`super::Completion::released`].
    pub(super) released: Option<bool>,
}

/// What the operations of one ring keep alive. Each has a place, which its user word names.
pub(super) struct Belongings {
    /// Each with the tag of its operation.
    places: Vec<(u64, Held)>,
    /// The first place that is free.
    free: u32,
}

const NONE: u32 = u32::MAX;
/// `IORING_NOTIF_USAGE_ZC_COPIED`, in the result of a notification.
const COPIED: u32 = 1 << 31;

/// What rings that have ended left in flight. Operations may go on for a while after a ring is closed: what
/// they work on is never freed.
static RETIRED: Mutex<Vec<Belongings>> = Mutex::new(Vec::new());

impl Belongings {
    pub(super) fn new() -> Belongings {
        Belongings { places: Vec::new(), free: NONE }
    }

    /// Keeps `held` for an operation with this tag; gives the operation's user word.
    pub(super) fn hold(&mut self, tag: u64, held: Held) -> u64 {
        let tag = word_of(tag);
        let place = match self.free {
            NONE => {
                self.places.push((tag, held));
                self.places.len() as u64 - 1
            }
            place => {
                let slot = &mut self.places[place as usize];
                if let Held::Free(next) = slot.1 {
                    self.free = next;
                }
                *slot = (tag, held);
                u64::from(place)
            }
        };
        HELD | place
    }

    /// The operation of `word` has a result, and another one is to come: all of it is kept.
    pub(super) fn go_on(&mut self, word: u64, result: i32) -> Outcome {
        let (tag, held) = &mut self.places[(word & !HELD) as usize];
        let result = held.whole(result);
        if result < 0 {
            *held = match std::mem::replace(held, Held::Free(NONE)) {
                Held::Bytes(bytes) => Held::Refused { _bytes: bytes },
                other => other,
            };
        }
        Outcome { tag: *tag, result, memory: None, released: None }
    }

    /// The operation of `word` is done, and nothing of it is kept any longer; `notified` says that this is not
    /// its result, but the word that its bytes are held no more. None where nobody waits for that word.
    pub(super) fn end(&mut self, word: u64, result: i32, notified: bool) -> Option<Outcome> {
        let place = (word & !HELD) as usize;
        let (tag, held) = std::mem::replace(&mut self.places[place], (0, Held::Free(self.free)));
        self.free = place as u32;
        if let Held::Refused { .. } = held {
            return None;
        }
        let released = notified.then_some(result as u32 & COPIED != 0);
        let result = if notified { 0 } else { held.whole(result) };
        Some(Outcome { tag, result, memory: held.give_up(result), released })
    }

    /// Keeps all of it for ever: the ring ends, and the kernel may still work on it.
    pub(super) fn retire(self) {
        RETIRED.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    /// Whether anything that this finds was retired.
    #[cfg(test)]
    pub(super) fn is_retired(mut find: impl FnMut(u64, &Held) -> bool) -> bool {
        let retired = RETIRED.lock().unwrap_or_else(PoisonError::into_inner);
        retired.iter().flat_map(|one| &one.places).any(|(tag, held)| find(*tag, held))
    }
}
