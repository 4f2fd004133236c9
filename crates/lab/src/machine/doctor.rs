//! Faults of this machine that would spoil a measurement, with a remedy for each. Nothing is changed.

use std::fs;

use serde::{Deserialize, Serialize};
use tenfold_agents::fleet::ClockEstimate;
use tenfold_engine::MODELS;
use tenfold_load::environment::{self as load_environment, Environment, FEW_OTHERS};

use crate::experiment::subject::Subject;
use crate::machine::environment::{LabEnvironment, TRACER, cannot_trace, program};
use crate::machine::hosts::{HostFacts, Hosts};
use crate::machine::processes;
use crate::measure::show_count;

/// The descriptors of the largest experiment: 4,000 idle connections, and the program's own.
const DESCRIPTORS: u64 = 4_200;
const SOMAXCONN: u64 = 4_096;

/// The gravity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Gravity {
    /// No fault.
    Good,
    /// Results are less certain, or some claims cannot be tested.
    Limits,
    /// Results would mislead.
    Spoils,
}

/// One finding.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Diagnosis {
    /// The effect on results.
    pub gravity: Gravity,
    /// The finding.
    pub found: String,
    /// The way to fix it.
    pub mend: String,
}

/// The part of a machine in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MachinePart {
    /// Servers and their load.
    Whole,
    /// Servers.
    Server,
    /// Load for servers elsewhere.
    Client,
}

/// Examines the machine.
pub fn examine(environment: &LabEnvironment) -> Vec<Diagnosis> {
    examine_for(environment, MachinePart::Whole)
}

/// Examines the machine for a part of a run.
pub fn examine_for(environment: &LabEnvironment, part: MachinePart) -> Vec<Diagnosis> {
    let mut all = Vec::new();
    let mut add = |gravity, found: String, mend: &str| {
        all.push(Diagnosis { gravity, found, mend: mend.to_owned() });
    };
    if cfg!(debug_assertions) {
        add(
            Gravity::Spoils,
            "this program was built without optimisation".to_owned(),
            "use a release build: `cargo build --release`",
        );
    }
    match environment.processors.len() {
        count if part == MachinePart::Client => {
            add(Gravity::Good, show_count(count, "processor"), "");
        }
        0 | 1 if part == MachinePart::Whole => add(
            Gravity::Spoils,
            "one processor: server and client share it".to_owned(),
            "use a machine with two processors or more",
        ),
        count @ ..4 => add(
            Gravity::Limits,
            format!("{}: claims about several workers cannot be tested", show_count(count, "processor")),
            "use a machine with four processors or more for these claims",
        ),
        count => add(Gravity::Good, format!("{count} processors"), ""),
    }
    others(&load_environment::find(), &mut add);
    let hard = environment.descriptors.split(' ').nth(2).unwrap_or_default();
    match hard.parse::<u64>() {
        Ok(limit) if limit < DESCRIPTORS => add(
            Gravity::Limits,
            format!("{limit} open files are allowed"),
            "raise the hard limit: `ulimit -Hn 20000` as root",
        ),
        _ => add(Gravity::Good, format!("open files: {}", environment.descriptors), ""),
    }
    let somaxconn = environment.sysctls.get("net.core.somaxconn").map_or("", String::as_str);
    if somaxconn.parse::<u64>().is_ok_and(|most| most < SOMAXCONN) {
        add(
            Gravity::Limits,
            format!("net.core.somaxconn is {somaxconn}: larger backlogs are truncated"),
            "`sysctl net.core.somaxconn=4096` as root",
        );
    }
    match environment.governor.as_str() {
        "" => add(Gravity::Good, "no frequency governor is visible".to_owned(), ""),
        "performance" => add(Gravity::Good, "the frequency governor is performance".to_owned(), ""),
        other => add(
            Gravity::Limits,
            format!("the frequency governor is {other}: the clock changes between trials"),
            "`cpupower frequency-set -g performance` as root",
        ),
    }
    if let Some(share) = battery() {
        add(Gravity::Limits, format!("the machine runs on its battery ({share})"), "plug it in");
    }
    let virtual_machine = fs::read_to_string("/proc/cpuinfo").unwrap_or_default().contains(" hypervisor");
    if virtual_machine {
        add(
            Gravity::Limits,
            "a virtual machine: the host can take time, which is counted as steal".to_owned(),
            "use real hardware for a run that others will quote",
        );
    }
    if part == MachinePart::Client {
        return all;
    }
    permissions(&mut add);
    for subject in Subject::ALL.iter().filter(|subject| subject.is_peer()) {
        match (program(*subject), environment.peers.get(subject.name())) {
            (Some(path), Some(version)) => add(Gravity::Good, format!("{}: {version}", path.display()), ""),
            (Some(path), None) => add(
                Gravity::Limits,
                format!("{} cannot be started: its claims cannot be tested", path.display()),
                "make it executable for this user",
            ),
            (None, _) => add(
                Gravity::Limits,
                format!("{} is not installed: its claims cannot be tested", subject.name()),
                "install it; nothing but its program is used",
            ),
        }
    }
    all
}

