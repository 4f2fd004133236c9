//! The shared content in bodies that wait, of all connections of a process.
//!
//! A cache may drop content that bodies still hold. Content of [`Out::MEMORY_BOUND`] or more is not counted: its service
//! bounds it, because one body of it fills an output.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::out::Out;

/// The bytes of different content that all connections hold without a bound for each.
const MOST: usize = 64 << 20;

/// The bytes of all counted content.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// The number of bodies with each content, by its address.
static BODIES: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// Whether waiting bodies of this process hold more than [`MOST`].
pub(crate) fn is_beyond_bound() -> bool {
    BYTES.load(Ordering::Relaxed) > MOST
}

/// The bytes of the content in `body` that can be counted.
pub(crate) fn bytes_of(body: &Out) -> usize {
    content_of(body).map(|content| content.len()).sum()
}

fn content_of(body: &Out) -> impl Iterator<Item = &Arc<[u8]>> {
    body.shared().filter(|content| content.len() < Out::MEMORY_BOUND)
}

/// Content that is counted until this value is dropped. Content of several bodies is counted once.
pub(crate) struct WaitingContent(Vec<Arc<[u8]>>);

impl WaitingContent {
    /// Counts the content of a body; `None` if it has none.
    pub(crate) fn of(body: &Out) -> Option<WaitingContent> {
        let content: Vec<_> = content_of(body).cloned().collect();
        if content.is_empty() {
            return None;
        }
        let mut bodies = BODIES.lock().unwrap_or_else(PoisonError::into_inner);
        for each in &content {
            let count = bodies.entry(address(each)).or_insert(0);
            *count += 1;
            if *count == 1 {
                BYTES.fetch_add(each.len(), Ordering::Relaxed);
            }
        }
        Some(WaitingContent(content))
    }
}

impl Drop for WaitingContent {
    fn drop(&mut self) {
        let mut bodies = BODIES.lock().unwrap_or_else(PoisonError::into_inner);
        for each in &self.0 {
            let Some(count) = bodies.get_mut(&address(each)) else { continue };
            *count -= 1;
            if *count == 0 {
                bodies.remove(&address(each));
                BYTES.fetch_sub(each.len(), Ordering::Relaxed);
            }
        }
    }
}

/// Returns a number that identifies the content as long as it lives.
fn address(content: &Arc<[u8]>) -> usize {
    content.as_ptr().addr()
}
