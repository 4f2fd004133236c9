//! Reading files for sealing: in place if the page cache holds them, else off the loop.

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use tenfold_http::layer::{FileBytes, FileReader};
use tenfold_http::{IoError, OpenFile};
use tenfold_sys::file::read_cached;

use crate::dispatch::offload::{OffloadPool, OffloadResult};
use crate::plan::Plan;

/// The bytes of one read.
const READ_BYTES: u64 = 64 * 1024;
/// The threads that read uncached files.
const READERS: usize = 2;
/// The reads that may wait for a thread.
const READS: usize = 256;

/// Reads files on the loop if they are cached, and otherwise on a pool.
#[derive(Clone)]
pub(super) struct CachedFirst(OffloadPool);

impl CachedFirst {
    pub(super) fn new(plan: &Plan) -> CachedFirst {
        CachedFirst(OffloadPool::new(plan, READERS, READS))
    }
}

impl FileReader for CachedFirst {
    type Later = OffloadResult<Result<Vec<u8>, IoError>>;

    fn read(
        &self,
        file: &Arc<OpenFile>,
        range: Range<u64>,
        buffer: &mut Vec<u8>,
    ) -> Result<FileBytes<Self::Later>, IoError> {
        let (at, length) = (range.start, (range.end - range.start).min(READ_BYTES) as usize);
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        let cached = read_cached(&file.file, &mut buffer[..length], at);
        if let Some(count) = cached.map_err(|error| system(&error))? {
            return filled(count).map(FileBytes::Now);
        }
        let cold = file.clone();
        match self.0.run_awaited(move || read_cold(&cold, at, length)) {
            Ok(coming) => Ok(FileBytes::Later(coming)),
            // The queue is full. A bounded read on the loop is better than a closed connection.
            Err(_) => {
                *buffer = read_cold(file, at, length)?;
                Ok(FileBytes::Now(buffer.len()))
            }
        }
    }
}

fn read_cold(file: &OpenFile, at: u64, length: usize) -> Result<Vec<u8>, IoError> {
    let mut bytes = vec![0; length];
    loop {
        match file.file.read_at(&mut bytes, at) {
            Ok(count) => {
                bytes.truncate(filled(count)?);
                return Ok(bytes);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(system(&error)),
        }
    }
}

fn filled(count: usize) -> Result<usize, IoError> {
    if count == 0 { Err(IoError::Truncated) } else { Ok(count) }
}

fn system(error: &io::Error) -> IoError {
    IoError::System(error.raw_os_error().unwrap_or(0))
}
