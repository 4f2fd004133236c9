//! Remains of killed runs: folders of some hundred megabytes, and their servers.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::process::Process;

/// Programs that outlive a killed run.
const SERVERS: [&str; 6] = ["tenfold", "postgres", "mariadbd", "nginx", "haproxy", "caddy"];

/// Removes folders of dead runs from `temporary`, if they belong to this user and are named as by
/// [`crate::site::TempFolder::new`]. It first ends servers that use them. Failures to remove are ignored.
///
/// The run is found by its process id, so a run in another container that shares the folder seems dead.
pub fn remove(temporary: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(run) = name.to_str().and_then(run) else { continue };
        // The metadata of a link itself.
        let is_ours = entry.metadata().is_ok_and(|facts| facts.is_dir() && facts.uid() == own);
        if is_ours && !run.is_running() {
            end_servers(&entry.path());
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The process of the run whose folder has this name: `tenfold-PID-NUMBER-WHAT`.
fn run(name: &str) -> Option<Process> {
    let mut parts = name.strip_prefix("tenfold-")?.splitn(3, '-');
    let (process, number) = (parts.next()?.parse().ok()?, parts.next()?);
    let whole = number.parse::<u32>().is_ok() && parts.next().is_some();
    whole.then_some(Process(process))
}

fn end_servers(folder: &Path) {
    let at_work: Vec<_> = Process::all().into_iter().filter(|process| works_in(*process, folder)).collect();
    at_work.iter().for_each(|process| process.signal(rustix::process::Signal::KILL));
    for _ in 0..100 {
        if !at_work.iter().any(|process| process.is_running()) {
            return;
        }
        // These are no children of this process, so no call waits for their end.
        sleep(Duration::from_millis(10));
    }
}

/// Whether it is one of our servers and uses the folder as working directory or in its arguments.
fn works_in(process: Process, folder: &Path) -> bool {
    let is_server = process.status("Name").is_some_and(|name| SERVERS.contains(&name.as_str()));
    let inside = |path: &Path| path.starts_with(folder);
    is_server
        && (process.folder().is_some_and(|own| inside(&own))
            || process.words().iter().any(|word| inside(Path::new(word))))
}
