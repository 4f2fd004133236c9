//! Limits of the system for this process.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::system::sysinfo;

/// Raises the limit of open descriptors to the greatest value allowed without privileges, and returns it
/// (`RLIMIT_NOFILE`, `man 2 getrlimit`).
///
/// # Errors
/// The error of `setrlimit(2)`; the limit is then unchanged.
pub fn raise_descriptors() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    // Without a hard limit, the kernel's bound for one process applies.
    let most = limit.maximum.unwrap_or_else(|| number_in("/proc/sys/fs/nr_open").unwrap_or(1 << 20));
    if limit.current.is_none_or(|current| current < most) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum })?;
    }
    Ok(most)
}

/// The most processes and threads of this user; `None` without a limit (`RLIMIT_NPROC`).
pub fn processes() -> Option<u64> {
    getrlimit(Resource::Nproc).current
}

/// The most bytes of locked memory of this user; `None` without a limit (`RLIMIT_MEMLOCK`).
pub fn locked_memory() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

/// Runs `make` within the whole limit of locked memory, and then halves the limit of this process. Without a limit,
/// nothing changes.
///
/// The kernel compares the locked memory of all processes of a user with the limit of the process that asks for more. So
/// running processes leave half of the limit for processes that start.
///
/// # Errors
/// The error of `setrlimit(2)`; the limit is then unchanged, or whole.
pub fn halve_locked_memory<T>(make: impl FnOnce() -> T) -> io::Result<T> {
    static WHOLE: Mutex<Option<Rlimit>> = Mutex::new(None);
    let mut whole = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
    let whole = *whole.get_or_insert_with(|| getrlimit(Resource::Memlock));
    let Some(most) = whole.current else { return Ok(make()) };
    setrlimit(Resource::Memlock, whole)?;
    let made = make();
    setrlimit(Resource::Memlock, Rlimit { current: Some(most / 2), maximum: whole.maximum })?;
    Ok(made)
}

/// Lets this process allocate at most `more` additional bytes (`RLIMIT_DATA`). If `/proc` does not report its present
/// memory, `more` is the limit of all its memory.
///
/// # Errors
/// The error of `setrlimit(2)`; the limit is then unchanged.
pub fn limit_memory(more: u64) -> io::Result<()> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix("VmData:")?.trim().strip_suffix(" kB"));
    let present = field.and_then(|number| number.parse::<u64>().ok()).unwrap_or(0);
    let hard = getrlimit(Resource::Data).maximum.unwrap_or(u64::MAX);
    let most = Some(present.saturating_mul(1024).saturating_add(more).min(hard));
    Ok(setrlimit(Resource::Data, Rlimit { current: most, maximum: most })?)
}

/// The most bytes of memory that the processes of this control group can have: the memory of the machine
/// (`man 2 sysinfo`), or a lower limit of the group or of a group above it (`man 7 cgroups`, version 2 or 1).
pub fn memory() -> u64 {
    let machine = sysinfo();
    let machine = machine.totalram.saturating_mul(u64::from(machine.mem_unit));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups.lines().filter_map(|line| limit_of_group(line, "/sys/fs/cgroup")).fold(machine, u64::min)
}

/// The limit of memory of a line of `/proc/PID/cgroup`, whose hierarchies are mounted in `mounted`.
fn limit_of_group(line: &str, mounted: &str) -> Option<u64> {
    let (_, line) = line.split_once(':')?;
    let (controllers, own) = line.split_once(":/")?;
    let (mounted, file) = match controllers {
        "" => (mounted.to_owned(), "memory.max"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            (format!("{mounted}/memory"), "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let own = Path::new(&mounted).join(own);
    let all = own.ancestors().take_while(|group| group.starts_with(&mounted));
    all.filter_map(|group| number_in(group.join(file))).min()
}

/// The greatest backlog of a listening socket (`net.core.somaxconn`); `None` if it cannot be read.
pub fn backlog() -> Option<u64> {
    number_in("/proc/sys/net/core/somaxconn")
}

fn number_in(path: impl AsRef<Path>) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::test_folder::TestFolder;

    #[test]
    fn the_lowest_limit_of_memory_from_the_group_to_the_top_counts() {
        let folder = TestFolder::new("cgroup");
        let write = |path: &str, text: &str| {
            let path = folder.at(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("our own folder");
            fs::write(path, text).expect("our own folder");
        };
        write("a/memory.max", "3000\n");
        write("a/b/memory.max", "max\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/c/memory.limit_in_bytes", "2000\n");
        let mounted = folder.at("").display().to_string();
        for (line, expected) in [
            ("0::/a/b", Some(3000)),
            ("0::/a", Some(3000)),
            ("0::/", None),
            ("0::/../elsewhere", None),
            ("4:memory:/c/d", Some(2000)),
            ("4:cpu,memory:/", Some(9_223_372_036_854_771_712)),
            ("5:cpu:/c", None),
            ("1:name=systemd:/", None),
            ("", None),
        ] {
            assert_eq!(limit_of_group(line, &mounted), expected, "{line}");
        }
    }
}