/// The round trip to an agent in milliseconds above which the begins of loads differ visibly.
const FAR: f64 = 20.0;

/// Examines a machine of a run on several machines: its clock, and its link to the server if it is a client.
pub fn examine_link(hosts: &Hosts, host: &HostFacts, clock: Option<ClockEstimate>) -> Vec<Diagnosis> {
    let mut all = Vec::new();
    let mut add = |gravity, found: String, mend: &str| {
        all.push(Diagnosis { gravity, found, mend: mend.to_owned() });
    };
    if let Some(ClockEstimate { offset, round_trip }) = clock {
        let (offset, round_trip) = (offset as f64 / 1e6, round_trip as f64 / 1e6);
        let found =
            format!("clock: {offset:+.1} ms from this machine; round trip of messages {round_trip:.1} ms");
        match round_trip > FAR {
            true => add(
                Gravity::Limits,
                found,
                "run the controller near the machines, so that loads begin together",
            ),
            false => add(Gravity::Good, found, ""),
        }
    }
    let Some(link) = &host.link else { return all };
    let server = &hosts.server;
    if std::ptr::eq(host, server) {
        add(Gravity::Good, format!("loopback: {:.0} MB/s; {}", link.megabytes, link.interface), "");
        return all;
    }
    let found = format!(
        "link to {}: TCP round trip {:.0} µs, {:.0} MB/s; {}",
        server.name, link.round_trip_us, link.megabytes, link.interface
    );
    add(Gravity::Good, found, "");
    if host.is_same_machine(server) {
        add(
            Gravity::Limits,
            format!("{} and {} are one machine (the boot id): they share processors", server.name, host.name),
            "use another machine for the clients",
        );
    } else if hosts.is_network(host) {
        add(
            Gravity::Limits,
            format!("{}: rates of large files are those of the network", hosts.link(host)),
            "compare the processor time for each response, or use a faster link",
        );
    }
    let mtu = |host: &HostFacts| host.link.as_ref().map_or(0, |link| link.interface.mtu);
    if mtu(host) != mtu(server) && !host.is_same_machine(server) {
        add(
            Gravity::Limits,
            format!("the MTU is {} on {} and {} on {}", mtu(server), server.name, mtu(host), host.name),
            "set the same MTU on both sides",
        );
    }
    all
}

/// Adds the finding about other programs, by the rule of the load generator.
fn others(here: &Environment, add: &mut impl FnMut(Gravity, String, &str)) {
    match here.crowded() {
        Some(why) => add(Gravity::Spoils, why, "trials that they disturb are flagged and repeated"),
        None if here.others > FEW_OTHERS => add(
            Gravity::Limits,
            format!("other programs run: {:.1} of their threads want a processor", here.others),
            "end them, or wait; trials that they disturb are flagged and repeated",
        ),
        None => add(Gravity::Good, format!("no other program runs; the load average is {}", here.load), ""),
    }
}

