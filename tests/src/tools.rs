//! Programs that cases need beyond the server.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Whom servers of others run as where the tests run as root: databases refuse to be it.
const NOBODY: &str = "nobody";

/// Where the program is.
///
/// # Panics
/// When it is missing, with the command that installs it: a case is never left out silently.
#[track_caller]
pub fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    match folders.find_map(|folder| Some(folder.join(name)).filter(|file| file.is_file())) {
        Some(file) => file,
        None => panic!("{name} is missing: `cargo xtask setup` installs it"),
    }
}

/// Whether this runs as root; what only root can do is said to be ignored where it does not.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A command as somebody without privileges.
#[track_caller]
pub fn as_nobody(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new(self::program("setpriv"));
    command.args([&format!("--reuid={NOBODY}"), "--regid=nogroup", "--clear-groups"]).arg(program);
    command.current_dir("/");
    command
}
