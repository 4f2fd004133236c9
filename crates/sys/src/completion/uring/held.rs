//! Resources of operations in flight: bytes, files and sockets, kept until the kernel is done with them.

use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use super::address::Address;
use super::word::{HELD, word_of};
use crate::completion::{Bytes, Readable};

/// The resources of an operation in flight.
pub(super) enum HeldResource {
    Bytes(Bytes),
    /// Bytes of a held send that failed. One more notification of the kernel follows.
    Refused {
        _bytes: Bytes,
    },
    /// A file and the memory for its bytes.
    Read {
        memory: Vec<u8>,
        _file: Readable,
    },
    /// The address of a connect.
    Address {
        _address: Arc<Address>,
    },
    /// A socket to close. Dropping it closes it if the kernel did not.
    Socket(OwnedFd),
    /// A free place, and the next free one.
    Free(u32),
}

impl HeldResource {
    /// Turns a short result of a send with MSG_WAITALL into an error: the peer is lost.
    fn whole(&self, result: i32) -> i32 {
        match self {
            HeldResource::Bytes(bytes) if result >= 0 && (result as usize) < bytes.len() => -libc::EPIPE,
            _ => result,
        }
    }

    /// Returns reusable memory when the operation is done.
    fn give_up(self, result: i32) -> Option<Vec<u8>> {
        match self {
            HeldResource::Bytes(Bytes::Owned(memory, _)) | HeldResource::Read { memory, .. } => Some(memory),
            HeldResource::Bytes(Bytes::Shared(..) | Bytes::Mapped(..))
            | HeldResource::Refused { .. }
            | HeldResource::Address { .. }
            | HeldResource::Free(_) => None,
            HeldResource::Socket(socket) => {
                if result == -libc::ECANCELED {
                    drop(socket);
                } else {
                    // The kernel has closed it, so the number is no longer ours.
                    let _ = socket.into_raw_fd();
                }
                None
            }
        }
    }
}

/// The facts about an operation in one result.
pub(super) struct OperationResult {
    pub(super) tag: u64,
    pub(super) result: i32,
    pub(super) memory: Option<Vec<u8>>,
    /// See [`super::RingCompletion::released`].
    pub(super) released: Option<bool>,
}

/// The resources of all operations of one ring. A user word names a place among them.
pub(super) struct HeldTable {
    /// Each place with the tag of its operation.
    places: Vec<(u64, HeldResource)>,
    /// The first free place.
    free: u32,
}

const NONE: u32 = u32::MAX;
/// `IORING_NOTIF_USAGE_ZC_COPIED`, in the result of a notification.
const COPIED: u32 = 1 << 31;

/// Resources of rings that ended with operations in flight. Operations may continue after a ring is closed, so this
/// memory is never freed.
static RETIRED: Mutex<Vec<HeldTable>> = Mutex::new(Vec::new());

impl HeldTable {
    pub(super) fn new() -> HeldTable {
        HeldTable { places: Vec::new(), free: NONE }
    }

    /// Stores `held` for an operation with this tag and returns the operation's user word.
    pub(super) fn hold(&mut self, tag: u64, held: HeldResource) -> u64 {
        let tag = word_of(tag);
        let place = match self.free {
            NONE => {
                self.places.push((tag, held));
                self.places.len() as u64 - 1
            }
            place => {
                let slot = &mut self.places[place as usize];
                if let HeldResource::Free(next) = slot.1 {
                    self.free = next;
                }
                *slot = (tag, held);
                u64::from(place)
            }
        };
        HELD | place
    }

    /// Handles an intermediate result of the operation of `word` and keeps its resources.
    pub(super) fn go_on(&mut self, word: u64, result: i32) -> OperationResult {
        let (tag, held) = &mut self.places[(word & !HELD) as usize];
        let result = held.whole(result);
        if result < 0 {
            *held = match std::mem::replace(held, HeldResource::Free(NONE)) {
                HeldResource::Bytes(bytes) => HeldResource::Refused { _bytes: bytes },
                other => other,
            };
        }
        OperationResult { tag: *tag, result, memory: None, released: None }
    }

    /// Handles the last completion of the operation of `word` and releases its resources. `notified` marks the
    /// notification that its bytes are no longer held. Returns `None` if no caller waits for that notification.
    pub(super) fn end(&mut self, word: u64, result: i32, notified: bool) -> Option<OperationResult> {
        let place = (word & !HELD) as usize;
        let (tag, held) = std::mem::replace(&mut self.places[place], (0, HeldResource::Free(self.free)));
        self.free = place as u32;
        if let HeldResource::Refused { .. } = held {
            return None;
        }
        let released = notified.then_some(result as u32 & COPIED != 0);
        let result = if notified { 0 } else { held.whole(result) };
        Some(OperationResult { tag, result, memory: held.give_up(result), released })
    }

    /// Keeps all of it for ever: the ring ends while the kernel may still use it.
    pub(super) fn retire(self) {
        RETIRED.lock().unwrap_or_else(PoisonError::into_inner).push(self);
    }

    /// Whether `find` matches anything that was retired.
    #[cfg(test)]
    pub(super) fn is_retired(mut find: impl FnMut(u64, &HeldResource) -> bool) -> bool {
        let retired = RETIRED.lock().unwrap_or_else(PoisonError::into_inner);
        retired.iter().flat_map(|one| &one.places).any(|(tag, held)| find(*tag, held))
    }
}
