//! A ring whose operations fail, for tests: results that a kernel may return and seldom does.
//!
//! A failure submits the operation with an invalid descriptor, so that the kernel breaks chains and ends multishot
//! operations as usual; its result is replaced on arrival. The notification that bytes are no longer held is delayed on
//! arrival.

use std::sync::{Mutex, PoisonError};

use io_uring::cqueue;
use io_uring::squeue::{Entry, Flags};

use super::word::Cqe;

/// An operation that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultyOperation {
    /// [`super::Ring::accept`].
    Accept,
    /// [`super::Ring::receive`] and [`super::Ring::receive_on`].
    Receive,
    /// [`super::Ring::send`].
    Send,
    /// [`super::Ring::send_held`].
    SendHeld,
    /// [`super::Ring::poll_read`] and [`super::Ring::poll_write`].
    Poll,
    /// [`super::Ring::read`].
    Read,
    /// Every kind of cancellation.
    Cancel,
    /// [`super::Ring::close`]; its only failure is a cancellation.
    Close,
}

/// A kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The operation does nothing and returns this error number.
    Fails(i32),
    /// A send takes half of its bytes.
    Short,
    /// A multishot operation ends with its first result.
    Once,
    /// The notification of a held send comes after so many other results, as from a slow peer.
    Late(u32),
    /// The notification never comes.
    Silent,
}

/// A failure, and how often it happens.
#[derive(Clone, Copy, Debug)]
pub struct InjectedFault {
    /// The operation.
    pub operation: FaultyOperation,
    /// The kind of failure.
    pub wrong: FaultKind,
    /// Every how many operations; 1 for each of them.
    pub every: u32,
    /// How many times on each ring.
    pub times: u32,
}

static FAULTS: Mutex<Vec<InjectedFault>> = Mutex::new(Vec::new());

/// Injects these faults into every ring that this process creates from now on.
pub fn inject(faults: &[InjectedFault]) {
    *FAULTS.lock().unwrap_or_else(PoisonError::into_inner) = faults.to_vec();
}

/// The faults of one ring.
pub(super) struct Faults {
    /// Each fault, with the number of its operations so far.
    faults: Vec<(InjectedFault, u32)>,
    /// Failing operations in flight, by their user words, each with its error.
    failing: Vec<(u64, i32)>,
    /// Held sends in flight with a delayed notification: their user words, and the number of results to wait for (`None`:
    /// for ever).
    muted: Vec<(u64, Option<u32>)>,
    /// Delayed notifications.
    kept_back: Vec<(Cqe, Option<u32>)>,
}

