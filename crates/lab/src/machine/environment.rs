//! The recorded environment of a machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tenfold_agents::fleet::safe;
use tenfold_load::environment as load_environment;
use tenfold_sys::usage;

use crate::experiment::subject::Subject;
use crate::machine::processes;

/// The tracer of system calls.
pub(crate) const TRACER: &str = "strace";

/// The compiler for the museum.
pub(crate) const COMPILER: &str = "cc";

/// The most entries of a list of another machine.
const MOST_ENTRIES: usize = 100;

/// Settings of the kernel that change results.
const SYSCTLS: [&str; 9] = [
    "net/core/somaxconn",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/tcp_syncookies",
    "kernel/randomize_va_space",
    "fs/file-max",
];

/// The machine and the system of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabEnvironment {
    /// Version of this program.
    pub version: String,
    /// Version of the kernel.
    pub kernel: String,
    /// Name of the processor.
    pub processor: String,
    /// The processors of this process.
    pub processors: Vec<usize>,
    /// Megabytes of memory.
    pub memory_mb: u64,
    /// The processor's vulnerabilities and their mitigations.
    pub mitigations: BTreeMap<String, String>,
    /// Kernel settings by name.
    pub sysctls: BTreeMap<String, String>,
    /// The limits of descriptors.
    pub descriptors: String,
    /// Load averages before the run.
    pub load: String,
    /// The frequency governor of the processor, if it has one.
    pub governor: String,
    /// The versions of installed peers, by name.
    pub peers: BTreeMap<String, String>,
}

impl LabEnvironment {
    /// The environment now.
    pub fn find() -> LabEnvironment {
        let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let here = load_environment::find();
        let mut mitigations = BTreeMap::new();
        for entry in fs::read_dir("/sys/devices/system/cpu/vulnerabilities").into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            mitigations.insert(name, line(&entry.path().display().to_string()));
        }
        let sysctl = |name: &&str| ((*name).replace('/', "."), line(&format!("/proc/sys/{name}")));
        let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
        let descriptors = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let peer = |subject: &Subject| Some((subject.name().to_owned(), version(*subject)?));
        LabEnvironment {
            version: here.version,
            kernel: here.kernel,
            processor: here.processor,
            processors: usage::processors().unwrap_or_default(),
            memory_mb: processes::status("/proc/meminfo", "MemTotal:") / 1024,
            mitigations,
            sysctls: SYSCTLS.iter().map(sysctl).collect(),
            descriptors: descriptors
                .unwrap_or_default()
                .split_whitespace()
                .take(2)
                .collect::<Vec<_>>()
                .join(" soft, ")
                + " hard",
            load: line("/proc/loadavg"),
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            peers: Subject::ALL.iter().filter(|subject| subject.is_peer()).filter_map(peer).collect(),
        }
    }

    /// The environment that another machine sent, with safe texts and bounded lists.
    pub(crate) fn made_safe(self) -> LabEnvironment {
        let list = |map: BTreeMap<String, String>| {
            map.into_iter().take(MOST_ENTRIES).map(|(name, value)| (safe(&name), safe(&value))).collect()
        };
        LabEnvironment {
            version: safe(&self.version),
            kernel: safe(&self.kernel),
            processor: safe(&self.processor),
            processors: self.processors,
            memory_mb: self.memory_mb,
            mitigations: list(self.mitigations),
            sysctls: list(self.sysctls),
            descriptors: safe(&self.descriptors),
            load: safe(&self.load),
            governor: safe(&self.governor),
            peers: list(self.peers),
        }
    }
}

/// The program of a peer, if it is installed.
pub fn program(subject: Subject) -> Option<PathBuf> {
    let name = match subject {
        Subject::Apache => "apache2",
        other => other.name(),
    };
    installed(name)
}

/// A program by its name, if it is installed.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The reason why this user cannot trace programs, if there is one. The first call tries it.
pub(crate) fn cannot_trace() -> Option<String> {
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    FOUND.get_or_init(try_to_trace).clone()
}

fn try_to_trace() -> Option<String> {
    let Some(program) = installed(TRACER) else { return Some(format!("{TRACER} is not installed")) };
    let mut command = Command::new(program);
    let output = command.args(["-qq", "-o", "/dev/null", "true"]).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            Some(format!("{TRACER} may not trace: {}", said.lines().next().unwrap_or("it gave no reason")))
        }
        Err(error) => Some(format!("cannot start {TRACER}: {error}")),
    }
}

/// The first line of a peer's version.
fn version(subject: Subject) -> Option<String> {
    let output = Command::new(program(subject)?).arg("-v").stdin(Stdio::null()).output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_found_and_read_again() {
        let found = LabEnvironment::find();
        assert!(!found.kernel.is_empty() && !found.processors.is_empty() && found.memory_mb > 0);
        let text = serde_json::to_string(&found).expect("it is written");
        assert_eq!(serde_json::from_str::<LabEnvironment>(&text).expect("it is read"), found);
    }
}
