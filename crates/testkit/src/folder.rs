//! Temporary folders and the times of their files.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last modification of every file of a site, in seconds since 1970.
pub const MODIFIED: u64 = 1_700_000_000;

/// [`MODIFIED`] as the value of a field.
pub const MODIFIED_DATE: &str = "Tue, 14 Nov 2023 22:13:20 GMT";

/// A temporary folder, removed on drop. All users may read it, because workers of a server started as root are another
/// user.
#[derive(Debug)]
pub struct TempFolder(PathBuf);

impl TempFolder {
    /// Creates a folder; `name` is for humans.
    pub fn new(name: &str) -> TempFolder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("tenfold-{}-{number}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap_or_else(|error| panic!("create {}: {error}", path.display()));
        let folder = TempFolder(path);
        folder.allow(".", 0o755);
        folder
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of `name` in the folder.
    pub fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Creates an empty folder in it.
    pub fn make(&self, name: &str) -> PathBuf {
        let path = self.at(name);
        fs::create_dir_all(&path).unwrap_or_else(|error| panic!("create {}: {error}", path.display()));
        path
    }

    /// Writes a file, with the folders above it, and the modification time [`MODIFIED`].
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        let parent = path.parent().expect("a file stands in a folder");
        fs::create_dir_all(parent).unwrap_or_else(|error| panic!("create {}: {error}", parent.display()));
        fs::write(&path, content).unwrap_or_else(|error| panic!("write {}: {error}", path.display()));
        set_modified(&path, MODIFIED);
        path
    }

    /// Sets the permissions of a file or folder.
    pub fn allow(&self, name: &str, mode: u32) {
        let path = self.at(name);
        let outcome = fs::set_permissions(&path, Permissions::from_mode(mode));
        outcome.unwrap_or_else(|error| panic!("set the mode of {}: {error}", path.display()));
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Sets the modification time of a file, in seconds since 1970.
pub fn set_modified(path: &Path, seconds: u64) {
    let time = UNIX_EPOCH + Duration::from_secs(seconds);
    let outcome = File::options().append(true).open(path).and_then(|file| file.set_modified(time));
    outcome.unwrap_or_else(|error| panic!("set the time of {}: {error}", path.display()));
}

/// The current time in seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_secs()
}
