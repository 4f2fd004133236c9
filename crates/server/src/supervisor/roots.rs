//! The names of the roots: if another folder has taken the name of a root, workers with that folder take over. Programs
//! publish a site so: they exchange a link, or remove a folder and make it again.
//!
//! The supervisor looks, because it can enter folders that are closed to workers, and because Landlock limits a worker to
//! the folders that its supervisor opened.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::generation::{Generation, Stage};
use super::state::Supervisor;
use crate::diagnostics::{error, info, warning};

/// The interval of looks.
const LOOK: Duration = Duration::from_secs(1);
/// The longest interval after folders that could not be served, each of which doubles it.
const LONGEST: Duration = Duration::from_secs(64);

impl Supervisor {
    /// The time of the next look.
    pub(super) fn next_look_at_roots(&self) -> Option<Instant> {
        let looks = self.leaving.is_none() && self.generations.last().is_some_and(Generation::follows_names);
        looks.then(|| self.root_looks.next.unwrap_or(self.began))
    }

    /// Looks at the names of the roots if it is time, and begins a generation if another folder has one.
    pub(super) fn look_after_roots(&mut self) {
        let now = Instant::now();
        if self.next_look_at_roots().is_none_or(|next| next > now) {
            return;
        }
        self.root_looks.next = Some(now + LOOK);
        let Some(newest) = self.generations.last().filter(|newest| newest.stage == Stage::Serving) else {
            return;
        };
        let mut replaced = BTreeSet::new();
        for root in newest.named_roots() {
            let path = root.path();
            match root.has_its_name() {
                Ok(is_same) => {
                    let is_back = self.root_looks.missing.remove(path);
                    if is_same && is_back {
                        info!("the root folder {} is there again", path.display());
                    }
                    if !is_same {
                        replaced.insert(path.to_owned());
                    }
                }
                Err(error) => {
                    let is_missing = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
                    if is_missing && self.root_looks.missing.insert(path.to_owned()) {
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

    /// A generation failed: the next look comes later.
    pub(super) fn postpone_roots(&mut self) {
        let pause = LOOK.saturating_mul(2 << self.root_looks.failures.min(8)).min(LONGEST);
        self.root_looks.failures += 1;
        self.root_looks.next = Some(Instant::now() + pause);
    }

    /// A generation serves: the next look comes after the usual interval.
    pub(super) fn settle_roots(&mut self) {
        self.root_looks.failures = 0;
    }
}
