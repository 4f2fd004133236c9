//! The candidate files of a path, in the order in which they are tried.

use crate::files::absence::Absence;
use crate::files::open::LookupName;
use crate::reason::Reason;
use crate::rules::path::SitePath;
use crate::rules::policy::Effective;
use crate::rules::routes::Slash;
use crate::rules::settings::Settings;
use crate::rules::try_files::Tried;

/// The candidate files of a path; at least one.
pub(crate) struct TryPaths(Vec<LookupName>);

impl TryPaths {
    /// Returns the candidates of `path` under the policy `here`.
    pub(crate) fn of(path: &SitePath, here: &Effective, settings: &Settings) -> TryPaths {
        // A folder without an index comes last: `/about` can be `about.html` although `about/` exists.
        let (mut all, mut without_index) = (Vec::new(), None);
        match &here.policy.try_files {
            None => itself(path, settings, &mut all),
            Some(files) => {
                for (at, file) in files.iter().enumerate() {
                    let first = all.len();
                    match file.apply(path) {
                        Tried::Itself if at + 1 < files.len() && adds_slash(path, settings) => {
                            all.push(LookupName::file(path.relative()));
                            let indexes = names_of_indexes(path.relative(), settings);
                            all.extend(indexes.map(|name| LookupName::index_elsewhere(&name)));
                            without_index = Some(LookupName::file_or(path.relative(), Absence::Directory));
                        }
                        Tried::Itself => itself(path, settings, &mut all),
                        Tried::File(name) => all.push(LookupName::file(&name)),
                        Tried::IndexOf(folder) => indexes_of(&folder, settings, &mut all),
                    }
                    if file.is_fixed() {
                        let names: Vec<_> = all.drain(first..).map(LookupName::fixed).collect();
                        all.extend(names);
                    }
                }
                all.extend(without_index);
            }
        }
        if let Some(Some(name)) = &here.policy.fallback
            && !last(path.relative()).contains('.')
        {
            all.push(LookupName::file(name).fixed());
        }
        TryPaths(all)
    }

    /// Returns their names beneath the root.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(LookupName::name)
    }

    /// Returns the first file that exists, with the result of `attempt` for it. Without one, the reason is that of the
    /// first path.
    pub(crate) fn first<T>(
        &self,
        attempt: impl Fn(&LookupName) -> Result<T, Absence>,
    ) -> Result<(&LookupName, T), Absence> {
        let mut why = None;
        for wanted in &self.0 {
            match attempt(wanted) {
                Err(Absence::NotFound(reason)) => why = why.or(Some(reason)),
                found => return Ok((wanted, found?)),
            }
        }
        Err(Absence::NotFound(why.unwrap_or(Reason::NoFile)))
    }
}

/// Adds the candidates of a path without rules.
fn itself(path: &SitePath, settings: &Settings, all: &mut Vec<LookupName>) {
    let relative = path.relative();
    match (path.asks_for_directory() || relative.is_empty(), settings.routes.slash) {
        (true, _) => indexes_of(relative, settings, all),
        (false, Slash::Add) => all.push(LookupName::file_or(relative, Absence::Directory)),
        (false, Slash::Remove | Slash::Either) => {
            all.push(LookupName::file(relative));
            indexes_of(relative, settings, all);
        }
    }
}

fn indexes_of(folder: &str, settings: &Settings, all: &mut Vec<LookupName>) {
    all.extend(names_of_indexes(folder, settings).map(|name| LookupName::file(&name)));
}

fn names_of_indexes(folder: &str, settings: &Settings) -> impl Iterator<Item = String> {
    settings.index.iter().map(move |index| match folder {
        "" => index.clone(),
        folder => format!("{folder}/{index}"),
    })
}

/// Whether a folder of this path is requested with a slash that `path` lacks.
fn adds_slash(path: &SitePath, settings: &Settings) -> bool {
    !path.asks_for_directory() && !path.relative().is_empty() && settings.routes.slash == Slash::Add
}

fn last(relative: &str) -> &str {
    relative.rsplit('/').next().unwrap_or(relative)
}
