//! The tag of an operation: its kind and its connection, in one word.

use crate::worker::slots::Key;

/// The kind of an operation, in the top bits of its tag. The other bits are the epoch and the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum OperationKind {
    Receive = 0,
    Send,
    Poll,
    Close,
    Read,
    Cancel,
    /// An accept, or an eventfd: the slot number is the number of the source.
    Source,
    /// A zero-copy send.
    Held,
}

pub(super) const KINDS: [OperationKind; 8] = [
    OperationKind::Receive,
    OperationKind::Send,
    OperationKind::Poll,
    OperationKind::Close,
    OperationKind::Read,
    OperationKind::Cancel,
    OperationKind::Source,
    OperationKind::Held,
];
pub(super) const KIND_SHIFT: u32 = 59;
pub(super) const EPOCH_MASK: u32 = (1 << (KIND_SHIFT - 32)) - 1;

pub(super) fn tag(kind: OperationKind, key: Key) -> u64 {
    (kind as u64) << KIND_SHIFT | u64::from(key.epoch & EPOCH_MASK) << 32 | u64::from(key.index)
}
