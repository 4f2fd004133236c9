//! Memory shared with forked children: rows of counters, each on its own cache lines.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Rows of zeros at first. Every child forked after [`SharedRows::new`] shares the memory, so each process sees all
/// writes.
#[derive(Debug)]
pub struct SharedRows {
    start: NonNull<AtomicU64>,
    rows: usize,
    /// Used words of a row.
    words: usize,
    /// Words from one row to the next.
    stride: usize,
}

/// Two cache lines, because processors also fetch the adjacent line.
const APART: usize = 128 / size_of::<AtomicU64>();

impl SharedRows {
    /// Creates `rows` rows of `words` words. Neither may be zero.
    pub fn new(rows: usize, words: usize) -> io::Result<SharedRows> {
        assert!(rows > 0 && words > 0, "shared memory of nothing was asked for");
        let stride = words.checked_next_multiple_of(APART).ok_or(io::ErrorKind::OutOfMemory)?;
        let bytes = rows.checked_mul(stride).and_then(|words| words.checked_mul(size_of::<AtomicU64>()));
        let bytes = bytes.ok_or(io::ErrorKind::OutOfMemory)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::SHARED)? };
        let start = NonNull::new(start.cast()).expect("a mapping does not begin at zero");
        Ok(SharedRows { start, rows, words, stride })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A row. Panics if there are fewer.
    pub fn row(&self, place: usize) -> &[AtomicU64] {
        assert!(place < self.rows, "there are {} rows", self.rows);
        // SAFETY: the row lies within the mapping, as the assertion says.
        let first = unsafe { self.start.add(place * self.stride) };
        // SAFETY: `words` words from there are within the row, aligned, initialised to zero by the kernel,
        // and only ever touched as atomics; they stay mapped as long as `self` lives.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), self.words) }
    }
}

// SAFETY: a `SharedRows` only gives access to atomics, which any thread may use.
unsafe impl Send for SharedRows {}
// SAFETY: as above.
unsafe impl Sync for SharedRows {}

impl Drop for SharedRows {
    fn drop(&mut self) {
        let bytes = self.rows * self.stride * size_of::<AtomicU64>();
        // SAFETY: the mapping is ours alone in this process, and every borrow of it has ended.
        let result = unsafe { munmap(self.start.as_ptr().cast(), bytes) };
        debug_assert!(result.is_ok(), "a mapping of ours can be given back");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn rows_begin_at_zero_and_do_not_share_a_cache_line() {
        let rows = SharedRows::new(3, 17).expect("there is memory");
        rows.row(0).iter().for_each(|word| word.store(7, Ordering::Relaxed));
        assert!(rows.row(1).iter().all(|word| word.load(Ordering::Relaxed) == 0));
        assert_eq!(rows.row(2).len(), 17);
        let (first, second) = (rows.row(0).as_ptr() as usize, rows.row(1).as_ptr() as usize);
        assert_eq!(first % 128, 0);
        assert_eq!(second - first, 256);
    }

    #[test]
    #[should_panic(expected = "there are 2 rows")]
    fn a_row_past_the_last_is_refused() {
        let rows = SharedRows::new(2, 1).expect("there is memory");
        rows.row(2);
    }

    #[test]
    fn h88_uncountable_row_sizes_are_rejected() {
        for (rows, words) in [((1 << 57) + 1, 1), (1, usize::MAX), (usize::MAX, usize::MAX)] {
            assert!(SharedRows::new(rows, words).is_err(), "{rows} rows of {words} words");
        }
    }
}
