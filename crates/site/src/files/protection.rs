//! The protection of files by their identity, independent of the path.
//!
//! A rewrite, a fallback, an error page, a link, another host or a file system without case can lead to a
//! protected file by a path that no rule matches. So whenever a file is opened or checked again, every
//! directory above it is compared with the protected folders, by device and inode. Each site whose root is
//! above the file resolves its protected folders once a second. A folder that this process may not read is
//! compared as it was before the process gave up its privileges. `docs/how-to/members.md` states the limits:
//! a hard link, and a mount of a part of a protected folder, have other directories above them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tenfold_http::{Instant, clock};
use tenfold_sys::file::{FileError, FileStat, Root};
use tenfold_sys::resolved_path::{Identity, ResolvedPath};

use crate::cache::clock::is_fresh;
use crate::files::absence::Absence;
use crate::files::roots::Roots;
use crate::reason::Reason;
use crate::rules::access::Guard;
use crate::rules::pattern::Pattern;
use crate::rules::policy::Policies;
use crate::rules::realm::Realm;

/// The folders that are restricted to members, on every host.
pub struct MemberFolders {
    /// Their paths beneath a root, as spelled in the file system.
    names: Vec<String>,
    /// Whether a path beneath a root is in one of them.
    hold: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

impl MemberFolders {
    /// Folders of these names. `hold` returns whether a path, decoded and without a slash at either end, is
    /// in one of them.
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
    /// None if the rule leaves the files open.
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
        let of_rules = policies.of_auth().map(|(paths, realm)| Statement { paths, realm: realm.clone() });
        let (statements, view) = (of_rules.collect(), Mutex::default());
        Area { roots: Arc::clone(roots), index: index.to_owned(), statements, view }
    }

    /// Calls `look` with the file as located in this area, if the area may protect it.
    fn locate<'p>(
        &'p self,
        resolved: &ResolvedPath,
        folders: Option<&MemberFolders>,
        look: impl FnOnce(&LocatedFile<'p, '_>) -> Result<(), Absence>,
    ) -> Result<(), Absence> {
        let (mut view, now) = (self.view.lock().unwrap_or_else(PoisonError::into_inner), clock::now());
        if !view.roots_at.is_some_and(|at| is_fresh(at, now)) {
            view.look_up_roots(self)?;
            view.roots_at = Some(now);
        }
        let is_beneath = view.roots.iter().any(|root| resolved.ancestry.contains(root));
        // A file outside the roots is in a protected folder only if that folder is mounted elsewhere, which
        // is rare.
        if view.named_at.is_none_or(|at| is_beneath && !is_fresh(at, now)) {
            view.look_up_names(self, folders)?;
            view.named_at = Some(now);
        }
        match is_beneath || view.names_any(&resolved.ancestry) {
            true => look(&LocatedFile::of(self, &view, resolved)),
            false => Ok(()),
        }
    }
}

/// The folders of an area at the last look, at most a second ago.
#[derive(Debug, Default)]
struct AreaView {
    roots_at: Option<Instant>,
    /// The directories at the paths of the area's roots, if they have been replaced.
    successors: Vec<Root>,
    /// The roots and their successors.
    roots: Vec<Identity>,
    named_at: Option<Instant>,
    /// The folders and files that rules and member folders name.
    named: HashMap<String, NamedObjects>,
}

/// The objects that have a name beneath the roots of an area.
#[derive(Debug, Default)]
struct NamedObjects {
    found: Vec<Identity>,
    /// Whether this process may not read one of them.
    is_hidden: bool,
    /// The identities that it saw before it gave up its privileges.
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

    /// Looks up every name. Fails if descriptors are exhausted, because the folder may protect the file.
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

/// A file as located in an area.
struct LocatedFile<'p, 'v> {
    area: &'p Area,
    view: &'v AreaView,
    resolved: &'v ResolvedPath,
    /// The path of the file beneath each root, if known.
    relative: Vec<&'v str>,
    /// Whether it is beneath a root by an unknown path.
    is_displaced: bool,
}

impl<'p, 'v> LocatedFile<'p, 'v> {
    fn of(area: &'p Area, view: &'v AreaView, resolved: &'v ResolvedPath) -> LocatedFile<'p, 'v> {
        let mut seen = LocatedFile { area, view, resolved, relative: Vec::new(), is_displaced: false };
        for root in &view.roots {
            match resolved.ancestry.iter().position(|identity| identity == root) {
                Some(depth) if depth <= resolved.depth() => {
                    seen.relative.push(last_names(&resolved.path, depth))
                }
                depth => seen.is_displaced |= depth.is_some(),
            }
        }
        seen
    }

