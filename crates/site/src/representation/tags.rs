//! Entity tags from content, if the configuration demands them.
//!
//! A tag from time and size distinguishes the versions of a file on one machine. A tag from content is the
//! same for the same bytes: on all machines of a site, and after a deployment that writes every file again.
//! The server reads each file once, outside the loop, and caches the digest by the file's identity for all
//! threads.

use std::fmt::Write;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest as _};
use tenfold_http::OpenFile;
use tenfold_sys::file::{self, FileStat};

use crate::cache::encoded::{EncodedCache, FileVersion};
use crate::representation::unmade::EncodingSource;

/// Content for a tag.
pub(crate) struct Untagged {
    pub(crate) source: EncodingSource,
    pub(crate) facts: FileStat,
    pub(crate) settled: bool,
}

impl Untagged {
    /// Finds or makes the digest; None if the file has changed or cannot be read.
    pub(crate) fn read(&self, cache: &EncodedCache) -> Option<Arc<[u8]>> {
        let version = self.settled.then(|| FileVersion::identity(&self.facts));
        if let Some(known) = version.and_then(|version| cache.find(&version)) {
            return Some(known);
        }
        let digest: Arc<[u8]> = match &self.source {
            EncodingSource::Memory(bytes) => digest(bytes),
            EncodingSource::File(file) => of_file(file, &self.facts)?,
        }
        .into_bytes()
        .into();
        if let Some(version) = version {
            cache.put(version, Arc::clone(&digest));
        }
        Some(digest)
    }
}

/// Returns the digest of an open file; None if the file changes meanwhile or cannot be read.
fn of_file(file: &OpenFile, facts: &FileStat) -> Option<String> {
    let (mut digest, mut buffer, mut at) = (Digest::default(), vec![0; 128 * 1024], 0);
    while at < facts.size {
        match file.file.read_at(&mut buffer, at) {
            Ok(0) => return None,
            Ok(count) => {
                digest.add(&buffer[..count]);
                at += count as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    (file::facts(&file.file).ok()? == *facts).then(|| digest.finish())
}

/// A digest of 128 bits: two contents never share it by chance.
#[derive(Default)]
struct Digest(Blake2b<U16>);

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest in 32 hexadecimal digits.
    fn finish(self) -> String {
        let mut digits = String::with_capacity(32);
        for byte in self.0.finalize() {
            write!(digits, "{byte:02x}").expect("writing to a String does not fail");
        }
        digits
    }
}

/// Returns the digest of content in memory.
pub(crate) fn digest(content: &[u8]) -> String {
    let mut digest = Digest::default();
    digest.add(content);
    digest.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_one() {
        // The values of `b2sum -l 128` (BLAKE2b, RFC 7693).
        assert_eq!(digest(b""), "cae66941d9efbd404e4d88758ea67670");
        assert_eq!(digest(b"abc"), "cf4ab791c62b8d2b2109c90275287816");
    }
}
