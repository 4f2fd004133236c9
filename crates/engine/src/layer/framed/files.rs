//! Reading files for sealing: in place if the page cache holds them, else off the loop.

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use tenfold_http::{IoError, OpenFile};
use tenfold_sys::file::read_cached;

use crate::dispatch::offload::{Coming, Lane};

/// Bytes that are read at once.
const READ_BYTES: u64 = 64 * 1024;

/// Bytes of a file, now or later.
pub(super) enum Read {
    Now(Vec<u8>),
    Later(Coming<Result<Vec<u8>, IoError>>),
}

/// Reads from the begin of `range`. The result is not empty.
pub(super) fn read(file: &Arc<OpenFile>, range: Range<u64>, lane: &Lane) -> Result<Read, IoError> {
    let (at, length) = (range.start, (range.end - range.start).min(READ_BYTES) as usize);
    let mut bytes = vec![0; length];
    if let Some(count) = read_cached(&file.file, &mut bytes, at).map_err(|error| system(&error))? {
        return filled(bytes, count).map(Read::Now);
    }
    let cold = file.clone();
    match lane.run(move || read_cold(&cold, at, length)) {
        Ok(coming) => Ok(Read::Later(coming)),
        // Too much waits for the lane. A bounded read on the loop is better than a connection that is cut.
        Err(_) => read_cold(file, at, length).map(Read::Now),
    }
}

fn read_cold(file: &OpenFile, at: u64, length: usize) -> Result<Vec<u8>, IoError> {
    let mut bytes = vec![0; length];
    loop {
        match file.file.read_at(&mut bytes, at) {
            Ok(count) => return filled(bytes, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(system(&error)),
        }
    }
}

fn filled(mut bytes: Vec<u8>, count: usize) -> Result<Vec<u8>, IoError> {
    bytes.truncate(count);
    if bytes.is_empty() { Err(IoError::Truncated) } else { Ok(bytes) }
}

fn system(error: &io::Error) -> IoError {
    IoError::System(error.raw_os_error().unwrap_or(0))
}