impl Faults {
    /// The faults injected so far.
    pub(super) fn new() -> Faults {
        Faults::of(&FAULTS.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn of(faults: &[InjectedFault]) -> Faults {
        // The result of a failed accept would otherwise be read as a descriptor.
        let is_failure = |fault: &InjectedFault| !matches!(fault.wrong, FaultKind::Fails(..=0));
        assert!(faults.iter().all(is_failure), "an error number is greater than 0");
        let faults = faults.iter().map(|&fault| (fault, 0)).collect();
        Faults { faults, failing: Vec::new(), muted: Vec::new(), kept_back: Vec::new() }
    }

    /// Changes an operation before it is submitted.
    pub(super) fn spoil(&mut self, mut entry: Entry) -> Entry {
        let Some(operation) = operation(&mut entry) else { return entry };
        for (fault, count) in &mut self.faults {
            if fault.operation != operation || fault.times == 0 {
                continue;
            }
            *count += 1;
            if !(*count).is_multiple_of(fault.every) {
                continue;
            }
            let changed = match fault.wrong {
                FaultKind::Fails(number) => {
                    self.failing.push((fail(&mut entry), number));
                    true
                }
                FaultKind::Short => shorten(&mut entry),
                FaultKind::Once => once(operation, &mut entry),
                FaultKind::Late(results) => mute(operation, &mut entry, Some(results), &mut self.muted),
                FaultKind::Silent => mute(operation, &mut entry, None, &mut self.muted),
            };
            fault.times -= u32::from(changed);
            break;
        }
        entry
    }

    /// Changes a result before it is read; `None` if it is delayed.
    pub(super) fn filter(&mut self, cqe: Cqe) -> Option<Cqe> {
        let of_it = |&(word, _): &(u64, Option<u32>)| word == cqe.word;
        let last = !cqueue::more(cqe.flags);
        let muted = self.muted.iter().position(of_it).filter(|_| last);
        let muted = muted.map(|place| self.muted.swap_remove(place).1);
        if let Some(left) = muted
            && cqueue::notif(cqe.flags)
        {
            self.kept_back.push((cqe, left));
            return None;
        }
        let counts = self.kept_back.iter_mut().filter_map(|(_, left)| left.as_mut());
        counts.for_each(|left| *left = left.saturating_sub(1));
        Some(Cqe { result: self.result(cqe.word, cqe.result), ..cqe })
    }

    /// Returns the notifications whose delay is over.
    pub(super) fn late(&mut self) -> Vec<Cqe> {
        self.kept_back.extract_if(.., |(_, left)| *left == Some(0)).map(|(cqe, _)| cqe).collect()
    }

    fn result(&mut self, word: u64, result: i32) -> i32 {
        let of_a_fault = |&(failing, _): &(u64, i32)| failing == word;
        match self.failing.iter().position(of_a_fault) {
            Some(place) if matches!(-result, libc::EBADF | libc::ENOENT) => {
                -self.failing.swap_remove(place).1
            }
            _ => result,
        }
    }
}

/// Indexes into `struct io_uring_sqe`, in words of 32 bits (`man 2 io_uring_enter`).
const NUMBER: usize = 1;
const ADDRESS: usize = 4;
const LENGTH: usize = 6;
const USER_WORD: usize = 8;

fn words(entry: &mut Entry) -> &mut [u32; size_of::<Entry>() / 4] {
    // SAFETY: `Entry` is a `struct io_uring_sqe` of 64 bytes, aligned to 8: 16 words of 32 bits, of which any
    // value is valid.
    unsafe { &mut *std::ptr::from_mut(entry).cast() }
}

fn operation(entry: &mut Entry) -> Option<FaultyOperation> {
    Some(match words(entry)[0] & 0xff {
        6 => FaultyOperation::Poll,
        13 => FaultyOperation::Accept,
        14 => FaultyOperation::Cancel,
        19 => FaultyOperation::Close,
        22 => FaultyOperation::Read,
        26 => FaultyOperation::Send,
        27 => FaultyOperation::Receive,
        47 => FaultyOperation::SendHeld,
        _ => return None,
    })
}

fn user_word(entry: &mut Entry) -> u64 {
    let words = words(entry);
    u64::from(words[USER_WORD]) | u64::from(words[USER_WORD + 1]) << 32
}

/// Makes the kernel find no file, or no operation to cancel; returns the user word.
fn fail(entry: &mut Entry) -> u64 {
    let cancels = operation(entry) == Some(FaultyOperation::Cancel);
    let words = words(entry);
    words[NUMBER] = u32::MAX;
    if cancels {
        (words[ADDRESS], words[ADDRESS + 1]) = (u32::MAX, u32::MAX);
    }
    user_word(entry)
}

fn mute(
    operation: FaultyOperation,
    entry: &mut Entry,
    results: Option<u32>,
    muted: &mut Vec<(u64, Option<u32>)>,
) -> bool {
    let holds = operation == FaultyOperation::SendHeld;
    if holds {
        muted.push((user_word(entry), results));
    }
    holds
}

/// Halves a send. A linked send stays whole: its successor would overtake the rest, which no kernel allows.
fn shorten(entry: &mut Entry) -> bool {
    let words = words(entry);
    let linked = (words[0] >> 8) & u32::from(Flags::IO_LINK.bits()) != 0;
    if linked || words[LENGTH] < 2 {
        return false;
    }
    words[LENGTH] /= 2;
    true
}

fn once(operation: FaultyOperation, entry: &mut Entry) -> bool {
    // IORING_ACCEPT_MULTISHOT and IORING_RECV_MULTISHOT are bits of the priority, IORING_POLL_ADD_MULTI is one
    // of the length.
    let (place, bit) = match operation {
        FaultyOperation::Accept => (0, 1 << 16),
        FaultyOperation::Receive => (0, 2 << 16),
        FaultyOperation::Poll => (LENGTH, 1),
        _ => return false,
    };
    let word = &mut words(entry)[place];
    let was = std::mem::replace(word, *word & !bit);
    was & bit != 0
}
