//! The buffers that hold received bytes.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

/// An operation that has completed.
pub(super) type AsioCompletion = crate::completion::Completion<ReceiveBuffer>;

/// Largest receive, in bytes.
const BYTES: usize = 4096;
/// Buffers kept for later receives; further ones are freed.
const KEPT: usize = 64;

/// Reusable memory for receives.
#[derive(Clone, Default)]
pub(super) struct Spare(Rc<RefCell<Vec<Vec<u8>>>>);

impl Spare {
    /// Memory for one receive.
    pub(super) fn take(&self) -> Vec<u8> {
        self.0.borrow_mut().pop().unwrap_or_else(|| vec![0; BYTES])
    }

    /// Returns the `length` bytes that a receive wrote to `memory`, or `None` if it received nothing.
    pub(super) fn filled(&self, memory: Vec<u8>, length: usize) -> Option<ReceiveBuffer> {
        assert!(length <= memory.len(), "a receive brings no more than there is room for");
        let buffer = ReceiveBuffer { memory, start: 0, end: length, spare: self.clone() };
        (length > 0).then_some(buffer)
    }
}

/// Received bytes. Their memory is reused after the drop.
pub struct ReceiveBuffer {
    memory: Vec<u8>,
    start: usize,
    end: usize,
    spare: Spare,
}

impl ReceiveBuffer {
    /// Drops the first `count` bytes. Panics if there are fewer.
    pub fn consume(&mut self, count: usize) {
        assert!(count <= self.len(), "no more is consumed than was received");
        self.start += count;
    }
}

impl Deref for ReceiveBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }
}

impl DerefMut for ReceiveBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.end]
    }
}

impl Drop for ReceiveBuffer {
    fn drop(&mut self) {
        let mut kept = self.spare.0.borrow_mut();
        if kept.len() < KEPT {
            kept.push(std::mem::take(&mut self.memory));
        }
    }
}
