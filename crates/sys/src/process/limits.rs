//! Limits of the system for this process.

use std::fs;
use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open descriptors to the greatest value allowed without privileges, and returns it
/// (`RLIMIT_NOFILE`, `man 2 getrlimit`).
///
/// # Errors
/// The error of `setrlimit(2)`; the limit is then unchanged.
pub fn raise_descriptors() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    // Without a hard limit, the kernel's bound for one process applies.
    let most = limit.maximum.unwrap_or_else(|| number_in("/proc/sys/fs/nr_open").unwrap_or(1 << 20));
    if limit.current.is_none_or(|current| current < most) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum })?;
    }
    Ok(most)
}

/// The most processes and threads of this user; `None` without a limit (`RLIMIT_NPROC`).
pub fn processes() -> Option<u64> {
    getrlimit(Resource::Nproc).current
}

/// The most bytes of locked memory of this user; `None` without a limit (`RLIMIT_MEMLOCK`).
pub fn locked_memory() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

/// The greatest backlog of a listening socket (`net.core.somaxconn`); `None` if it cannot be read.
pub fn backlog() -> Option<u64> {
    number_in("/proc/sys/net/core/somaxconn")
}

fn number_in(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
