//! The build id: both sides of a connection must be the same program.

use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// Returns the version and the first 64 bits of the SHA-256 of this program's file.
///
/// # Errors
/// `/proc` is not mounted.
pub(crate) fn id() -> io::Result<String> {
    let mut hash = Sha256::new();
    let (mut file, mut piece) = (File::open("/proc/self/exe")?, vec![0; 1 << 20]);
    loop {
        match file.read(&mut piece)? {
            0 => break,
            count => hash.update(&piece[..count]),
        }
    }
    let digits: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{}-{digits}", env!("CARGO_PKG_VERSION")))
}
