//! Entity tags from content, if the configuration demands them.
//!
//! A tag from time and size distinguishes the versions of a file on one machine. A tag from content is the
//! same for the same bytes: on all machines of a site, and after a deployment that writes every file again.
//! The server reads each file once, outside the loop, and caches the digest by the file's identity for all
//! threads.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use blake2::digest::consts::U16;
use blake2::{Blake2b, Digest};
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
        cache.find_or_make(version, || {
            let digest = match &self.source {
                EncodingSource::Memory(bytes) => digest(bytes),
                EncodingSource::File(file) => of_file(file, &self.facts)?,
            };
            Some(digest.into_bytes().into())
        })
    }
}

/// Returns the digest of an open file; None if the file changes meanwhile or cannot be read.
fn of_file(file: &OpenFile, facts: &FileStat) -> Option<String> {
    let (mut digest, mut buffer, mut at) = (Blake2b::<U16>::new(), vec![0; 128 * 1024], 0);
    while at < facts.size {
        match file.file.read_at(&mut buffer, at) {
            Ok(0) => return None,
            Ok(count) => {
                digest.update(&buffer[..count]);
                at += count as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    (file::facts(&file.file).ok()? == *facts).then(|| hex(digest))
}

/// Returns the digest of content in memory: 128 bits in hexadecimal digits, which two contents never share by
/// chance.
pub(crate) fn digest(content: &[u8]) -> String {
    hex(Blake2b::new_with_prefix(content))
}

fn hex(digest: Blake2b<U16>) -> String {
    format!("{:032x}", u128::from_be_bytes(digest.finalize().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_tags_has_the_published_values() {
        // The values of `b2sum -l 128` (BLAKE2b, RFC 7693).
        assert_eq!(digest(b""), "cae66941d9efbd404e4d88758ea67670");
        assert_eq!(digest(b"abc"), "cf4ab791c62b8d2b2109c90275287816");
    }
}
