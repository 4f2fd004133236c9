//! Entries by slot number, in chunks: memory follows connections, and entries never move.

const CHUNK: usize = 512;

pub(super) struct Chunks<T> {
    chunks: Vec<Box<[T; CHUNK]>>,
    blank: T,
}

impl<T: Copy> Chunks<T> {
    /// An empty table whose new entries are copies of `blank`.
    pub(super) fn new(blank: T) -> Chunks<T> {
        Chunks { chunks: Vec::new(), blank }
    }

    /// Ensures that `index` has an entry.
    pub(super) fn reach(&mut self, index: u32) {
        while !self.has(index) {
            self.chunks.push(Box::new([self.blank; CHUNK]));
        }
    }

    pub(super) fn has(&self, index: u32) -> bool {
        index as usize / CHUNK < self.chunks.len()
    }

    /// The entry of an index for which [`Chunks::reach`] was called.
    pub(super) fn get(&self, index: u32) -> &T {
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    /// The same, mutable.
    pub(super) fn at(&mut self, index: u32) -> &mut T {
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }
}
