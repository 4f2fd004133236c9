//! The files that a process may open, if the kernel has Landlock (`man 7 landlock`): the roots and the log for a
//! worker, the folder of the database for the accounts. A filter on system calls does not see names.

use std::io;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError,
};
use rustix::fs::fstatfs;

use crate::files::file::Root;

/// Rights that are limited, as far as the kernel knows them: those of Linux 6.10.
const RIGHTS: ABI = ABI::V5;

/// Whether this kernel has Landlock.
pub fn is_available() -> bool {
    let strict = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    strict.handle_access(AccessFs::ReadFile).and_then(Ruleset::create).is_ok()
}

/// Limits this thread and its children to reading `roots` and writing beneath `written`.
///
/// # Errors
/// What the system said, where it has Landlock.
pub fn limit_worker<'p>(roots: &[Root], written: impl IntoIterator<Item = &'p Path>) -> io::Result<()> {
    worker_rules(roots, written).and_then(enter).map_err(io::Error::other)
}

fn worker_rules<'p>(
    roots: &[Root],
    written: impl IntoIterator<Item = &'p Path>,
) -> Result<RulesetCreated, RulesetError> {
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut rules = begin()?;
    for root in roots {
        rules = rules.add_rule(PathBeneath::new(root, read))?;
    }
    // The mappings of a backtrace, and whether another worker, which holds a lock, is still there. What tells more of
    // another process asks for the right to trace it, which this domain denies.
    rules = beneath(rules, Path::new("/proc"), read)?;
    for path in written {
        rules = beneath(rules, path, AccessFs::WriteFile.into())?;
    }
    Ok(rules)
}

/// Limits this thread and its children to reading, and to writing where the database is and where temporary files
/// are.
///
/// # Errors
/// What the system said, where it has Landlock.
pub fn limit_accounts(database: Option<&Path>) -> io::Result<()> {
    accounts_rules(database).and_then(enter).map_err(io::Error::other)
}

fn accounts_rules(database: Option<&Path>) -> Result<RulesetCreated, RulesetError> {
    let mut rules = beneath(begin()?, Path::new("/"), AccessFs::from_read(RIGHTS) & !AccessFs::Execute)?;
    let temporary = ["/dev/null", "/tmp", "/var/tmp"].map(Path::new);
    for path in database.map(folder_of).into_iter().chain(temporary) {
        rules = beneath(rules, path, AccessFs::from_all(RIGHTS) & !AccessFs::Execute)?;
    }
    Ok(rules)
}

/// The folder of a file; a bare name is in the working folder.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn enter(rules: RulesetCreated) -> Result<(), RulesetError> {
    rules.restrict_self().map(drop)
}

fn begin() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default().handle_access(AccessFs::from_all(RIGHTS))?.create()
}

/// File systems without names: those of pipes, of sockets, and of the kernel's own files (linux/magic.h).
const NAMELESS: [i64; 3] = [0x5049_5045, 0x534f_434b, 0x0904_1934];

/// Adds a rule for what there is at `path`; nothing there needs none, and neither does an open pipe, as
/// `/dev/stdout` may be one: Landlock limits names.
fn beneath(
    rules: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(found) = PathFd::new(path) else { return Ok(rules) };
    if fstatfs(&found).is_ok_and(|system| NAMELESS.contains(&system.f_type)) {
        return Ok(rules);
    }
    // Of a file that is none of a directory's rights.
    let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(RIGHTS) };
    rules.add_rule(PathBeneath::new(found, rights))
}
