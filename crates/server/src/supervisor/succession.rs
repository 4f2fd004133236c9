//! Workers that leave hand idle connections to their successors: the pairs for it, and which generations may.

use tenfold_engine::{GenerationName, Plan, Successions};

use super::generation::Generation;
use super::state::Supervisor;
use crate::diagnostics::warning;
use crate::resolved::config::ResolvedConfig;
use crate::settings::values::Settings;

/// The era of a generation: the number of the first one that serves the same kinds of connections on each listener.
/// Listeners do not change without a restart, but TLS, PROXY headers and trusted proxies do.
pub(super) fn era(
    number: u32,
    settings: &Settings,
    config: &ResolvedConfig,
    former: Option<&Generation>,
) -> u64 {
    let kinds = |settings: &Settings, config: &ResolvedConfig| -> Vec<_> {
        let has_tls = config.certificates.is_some();
        settings.listen.iter().map(|entry| (has_tls && settings.has_tls(entry), entry.proxied)).collect()
    };
    let same = former.filter(|former| {
        kinds(settings, config) == kinds(&former.settings, &former.config)
            && settings.proxies.proxies == former.settings.proxies.proxies
    });
    same.map_or(u64::from(number), |former| former.era)
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
