//! Entity tags from content, if the configuration asks for them.
//!
//! A tag from time and size distinguishes the versions of a file on one machine. A tag from content is the same
//! wherever the same bytes are: on several machines behind one name, and after a deployment that wrote every
//! file anew. It costs reading each file once, beside the loop; the digest is cached by the identity of the
//! file, for all threads.

use std::fmt::Write;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest as _};
use tenfold_http::OpenFile;
use tenfold_sys::file::{self, FileStat};

use crate::cache::encoded::{EncodedCache, FileVersion};
use crate::representation::unmade::EncodingSource;

/// Content of which a tag is made.
pub(crate) struct Untagged {
    pub(crate) source: EncodingSource,
    pub(crate) facts: FileStat,
    pub(crate) settled: bool,
}

impl Untagged {
    /// Finds or makes its digest; none if it has changed, or cannot be read.
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

/// The digest of an open file, if it is this version of it from begin to end.
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

/// A digest of content in the making: 128 bits, so that two contents never have the same by chance.
#[derive(Default)]
struct Digest(Blake2b<U16>);

impl Digest {
    fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes, in 32 hexadecimal digits.
    fn finish(self) -> String {
        let mut digits = String::with_capacity(32);
        for byte in self.0.finalize() {
            write!(digits, "{byte:02x}").expect("writing to a String does not fail");
        }
        digits
    }
}

/// The digest of content in memory.
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
        // BLAKE2b (RFC 7693) of 16 bytes, as `b2sum -l 128` has it.
        assert_eq!(digest(b""), "cae66941d9efbd404e4d88758ea67670");
        assert_eq!(digest(b"abc"), "cf4ab791c62b8d2b2109c90275287816");
    }
}
