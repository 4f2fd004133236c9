//! The protection of files by their identity, and not by the path that led to them.
//!
//! A rewrite, a fallback, an error page, a link, another host and a file system without case all lead to a file by a
//! path that no rule is for. So when a file is opened, and when it is looked at again, the protected folders are
//! compared with every directory above the file by device and inode. They are resolved once a second for each site whose
//! root is above the file; those that this process may not look at are compared as they were before it gave up its
//! privileges. `docs/how-to/members.md` states the limits: a hard link, and a mount of a part of a protected folder, have other
//! directories above them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tenfold_http::{Instant, clock};
use tenfold_sys::file::{FileError, FileStat, Root};
use tenfold_sys::resolved_path::{Identity, ResolvedPath};

use crate::cache::clock::is_fresh;
use crate::files::absence::Absence;
use crate::files::roots::Roots;
use crate::rules::access::Guard;
use crate::rules::pattern::Pattern;
use crate::rules::policy::Policies;
use crate::rules::realm::Realm;

/// The folders that are for members alone, on every host.
pub struct MemberFolders {
    /// Their paths beneath a root, as the file system spells them.
    names: Vec<String>,
    /// Whether a path beneath a root is in one of them.
    hold: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

impl MemberFolders {
    /// Folders of these names; `hold` tells whether a path, decoded and without a slash at either end, is in one.
    pub fn new(names: Vec<String>, hold: impl Fn(&str) -> bool + Send + Sync + 'static) -> MemberFolders {
        MemberFolders { names, hold: Box::new(hold) }
    }
}

impl fmt::Debug for MemberFolders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.names).finish()
    }
}

/// A rule of the configuration about passwords for some paths.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Statement {
    paths: Pattern,
    /// None if it opens them.
    realm: Option<Arc<Realm>>,
}

/// A site's rules about passwords, and its roots.
#[derive(Debug)]
pub(crate) struct Area {
    roots: Arc<Roots>,
    index: Vec<String>,
    statements: Vec<Statement>,
    view: Mutex<AreaView>,
}

impl Area {
    pub(crate) fn new(roots: &Arc<Roots>, index: &[String], policies: &Policies) -> Area {
        let said = policies.of_auth().map(|(paths, realm)| Statement { paths, realm: realm.clone() });
        let (statements, view) = (said.collect(), Mutex::default());
        Area { roots: Arc::clone(roots), index: index.to_owned(), statements, view }
    }

    /// Calls `look` with the file as it is seen from here, unless nothing of the area concerns it.
    fn locate<'p>(
        &'p self,
        place: &ResolvedPath,
        folders: Option<&MemberFolders>,
        look: impl FnOnce(&LocatedFile<'p, '_>) -> Result<(), Absence>,
    ) -> Result<(), Absence> {
        let (mut view, now) = (self.view.lock().unwrap_or_else(PoisonError::into_inner), clock::now());
        if !view.roots_at.is_some_and(|at| is_fresh(at, now)) {
            view.look_up_roots(self)?;
            view.roots_at = Some(now);
        }
        let is_beneath = view.roots.iter().any(|root| place.ancestry.contains(root));
        // Beneath other folders there are protected ones only where one is mounted, which is rare.
        if view.named_at.is_none_or(|at| is_beneath && !is_fresh(at, now)) {
            view.look_up_names(self, folders)?;
            view.named_at = Some(now);
        }
        match is_beneath || view.names_any(&place.ancestry) {
            true => look(&LocatedFile::of(self, &view, place)),
            false => Ok(()),
        }
    }
}

/// The folders of an area as they were at the last look, at most a second ago.
#[derive(Debug, Default)]
struct AreaView {
    roots_at: Option<Instant>,
    /// The directories that the paths of the area's roots lead to now, if those are others.
    successors: Vec<Root>,
    /// The roots and their successors.
    roots: Vec<Identity>,
    named_at: Option<Instant>,
    /// The folders and files that rules and members' folders name.
    named: HashMap<String, NamedObjects>,
}

/// The objects that have a name beneath the roots of an area.
#[derive(Debug, Default)]
struct NamedObjects {
    found: Vec<Identity>,
    /// Whether this process may not look at one.
    is_hidden: bool,
    /// Those that it saw while it might.
    remembered: Vec<Identity>,
}

