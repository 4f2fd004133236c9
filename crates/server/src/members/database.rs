//! The file of an SQLite database.
//!
//! Root neither creates nor opens it, and follows no link on the way. Root only changes the owner of files from the
//! workers' user to the user of the accounts process, which does everything else with its own rights.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use tenfold_accounts::Accounts;
use tenfold_accounts::store::MemberStore;
use tenfold_accounts::store::url::DatabaseUrl;
use tenfold_sys::folder::{self, OpenFolder};
use tenfold_sys::user::SystemUser;

use crate::config::values::members::{AccountsLocation, MembersSettings, usual_folder};

/// The suffixes of a database and of the files that SQLite adds to it.
const COMPANIONS: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// The mode bit of a folder in which users can remove only their own files (`man 7 inode`, S_ISVTX).
const STICKY: u32 = 0o1000;

/// The users for whom root acts.
#[derive(Clone, Copy)]
pub(crate) struct Users<'u> {
    /// The user of the accounts process, the future owner of the files.
    pub(crate) accounts: &'u SystemUser,
    /// The user of the workers, who may own the files of an older configuration.
    pub(crate) workers: &'u SystemUser,
}

/// Creates the default folder, and as root gives an existing database to the user of the accounts process. Returns the
/// URL.
pub(crate) fn prepare(place: &AccountsLocation, users: Option<Users<'_>>) -> Result<DatabaseUrl, String> {
    let url = place.url()?;
    if *place == AccountsLocation::Usual {
        let folder = usual_folder().ok_or("there is no usual folder for the accounts")?;
        make_folder(&folder, users)
            .map_err(|error| format!("cannot create the folder {}: {error}", folder.display()))?;
    }
    if let (Some(users), Some(path)) = (users, file_of(&url)) {
        hand_over(path, users).map_err(|error| {
            format!("cannot give the database {} to user {}: {error}", path.display(), users.accounts.name)
        })?;
    }
    Ok(url)
}

/// Opens the accounts as the user of this process, which is `user` if the server was started as root. With `create`, a
/// missing file is created, and removed again if it does not become a database.
pub(crate) fn open_accounts(
    (url, connections): (&DatabaseUrl, usize),
    create: bool,
    user: Option<&SystemUser>,
    settings: &MembersSettings,
) -> Result<Accounts, String> {
    let made = match file_of(url).filter(|_| create) {
        Some(path) => require(path, user)?.then_some(path),
        None => None,
    };
    Accounts::open(url, connections, settings.policy()).inspect_err(|_| {
        if let Some(path) = made.filter(|path| fs::symlink_metadata(path).is_ok_and(|facts| facts.len() == 0))
        {
            // A leftover empty file is harmless, and the returned error matters more.
            let _ = fs::remove_file(path);
        }
    })
}

/// Checks, as the user of the accounts process, that the accounts could be opened. Changes nothing.
pub(crate) fn check(place: &AccountsLocation, users: Option<Users<'_>>) -> Result<(), String> {
    let url = place.url()?;
    let Some(path) = file_of(&url) else {
        return if url.file().is_some() { Ok(()) } else { MemberStore::reach(&url) };
    };
    // A start creates the default folder.
    if *place == AccountsLocation::Usual && !parent(path).exists() {
        return Ok(());
    }
    let user = users.map(|users| users.accounts);
    let (folder, name) = folder_of(path, user)?;
    match folder.look(&name).and_then(|file| file.metadata()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        // A start gives it to the user of the accounts process.
        Ok(facts) if users.is_some_and(|users| facts.uid() == users.workers.id) => Ok(()),
        _ => require_file(&folder, &name, path, user),
    }
}

/// The user id of the owner of an existing database file.
pub(crate) fn owner(url: &DatabaseUrl) -> Result<Option<u32>, String> {
    let Some(path) = file_of(url) else { return Ok(None) };
    let Ok((folder, name)) = OpenFolder::around(path) else { return Ok(None) };
    match folder.look(&name) {
        Ok(file) => acceptable(&file, path).map(|facts| Some(facts.uid())),
        Err(_) => Ok(None),
    }
}