    /// Returns the folders that have this name, beneath each root of the area. Fails if this process may not
    /// read one of them and the path of the file does not show whether the file is in it.
    fn identities(&self, name: &str) -> Result<impl Iterator<Item = &'v Identity>, Absence> {
        let objects = self.view.named.get(name);
        if self.is_displaced && objects.is_some_and(|objects| objects.is_hidden) {
            return Err(Absence::Forbidden(Reason::Protected));
        }
        Ok(objects.into_iter().flat_map(|objects| objects.found.iter().chain(&objects.remembered)))
    }

    /// Whether the file is in the folder that has this name.
    fn is_in(&self, folder: &str) -> Result<bool, Absence> {
        Ok(self.identities(folder)?.any(|identity| self.resolved.ancestry.contains(identity)))
    }

    /// Returns the last statement that matches the file.
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

    /// Whether a statement matches the file: by the file's path, as the index of a folder, or by the folder's
    /// identity.
    fn fits(&self, statement: &Statement) -> Result<bool, Absence> {
        let paths = &statement.paths;
        if self.has_path(paths, str::to_owned) {
            return Ok(true);
        }
        match paths.without_stars() {
            Some((folder, true)) => self.is_in(folder),
            Some((file, false)) => {
                let mut named = self.identities(file)?;
                Ok(named.any(|file| self.resolved.ancestry.first() == Some(file)))
            }
            // A file system without case accepts any spelling of the path.
            None => Ok(statement.realm.is_some() && self.has_path(&paths.in_lower_case(), str::to_lowercase)),
        }
    }

    /// Whether the file's path, or the path of the folder whose index it is, matches. `spell` converts the
    /// names first.
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

/// Counts lookups of protected names, for tests that expect few.
fn count_look() {
    #[cfg(test)]
    LOOKS.set(LOOKS.get() + 1);
}

#[cfg(test)]
thread_local! {
    /// Lookups of protected names by this thread.
    pub(crate) static LOOKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Returns the last `count` names of a path.
fn last_names(path: &str, count: usize) -> &str {
    let begin = path.rmatch_indices('/').nth(count.wrapping_sub(1)).map_or(0, |(slash, _)| slash + 1);
    if count == 0 { "" } else { &path[begin..] }
}

/// The protection of a site's files. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Protection {
    own: Arc<Area>,
    others: Vec<Arc<Area>>,
    members: Option<Arc<MemberFolders>>,
}

impl Protection {
    /// Returns the protection by a site's own rules.
    pub(crate) fn new(own: Area) -> Protection {
        Protection { own: Arc::new(own), others: Vec::new(), members: None }
    }

    pub(crate) fn own(&self) -> &Arc<Area> {
        &self.own
    }

    /// Adds the rules of other hosts, whose roots may contain each other.
    pub(crate) fn add_hosts(&mut self, all: &[Arc<Area>]) {
        self.others = all.iter().filter(|area| !Arc::ptr_eq(area, &self.own)).cloned().collect();
    }

    pub(crate) fn for_members(&mut self, folders: &Arc<MemberFolders>) {
        self.members = Some(Arc::clone(folders));
    }

    /// Whether any rule protects any file.
    fn is_active(&self) -> bool {
        let asks = |area: &Arc<Area>| area.statements.iter().any(|statement| statement.realm.is_some());
        self.members.is_some() || asks(&self.own) || self.others.iter().any(asks)
    }

    /// Returns the guard of the file with these facts, found as `name`; None if the name has passed to
    /// another file.
    pub(crate) fn guard(&self, name: &str, facts: &FileStat) -> Result<Option<Guard>, Absence> {
        if !self.is_active() {
            return Ok(Some(Guard::default()));
        }
        let resolved = self.own.roots.of(name).resolved_path(name)?;
        if resolved.ancestry.first() != Some(&facts.identity()) {
            return Ok(None);
        }
        let (mut guard, mut own) = (Guard::default(), None);
        for (number, area) in std::iter::once(&self.own).chain(&self.others).enumerate() {
            let members = self.members.as_ref().filter(|_| !guard.members);
            // A file that another host protects is protected here too, unless this host opens it by a
            // statement that the other host does not have.
            let counts = own.is_none_or(|own| area.statements.contains(own));
            let states = counts && guard.realm.is_none() && !area.statements.is_empty();
            if members.is_none() && !states {
                continue;
            }
            area.locate(&resolved, self.members.as_deref(), |seen| {
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
