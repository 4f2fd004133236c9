//! Long pages that clients have not received yet. Clients that do not read cannot fill the memory with them.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Pages of this many bytes or more are long.
pub(super) const LONG: usize = 64 << 10;
/// The most bytes of different long pages in a process. One page may have more.
const MOST: usize = 64 << 20;

static UNSENT: Mutex<UnsentPages> = Mutex::new(UnsentPages(Vec::new()));

/// Pages by their entity tags. Equal ones share their memory.
struct UnsentPages(Vec<(String, Weak<[u8]>)>);

/// Returns the page for one more client; `None` if there is too much unsent.
pub(super) fn share(tag: &str, page: &str) -> Option<Arc<[u8]>> {
    UNSENT.lock().unwrap_or_else(PoisonError::into_inner).share(tag, page, MOST)
}

/// Frees the memory of pages that have left.
pub(super) fn free() {
    UNSENT.lock().unwrap_or_else(PoisonError::into_inner).free();
}

impl UnsentPages {
    fn share(&mut self, tag: &str, page: &str, most: usize) -> Option<Arc<[u8]>> {
        self.free();
        let known = self.0.iter().find(|(known, _)| known == tag);
        if let Some(known) = known.and_then(|(_, page)| page.upgrade()) {
            return Some(known);
        }
        let unsent: usize = self.0.iter().filter_map(|(_, page)| Some(page.upgrade()?.len())).sum();
        if unsent > 0 && unsent + page.len() > most {
            return None;
        }
        let page: Arc<[u8]> = page.as_bytes().into();
        self.0.push((tag.to_owned(), Arc::downgrade(&page)));
        Some(page)
    }

    /// A weak reference keeps the memory, too.
    fn free(&mut self) {
        self.0.retain(|(_, page)| page.strong_count() > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_pages_share_memory_and_different_ones_have_a_bound() {
        let mut pages = UnsentPages(Vec::new());
        let mut ask = |tag, page: &str| pages.share(tag, page, 10);
        let first = ask("a", "123456").expect("there is room");
        let again = ask("a", "123456").expect("it is there");
        assert!(Arc::ptr_eq(&first, &again));
        assert!(ask("b", "12345").is_none(), "11 bytes");
        let small = ask("c", "1234").expect("10 bytes");
        drop((first, again));
        assert!(ask("b", "12345").is_some(), "the first has left");
        drop(small);
        assert!(ask("d", "12345678901").is_some(), "a page is sent whatever its size");
        pages.free();
        assert!(pages.0.is_empty(), "nothing is kept");
    }
}