impl AreaView {
    fn look_up_roots(&mut self, area: &Area) -> Result<(), Absence> {
        self.successors.clear();
        for root in area.roots.all() {
            self.successors.extend(root.successor()?);
        }
        self.roots.clear();
        for root in area.roots.all().map(|root| &**root).chain(&self.successors) {
            self.roots.extend(root.identity_of("")?);
        }
        Ok(())
    }

    /// Looks up every name. A folder that could not be looked at because descriptors are short is an error: it may protect
    /// a file.
    fn look_up_names(&mut self, area: &Area, folders: Option<&MemberFolders>) -> Result<(), Absence> {
        let mut named = HashMap::new();
        let of_rules = area.statements.iter().filter_map(|statement| statement.paths.without_stars());
        let of_members = folders.iter().flat_map(|folders| folders.names.iter().map(String::as_str));
        for name in of_rules.map(|(name, _)| name).chain(of_members) {
            let mut objects = NamedObjects::default();
            for root in area.roots.all().map(|root| &**root).chain(&self.successors) {
                count_look();
                match root.identity_of(name) {
                    Err(FileError::Forbidden) => {
                        objects.is_hidden = true;
                        objects.remembered.extend(root.remembered(name));
                    }
                    identity => objects.found.extend(identity?),
                }
            }
            named.insert(name.to_owned(), objects);
        }
        self.named = named;
        Ok(())
    }

    fn names_any(&self, ancestry: &[Identity]) -> bool {
        let mut all = self.named.values().flat_map(|objects| objects.found.iter().chain(&objects.remembered));
        all.any(|identity| ancestry.contains(identity))
    }
}

/// A file as it is seen from an area.
struct LocatedFile<'p, 'v> {
    area: &'p Area,
    view: &'v AreaView,
    place: &'v ResolvedPath,
    /// The path of the file beneath each root, if it is there and the path is known.
    relative: Vec<&'v str>,
    /// Whether it is beneath one of them by an unknown path.
    is_displaced: bool,
}

impl<'p, 'v> LocatedFile<'p, 'v> {
    fn of(area: &'p Area, view: &'v AreaView, place: &'v ResolvedPath) -> LocatedFile<'p, 'v> {
        let mut seen = LocatedFile { area, view, place, relative: Vec::new(), is_displaced: false };
        for root in &view.roots {
            match place.ancestry.iter().position(|identity| identity == root) {
                Some(depth) if depth <= place.depth() => seen.relative.push(last_names(&place.path, depth)),
                depth => seen.is_displaced |= depth.is_some(),
            }
        }
        seen
    }

