//! Work in a short-lived process with rights and memory of its own. This process, from which workers are forked, never has
//! private keys in its memory.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenfold_sys::limits;
use tenfold_sys::process::{self, Fork};
use tenfold_sys::signal::Signal;
use tenfold_sys::user::{self, SystemUser};

/// The most bytes of a result.
const LONGEST: usize = 1 << 20;
/// The time in which a child must report the problems that it finds.
const LATEST_LOOK: Duration = Duration::from_secs(8);
/// The time for work with keys.
pub(crate) const LATEST: Duration = Duration::from_secs(30);

/// Returns the result of `work` in a child process with the rights of `user`, if there is one. The memory of the child is
/// closed to others. It ends with this process, and after `latest`.
pub(crate) fn apart<T: Serialize + DeserializeOwned>(
    user: Option<&SystemUser>,
    latest: Duration,
    work: impl FnOnce() -> T,
) -> io::Result<T> {
    let parent = process::own();
    let confine = || {
        user.map_or(Ok(()), SystemUser::switch_to)?;
        let has_parent = process::end_with(parent, Signal::Kill)?;
        process::hide_memory()?;
        if has_parent { Ok(()) } else { Err(io::Error::other("the parent has ended")) }
    };
    let (ours, theirs) = UnixStream::pair()?;
    match process::fork()? {
        Fork::Child => {
            drop(ours);
            let result =
                confine().map(|()| work()).map_err(|error| format!("cannot confine a process: {error}"));
            let told = serde_json::to_vec(&result).is_ok_and(|bytes| (&theirs).write_all(&bytes).is_ok());
            std::process::exit(i32::from(!told));
        }
        Fork::Parent(pid) => {
            drop(theirs);
            let told = read_to_end(&ours, LONGEST, Instant::now() + latest);
            process::end_child(pid);
            let bytes = told.map_err(|error| match error.kind() {
                ErrorKind::TimedOut => io::Error::other(format!("no result within {latest:?}")),
                _ => error,
            })?;
            let result: Result<T, String> =
                serde_json::from_slice(&bytes).map_err(|_| io::Error::other("it ended without a result"))?;
            result.map_err(io::Error::other)
        }
    }
}

/// The problems with `what` that `look` finds in a child process. The child has the rights of `user`, if given, and at most
/// `memory` additional bytes.
pub(crate) fn problems_in_child(
    what: &str,
    user: Option<&SystemUser>,
    memory: Option<u64>,
    look: impl FnOnce() -> Vec<String>,
) -> Vec<String> {
    let confine = || {
        user::drop_capabilities()?;
        memory.map_or(Ok(()), limits::limit_memory)
    };
    let told = apart(user, LATEST_LOOK, || match confine() {
        Ok(()) => look(),
        Err(error) => vec![format!("cannot give up privileges: {error}")],
    });
    told.unwrap_or_else(|why| {
        let rights = user.map(|user| format!(" as user {}", user.name)).unwrap_or_default();
        vec![format!("cannot check {what}{rights}: {why}")]
    })
}

/// The first report of a helper process that can do its work. Any other report is an error.
pub(crate) const READY: &str = "ready";

/// Reports to `ready` whether this helper process can do its work. A reported error becomes an empty error.
pub(crate) fn report_start<T>(started: Result<T, String>, mut ready: UnixStream) -> Result<T, String> {
    let report = started.as_ref().map_or_else(String::as_str, |_| READY);
    let sent = ready.write_all(report.as_bytes());
    started.map_err(|why| if sent.is_ok() { String::new() } else { why })
}

/// Reads a stream to its end: at most `most` bytes, and at most until `by`.
pub(crate) fn read_to_end(mut stream: &UnixStream, most: usize, by: Instant) -> io::Result<Vec<u8>> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let left = by.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(count) if bytes.len() + count <= most => bytes.extend_from_slice(&piece[..count]),
            Ok(_) => return Err(io::Error::other("the stream is too long")),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The time of the socket has passed (SO_RCVTIMEO).
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        }
    }
}
