//! Programs that cases need besides the server.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The user of database servers if the tests run as root, because they refuse to be root.
const NOBODY: &str = "nobody";

/// The path of the program.
#[track_caller]
pub fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    match folders.find_map(|folder| Some(folder.join(name)).filter(|file| file.is_file())) {
        Some(file) => file,
        None => panic!("{name} is missing: `cargo xtask setup` installs it"),
    }
}

/// Whether the tests run as root. Otherwise, tests for root are ignored.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The number of connections that the kernel has encrypted with TLS. `None` if this kernel has no TLS, or has not
/// loaded it (`modprobe tls`).
pub fn sealed_by_kernel() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/net/tls_stat").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("TlsTxSw")?.trim().parse().ok())
}

/// A command as an unprivileged user.
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
