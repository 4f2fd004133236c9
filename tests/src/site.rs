//! Folders to serve, outside the sources.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::OnceLock;

use rustix::fs::{CWD, FileType, Mode, mknodat};
pub use tenfold_testkit::folder::{MODIFIED, MODIFIED_DATE, TempFolder, now, set_modified};
pub use tenfold_testkit::random::bytes;
use tenfold_testkit::random::made_bytes;

/// Bytes of the largest file of the shared site.
pub const LARGE: usize = 64 * 1024 * 1024;

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
