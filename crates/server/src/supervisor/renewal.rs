//! New certificates: the process that obtains them is kept running, and workers get what it obtained.

use std::time::{Duration, Instant};

use tenfold_tls::certificates::facts::KeyId;
use tenfold_tls::certificates::files::LoadedCertificates;

use super::acme::PAUSE;
use super::generation::Stage;
use super::state::Supervisor;
use crate::config::resolve::certificates;
use crate::config::values::tls::TlsNames;
use crate::diagnostics::{error, info};

/// The pause before a certificate is read again that could not be.
const UNREADABLE: Duration = Duration::from_secs(60);

/// How often the certificate of an internal authority is looked at.
const INTERNAL: Duration = Duration::from_secs(12 * 3600);

impl Supervisor {
    /// Looks after the certificate of the newest generation from now on.
    pub(super) fn follow_certificates(&mut self) {
        let Some(newest) = self.generations.last() else { return };
        let has_kept = newest.config.certificates.as_ref().is_some_and(|certificates| certificates.has_kept);
        self.acme.follow(newest.config.acme.clone(), has_kept);
        if newest.settings.names.tls == TlsNames::Internal {
            self.acme.take_up = Some(Instant::now() + INTERNAL);
        }
    }

    /// Starts the process if it is due, and takes up a certificate that it has obtained.
    pub(super) fn look_after_certificates(&mut self) {
        if self.leaving.is_some() || self.failed {
            return self.acme.end();
        }
        self.acme.hear();
        let now = Instant::now();
        if self.acme.take_up.is_some_and(|at| at <= now) {
            self.acme.take_up = self.take_up_certificate().map(|pause| now + pause);
            self.acme.not_before = now + PAUSE;
        }
        if self.acme.pid.is_some() || self.acme.again.is_none_or(|again| again > now) {
            return;
        }
        let certificates = self.generations.last().and_then(|newest| newest.config.certificates.as_deref());
        let known = certificates.map(keys).unwrap_or_default();
        match self.acme.fork(known) {
            Ok(None) => {}
            Ok(Some(obtain)) => {
                self.accounts = None;
                self.forget();
                obtain()
            }
            Err(error) => {
                error!("cannot start the process that obtains certificates: {error}");
                self.acme.again = Some(now + PAUSE);
            }
        }
    }

    /// A generation failed. If it was to have a new certificate, another one begins after a pause.
    pub(super) fn postpone_certificate(&mut self) {
        if self.acme.pid.is_some() {
            self.acme.take_up.get_or_insert(Instant::now() + UNREADABLE);
        }
    }

    /// Replaces the workers by others with the certificate of the state folder, as a reload does. Returns the time until
    /// the folder is to be looked at again.
    fn take_up_certificate(&mut self) -> Option<Duration> {
        if self.generations.last()?.stage != Stage::Serving || !self.make_room() {
            return Some(PAUSE);
        }
        let newest = self.generations.last()?;
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

/// The keys of certificates: a new certificate has a new one.
fn keys(certificates: &LoadedCertificates) -> Vec<KeyId> {
    certificates.pairs.iter().map(|pair| pair.chain.facts().key_id()).collect()
}
