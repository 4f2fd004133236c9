//! Kernel resources that all cases share. A case waits for its share, so that no case fails because of another.

use std::ops::{Add, Sub};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

use rustix::process::{Resource, getrlimit};
use tenfold_engine::{Driver, Engine};

use crate::config::Config;
use crate::server::lock;

/// Amounts of the shared resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// KiB of locked memory of a user (RLIMIT_MEMLOCK): rings, and sends without a copy.
    pub locked: u64,
    /// KiB of the memory of TCP (`man 7 tcp`, tcp_mem).
    pub tcp: u64,
    /// Descriptors of this process (RLIMIT_NOFILE).
    pub descriptors: u64,
    /// Processes and threads of a user (RLIMIT_NPROC).
    pub processes: u64,
}

/// KiB of locked memory for a worker with a ring: its own ring, rings of former workers during a reload, and rings of
/// ended workers until the system frees them. A ring takes 136 KiB.
const RING_WORKER: u64 = 640;

/// More than any limit, and small enough for sums.
const UNLIMITED: u64 = 1 << 40;

impl Share {
    /// The share of a case without a configuration, which may start a server of each engine.
    pub const USUAL: Share = Share { locked: RING_WORKER, tcp: 16 << 10, descriptors: 200, processes: 32 };

    /// All of each resource: no other case runs at the same time.
    pub const ALL: Share =
        Share { locked: UNLIMITED, tcp: UNLIMITED, descriptors: UNLIMITED, processes: UNLIMITED };

    /// The share of a case with a server of this configuration.
    pub fn of(config: &Config) -> Share {
        let locked = match config.engine {
            Engine::Uring if config.locks_memory() => UNLIMITED,
            Engine::Uring => RING_WORKER * config.workers() as u64,
            _ => 0,
        };
        // Each connection may have a process or a thread.
        let has_many = config.at_once().is_none() && config.engine.model().driver == Driver::Blocking;
        let processes = if has_many { 128 } else { Share::USUAL.processes };
        Share { locked, processes, ..Share::USUAL }
    }

    /// The share of a case on a shared server. Few shared servers run, and the rest of each [`RING_WORKER`] has room for
    /// their rings.
    pub fn of_shared(config: &Config) -> Share {
        Share { locked: 0, ..Share::of(config) }
    }

    /// The resources of this machine. Other programs of the user may need half of the processes.
    fn of_machine() -> Share {
        let limit = |resource| getrlimit(resource).current.unwrap_or(UNLIMITED).min(UNLIMITED);
        Share {
            locked: limit(Resource::Memlock) >> 10,
            tcp: tcp_memory().unwrap_or(UNLIMITED),
            descriptors: limit(Resource::Nofile),
            processes: limit(Resource::Nproc) / 2,
        }
    }

    fn each(self, other: Share, by: impl Fn(u64, u64) -> u64) -> Share {
        Share {
            locked: by(self.locked, other.locked),
            tcp: by(self.tcp, other.tcp),
            descriptors: by(self.descriptors, other.descriptors),
            processes: by(self.processes, other.processes),
        }
    }
}

/// The KiB at which the kernel begins to limit the memory of TCP connections, with pages of 4 KiB.
fn tcp_memory() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_mem").ok()?;
    let pressure: u64 = pages.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pressure * 4)
}

/// The resources from which cases take their shares.
#[derive(Debug)]
pub struct Budget {
    most: Share,
    taken: Mutex<Share>,
    returned: Condvar,
}

impl Budget {
    /// A budget of these resources.
    pub const fn new(most: Share) -> Budget {
        let nothing = Share { locked: 0, tcp: 0, descriptors: 0, processes: 0 };
        Budget { most, taken: Mutex::new(nothing), returned: Condvar::new() }
    }

    /// The budget of all cases, after the descriptor limit of this process has been raised.
    pub fn of_machine() -> &'static Budget {
        static BUDGET: OnceLock<Budget> = OnceLock::new();
        BUDGET.get_or_init(|| Budget::new(Share::of_machine()))
    }

    /// Waits until the share is free. Of a smaller resource it is all. Each case takes one share at its begin, so cases
    /// do not wait for each other in a circle.
    pub fn take(&self, share: Share) -> TakenShare<'_> {
        let share = share.each(self.most, u64::min);
        let lacks_room = |taken: &mut Share| !self.has_room(*taken, share);
        let taken = self.returned.wait_while(lock(&self.taken), lacks_room);
        self.give(&mut taken.unwrap_or_else(PoisonError::into_inner), share)
    }

    /// Takes the share if it is free.
    pub fn try_take(&self, share: Share) -> Option<TakenShare<'_>> {
        let share = share.each(self.most, u64::min);
        let mut taken = lock(&self.taken);
        self.has_room(*taken, share).then(|| self.give(&mut taken, share))
    }

    fn has_room(&self, taken: Share, share: Share) -> bool {
        taken.each(share, u64::add).each(self.most, u64::max) == self.most
    }

    fn give(&self, taken: &mut Share, share: Share) -> TakenShare<'_> {
        *taken = taken.each(share, u64::add);
        TakenShare { budget: self, share }
    }
}

/// A share that is free again when this value is dropped.
#[derive(Debug)]
pub struct TakenShare<'b> {
    budget: &'b Budget,
    share: Share,
}

impl Drop for TakenShare<'_> {
    fn drop(&mut self) {
        let mut taken = lock(&self.budget.taken);
        *taken = taken.each(self.share, u64::sub);
        drop(taken);
        self.budget.returned.notify_all();
    }
}
