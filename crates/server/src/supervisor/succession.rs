//! Workers that leave hand idle connections to their successors: the pairs for it, and which generations may.

use tenfold_engine::{GenerationName, Plan, Successions};

use super::generation::Generation;
use super::state::Supervisor;
use crate::diagnostics::warning;

/// The era of a generation: that of `former` if both serve the same kinds of connections on each listener. Listeners do
/// not change without a restart, but TLS, PROXY headers and trusted proxies do.
pub(super) fn era(generation: &Generation, former: Option<&Generation>) -> u64 {
    let kinds = |generation: &Generation| -> Vec<_> {
        let (settings, has_tls) = (&generation.settings, generation.config.certificates.is_some());
        settings.listen.iter().map(|entry| (has_tls && settings.has_tls(entry), entry.proxied)).collect()
    };
    let same = former.filter(|former| {
        kinds(generation) == kinds(former)
            && generation.settings.proxies.proxies == former.settings.proxies.proxies
    });
    same.map_or(generation.era, |former| former.era)
}

/// The pairs of a server whose workers run by `plan`; none if they keep their connections.
pub(super) fn pairs(plan: &Plan, null: bool) -> Option<Successions> {
    if null || plan.blocking() {
        return None;
    }
    let pairs = Successions::new(plan.workers);
    pairs
        .inspect_err(|error| {
            warning!(
                "cannot make sockets between generations: {error}; a reload ends connections with their next response"
            );
        })
        .ok()
}

impl Generation {
    /// Its name for workers that hand over to it.
    pub(super) fn name(&self) -> GenerationName {
        GenerationName { number: self.number, era: self.era }
    }
}

impl Supervisor {
    /// Lets former workers hand their connections to the newest generation again.
    pub(super) fn open_successions(&self) {
        if let (Some(successions), Some(newest)) = (&self.successions, self.generations.last()) {
            successions.open(Some(newest.name()));
        }
    }

    /// Lets no worker hand its connections over, because nothing takes them over.
    pub(super) fn close_successions(&self) {
        self.successions.iter().for_each(|successions| successions.open(None));
    }
}