/// A warning if the workers can replace the database of another user.
pub(crate) fn exposure(url: &DatabaseUrl, users: Users<'_>) -> Option<String> {
    let path = file_of(url).filter(|_| users.accounts.id != users.workers.id)?;
    let path = std::path::absolute(path).ok()?;
    let (accounts, workers) = (&users.accounts.name, &users.workers.name);
    // Links on the way lead to other folders.
    let real =
        fs::canonicalize(parent(&path)).map_or_else(|_| path.clone(), |folder| folder.join("database"));
    let mut folders = [&path, &real].into_iter().flat_map(|path| path.ancestors().skip(1).enumerate());
    let exposed = folders.find(|(above, folder)| {
        fs::metadata(folder).is_ok_and(|facts| {
            // In a sticky folder, users can only remove their own files.
            let kept = *above > 0 && facts.mode() & STICKY != 0;
            facts.uid() == users.workers.id || (may_write(&facts, users.workers) && !kept)
        })
    });
    exposed.map(|(_, folder)| {
        format!(
            "user {workers} serves and can write in {0}, so code that runs in a worker can replace the database {1}; \
             keep it in a folder of {accounts} (mode 700), beneath folders of root",
            folder.display(),
            path.display(),
        )
    })
}

/// The file of a database, if it has one.
fn file_of(url: &DatabaseUrl) -> Option<&Path> {
    url.file().filter(|path| *path != Path::new(":memory:"))
}

/// Creates the default folder, whose parent only root or the user of this process can write.
fn make_folder(folder: &Path, users: Option<Users<'_>>) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let Some(Users { accounts, workers }) = users else { return Ok(()) };
    let opened = File::open(folder)?;
    let had = opened.metadata()?.uid();
    if had != accounts.id && (had == 0 || had == workers.id) {
        fchown(&opened, Some(accounts.id), Some(accounts.group))?;
    }
    Ok(())
}

