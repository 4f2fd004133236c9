//! HUP: a new configuration gets workers of its own, and those of the old one drain. What is wrong with it
//! is said, and then nothing changes.

use super::generation::{Generation, MOST_FORMER, Stage};
use super::state::Supervisor;
use crate::diagnostics::{error, info};
use crate::resolved::config::{ResolvedConfig, warn};
use crate::settings::problem::complain;
use crate::settings::values::Settings;

impl Supervisor {
    /// Takes up the configuration as it is now.
    pub(super) fn reload(&mut self) {
        let Some(newest) = self.generations.last() else { return };
        if self.leaving.is_some() {
            return;
        }
        if matches!(newest.stage, Stage::Starting | Stage::Failed) {
            // One after the other: also behind one that failed, whose workers have yet to end.
            self.reload_asked = true;
            return;
        }
        let prepared = self.prepare(&newest.settings).and_then(|mut generation| {
            self.address_rows.give(&mut generation, &self.generations)?;
            Ok(generation)
        });
        match prepared {
            Ok(generation) => {
                self.count = generation.number;
                self.generations.push(generation);
                info!("the configuration was read again");
            }
            Err(why) => error!("{why}; the old configuration goes on"),
        }
    }

    fn prepare(&self, old: &Settings) -> Result<Generation, String> {
        let settings = self.serve.given.resolve().map_err(|problems| {
            complain(&problems);
            "the configuration was not taken up".to_owned()
        })?;
        let changes = old.fixed_changes(&settings);
        if !changes.is_empty() {
            return Err(format!("{} cannot change without a restart", changes.join(", ")));
        }
        if self.generations.len() > MOST_FORMER {
            return Err(format!(
                "{MOST_FORMER} former configurations still have connections; try again later"
            ));
        }
        let config = ResolvedConfig::resolve(&settings, self.descriptors)?;
        warn(&settings, &config);
        if config.options.zerocopy && !self.sockets.permit_zerocopy() {
            // Connections that wait already would not have the option, and nobody would say when they are done.
            return Err(
                "send cannot become zerocopy without a restart: listening sockets are opened for it".into()
            );
        }
        Generation::open(
            self.count + 1,
            settings,
            config,
            self.user.as_ref(),
            self.serve.null.is_some(),
            self.generations.last(),
        )
    }
}
