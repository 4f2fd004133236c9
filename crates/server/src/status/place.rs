//! The location of control sockets.

use std::fmt::Display;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tenfold_sys::user;

const PREFIX: &str = "tenfold-";
const SUFFIX: &str = ".sock";

/// The default folder of control sockets: the runtime folder of the session, or of root, or a private folder among the
/// temporary files. [`RuntimeFolder::open`] creates the private folder.
pub(crate) enum RuntimeFolder {
    /// A folder of the system, which exists and which other users cannot write to.
    System(PathBuf),
    /// A private folder within a folder that all users may write to.
    Private(PathBuf),
}

impl RuntimeFolder {
    /// The default folder of this process.
    pub(crate) fn find() -> RuntimeFolder {
        let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        match own.filter(|folder| is_own(folder)) {
            Some(folder) => RuntimeFolder::System(folder),
            None if user::is_root() && Path::new("/run").is_dir() => RuntimeFolder::System("/run".into()),
            None => RuntimeFolder::Private(std::env::temp_dir().join(format!("tenfold-{}", user::own()))),
        }
    }

    fn path(&self) -> &Path {
        match self {
            RuntimeFolder::System(path) | RuntimeFolder::Private(path) => path,
        }
    }

    /// Creates a private folder if it is missing, and returns the path. Fails if another user could have created the
    /// folder and can enter it.
    pub(crate) fn open(&self) -> io::Result<&Path> {
        if let RuntimeFolder::Private(path) = self {
            make_private(path)?;
        }
        Ok(self.path())
    }
}

/// Whether only this user may write to `folder`. XDG_RUNTIME_DIR may be the folder of another user, because `sudo -E`
/// keeps the variable.
fn is_own(folder: &Path) -> bool {
    let is_own =
        |facts: fs::Metadata| facts.is_dir() && facts.uid() == user::own() && facts.mode() & 0o022 == 0;
    fs::metadata(folder).is_ok_and(is_own)
}

/// Creates the folder `path` for this user only. An existing folder must also be private.
fn make_private(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => is_private(path),
        made => made,
    }
}

/// Fails with the reason if `path` is not a private folder of this user. A link is no folder.
fn is_private(path: &Path) -> io::Result<()> {
    let facts = fs::symlink_metadata(path)?;
    let refused = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    match facts.mode() & 0o777 {
        _ if !facts.is_dir() => refused(format!("{} is not a folder", path.display())),
        _ if facts.uid() != user::own() => refused(format!(
            "{} belongs to user {}; name another place with control",
            path.display(),
            facts.uid()
        )),
        mode if mode & 0o077 != 0 => refused(format!(
            "others may enter {0}, whose mode is {mode:03o}; run `chmod 700 {0}`, or name another place with control",
            path.display()
        )),
        _ => Ok(()),
    }
}

/// The name of the control socket of a server that listens on `address`.
pub(crate) fn socket_name(address: &str) -> String {
    format!("{PREFIX}{}{SUFFIX}", address.replace(['/', ' '], "_"))
}

/// The control socket of a server of this user whose first address is `address`, unless its configuration names another.
pub(crate) fn usual(address: &impl Display) -> PathBuf {
    RuntimeFolder::find().path().join(socket_name(&address.to_string()))
}

/// The control sockets of the running servers of this user or root.
pub(crate) fn running() -> Result<Vec<PathBuf>, String> {
    let folder = RuntimeFolder::find();
    let folder = folder.path();
    let ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let facts = fs::symlink_metadata(path);
        name.starts_with(PREFIX)
            && name.ends_with(SUFFIX)
            && facts.is_ok_and(|facts| facts.file_type().is_socket() && [0, user::own()].contains(&facts.uid()))
            // A killed server leaves its socket.
            && UnixStream::connect(path).is_ok()
    };
    let entries = match fs::read_dir(folder) {
        // No server of this user has created the folder.
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        entries => {
            Some(entries.map_err(|error| format!("cannot read the folder {}: {error}", folder.display()))?)
        }
    };
    let paths = entries.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut found: Vec<_> = paths.filter(ours).collect();
    found.sort();
    match found.is_empty() {
        true => Err(format!("no server found in {}; name its socket with --control", folder.display())),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use tenfold_testkit::folder::TempFolder;

    use super::*;

    #[test]
    fn h75_a_private_folder_is_the_users_own_or_it_is_refused() {
        let refusal = |path: &Path| make_private(path).expect_err("it is not").to_string();
        let folder = TempFolder::new("private");
        let own = folder.at("own");
        make_private(&own).expect("the name is free");
        make_private(&own).expect("it is ours and nobody else's");
        assert!(refusal(&folder.write("file", "")).ends_with("is not a folder"));
        symlink(&own, folder.at("link")).expect("our own folder");
        assert!(refusal(&folder.at("link")).ends_with("is not a folder"), "a link may lead anywhere");
        let open = folder.make("open");
        folder.allow("open", 0o755);
        assert!(refusal(&open).starts_with("others may enter"));
        if !user::is_root() {
            assert!(refusal(Path::new("/")).contains("belongs to user 0"));
        }
    }

    #[test]
    fn h75_a_folder_where_another_user_may_write_is_not_the_sessions() {
        let folder = TempFolder::new("session");
        for (mode, expected) in [(0o700, true), (0o755, true), (0o775, false), (0o707, false)] {
            folder.allow(".", mode);
            assert_eq!(is_own(folder.path()), expected, "mode {mode:o}");
        }
        folder.allow(".", 0o700);
        // Only root can change the owner of a folder.
        if chown(folder.path(), Some(12_345), None).is_ok() {
            assert!(!is_own(folder.path()), "it is another user's");
        }
        assert!(!is_own(&folder.at("absent")));
    }

    #[test]
    fn sockets_are_named_by_addresses_without_folders() {
        assert_eq!(socket_name("127.0.0.1:8080"), "tenfold-127.0.0.1:8080.sock");
        assert_eq!(socket_name("unix:/run/site"), "tenfold-unix:_run_site.sock");
    }
}