/// Changes the owner of the files of a database from the workers' user to the accounts user, if that user can write in
/// the folder.
fn hand_over(path: &Path, users: Users<'_>) -> io::Result<()> {
    let Users { accounts, workers } = users;
    if accounts.id == workers.id {
        return Ok(());
    }
    // If the folder is missing or inaccessible, the accounts process reports it.
    let Ok((folder, name)) = OpenFolder::around(path) else { return Ok(()) };
    if !may_write(&folder.metadata()?, accounts) {
        return Ok(());
    }
    for ending in COMPANIONS {
        let mut name = name.clone();
        name.push(ending);
        match folder.look(&name) {
            Ok(file) => give(&file, users)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Gives a file to the accounts user. A link or a file with several names stays unchanged, because its target may belong
/// to another user.
fn give(file: &File, Users { accounts, workers }: Users<'_>) -> io::Result<()> {
    let facts = file.metadata()?;
    if facts.is_file() && facts.nlink() == 1 && facts.uid() == workers.id {
        folder::give(file, accounts.id, accounts.group)?;
        // `fchmod` does not work on an `O_PATH` descriptor; this name refers to the same file.
        let itself = format!("/proc/self/fd/{}", file.as_raw_fd());
        fs::set_permissions(itself, Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// Requires a file that can be a database of this process, and creates a missing file. Returns whether it was created.
fn require(path: &Path, user: Option<&SystemUser>) -> Result<bool, String> {
    let (folder, name) = folder_of(path, user)?;
    match folder.create(&name) {
        Ok(_) => return Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => {
            let (shown, who) = (path.display(), who(user));
            return Err(format!("cannot create the database {shown} as {who}: {error}"));
        }
    }
    require_file(&folder, &name, path, user)?;
    Ok(false)
}

fn who(user: Option<&SystemUser>) -> String {
    user.map_or_else(|| "the user of this process".into(), |user| format!("user {}", user.name))
}

fn or_else(user: Option<&SystemUser>) -> &'static str {
    if user.is_some() { ", or name its owner with accounts-user" } else { "" }
}

/// The folder of a database file and the name of the file. Requires that this process, as `user`, can create files there.
fn folder_of(path: &Path, user: Option<&SystemUser>) -> Result<(OpenFolder, OsString), String> {
    let (who, or_else) = (who(user), or_else(user));
    let shown = path.display();
    let within = std::path::absolute(parent(path)).unwrap_or_else(|_| parent(path).to_owned());
    let within = within.display();
    let (folder, name) = OpenFolder::around(path)
        .map_err(|error| format!("cannot open the folder of the database {shown} as {who}: {error}"))?;
    folder.allows_new_files().map_err(|error| {
        format!(
            "{who} cannot write in the folder {within}, where SQLite keeps the journal of the database {shown}: \
             {error}; give the folder to that user{or_else}"
        )
    })?;
    Ok((folder, name))
}

/// Checks that this process, as `user`, can use the file called `name` as a database.
fn require_file(
    folder: &OpenFolder,
    name: &OsStr,
    path: &Path,
    user: Option<&SystemUser>,
) -> Result<(), String> {
    let (shown, who, or_else) = (path.display(), who(user), or_else(user));
    let file =
        folder.look(name).map_err(|error| format!("cannot open the database {shown} as {who}: {error}"))?;
    let owner = acceptable(&file, path)?.uid();
    folder.allows_writing(name).map_err(|error| {
        format!(
            "{who} cannot write the database {shown}, which belongs to user number {owner}: {error}; give it to that \
             user{or_else}"
        )
    })
}

/// The facts of a file that can be a database.
fn acceptable(file: &File, path: &Path) -> Result<Metadata, String> {
    let wrong = |what: &str| Err(format!("cannot use the database {}: {what}", path.display()));
    let facts = file.metadata().map_err(|error| format!("cannot look at {}: {error}", path.display()))?;
    match facts.nlink() {
        _ if facts.is_symlink() => wrong("it is a symbolic link; name the file that it leads to"),
        _ if !facts.is_file() => wrong("it is not a regular file"),
        1 => Ok(facts),
        _ => wrong("it has more than one name (hard links); remove the others"),
    }
}

/// Whether a user can write in a folder according to its mode.
fn may_write(folder: &Metadata, user: &SystemUser) -> bool {
    let bits = match () {
        () if user.id == 0 => return true,
        () if folder.uid() == user.id => folder.mode() >> 6,
        () if user.groups.contains(&folder.gid()) => folder.mode() >> 3,
        () => folder.mode(),
    };
    bits & 0o3 == 0o3
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, id: u32) -> SystemUser {
        SystemUser { name: name.into(), id, group: id, groups: vec![id] }
    }

    #[test]
    fn h78_a_database_that_workers_can_replace_is_a_warning() {
        let base = std::env::temp_dir().join(format!("tenfold-place-{}", std::process::id()));
        let folder = base.join("inner");
        fs::create_dir_all(&folder).expect("a temporary folder");
        let url = DatabaseUrl::sqlite(&folder.join("members.db")).expect("tests are built with SQLite");
        let (own, other) = (fs::metadata(&folder).expect("it is there").uid(), 65_533);
        let (keeper, owner, stranger) = (user("keeper", 65_532), user("owner", own), user("stranger", other));
        let warning = |workers| exposure(&url, Users { accounts: &keeper, workers });
        let set = |folder: &Path, mode| {
            fs::set_permissions(folder, Permissions::from_mode(mode)).expect("our own folder");
        };
        assert!(
            warning(&owner).is_some_and(|warning| warning.contains("inner")),
            "its owner can write there"
        );
        for (inner, above, warned) in [
            (0o755, 0o755, false),
            (0o757, 0o755, true),
            (0o1757, 0o755, true),
            (0o755, 0o757, true),
            (0o755, 0o1757, false),
        ] {
            set(&folder, inner);
            set(&base, above);
            assert_eq!(warning(&stranger).is_some(), warned, "{inner:o} beneath {above:o}");
        }
        set(&folder, 0o755);
        set(&base, 0o757);
        let elsewhere = std::env::temp_dir().join(format!("tenfold-link-{}", std::process::id()));
        std::os::unix::fs::symlink(&folder, &elsewhere).expect("a temporary folder");
        let by_link =
            DatabaseUrl::sqlite(&elsewhere.join("members.db")).expect("tests are built with SQLite");
        let warned = exposure(&by_link, Users { accounts: &keeper, workers: &stranger });
        assert!(warned.is_some_and(|warning| warning.contains("tenfold-place-")), "after a link");
        fs::remove_file(elsewhere).expect("our own link");
        assert_eq!(
            exposure(&url, Users { accounts: &stranger, workers: &stranger }),
            None,
            "it is the same user"
        );
        fs::remove_dir_all(&base).expect("our own folder");
    }
}
