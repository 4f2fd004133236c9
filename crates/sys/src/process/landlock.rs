//! The files that a process may open, if the kernel has Landlock (`man 7 landlock`). For a worker these are the roots
//! and the log, for the accounts process the folder of the database. A system call filter cannot see names.

use std::io;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError,
};
use rustix::fs::fstatfs;

use crate::files::file::Root;

/// The limited rights, as far as the kernel knows them: those of Linux 6.10.
const RIGHTS: ABI = ABI::V5;

/// Whether this kernel has Landlock.
pub fn is_available() -> bool {
    let strict = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    strict.handle_access(AccessFs::ReadFile).and_then(Ruleset::create).is_ok()
}

/// Limits this thread and its children to reading `roots` and writing beneath `written`.
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
    // A backtrace reads the mappings, and a worker checks whether the holder of a lock still exists. All other facts about
    // another process need the right to trace it, which this domain denies.
    rules = beneath(rules, Path::new("/proc"), read)?;
    for path in written {
        rules = beneath(rules, path, AccessFs::WriteFile.into())?;
    }
    Ok(rules)
}

/// Limits this thread and its children to reading, and to writing in the folders of the database and of temporary
/// files.
pub fn limit_accounts(database: Option<&Path>) -> io::Result<()> {
    let temporary = ["/tmp", "/var/tmp"].map(Path::new);
    limit_writing(database.map(folder_of).into_iter().chain(temporary))
}

/// Limits this thread and its children to reading, and to writing in these folders.
pub fn limit_writing<'p>(folders: impl IntoIterator<Item = &'p Path>) -> io::Result<()> {
    writing_rules(folders).and_then(enter).map_err(io::Error::other)
}

fn writing_rules<'p>(folders: impl IntoIterator<Item = &'p Path>) -> Result<RulesetCreated, RulesetError> {
    let mut rules = beneath(begin()?, Path::new("/"), AccessFs::from_read(RIGHTS) & !AccessFs::Execute)?;
    for path in folders.into_iter().chain([Path::new("/dev/null")]) {
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

/// File systems without names: pipes, sockets, and files of the kernel (linux/magic.h).
const NAMELESS: [i64; 3] = [0x5049_5045, 0x534f_434b, 0x0904_1934];

/// Adds a rule for `path`. A missing file needs no rule, and neither does an open pipe, which `/dev/stdout` may be:
/// Landlock limits names.
fn beneath(
    rules: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(found) = PathFd::new(path) else { return Ok(rules) };
    if fstatfs(&found).is_ok_and(|system| NAMELESS.contains(&system.f_type)) {
        return Ok(rules);
    }
    // Rights that apply only to directories are invalid for a file.
    let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(RIGHTS) };
    rules.add_rule(PathBeneath::new(found, rights))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::thread;

    use super::*;
    use crate::files::test_folder::TestFolder;

    #[test]
    fn other_folders_can_only_be_read() {
        let (own, other) = (TestFolder::new("limited-own"), TestFolder::new("limited-other"));
        fs::write(other.at("a"), "read").expect("written");
        // Landlock limits a thread.
        let results = thread::scope(|scope| {
            let limited = scope.spawn(|| {
                limit_writing([own.at("root").as_path()]).expect("limited");
                let written = [own.at("root/b"), other.at("b")].map(|file| fs::write(file, "").is_ok());
                let removed = fs::remove_file(other.at("a")).is_ok();
                (written, removed, fs::read(own.at("root/b")).is_ok(), fs::read_dir(other.at("")).is_ok())
            });
            limited.join().expect("it ends")
        });
        // A kernel without Landlock limits nothing.
        let allowed = !is_available();
        assert_eq!(results, ([true, allowed], allowed, true, true));
    }
}
