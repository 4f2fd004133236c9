//! What the system lets this process have.

use std::fs;
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open descriptors to the greatest that is allowed without privileges, and says what
/// it is (`RLIMIT_NOFILE`, `man 2 getrlimit`).
///
/// # Errors
/// What `setrlimit(2)` says; the limit is as it was then.
pub fn raise_descriptors() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    // Without a hard limit the kernel's own bound for one process counts.
    let most = limit.maximum.unwrap_or_else(|| number_in("/proc/sys/fs/nr_open").unwrap_or(1 << 20));
    if limit.current.is_none_or(|current| current < most) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum })?;
    }
    Ok(most)
}

/// How many processes and threads this user may have; `None` where there is no limit (`RLIMIT_NPROC`).
pub fn processes() -> Option<u64> {
    getrlimit(Resource::Nproc).current
}

/// Bytes of memory that this user may have locked; `None` where there is no limit (`RLIMIT_MEMLOCK`).
pub fn locked_memory() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

/// The greatest backlog of a listening socket (`net.core.somaxconn`); `None` where it cannot be read.
pub fn backlog() -> Option<u64> {
    number_in("/proc/sys/net/core/somaxconn")
}

fn number_in(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
