//! New certificates: workers with a certificate that the ACME process has obtained take over.

use std::time::{Duration, Instant};

use tenfold_tls::certificates::facts::KeyId;
use tenfold_tls::certificates::files::LoadedCertificates;

use super::child::PAUSE;
use crate::config::resolve::certificates;
use crate::config::values::tls::TlsNames;
use crate::diagnostics::{error, info};
use crate::supervisor::generation::Stage;
use crate::supervisor::state::Supervisor;

/// The pause after an unreadable certificate.
const UNREADABLE: Duration = Duration::from_secs(60);

/// The interval of checks of the certificate of an internal authority.
const INTERNAL: Duration = Duration::from_secs(12 * 3600);

impl Supervisor {
    /// Renews the certificate of the newest generation from now on.
    pub(crate) fn follow_certificates(&mut self) {
        let Some(newest) = self.generations.all.last() else { return };
        let has_kept = newest.config.certificates.as_ref().is_some_and(|certificates| certificates.has_kept);
        let Some(acme) = &mut self.children.acme else { return };
        acme.follow(newest.config.acme.clone(), has_kept);
        if newest.settings.names.tls == TlsNames::Internal {
            acme.take_up = Some(Instant::now() + INTERNAL);
        }
    }

    /// Starts the process if it is due, and takes up a new certificate.
    pub(crate) fn advance_certificates(&mut self) {
        let Some(mut acme) = self.children.acme.take() else { return };
        if self.leaving.is_some() || self.failed {
            acme.end();
        }
        acme.read_news();
        let now = Instant::now();
        if acme.take_up.is_some_and(|at| at <= now) {
            self.children.acme = Some(acme);
            let pause = self.take_up_certificate();
            let Some(taken) = self.children.acme.take() else { return };
            acme = taken;
            acme.take_up = pause.map(|pause| now + pause);
            acme.not_before = now + PAUSE;
        }
        let certificates = self.generations.all.last().and_then(|newest| newest.config.certificates.clone());
        let known = || certificates.as_deref().map(keys).unwrap_or_default();
        acme.advance(known, || self.forget());
        self.children.acme = Some(acme);
    }

    /// A generation failed. Another one begins after a pause if there is a new certificate.
    pub(crate) fn postpone_certificate(&mut self) {
        if let Some(acme) = self.children.acme.as_mut().filter(|acme| acme.child.pid().is_some()) {
            acme.take_up.get_or_insert(Instant::now() + UNREADABLE);
        }
    }

    /// Begins a generation with the certificate of the state folder. Returns the time until the next look at the folder.
    fn take_up_certificate(&mut self) -> Option<Duration> {
        if self.generations.all.last()?.stage != Stage::Serving || !self.make_room() {
            return Some(PAUSE);
        }
        let newest = self.generations.all.last()?;
        let (settings, mut config) = (newest.settings.clone(), newest.config.clone());
        let later = (settings.names.tls == TlsNames::Internal).then_some(INTERNAL);
        let running = newest.running_tls();
        let running = running.as_ref();
        let prepared = certificates::prepare(&settings, running);
        let loaded = match prepared.and_then(|()| certificates::load(&settings, running)) {
            Ok(loaded) => loaded,
            Err(why) => {
                error!("{why}; the old certificate stays for now");
                return Some(UNREADABLE);
            }
        };
        let (loaded, opened) = loaded;
        let (Some(now), Some(before)) = (&loaded, &config.certificates) else { return later };
        if keys(now) == keys(before) {
            return later;
        }
        let summaries: Vec<_> = now.summaries().collect();
        info!("a new certificate: {}; workers with it take over", summaries.join("; "));
        (config.certificates, config.keys) = (loaded, opened);
        match self.begin_generation(settings, config) {
            Ok(()) => later,
            Err(why) => {
                error!("{why}; the old certificate stays for now");
                Some(PAUSE)
            }
        }
    }
}

/// The keys of certificates: a new certificate has a new key.
fn keys(certificates: &LoadedCertificates) -> Vec<KeyId> {
    certificates.pairs.iter().map(|pair| pair.chain.facts().key_id()).collect()
}
