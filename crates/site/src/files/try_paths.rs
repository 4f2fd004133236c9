//! The files that a path may mean, in the order in which they are looked for.

use crate::files::open::{self as resolve, Absence, Loaded, Wanted};
use crate::representation::variant::Resource;
use crate::rules::path::SitePath;
use crate::rules::policy::Effective;
use crate::rules::routes::Slash;
use crate::rules::try_files::Tried;
use crate::{Settings, Site};

/// The files that a path may mean; at least one.
pub(crate) struct Candidates(Vec<Wanted>);

impl Candidates {
    /// What `path` means where `here` holds.
    pub(crate) fn of(path: &SitePath, here: &Effective, settings: &Settings) -> Candidates {
        let mut all = Vec::new();
        match &here.policy.try_files {
            None => itself(path, settings, &mut all),
            Some(files) => {
                for file in files {
                    match file.apply(path) {
                        Tried::Itself => itself(path, settings, &mut all),
                        Tried::File(name) => all.push(Wanted::file(&name)),
                        Tried::IndexOf(folder) => all.push(index_of(&folder, settings)),
                    }
                }
            }
        }
        if let Some(Some(name)) = &here.policy.fallback
            && !last(path.relative()).contains('.')
        {
            all.push(Wanted::file(name));
        }
        Candidates(all)
    }

    /// What they are called beneath the root.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(Wanted::name)
    }

    /// Loads the first that is there.
    pub(crate) fn load(&self, site: &Site, here: &Effective) -> Result<Loaded, Absence> {
        let mut result = Err(Absence::NotFound);
        for wanted in &self.0 {
            result = resolve::load(site, wanted, 200, here);
            if !matches!(result, Err(Absence::NotFound)) {
                break;
            }
        }
        result
    }

    /// Whether the first that is there is still what was loaded.
    pub(crate) fn are_still(&self, site: &Site, resource: &Resource) -> bool {
        let looked = self.0.iter().map(|wanted| (wanted, wanted.look(&site.root)));
        let first = looked.into_iter().find(|(_, looked)| *looked != Err(Absence::NotFound));
        first.is_some_and(|(wanted, looked)| resolve::is_still_as(looked, site, wanted, resource))
    }
}

/// What a path means by itself.
fn itself(path: &SitePath, settings: &Settings, all: &mut Vec<Wanted>) {
    let relative = path.relative();
    match (path.asks_for_directory() || relative.is_empty(), settings.routes.slash) {
        (true, _) => all.push(index_of(relative, settings)),
        (false, Slash::Add) => all.push(Wanted::file_or(relative, Absence::Directory)),
        (false, Slash::Remove | Slash::Either) => {
            all.push(Wanted::file(relative));
            all.push(index_of(relative, settings));
        }
    }
}

fn index_of(folder: &str, settings: &Settings) -> Wanted {
    match folder {
        "" => Wanted::file(&settings.index),
        folder => Wanted::file(&format!("{folder}/{}", settings.index)),
    }
}

fn last(relative: &str) -> &str {
    relative.rsplit('/').next().unwrap_or(relative)
}
