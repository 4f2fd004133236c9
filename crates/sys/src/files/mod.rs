//! Files: opened beneath a root, listed, watched, and named without following links of others.

pub mod directory;
pub mod file;
pub mod folder;
pub(crate) mod identity;
pub mod inotify;
pub mod links;
pub mod location;
pub mod resolved_path;
pub mod stderr;
#[cfg(test)]
pub(crate) mod test_folder;
