//! HUP: a new configuration gets workers of its own, and those of the old one drain. Problems of a new configuration are
//! reported, and the old one stays.

use super::generation::{Generation, MOST_FORMER, Stage};
use super::state::Supervisor;
use crate::diagnostics::{error, info};
use crate::resolved::config::{ResolvedConfig, warn};
use crate::resolved::names;
use crate::settings::problem::complain;
use crate::settings::values::Settings;

impl Supervisor {
    /// Reads the configuration again, and begins a generation with it.
    pub(super) fn reload(&mut self) {
        let Some(newest) = self.generations.last() else { return };
        if self.leaving.is_some() {
            return;
        }
        if matches!(newest.stage, Stage::Starting | Stage::Failed) {
            // One reload at a time. The workers of a failed one must end first, too.
            self.reload_asked = true;
            return;
        }
        let old = newest.settings.clone();
        self.manager.reloading();
        let begun = self.prepare(&old).and_then(|(settings, config)| self.begin_generation(settings, config));
        match begun {
            Ok(()) => info!("the configuration was read again"),
            Err(why) => {
                self.reloads.count(false);
                error!("{why}; the old configuration goes on");
                self.manager.reloaded(&format!("{why}; the old configuration goes on"));
            }
        }
    }

    /// Begins a generation with this configuration: its workers get the sockets as they are now.
    ///
    /// # Errors
    /// In words: the root or the log cannot be opened, or there is no memory. The generations stay as they are.
    pub(super) fn begin_generation(
        &mut self,
        settings: Settings,
        config: ResolvedConfig,
    ) -> Result<(), String> {
        let (number, null) = (self.count + 1, self.serve.null.is_some());
        let former = self.generations.last();
        let mut generation = Generation::open(number, settings, config, self.user.as_ref(), null, former)?;
        self.address_rows.give(&mut generation, &self.generations)?;
        self.count = number;
        self.generations.push(generation);
        Ok(())
    }

    fn prepare(&self, old: &Settings) -> Result<(Settings, ResolvedConfig), String> {
        let mut settings = self.serve.given.resolve().map_err(|problems| {
            complain(&problems);
            "the configuration was not taken up".to_owned()
        })?;
        if old.passed {
            settings.passed = true;
            settings.listen.clone_from(&old.listen);
        }
        let changes = old.fixed_changes(&settings);
        if !changes.is_empty() {
            return Err(format!("{} cannot change without a restart", changes.join(", ")));
        }
        if self.generations.len() > MOST_FORMER {
            return Err(format!(
                "{MOST_FORMER} former configurations still have connections; try again later"
            ));
        }
        names::prepare(&settings)?;
        let config = ResolvedConfig::resolve(&settings, self.descriptors)?;
        warn(&settings, &config);
        if config.options.zerocopy && !self.sockets.permit_zerocopy() {
            // Connections that wait already would not have the option, and nobody would say when they are done.
            return Err(
                "send cannot become zerocopy without a restart: listening sockets are opened for it".into()
            );
        }
        Ok((settings, config))
    }
}
