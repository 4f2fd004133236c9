//! A temporary folder for tests of files.

use std::fs;
use std::path::PathBuf;

use super::file::Root;

/// A temporary folder with a directory `root` in it, removed on drop.
pub(crate) struct TestFolder(PathBuf);

impl TestFolder {
    pub(crate) fn new(name: &str) -> TestFolder {
        let path = std::env::temp_dir().join(format!("tenfold-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("root")).expect("a temporary directory can be made");
        TestFolder(path)
    }

    pub(crate) fn at(&self, relative: &str) -> PathBuf {
        self.0.join(relative)
    }

    pub(super) fn root(&self) -> Root {
        Root::open(&self.at("root")).expect("the directory was just made")
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
