//! Folders to serve, outside the sources.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::server::lock;

/// Bytes of the largest file of the shared site.
pub const LARGE: usize = 64 * 1024 * 1024;

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

/// `length` reproducible bytes without a pattern.
pub fn bytes(length: usize, seed: u64) -> Vec<u8> {
    made_bytes(length, seed).to_vec()
}

/// The bytes of [`bytes`], made once: the loop is slow without optimisation, and hundreds of cases need the same bytes.
fn made_bytes(length: usize, seed: u64) -> &'static [u8] {
    static MADE: Mutex<BTreeMap<(usize, u64), &[u8]>> = Mutex::new(BTreeMap::new());
    lock(&MADE).entry((length, seed)).or_insert_with(|| {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        bytes.truncate(length);
        bytes.leak()
    })
}

/// The expected content of `name` in the shared site.
pub fn content(name: &str) -> Vec<u8> {
    match name {
        "1k.html" => text(1024, "one kilobyte"),
        "16k.bin" => bytes(16 * 1024, 16),
        "128k.bin" => bytes(128 * 1024, 128),
        "3m.bin" => bytes(3_000_001, 3),
        "large.bin" => large().to_vec(),
        "empty.txt" => Vec::new(),
        "index.html" => text(700, "the front page"),
        "folder/index.html" => text(300, "a page in a folder"),
        "folder/page.html" => text(4000, "another page in a folder"),
        "style.css" => b"body { color: black }\n".to_vec(),
        "with space.txt" => b"a name with a space\n".to_vec(),
        "\u{fc}ml\u{e4}ut.txt" => b"a name that is not ASCII\n".to_vec(),
        ".well-known/hello.txt" => b"well known\n".to_vec(),
        _ => panic!("the shared site has no {name}"),
    }
}

const NAMES: [&str; 13] = [
    "1k.html",
    "16k.bin",
    "128k.bin",
    "3m.bin",
    "large.bin",
    "empty.txt",
    "index.html",
    "folder/index.html",
    "folder/page.html",
    "style.css",
    "with space.txt",
    "\u{fc}ml\u{e4}ut.txt",
    ".well-known/hello.txt",
];

/// The content of `large.bin`.
pub fn large() -> &'static [u8] {
    made_bytes(LARGE, 64)
}

fn text(length: usize, about: &str) -> Vec<u8> {
    let mut page = format!("<!DOCTYPE html>\n<title>{about}</title>\n<p>{about}</p>\n").into_bytes();
    while page.len() < length {
        page.push(if page.len() % 80 == 79 { b'\n' } else { b'.' });
    }
    page
}

/// The read-only site of most cases. [`remove_shared`] removes it at the end.
pub fn shared() -> &'static Path {
    SHARED.get_or_init(build).path()
}

static SHARED: OnceLock<TempFolder> = OnceLock::new();

/// Removes the shared site, if it was created.
pub fn remove_shared() {
    if let Some(folder) = SHARED.get() {
        let _ = fs::remove_dir_all(folder.path());
    }
}

fn build() -> TempFolder {
    let site = TempFolder::new("site");
    for name in NAMES {
        site.write(name, content(name));
    }
    site.write(".secret", "nobody sees this\n");
    site.write(".git/config", "nobody sees this\n");
    site.write("folder/.hidden", "nobody sees this\n");
    site.write("backup.html~", "nobody sees this\n");
    let secret = site.write("locked.txt", "nobody may read this\n");
    fs::set_permissions(&secret, Permissions::from_mode(0o000)).expect("our own file");
    fs::create_dir(site.at("bare")).expect("a new folder in our own");
    symlink("/etc/passwd", site.at("out.txt")).expect("a new link in our own folder");
    symlink("/etc", site.at("etc")).expect("a new link in our own folder");
    symlink("1k.html", site.at("in.html")).expect("a new link in our own folder");
    mknodat(CWD, site.at("pipe"), FileType::Fifo, Mode::from_raw_mode(0o644), 0)
        .expect("a new pipe in our own folder");
    site
}
