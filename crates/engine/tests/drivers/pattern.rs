//! Bytes that each depend on their offset, for files and bodies. So lost, repeated and exchanged bytes are detected.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Bytes of the large file.
pub(crate) const LARGE: usize = 64 << 20;

/// The first `count` bytes of the pattern.
pub(crate) fn bytes(count: usize) -> Vec<u8> {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut bytes = Vec::with_capacity(count.next_multiple_of(8));
    let mut word = 0_u64;
    // Chained iterators took half of the processor time of all tests: they are not optimised here, and each server
    // makes a megabyte.
    while bytes.len() < count {
        bytes.extend_from_slice(&word.to_le_bytes());
        word = word.wrapping_add(STEP);
    }
    bytes.truncate(count);
    bytes
}

/// The content of the large file.
pub(crate) fn large() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| bytes(LARGE))
}

/// The large file, which is written once in a run.
pub(crate) fn large_file() -> PathBuf {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| {
        // A later run uses the file of an earlier run again.
        let path = std::env::temp_dir().join("tenfold-engine-large");
        let whole = std::fs::metadata(&path).is_ok_and(|facts| facts.len() == LARGE as u64);
        if !whole {
            let made = path.with_extension(std::process::id().to_string());
            let mut file = File::create(&made).expect("a temporary file can be made");
            file.write_all(large()).expect("there is room for the large file");
            std::fs::rename(&made, &path).expect("it can be renamed where it was made");
        }
        path
    })
    .clone()
}
