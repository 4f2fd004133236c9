//! The files that subjects serve and write. They are removed at the end of the run.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, Permissions};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A folder of files with known content, and a folder for files that servers write. All users can read them, because a
/// server that starts as root serves as another user.
#[derive(Debug)]
pub struct TrialSite {
    /// The folder that contains both.
    parent: PathBuf,
    folder: PathBuf,
    scratch: PathBuf,
    files: Mutex<BTreeMap<u64, SiteFile>>,
}

/// A file of the site.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SiteFile {
    /// Its path in a URL.
    pub(crate) path: String,
    /// Its size.
    pub(crate) bytes: u64,
    /// Its SHA-256.
    pub(crate) hash: [u8; 32],
}

impl TrialSite {
    /// An empty site in the folder for temporary files.
    pub fn new() -> Result<TrialSite, String> {
        let made = (0..100).find_map(|number| {
            let name = format!("tenfold-lab-{}-{number}", std::process::id());
            let parent = std::env::temp_dir().join(name);
            DirBuilder::new().mode(0o755).create(&parent).ok().map(|()| parent)
        });
        let temporary = std::env::temp_dir();
        let parent = made.ok_or_else(|| format!("cannot create a folder in {}", temporary.display()))?;
        let (folder, scratch) = (parent.join("site"), parent.join("scratch"));
        let site = TrialSite { parent, folder, scratch, files: Mutex::default() };
        for folder in [&site.parent, &site.folder, &site.scratch] {
            let opened = DirBuilder::new().recursive(true).create(folder);
            opened
                .and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o755)))
                .map_err(|error| format!("cannot open {} to everybody: {error}", folder.display()))?;
        }
        Ok(site)
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A folder that is not served, for programs, logs and files with process ids. The folder of a run may be another
    /// person's archive, with links that a server would follow.
    pub(crate) fn scratch(&self) -> &Path {
        &self.scratch
    }

    /// A file of `bytes` bytes.
    pub(crate) fn file(&self, bytes: u64) -> Result<SiteFile, String> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.get(&bytes) {
            return Ok(file.clone());
        }
        let name = format!("{bytes}.bin");
        let path = self.folder.join(&name);
        let hash =
            write(&path, bytes).map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        let file = SiteFile { path: format!("/{name}"), bytes, hash };
        files.insert(bytes, file.clone());
        Ok(file)
    }

    /// The URLs of a page at `address`, one per line: different files of `bytes` bytes and a few more.
    pub(crate) fn page(&self, address: SocketAddr, files: u32, bytes: u64) -> Result<String, String> {
        let url =
            |number: u32| Ok(format!("http://{address}{}\n", self.file(bytes + u64::from(number))?.path));
        (0..files).map(url).collect()
    }
}

/// Writes incompressible bytes that depend only on the size.
fn write(path: &Path, bytes: u64) -> std::io::Result<[u8; 32]> {
    const CHUNK: u64 = 64 * 1024;
    let mut random = fastrand::Rng::with_seed(bytes);
    let (mut file, mut hash) = (fs::File::create(path)?, Sha256::new());
    let mut chunk = vec![0; CHUNK as usize];
    let mut left = bytes;
    while left > 0 {
        let part = &mut chunk[..left.min(CHUNK) as usize];
        random.fill(part);
        file.write_all(part)?;
        hash.update(&*part);
        left -= part.len() as u64;
    }
    file.set_permissions(Permissions::from_mode(0o644))?;
    Ok(hash.finalize().into())
}

impl Drop for TrialSite {
    fn drop(&mut self) {
        // The system cleans the folder of temporary files.
        let _ = fs::remove_dir_all(&self.parent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_their_size_and_hash_and_go_with_the_site() {
        let site = TrialSite::new().expect("a folder");
        let file = site.file(100_000).expect("it is written");
        let path = site.folder().join(&file.path[1..]);
        let content = fs::read(&path).expect("it is there");
        assert_eq!(content.len(), 100_000);
        assert_eq!(file.hash, <[u8; 32]>::from(Sha256::digest(&content)));
        drop(site);
        assert!(!path.exists());
    }
}
