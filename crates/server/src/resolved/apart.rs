//! Work with private keys in a short-lived process: this one, from which workers are forked, never has them in its memory.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenfold_sys::process::{self, Fork};
use tenfold_sys::user;
use tenfold_tls::certificates::files::KeyFile;

use crate::members::channel::read_to_end;
use crate::sandbox;

/// The time in which the work must be done, and the most bytes of the result.
const LATEST: Duration = Duration::from_secs(30);
const LONGEST: usize = 64 * 1024;

/// Returns the result of `work` in a process whose memory is closed to others.
///
/// # Errors
/// There is no process, or it ends without a result.
pub(super) fn apart<T: Serialize + DeserializeOwned>(work: impl FnOnce() -> T) -> io::Result<T> {
    let (ours, theirs) = UnixStream::pair()?;
    match process::fork()? {
        Fork::Child => {
            drop(ours);
            let told = process::hide_memory().is_ok()
                && serde_json::to_vec(&work()).is_ok_and(|bytes| (&theirs).write_all(&bytes).is_ok());
            std::process::exit(i32::from(!told));
        }
        Fork::Parent(_) => {
            drop(theirs);
            let bytes = read_to_end(&ours, LONGEST, Instant::now() + LATEST)?;
            serde_json::from_slice(&bytes).map_err(|_| io::Error::other("it ended without a result"))
        }
    }
}

/// Returns the problems of keys, which a short-lived process without privileges reads: this one never has them in its
/// memory.
pub(super) fn check_keys(keys: &[KeyFile], confined: bool) -> io::Result<Vec<String>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    apart(|| {
        give_up(confined)
            .map(|()| keys.iter().filter_map(|key| key.read().err()).map(|found| found.to_string()).collect())
            .unwrap_or_else(|why| vec![why])
    })
}

/// Drops the privileges of the process that checks keys.
fn give_up(confined: bool) -> Result<(), String> {
    user::drop_capabilities().map_err(|error| format!("cannot give up privileges: {error}"))?;
    if confined { sandbox::confine_check() } else { Ok(()) }
}
