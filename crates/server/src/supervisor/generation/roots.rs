//! The names of the roots. Programs publish a site by another folder with the same name: they exchange a link, or remove
//! the folder and make it again. Workers with the new folder then take over.
//!
//! The supervisor checks the names, because workers may not enter folders above the root, and because Landlock limits a
//! worker to the folders that the supervisor opened.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::diagnostics::{error, info, warning};
use crate::supervisor::generation::{Generation, Stage};
use crate::supervisor::state::Supervisor;

/// The interval of checks.
const LOOK: Duration = Duration::from_secs(1);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(30);

impl Supervisor {
    /// The time of the next check.
    pub(crate) fn next_root_check(&self) -> Option<Instant> {
        let looks =
            self.leaving.is_none() && self.generations.all.last().is_some_and(Generation::follows_names);
        looks.then(|| self.generations.roots.next.unwrap_or(self.began))
    }

    /// Checks the names of the roots if that is due. Begins a generation if another folder has a name.
    pub(crate) fn advance_roots(&mut self) {
        let now = Instant::now();
        if self.next_root_check().is_none_or(|next| next > now) {
            return;
        }
        self.generations.roots.next = Some(now + LOOK);
        let Some(newest) = self.generations.all.last().filter(|newest| newest.stage == Stage::Serving) else {
            return;
        };
        let mut replaced = BTreeSet::new();
        for root in newest.named_roots() {
            let path = root.path();
            match root.has_its_name() {
                Ok(is_same) => {
                    let is_back = self.generations.roots.missing.remove(path);
                    if is_same && is_back {
                        info!("the root folder {} is there again", path.display());
                    }
                    if !is_same {
                        replaced.insert(path.to_owned());
                    }
                }
                Err(error) => {
                    let is_missing = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
                    if is_missing && self.generations.roots.missing.insert(path.to_owned()) {
                        warning!(
                            "the root folder {} is missing; the last folder of this name stays in use until there is \
                             another",
                            path.display()
                        );
                    }
                }
            }
        }
        if !replaced.is_empty() && self.make_room() {
            self.take_up_roots(&replaced);
        }
    }

    /// Begins a generation with the present configuration, which opens the roots by their names.
    fn take_up_roots(&mut self, replaced: &BTreeSet<PathBuf>) {
        let begun = self.begin_again();
        let paths: Vec<_> = replaced.iter().map(|path| path.display().to_string()).collect();
        let paths = paths.join(", ");
        match begun {
            Ok(()) => info!("another folder has the name of the root {paths}; workers with it take over"),
            Err(why) => {
                error!("{why}; the last folder of the name {paths} stays in use");
                self.postpone_roots();
            }
        }
    }

    /// A generation failed: the next check comes later.
    pub(crate) fn postpone_roots(&mut self) {
        self.generations.roots.next = Some(Instant::now() + PAUSE);
    }
}
