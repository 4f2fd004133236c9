//! Revival of listening sockets. Code in a compromised worker can shut down a socket that other processes share, or
//! make them wait at it forever. The supervisor makes it listen again, so the server needs no restart.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use tenfold_sys::signal::Signal;
use tenfold_sys::socket::ListenAddress;

use super::generation::{MOST_FORMER, Stage};
use super::state::Supervisor;
use crate::diagnostics::{debug, error, info, warning};

/// The pause after a revival. It bounds the work that repeated shutdowns cause.
const PAUSE: Duration = Duration::from_millis(100);
/// The pause after a failed revival.
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// The interval at which the state of shared sockets is compared with their first state.
const LOOK: Duration = Duration::from_secs(1);

impl Supervisor {
    /// The sockets whose end the supervisor waits for. None while it leaves, because it shuts them down itself.
    pub(super) fn watched_sockets(&self) -> Vec<BorrowedFd<'_>> {
        let watches = self.leaving.is_none() && self.revival.again.is_none();
        if watches { self.sockets.descriptors() } else { Vec::new() }
    }

    /// Makes sockets that were shut down listen again. If one had to be exchanged, workers are replaced to get it.
    pub(super) fn look_after_sockets(&mut self) {
        let now = Instant::now();
        self.compare_modes(now);
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
                (self.revival.renews, self.revival.look) = (true, None);
            }
        }
        if self.revival.renews {
            self.renew();
        }
    }

    /// Remembers the mode of `accept` on shared sockets when the first workers serve, and compares it from now on.
    pub(super) fn remember_modes(&mut self) {
        if self.revival.modes.is_empty() {
            self.revival.modes = self.sockets.accept_modes();
        }
        self.revival.look = (!self.revival.modes.is_empty()).then(|| Instant::now() + LOOK);
    }

    /// Shuts down shared sockets if a worker has changed their mode of `accept`, because other workers would wait in it
    /// forever. Then the sockets are exchanged, and the workers replaced.
    fn compare_modes(&mut self, now: Instant) {
        let Some(look) = self.revival.look.as_mut().filter(|look| **look <= now) else { return };
        *look = now + LOOK;
        // Workers set the mode when they begin.
        let is_settled = self.generations.last().is_some_and(|newest| newest.stage == Stage::Serving);
        if self.leaving.is_some() || !is_settled || self.sockets.accept_modes() == self.revival.modes {
            return;
        }
        warning!(
            "a process of the server changed how others wait at a Unix socket; it is exchanged for another"
        );
        self.sockets.shut_down_shared();
        self.revival.look = None;
    }

    /// Begins a generation with the present configuration.
    fn renew(&mut self) {
        let Some((newest, former)) = self.generations.split_last() else { return };
        // Wait for a generation that begins or has failed.
        if newest.stage != Stage::Serving {
            return;
        }
        if former.len() >= MOST_FORMER {
            // A worker that does not end is compromised.
            former.iter().for_each(|generation| generation.tell(Signal::Kill));
            return;
        }
        let (settings, config) = (newest.settings.clone(), newest.config.clone());
        match self.begin_generation(settings, config) {
            Ok(()) => {
                self.revival.renews = false;
                info!("workers are replaced, because a Unix socket was");
            }
            Err(why) => {
                self.revival.again = Some(Instant::now() + LONG_PAUSE);
                error!("{why}; workers cannot be replaced");
            }
        }
    }
}
