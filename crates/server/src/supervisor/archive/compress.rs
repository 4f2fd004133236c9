//! A process that compresses one file, with the lowest priority and without privileges. It opens nothing: the supervisor
//! has opened both files.

use std::fs::File;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use flate2::Compression;
use flate2::write::GzEncoder;
use tenfold_sys::folder::has_writers;
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::process::Pid;
use tenfold_sys::task;
use tenfold_sys::user::SystemUser;

use super::super::privileges;
use crate::diagnostics::error;

/// The exit code if a worker has the file open and may write to it.
pub(super) const STILL_WRITTEN: i32 = 3;
/// The lowest priority (`man 2 nice`): nobody waits for the result.
const NICE: i32 = 19;
/// Bytes that are compressed between two looks at signals.
const PIECE: usize = 64 * 1024;

/// Compresses `from` into `to` as `user`, and ends the process.
pub(super) fn run_and_exit(from: &File, to: &File, user: Option<&SystemUser>, supervisor: Pid) -> ! {
    let compressing = AssertUnwindSafe(|| -> Result<i32, String> {
        if !privileges::give_up(user, supervisor)? {
            return Ok(1);
        }
        // At the usual priority it is slower for others, and nothing else changes.
        let _ = task::lower_priority(NICE);
        // A file system without leases cannot tell; the supervisor compares the size afterwards.
        if has_writers(from).unwrap_or(false) {
            return Ok(STILL_WRITTEN);
        }
        compress(from, to).map(|()| 0).map_err(|error| format!("cannot compress a rotated log: {error}"))
    });
    let code = match catch_unwind(compressing) {
        Ok(Ok(code)) => code,
        Ok(Err(why)) => {
            error!("{why}");
            1
        }
        Err(_) => 101,
    };
    std::process::exit(code)
}

/// Writes `from` in the format of gzip (RFC 1952), down to the disk: the original is removed afterwards.
fn compress(mut from: &File, to: &File) -> io::Result<()> {
    let mut encoder = GzEncoder::new(to, Compression::default());
    let mut piece = vec![0; PIECE];
    loop {
        match from.read(&mut piece)? {
            0 => break,
            count => encoder.write_all(&piece[..count])?,
        }
        if lifecycle::phase() == Phase::Stopping {
            return Err(io::Error::other("the server ends"));
        }
    }
    encoder.finish()?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn a_compressed_file_has_all_bytes() {
        let folder = std::env::temp_dir();
        let at = |name: &str| folder.join(format!("tenfold-compress-{name}-{}", std::process::id()));
        let lines = "127.0.0.1 - - [21/Nov/2026:08:00:00 +0000] \"GET / HTTP/1.1\" 200 1\n".repeat(5000);
        fs::write(at("from"), &lines).expect("a temporary folder");
        let (from, to) = (File::open(at("from")).expect("ours"), File::create(at("to")).expect("ours"));
        compress(&from, &to).expect("there is room");
        let mut text = String::new();
        GzDecoder::new(File::open(at("to")).expect("ours")).read_to_string(&mut text).expect("it is whole");
        assert_eq!(text, lines);
        assert!(fs::metadata(at("to")).expect("ours").len() < 20_000);
        for name in ["from", "to"] {
            fs::remove_file(at(name)).expect("ours");
        }
    }
}