    /// Returns the folders that have this name, beneath each root of the area. A folder that this process may not look at
    /// is an error if the path of the file does not tell whether it is in it.
    fn identities(&self, name: &str) -> Result<impl Iterator<Item = &'v Identity>, Absence> {
        let objects = self.view.named.get(name);
        if self.is_displaced && objects.is_some_and(|objects| objects.is_hidden) {
            return Err(Absence::Forbidden);
        }
        Ok(objects.into_iter().flat_map(|objects| objects.found.iter().chain(&objects.remembered)))
    }

    /// Whether the file is in the folder that has this name.
    fn is_in(&self, folder: &str) -> Result<bool, Absence> {
        Ok(self.identities(folder)?.any(|identity| self.place.ancestry.contains(identity)))
    }

    /// The statement that counts for the file: as with paths, the last that fits.
    fn statement(&self) -> Result<Option<&'p Statement>, Absence> {
        for statement in self.area.statements.iter().rev() {
            if self.fits(statement)? {
                return Ok(Some(statement));
            }
        }
        Ok(None)
    }

    fn is_for_members(&self, folders: &MemberFolders) -> Result<bool, Absence> {
        if self.relative.iter().any(|path| (folders.hold)(path)) {
            return Ok(true);
        }
        for name in &folders.names {
            if self.is_in(name)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a statement is for the file: by its own path; as the folder's index; or by the identity of the folder.
    fn fits(&self, statement: &Statement) -> Result<bool, Absence> {
        let paths = &statement.paths;
        if self.has_path(paths, str::to_owned) {
            return Ok(true);
        }
        match paths.without_stars() {
            Some((folder, true)) => self.is_in(folder),
            Some((file, false)) => {
                let mut named = self.identities(file)?;
                Ok(named.any(|file| self.place.ancestry.first() == Some(file)))
            }
            // The path is spelled as the client likes if the file system ignores case.
            None => Ok(statement.realm.is_some() && self.has_path(&paths.in_lower_case(), str::to_lowercase)),
        }
    }

    /// Whether its path, or that of the folder whose index it is, matches after `spell` has changed the names.
    fn has_path(&self, paths: &Pattern, spell: fn(&str) -> String) -> bool {
        self.relative.iter().map(|path| spell(path)).any(|path| {
            let indices = self.area.index.iter().map(|index| spell(index));
            let mut folders = indices.filter_map(|index| path.strip_suffix(index.as_str()));
            paths.matches(&path)
                || folders.any(|folder| {
                    (folder.is_empty() || folder.ends_with('/'))
                        && paths.matches(folder.trim_end_matches('/'))
                })
        })
    }
}

/// Counts the looks at names, for the tests that expect few.
fn count_look() {
    #[cfg(test)]
    LOOKS.set(LOOKS.get() + 1);
}

#[cfg(test)]
thread_local! {
    /// Looks of this thread at protected names.
    pub(crate) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The last `count` names of a path.
fn last_names(path: &str, count: usize) -> &str {
    let begin = path.rmatch_indices('/').nth(count.wrapping_sub(1)).map_or(0, |(slash, _)| slash + 1);
    if count == 0 { "" } else { &path[begin..] }
}

/// The protection of a site's files.
#[derive(Debug)]
pub(crate) struct Protection {
    own: Arc<Area>,
    others: Vec<Arc<Area>>,
    members: Option<Arc<MemberFolders>>,
}

impl Protection {
    /// The protection by a site's own rules.
    pub(crate) fn new(own: Area) -> Protection {
        Protection { own: Arc::new(own), others: Vec::new(), members: None }
    }

    pub(crate) fn own(&self) -> &Arc<Area> {
        &self.own
    }

    /// Adds the rules of the sites of other hosts: their roots may be in each other.
    pub(crate) fn beside(&mut self, all: &[Arc<Area>]) {
        self.others = all.iter().filter(|area| !Arc::ptr_eq(area, &self.own)).cloned().collect();
    }

    pub(crate) fn for_members(&mut self, folders: &Arc<MemberFolders>) {
        self.members = Some(Arc::clone(folders));
    }

    /// Whether anything is protected anywhere.
    fn is_active(&self) -> bool {
        let asks = |area: &Arc<Area>| area.statements.iter().any(|statement| statement.realm.is_some());
        self.members.is_some() || asks(&self.own) || self.others.iter().any(asks)
    }

    /// The guard of the file with these facts that was found as `name`; none if another file has the name by now.
    pub(crate) fn guard(&self, name: &str, facts: &FileStat) -> Result<Option<Guard>, Absence> {
        if !self.is_active() {
            return Ok(Some(Guard::default()));
        }
        let place = self.own.roots.of(name).resolved_path(name)?;
        if place.ancestry.first() != Some(&facts.identity()) {
            return Ok(None);
        }
        let (mut guard, mut own) = (Guard::default(), None);
        for (number, area) in std::iter::once(&self.own).chain(&self.others).enumerate() {
            let members = self.members.as_ref().filter(|_| !guard.members);
            // Files that another host protects are protected here, too, unless this one opens them by a statement of its
            // own, which the other one does not share.
            let counts = own.is_none_or(|own| area.statements.contains(own));
            let states = counts && guard.realm.is_none() && !area.statements.is_empty();
            if members.is_none() && !states {
                continue;
            }
            area.locate(&place, self.members.as_deref(), |seen| {
                if let Some(folders) = members {
                    guard.members = seen.is_for_members(folders)?;
                }
                if states {
                    match seen.statement()? {
                        Some(Statement { realm: Some(realm), .. }) => guard.realm = Some(Arc::clone(realm)),
                        statement if number == 0 => own = statement,
                        _ => {}
                    }
                }
                Ok(())
            })?;
        }
        Ok(Some(guard))
    }
}
