//! Bounds without a setting, each with the reason for its value.
//!
//! Other bounds are defaults of libraries. `tenfold-http` has those of a request: 100 fields, a target of 8 KiB, 64
//! ranges. `tenfold-site` has those of a site: compressed files of 2 MiB, a cache of 32 MiB, tags of 64 MiB, listings
//! of 10,000 names.

/// Folders that each process watches. A watch takes about 1 KB of kernel memory; changes in other folders are noticed
/// after a second.
pub(crate) const WATCHED_FOLDERS: usize = 1024;

/// Jobs that wait for a thread of `work-threads` in each process. A job takes milliseconds, so that the last job waits
/// for less than a second.
pub(crate) const WORK_QUEUE: usize = 64;

/// Addresses whose limits a server tracks: 32 bytes each, 2 MiB in all. A new address replaces an idle one.
pub(crate) const ADDRESSES: usize = 65_536;

/// TLS handshakes in progress in each worker process: 10 KB each, 100 MB in all.
pub(crate) const HANDSHAKES: usize = 10_000;

/// Bytes of lines that wait in the queue of `log-mode async` in each process: about a second of lines at 10,000
/// requests a second.
pub(crate) const LOG_QUEUE: usize = 1 << 20;

/// Connections to the members' database. A query takes about a millisecond, and hashing passwords bounds logins.
pub(crate) const DATABASE_CONNECTIONS: usize = 8;

/// Concurrent password hashes on the whole server. Each takes `password-memory` and a processor, and a flood of logins
/// must not take the processors from files.
pub(crate) const HASH_THREADS: usize = 1;

/// Passwords that wait to be hashed. A hash takes about 20 ms, so that the last one waits for little more than a second.
pub(crate) const HASH_QUEUE: usize = 64;
