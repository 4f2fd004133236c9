//! Parts of files mapped into memory, for the kernel to send from (`man 2 mmap`).
//!
//! This process never reads a mapping. A page beyond the end of a file that became shorter kills a process that touches
//! it (SIGBUS); a system call on it fails with EFAULT instead.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// The alignment of mappings: a multiple of every page size that Linux has.
const GRANULE: u64 = 64 * 1024;

/// A mapped part of a file. It exposes only its address, for system calls.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<c_void>,
    /// The mapped bytes of the file.
    range: Range<u64>,
}

/// A part of a mapping.
#[derive(Clone, Debug)]
pub struct Mapped {
    /// The mapping.
    pub mapping: Arc<Mapping>,
    /// The bytes, as a range of the file.
    pub range: Range<u64>,
}

impl Mapped {
    /// The number of bytes.
    #[allow(clippy::len_without_is_empty, reason = "nothing is not sent")]
    pub fn len(&self) -> u64 {
        self.range.end - self.range.start
    }
}

impl Mapping {
    /// Maps the bytes `range` of `file`. The mapping begins earlier if `range` does not begin on a page.
    ///
    /// # Errors
    /// The error of `mmap(2)`: ENOMEM if there are too many mappings or too little address space, ENODEV if the file
    /// system maps no files.
    pub fn new(file: &File, range: Range<u64>) -> io::Result<Mapping> {
        let first = range.start - range.start % GRANULE;
        let length = usize::try_from(range.end.saturating_sub(first)).map_err(io::Error::other)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory, and no reference to its
        // content is created.
        let start =
            unsafe { mmap(std::ptr::null_mut(), length, ProtFlags::READ, MapFlags::SHARED, file, first)? };
        let start = NonNull::new(start).expect("a mapping does not begin at zero");
        Ok(Mapping { start, range: first..range.end })
    }

    /// The mapped bytes of the file.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// The address and length of bytes of the file, for the kernel. Panics if they are not mapped.
    pub(crate) fn address(&self, range: &Range<u64>) -> (*const u8, usize) {
        let inside =
            self.range.start <= range.start && range.start <= range.end && range.end <= self.range.end;
        assert!(inside, "bytes {range:?} are not among those mapped, {:?}", self.range);
        let start = self.start.as_ptr().cast::<u8>();
        (start.wrapping_add((range.start - self.range.start) as usize), (range.end - range.start) as usize)
    }
}

// SAFETY: a mapping is an address and a length. This process reads and writes nothing through it, and any thread may
// unmap it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        let length = (self.range.end - self.range.start) as usize;
        // If the kernel merged it with a neighbour, it must split them and may lack the memory (ENOMEM). The addresses
        // then stay in use, which is harmless.
        // SAFETY: the mapping is ours alone, and no reference into it was ever made. The kernel holds pages that it
        // still sends by themselves, so they outlive their mapping.
        let _ = unsafe { munmap(self.start.as_ptr(), length) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Read};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::net::socket::Socket;

    fn file(name: &str, bytes: usize) -> (File, Vec<u8>) {
        let content: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
        let path = std::env::temp_dir().join(format!("tenfold-{name}-{}", std::process::id()));
        std::fs::write(&path, &content).expect("a folder for temporary files");
        let file = File::options().read(true).write(true).open(&path).expect("it was just written");
        std::fs::remove_file(&path).expect("it is ours");
        (file, content)
    }

    fn part(mapping: &Arc<Mapping>, range: Range<u64>) -> Mapped {
        Mapped { mapping: mapping.clone(), range }
    }

    fn pair() -> (Socket, UnixStream) {
        let (ours, peer) = UnixStream::pair().expect("descriptors");
        (std::os::fd::OwnedFd::from(ours).into(), peer)
    }

    #[test]
    fn writes_from_a_mapping_match_the_file() {
        let (file, content) = file("mapped", 90_000);
        let mapping = Arc::new(Mapping::new(&file, 70_000..80_000).expect("a file of ours can be mapped"));
        assert_eq!(mapping.range(), 65_536..80_000);
        let (socket, mut peer) = pair();
        let sent = socket
            .write_from(&[IoSlice::new(b"head ")], &part(&mapping, 70_000..80_000))
            .expect("there is room");
        assert_eq!(sent, 10_005);
        let mut got = vec![0; sent];
        peer.read_exact(&mut got).expect("it was sent");
        assert_eq!(&got[..5], b"head ");
        assert!(got[5..] == content[70_000..80_000]);
    }

    #[test]
    fn pages_that_the_file_has_lost_are_an_error_and_no_signal() {
        let (file, content) = file("shrunk", 20_000);
        let mapping = Arc::new(Mapping::new(&file, 0..20_000).expect("a file of ours can be mapped"));
        file.set_len(4096).expect("it is ours");
        let (socket, mut peer) = pair();
        let sent = socket.write_from(&[], &part(&mapping, 0..4096)).expect("that page is there");
        let mut got = vec![0; sent];
        peer.read_exact(&mut got).expect("it was sent");
        assert!(got == content[..4096]);
        let error = socket.write_from(&[], &part(&mapping, 4096..20_000)).expect_err("those are not");
        assert_eq!(error.raw_os_error(), Some(libc::EFAULT));
    }

    #[test]
    #[should_panic(expected = "are not among those mapped")]
    fn bytes_outside_a_mapping_are_refused() {
        let (file, _) = file("beside", 5000);
        let mapping = Mapping::new(&file, 0..5000).expect("a file of ours can be mapped");
        mapping.address(&(4000..5001));
    }
}
