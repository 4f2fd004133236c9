//! The protection of files by their identity, and not by the path that led to them.
//!
//! A rewrite, a fallback, an error page, a link, another host and a file system without case all lead to a file by a
//! path that no rule is for. So when a file is opened, and when it is looked at again, the protected folders are
//! resolved anew and compared with every directory above the file by device and inode; those that this process may not
//! look at are compared as they were before it gave up its privileges. `docs/members.md` states the limits: a hard link,
//! and a mount of a part of a protected folder, have other directories above them.

use std::fmt;
use std::sync::Arc;

use tenfold_sys::file::{FileError, FileStat, Root};
use tenfold_sys::resolved_path::{Identity, ResolvedPath};

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
}

impl Area {
    pub(crate) fn new(roots: &Arc<Roots>, index: &[String], policies: &Policies) -> Area {
        let said = policies.of_auth().map(|(paths, realm)| Statement { paths, realm: realm.clone() });
        Area { roots: Arc::clone(roots), index: index.to_owned(), statements: said.collect() }
    }
}

/// A file as it is seen from an area.
struct LocatedFile<'p> {
    area: &'p Area,
    place: &'p ResolvedPath,
    /// The directories that the paths of the area's roots lead to now, if those are others.
    successors: Vec<Root>,
    /// The path of the file beneath each of them, if it is there and the path is known.
    relative: Vec<&'p str>,
    /// Whether it is beneath one of them by an unknown path.
    is_displaced: bool,
}

impl<'p> LocatedFile<'p> {
    fn of(area: &'p Area, place: &'p ResolvedPath) -> Result<LocatedFile<'p>, Absence> {
        let mut successors = Vec::new();
        for root in area.roots.all() {
            successors.extend(root.successor()?);
        }
        let mut seen = LocatedFile { area, place, successors, relative: Vec::new(), is_displaced: false };
        for root in seen.identities("")? {
            match place.ancestry.iter().position(|identity| *identity == root) {
                Some(depth) if depth <= place.depth() => seen.relative.push(last_names(&place.path, depth)),
                depth => seen.is_displaced |= depth.is_some(),
            }
        }
        Ok(seen)
    }

    /// Returns the folders that have this name now, beneath each root of the area. A folder that could not be looked at
    /// because descriptors are short is an error: it may protect the file. So is one that this process may not look
    /// at, if the path of the file does not tell whether it is in it.
    fn identities(&self, name: &str) -> Result<Vec<Identity>, Absence> {
        let mut found = Vec::new();
        for root in self.area.roots.all().map(|root| &**root).chain(&self.successors) {
            match root.identity_of(name) {
                Err(FileError::Forbidden) if !self.is_displaced => found.extend(root.remembered(name)),
                identity => found.extend(identity?),
            }
        }
        Ok(found)
    }

    /// Whether the file is in the folder that has this name now.
    fn is_in(&self, folder: &str) -> Result<bool, Absence> {
        Ok(self.identities(folder)?.iter().any(|identity| self.place.ancestry.contains(identity)))
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
                let named = self.identities(file)?;
                Ok(named.iter().any(|file| self.place.ancestry.first() == Some(file)))
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
            // Looking from an area takes system calls.
            let members = self.members.as_ref().filter(|_| !guard.members);
            // Files that another host protects are protected here, too, unless this one opens them by a statement of its
            // own, which the other one does not share.
            let counts = own.is_none_or(|own| area.statements.contains(own));
            let states = counts && guard.realm.is_none() && !area.statements.is_empty();
            if members.is_none() && !states {
                continue;
            }
            let seen = LocatedFile::of(area, &place)?;
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
        }
        Ok(Some(guard))
    }
}
