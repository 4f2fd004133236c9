//! HUP: starts workers with a new configuration, and retires the old ones. An invalid configuration changes nothing.

use std::time::Instant;

use crate::config::parse::problem::{Problem, complain};
use crate::config::resolve::certificates;
use crate::config::resolve::{ResolvedConfig, warn};
use crate::config::values::Settings;
use crate::diagnostics::{error, info};
use crate::supervisor::children::child::LATEST_START;
use crate::supervisor::children::signing::SigningProcess;
use crate::supervisor::generation::{Generation, Stage};
use crate::supervisor::state::Supervisor;

/// Returns the reason why a configuration was not applied. Several problems, and problems with a place in a file, are
/// printed.
pub(crate) fn why_not_applied(problems: &[Problem]) -> String {
    match problems {
        [only] if !only.is_placed() => only.to_string(),
        several => {
            complain(several);
            "the configuration was not applied".to_owned()
        }
    }
}

impl Supervisor {
    /// Reads the configuration again, and starts a generation with it.
    pub(crate) fn reload(&mut self) {
        if self.leaving.is_some() {
            return;
        }
        let is_ready = self.generations.all.last().is_some_and(|newest| newest.stage == Stage::Serving);
        // One reload at a time, and after the workers of a failed one have ended.
        if !is_ready || !self.make_room() {
            self.generations.reload_asked = true;
            return;
        }
        let Some(newest) = self.generations.all.last() else { return };
        let old = newest.settings.clone();
        self.manager.reloading();
        let begun = self.prepare(&old).and_then(|(settings, config)| {
            self.begin_generation(settings, config).map_err(|why| vec![Problem::new(why)])
        });
        match begun {
            Ok(()) => info!("the configuration was read again"),
            Err(problems) => {
                let all: Vec<_> = problems.iter().map(Problem::to_string).collect();
                self.generations.reloads.fail(&all.join("\n\n"));
                let why = why_not_applied(&problems);
                error!("{why}; the old configuration stays in use");
                self.manager.reloaded(&format!("{why}; the old configuration stays in use"));
            }
        }
    }

    /// Begins a generation with the present configuration, which opens the roots by their names.
    pub(crate) fn begin_again(&mut self) -> Result<(), String> {
        let Some(newest) = self.generations.all.last() else { return Ok(()) };
        let (settings, mut config) = (newest.settings.clone(), newest.config.clone());
        // The signing process of the newest generation has the files of its keys.
        let running = newest.running_tls();
        (config.certificates, config.keys) = certificates::load(&settings, running.as_ref())?;
        self.begin_generation(settings, config)
    }

    /// Starts a generation with this configuration and the present sockets.
    pub(crate) fn begin_generation(
        &mut self,
        settings: Settings,
        mut config: ResolvedConfig,
    ) -> Result<(), String> {
        let (number, null) = (self.generations.count + 1, self.serve.null.is_some());
        let user = self.user.clone();
        let mut signing = match null {
            true => None,
            false => {
                let by = Instant::now() + LATEST_START;
                SigningProcess::begin(&settings, &mut config, user.as_ref(), by, || self.forget())?
            }
        };
        let former = self.generations.all.last();
        let opened = Generation::open(number, settings, config, user.as_ref(), null, former);
        let opened = opened.and_then(|mut generation| {
            self.generations.lanes.give(&mut generation, &self.generations.all).map(|()| generation)
        });
        let mut generation = opened.inspect_err(|_| {
            signing.as_mut().map(SigningProcess::end);
        })?;
        generation.signing = signing;
        self.generations.count = number;
        self.generations.all.push(generation);
        Ok(())
    }

    /// Reads and checks the configuration of a new generation.
    pub(crate) fn prepare(&self, old: &Settings) -> Result<(Settings, ResolvedConfig), Vec<Problem>> {
        let settings = self.serve.given.resolve()?;
        self.check_change(old, settings).map_err(|why| vec![Problem::new(why)])
    }

    fn check_change(
        &self,
        old: &Settings,
        mut settings: Settings,
    ) -> Result<(Settings, ResolvedConfig), String> {
        if old.passed {
            settings.passed = true;
            settings.listen.clone_from(&old.listen);
        }
        let changes = old.fixed_changes(&settings);
        if !changes.is_empty() {
            return Err(format!("{} cannot change without a restart", changes.join(", ")));
        }
        let running = self.generations.all.last().and_then(Generation::running_tls);
        certificates::prepare(&settings, running.as_ref())?;
        let config = ResolvedConfig::resolve_again(&settings, self.descriptors, running.as_ref())?;
        warn(&settings, &config);
        if config.options.zerocopy && !self.sockets.permit_zerocopy() {
            // Connections in the backlog lack the option, so the kernel would never report their zero-copy sends.
            return Err(
                "send cannot become zerocopy without a restart: listening sockets are opened for it".into()
            );
        }
        Ok((settings, config))
    }
}
