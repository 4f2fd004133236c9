//! Other programs, run in the foreground with their output as it comes.

use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a program in `folder` with further variables, after printing the line that a person would type.
///
/// # Errors
/// Says what was run and how it ended.
pub(crate) fn run(folder: &Path, program: &str, args: &[&str], vars: &[(&str, &str)]) -> Result<(), String> {
    let line = line(program, args, vars);
    println!("$ {line}");
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).stdin(Stdio::null());
    // Cargo sets it for the toolchain that built this program; another toolchain must not load from there.
    command.env_remove("LD_LIBRARY_PATH").envs(vars.iter().copied());
    let status = command.status().map_err(|e| format!("run {program}: {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{line}` failed: {status}")) }
}

/// Whether a program runs and reports success; what it prints is not shown.
pub(crate) fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env_remove("LD_LIBRARY_PATH").status().is_ok_and(|status| status.success())
}

/// Whether a program is on the search path, or where Debian keeps the administrator's programs.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(program)).any(|file| file.is_file())
}

fn line(program: &str, args: &[&str], vars: &[(&str, &str)]) -> String {
    let vars = vars.iter().map(|(name, value)| format!("{name}={value} "));
    format!("{}{program} {}", vars.collect::<String>(), args.join(" "))
}
