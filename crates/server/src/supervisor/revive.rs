//! Revival of listening sockets. Code in a compromised worker can shut down a socket that other processes share.
//! The supervisor makes it listen again, so the server needs no restart.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use tenfold_engine::Engine;
use tenfold_sys::socket::ListenAddress;

use super::generation::{Generation, Stage};
use super::state::Supervisor;
use crate::diagnostics::{debug, error, info, warning};

/// The pause after a revival. It bounds the work that repeated shutdowns cause.
const PAUSE: Duration = Duration::from_millis(100);
/// The pause after a failed revival.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// The interval of looks without an event, with engines whose workers can make a listener connect: no event tells of a
/// socket that waits for its peer.
const LOOK: Duration = Duration::from_secs(5);

impl Supervisor {
    /// The time of the next look at the sockets without an event.
    pub(super) fn next_look(&self) -> Option<Instant> {
        let connects = |generation: &Generation| generation.config.plan.engine == Engine::Uring;
        let connects = self.generations.iter().any(connects);
        let look = connects.then(|| Instant::now() + LOOK);
        self.revival.again.or(look).filter(|_| self.leaving.is_none())
    }

    /// The sockets whose end the supervisor waits for. None while it leaves, because it shuts them down itself.
    pub(super) fn watched_sockets(&self) -> Vec<BorrowedFd<'_>> {
        let watches = self.leaving.is_none() && self.revival.again.is_none();
        if watches { self.sockets.descriptors() } else { Vec::new() }
    }

    /// Makes sockets that were shut down listen again. If one had to be exchanged, workers are replaced to get it.
    pub(super) fn look_after_sockets(&mut self) {
        let now = Instant::now();
        if self.leaving.is_some() || self.revival.again.is_some_and(|again| again > now) {
            return;
        }
        self.revival.again = None;
        let Some(newest) = self.generations.last() else { return };
        for (address, revived) in self.sockets.revive(&newest.config.options) {
            let pause = if revived.is_ok() { PAUSE } else { LONG_PAUSE };
            self.revival.again = self.revival.again.max(Some(now + pause));
            let is_news = self.revival.reported.insert((address.clone(), revived.is_ok()));
            match revived {
                Ok(()) if is_news => {
                    warning!(
                        "a process of the server shut down {address}; it listens again; repetitions are not reported"
                    );
                }
                Ok(()) => debug!("{address} was shut down, and listens again"),
                Err(why) if is_news => {
                    error!("a process of the server shut down {address}, and it cannot listen again: {why}");
                }
                Err(why) => debug!("{address} cannot listen again: {why}"),
            }
            // A Unix socket is another one, and workers have the old one.
            if matches!(address, ListenAddress::Unix(_)) {
                self.revival.renewed_by = Some(self.count + 1);
            }
        }
        if self.revival.renewed_by.is_some() {
            self.renew();
        }
    }

    /// A generation serves: it may be the one that has the exchanged sockets.
    pub(super) fn served_by(&mut self, number: u32) {
        self.revival.renewed_by = self.revival.renewed_by.filter(|&first| number < first);
    }

    /// A generation failed. If it was to have exchanged sockets, another begins after a pause.
    pub(super) fn postpone_renewal(&mut self) {
        if self.revival.renewed_by.is_some() {
            self.revival.again = Some(Instant::now() + LONG_PAUSE);
        }
    }

    /// Begins a generation with the present configuration.
    fn renew(&mut self) {
        // Wait for a generation that begins or has failed.
        if self.generations.last().is_none_or(|newest| newest.stage != Stage::Serving) || !self.make_room() {
            return;
        }
        match self.begin_again() {
            Ok(()) => info!("workers are replaced, because a Unix socket was"),
            Err(why) => {
                self.revival.again = Some(Instant::now() + LONG_PAUSE);
                error!("{why}; workers cannot be replaced");
            }
        }
    }
}
