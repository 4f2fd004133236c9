//! User words, which connect a result with its operation, and results as the kernel reports them.

/// Set in the user word of an accept, whose results are descriptors.
pub(super) const ACCEPT: u64 = 1 << 62;
/// Tags are less than this; an operation with another tag panics.
pub const TAG_BOUND: u64 = 1 << 62;
/// Set in a user word that names a place among [`super::held::HeldTable`] and not a tag.
pub(super) const HELD: u64 = 1 << 63;

/// Returns `tag` as a user word. A greater tag could be mistaken for an accept, or for a place in the table of held
/// resources.
pub(super) fn word_of(tag: u64) -> u64 {
    assert!(tag < TAG_BOUND, "tag {tag:#x} is not below TAG_BOUND");
    tag
}

/// A result as the kernel reports it (`struct io_uring_cqe`).
#[derive(Clone, Copy)]
pub(super) struct Cqe {
    /// The user word of its operation.
    pub(super) word: u64,
    pub(super) result: i32,
    pub(super) flags: u32,
}
