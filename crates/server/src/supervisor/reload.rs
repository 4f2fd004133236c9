//! HUP: starts new workers with a new configuration, and drains the old ones. If the new configuration has problems,
//! they are reported and the old one stays.

use super::generation::{Generation, Stage};
use super::signing::SigningProcess;
use super::state::Supervisor;
use crate::config::parse::problem::complain;
use crate::config::resolve::certificates;
use crate::config::resolve::{ResolvedConfig, warn};
use crate::config::values::Settings;
use crate::diagnostics::{error, info};

impl Supervisor {
    /// Reads the configuration again, and starts a generation with it.
    pub(super) fn reload(&mut self) {
        if self.leaving.is_some() {
            return;
        }
        let is_ready = self.generations.last().is_some_and(|newest| newest.stage == Stage::Serving);
        // One reload at a time, and after the workers of a failed one have ended.
        if !is_ready || !self.make_room() {
            self.reload_asked = true;
            return;
        }
        let Some(newest) = self.generations.last() else { return };
        let old = newest.settings.clone();
        self.manager.reloading();
        let begun = self.prepare(&old).and_then(|(settings, config)| self.begin_generation(settings, config));
        match begun {
            Ok(()) => info!("the configuration was read again"),
            Err(why) => {
                self.reloads.count(false);
                error!("{why}; the old configuration stays in use");
                self.manager.reloaded(&format!("{why}; the old configuration stays in use"));
            }
        }
    }

    /// Begins a generation with the present configuration, which opens the roots by their names.
    ///
    /// # Errors
    /// As [`Supervisor::begin_generation`], or the certificates cannot be read.
    pub(super) fn begin_again(&mut self) -> Result<(), String> {
        let Some(newest) = self.generations.last() else { return Ok(()) };
        let (settings, mut config) = (newest.settings.clone(), newest.config.clone());
        // The signing process of the newest generation took the files of its keys.
        let running = newest.running_tls();
        (config.certificates, config.keys) = certificates::load(&settings, running.as_ref())?;
        self.begin_generation(settings, config)
    }

    /// Starts a generation with this configuration and the present sockets.
    ///
    /// # Errors
    /// A message: the root or the log cannot be opened, or there is no memory. The generations stay as they
    /// are.
    pub(super) fn begin_generation(
        &mut self,
        settings: Settings,
        mut config: ResolvedConfig,
    ) -> Result<(), String> {
        let (number, null) = (self.count + 1, self.serve.null.is_some());
        let user = self.user.clone();
        let mut signing = match null {
            true => None,
            false => SigningProcess::begin(&settings, &mut config, user.as_ref(), || {
                self.accounts = None;
                self.forget();
            })?,
        };
        let former = self.generations.last();
        let opened = Generation::open(number, settings, config, user.as_ref(), null, former);
        let opened = opened.and_then(|mut generation| {
            self.address_rows.give(&mut generation, &self.generations).map(|()| generation)
        });
        let mut generation = opened.inspect_err(|_| {
            signing.as_mut().map(SigningProcess::end);
        })?;
        generation.signing = signing;
        self.count = number;
        self.generations.push(generation);
        Ok(())
    }

    pub(super) fn prepare(&self, old: &Settings) -> Result<(Settings, ResolvedConfig), String> {
        let mut settings = self.serve.given.resolve().map_err(|problems| {
            complain(&problems);
            "the configuration was not applied".to_owned()
        })?;
        if old.passed {
            settings.passed = true;
            settings.listen.clone_from(&old.listen);
        }
        let changes = old.fixed_changes(&settings);
        if !changes.is_empty() {
            return Err(format!("{} cannot change without a restart", changes.join(", ")));
        }
        let running = self.generations.last().and_then(Generation::running_tls);
        certificates::prepare(&settings, running.as_ref())?;
        let config = ResolvedConfig::resolve_again(&settings, self.descriptors, running.as_ref())?;
        warn(&settings, &config);
        if config.options.zerocopy && !self.sockets.permit_zerocopy() {
            // Connections in the backlog would not have the option, and their zero-copy sends would never be reported.
            return Err(
                "send cannot become zerocopy without a restart: listening sockets are opened for it".into()
            );
        }
        Ok((settings, config))
    }
}
