//! Bounded reading of PEM files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The most bytes of a PEM file: a chain of ten certificates with RSA keys has about 20 KB.
const MAX_FILE: u64 = 1 << 20;

/// Reads a whole file.
///
/// # Errors
/// Returns the system's error, or `FileTooLarge`.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_to_end(File::open(path)?)
}

/// Reads an open file to its end. The memory does not grow meanwhile, so that no copy of a key is left behind.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_to_end(file: File) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len().min(MAX_FILE) as usize;
    // A few bytes more, so that the end is found without more memory.
    let mut bytes = Vec::with_capacity(size + 64);
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}