/// Adds findings about missing permissions.
fn permissions(add: &mut impl FnMut(Gravity, String, &str)) {
    match cannot_trace() {
        None => add(Gravity::Good, format!("{TRACER} traces what this user starts"), ""),
        Some(why) => add(
            Gravity::Limits,
            format!("{why}: system calls are neither counted nor explained"),
            "install strace; allow it to trace: `sysctl kernel.yama.ptrace_scope=1` as root, or SYS_PTRACE in a container",
        ),
    }
    match processes::closed_memory() {
        None => add(Gravity::Good, "the memory of servers (pss) can be read".to_owned(), ""),
        Some(why) => add(
            Gravity::Limits,
            format!("{why}: `tenfold tune --for memory` and claims by pss need it"),
            "run these as root, or with this capability",
        ),
    }
    for model in MODELS {
        let Err((facility, why)) = tenfold_engine::probe(model.engine) else { continue };
        add(
            Gravity::Limits,
            format!("the engine {} does not run here: {}: {why}", model.name, facility.name()),
            "its trials fail without the named facility",
        );
    }
}

/// The charge of a battery, if the machine runs on it.
fn battery() -> Option<String> {
    let entries = fs::read_dir("/sys/class/power_supply").ok()?;
    let discharging = entries.flatten().find(|entry| {
        fs::read_to_string(entry.path().join("status")).is_ok_and(|state| state.trim() == "Discharging")
    })?;
    let share = fs::read_to_string(discharging.path().join("capacity")).unwrap_or_default();
    Some(format!("{} %", share.trim()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::machine::hosts::{InterfaceFacts, LinkFacts};

    #[test]
    fn each_fault_comes_with_its_mend() {
        let bad = LabEnvironment {
            processors: vec![0],
            descriptors: "256 soft, 1024 hard".to_owned(),
            governor: "powersave".to_owned(),
            sysctls: BTreeMap::from([("net.core.somaxconn".to_owned(), "128".to_owned())]),
            ..LabEnvironment::default()
        };
        let found = examine(&bad);
        let faults: Vec<&Diagnosis> = found.iter().filter(|one| one.gravity != Gravity::Good).collect();
        for word in ["one processor", "1024 open files", "somaxconn is 128", "powersave"] {
            assert!(faults.iter().any(|fault| fault.found.contains(word)), "{word}: {faults:?}");
        }
        assert!(faults.iter().all(|fault| !fault.mend.is_empty()), "{faults:?}");
    }

    #[test]
    fn a_link_is_compared_with_loopback_and_with_the_other_side() {
        let host = |name: &str, megabytes: f64, mtu: u32| HostFacts {
            name: name.to_owned(),
            boot: name.to_owned(),
            link: Some(LinkFacts {
                megabytes,
                interface: InterfaceFacts { mtu, ..InterfaceFacts::default() },
                ..LinkFacts::default()
            }),
            ..HostFacts::default()
        };
        let hosts = Hosts { server: host("a", 4000.0, 9000), clients: vec![host("b", 118.0, 1500)] };
        let far = ClockEstimate { offset: -1_500_000, round_trip: 45_000_000 };
        let found = examine_link(&hosts, &hosts.clients[0], Some(far));
        let limits = found.iter().filter(|one| one.gravity == Gravity::Limits);
        let limits: Vec<&str> = limits.map(|one| one.found.as_str()).collect();
        assert_eq!(limits.len(), 3, "{found:?}");
        assert!(
            limits[0].contains("-1.5 ms")
                && limits[1].contains("118 MB/s")
                && limits[2].contains("9000 on a")
        );
        let near = ClockEstimate { offset: 0, round_trip: 100_000 };
        let found = examine_link(&hosts, &hosts.server, Some(near));
        assert!(found.iter().all(|one| one.gravity == Gravity::Good), "{found:?}");
    }

    #[test]
    fn a_load_that_makes_a_run_invalid_spoils() {
        for (running, expected) in [(156.0, Gravity::Spoils), (0.6, Gravity::Spoils), (0.4, Gravity::Good)] {
            let here = Environment { others: running, online: 2, ..Environment::default() };
            let mut found = Vec::new();
            others(&here, &mut |gravity, _, _| found.push(gravity));
            assert_eq!(found, [expected]);
            assert_eq!(here.crowded().is_some(), expected == Gravity::Spoils);
        }
    }
}
