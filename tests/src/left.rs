//! What runs of the suite have left that were killed: folders of some hundred megabytes, and servers at work in them.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::process::Process;

/// Programs that a run starts and that outlive it when it is killed.
const SERVERS: [&str; 5] = ["tenfold", "postgres", "mariadbd", "redis-server", "nginx"];

/// Removes folders of runs whose process is gone from `temporary`, where they are this user's and have names as
/// [`crate::site::Folder::new`] makes them; servers that are at work there end before. What cannot be removed stays.
///
/// The process is looked for by its number: a run in another container that shares the folder looks dead from here.
pub fn remove(temporary: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(temporary).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(run) = name.to_str().and_then(run) else { continue };
        // Of a link this is about the link.
        let is_ours = entry.metadata().is_ok_and(|facts| facts.is_dir() && facts.uid() == own);
        if is_ours && !run.is_running() {
            end_servers(&entry.path());
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The run whose folder has this name: `tenfold-PID-NUMBER-WHAT`.
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
        sleep(Duration::from_millis(10));
    }
}

/// Whether it is one of our servers and has the folder, or a place in it, as its own or among its words.
fn works_in(process: Process, folder: &Path) -> bool {
    let is_server = process.status("Name").is_some_and(|name| SERVERS.contains(&name.as_str()));
    let inside = |path: &Path| path.starts_with(folder);
    is_server
        && (process.folder().is_some_and(|own| inside(&own))
            || process.words().iter().any(|word| inside(Path::new(word))))
}
