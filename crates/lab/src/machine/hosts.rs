//! The machines of a run, and their test against the requirements of claims.

use std::{fmt, fs};

use serde::{Deserialize, Serialize};
use tenfold_agents::fleet::safe;

use crate::experiment::claim::Requirement;
use crate::experiment::museum::exhibit;
use crate::experiment::subject::Subject;
use crate::machine::environment::{COMPILER, LabEnvironment, TRACER, cannot_trace, installed, program};
use crate::machine::processes;
use crate::measure::show_count;

/// The part of the speed of loopback below which a link is a network.
const NETWORK: f64 = 0.5;
/// The most processors of a machine that are believed.
const MOST_PROCESSORS: usize = 1 << 16;
/// The most entries of a list of another machine.
const MOST_ENTRIES: usize = 100;

/// A machine of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Its name; empty for the only machine of a run.
    pub name: String,
    /// Its environment.
    pub environment: LabEnvironment,
    /// The id of its boot. Network namespaces and containers of a machine have the same.
    pub boot: String,
    /// The peers with a program.
    pub peers: Vec<String>,
    /// Whether it has a C compiler.
    pub compiles: bool,
    /// The reason why its user cannot trace programs, if there is one.
    pub cannot_trace: Option<String>,
    /// The reason why its user cannot read the memory of a server, if there is one.
    pub closed_memory: Option<String>,
    /// Its link to the server. That of the server is loopback.
    pub link: Option<LinkFacts>,
}

/// A measured link to the server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkFacts {
    /// Microseconds of the shortest TCP round trip.
    pub round_trip_us: f64,
    /// Megabytes per second from the server.
    pub megabytes: f64,
    /// The interface of this side.
    pub interface: InterfaceFacts,
}

/// A network interface. Unknown texts are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InterfaceFacts {
    /// Its name.
    pub name: String,
    /// The bytes of its longest packet.
    pub mtu: u32,
    /// The driver of its device.
    pub driver: String,
    /// The offloads that are on; `None` if they are unknown.
    pub offloads: Option<Vec<String>>,
}

/// The machines of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hosts {
    /// The machine of servers.
    pub server: HostFacts,
    /// The machines of clients; empty if the server's machine makes the load as well.
    pub clients: Vec<HostFacts>,
}

impl fmt::Display for InterfaceFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            return f.write_str("unknown interface");
        }
        let driver = if self.driver.is_empty() { "no driver of a device" } else { &self.driver };
        write!(f, "{}: MTU {}, {driver}, ", self.name, self.mtu)?;
        match &self.offloads {
            None => f.write_str("offloads unknown (ethtool is not installed)"),
            Some(all) if all.is_empty() => f.write_str("no offloads"),
            Some(all) => write!(f, "offloads: {}", all.join(", ")),
        }
    }
}

impl HostFacts {
    /// This machine, with its environment.
    pub fn here(environment: &LabEnvironment) -> HostFacts {
        let has_program = |subject: &&Subject| subject.is_peer() && program(**subject).is_some();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        HostFacts {
            name: String::new(),
            environment: environment.clone(),
            boot: boot.trim().to_owned(),
            peers: Subject::ALL.iter().filter(has_program).map(|subject| subject.name().to_owned()).collect(),
            compiles: installed(COMPILER).is_some(),
            cannot_trace: cannot_trace(),
            closed_memory: processes::closed_memory(),
            link: None,
        }
    }

    /// Whether both are one machine, or may be.
    pub fn is_same_machine(&self, other: &HostFacts) -> bool {
        self.boot == other.boot || self.boot.is_empty() || other.boot.is_empty()
    }

    /// The name in a sentence.
    fn shown(&self) -> &str {
        if self.name.is_empty() { "this machine" } else { &self.name }
    }

    /// Facts that another machine sent, with safe texts and bounded lists.
    pub(crate) fn made_safe(mut self, name: &str) -> HostFacts {
        self.name = name.to_owned();
        self.environment = self.environment.made_safe();
        self.environment.processors.truncate(MOST_PROCESSORS);
        self.environment.processors.retain(|processor| *processor < MOST_PROCESSORS);
        self.boot = safe(&self.boot);
        self.peers.retain(|peer| Subject::ALL.iter().any(|subject| subject.name() == peer));
        for text in [&mut self.cannot_trace, &mut self.closed_memory].into_iter().flatten() {
            *text = safe(text);
        }
        self.link = self.link.map(LinkFacts::made_safe);
        self
    }
}

impl LinkFacts {
    /// Facts that another machine sent, with safe texts and possible numbers.
    pub(crate) fn made_safe(self) -> LinkFacts {
        let number = |value: f64| if value.is_finite() { value.max(0.0) } else { 0.0 };
        let offloads = self.interface.offloads.map(|mut all| {
            all.truncate(MOST_ENTRIES);
            all.iter().map(|one| safe(one)).collect()
        });
        LinkFacts {
            round_trip_us: number(self.round_trip_us),
            megabytes: number(self.megabytes),
            interface: InterfaceFacts {
                name: safe(&self.interface.name),
                mtu: self.interface.mtu,
                driver: safe(&self.interface.driver),
                offloads,
            },
        }
    }
}

impl Hosts {
    /// The only machine of a run.
    pub fn one(environment: &LabEnvironment) -> Hosts {
        Hosts { server: HostFacts::here(environment), clients: Vec::new() }
    }

    /// All machines. The server is the first.
    pub fn list(&self) -> Vec<&HostFacts> {
        std::iter::once(&self.server).chain(&self.clients).collect()
    }

    /// The processors of servers and of clients. A client on the server's machine gets one of them.
    pub fn processors(&self) -> (Vec<usize>, Vec<usize>) {
        let is_shared = |client: &HostFacts| client.is_same_machine(&self.server);
        match self.server.environment.processors.as_slice() {
            // With one processor, nothing is pinned; `doctor` reports it.
            [] | [_] => (Vec::new(), Vec::new()),
            all if !self.clients.is_empty() && !self.clients.iter().any(is_shared) => {
                (all.to_vec(), Vec::new())
            }
            [server @ .., client] => (server.to_vec(), vec![*client]),
        }
    }

    /// The reason why these machines or this version do not meet a requirement, if there is one.
    pub fn lacks(&self, requirement: &Requirement) -> Option<String> {
        let server = &self.server;
        match requirement {
            Requirement::Cores(count) if server.environment.processors.len() >= *count => None,
            Requirement::Cores(count) => Some(format!(
                "it needs {count} cores, and {} has {}",
                server.shown(),
                server.environment.processors.len()
            )),
            Requirement::SecondMachine if self.clients.is_empty() => {
                Some("it needs a second machine for the client".to_owned())
            }
            Requirement::SecondMachine => {
                let same = self.clients.iter().find(|client| client.is_same_machine(server))?;
                Some(format!(
                    "it needs a second machine for the client, and {} and {} are one machine: their boot id is the same",
                    server.name, same.name
                ))
            }
            Requirement::Network if self.clients.is_empty() => {
                Some("it needs a network; loopback has the speed of memory".to_owned())
            }
            Requirement::Network => {
                let fast = self.clients.iter().find(|client| !self.is_network(client))?;
                Some(format!("it needs a network slower than half of loopback, and {}", self.link(fast)))
            }
            Requirement::MemoryLimit => {
                Some("it needs a memory limit on the server, so that files are not cached".to_owned())
            }
            Requirement::Museum(name) if exhibit(name).is_some() => self.no_compiler(),
            Requirement::Museum(name) => Some(format!(
                "it needs a server with the published mistake ({name}), which this version does not carry"
            )),
            Requirement::Instrument(name) if name == TRACER => server
                .cannot_trace
                .as_ref()
                .map(|why| format!("it needs {TRACER}: {why}{}", self.on_server())),
            Requirement::Instrument(name) => Some(format!("this version cannot measure it: {name}")),
        }
    }

    /// The reason why exhibits cannot be compiled, if there is one.
    pub(crate) fn no_compiler(&self) -> Option<String> {
        let lacks = !self.server.compiles;
        lacks.then(|| {
            format!("it needs a C compiler ({COMPILER}), which is not installed{}", self.on_server())
        })
    }

    /// The reason why a peer cannot be started, if there is one.
    pub(crate) fn no_peer(&self, peer: Subject) -> Option<String> {
        let lacks = self.server.peers.iter().all(|name| name != peer.name());
        lacks.then(|| format!("{} is not installed{}", peer.name(), self.on_server()))
    }

    /// The machines that met a requirement, if there are several.
    pub(crate) fn meets(&self, requirement: &Requirement) -> Option<String> {
        if self.clients.is_empty() {
            return None;
        }
        let server = &self.server;
        let each = |text: &dyn Fn(&HostFacts) -> String| {
            self.clients.iter().map(text).collect::<Vec<_>>().join("; ")
        };
        Some(match requirement {
            Requirement::Cores(_) => {
                format!(
                    "{} has {}",
                    server.name,
                    show_count(server.environment.processors.len(), "processor")
                )
            }
            Requirement::SecondMachine => {
                each(&|client| format!("{} and {} have different boot ids", server.name, client.name))
            }
            Requirement::Network => each(&|client| self.link(client)),
            Requirement::Museum(_) => format!("{} has a C compiler", server.name),
            Requirement::Instrument(name) => format!("{} has {name}", server.name),
            Requirement::MemoryLimit => return None,
        })
    }

    /// The words that name the server's machine, if there are several.
    fn on_server(&self) -> String {
        if self.clients.is_empty() { String::new() } else { format!(" on {}", self.server.name) }
    }

    /// Whether the link of a client is slower than half of loopback on the server's machine.
    pub(crate) fn is_network(&self, client: &HostFacts) -> bool {
        let loopback = self.server.link.as_ref().map_or(0.0, |link| link.megabytes);
        client.link.as_ref().is_some_and(|link| link.megabytes < NETWORK * loopback)
    }

    pub(crate) fn link(&self, client: &HostFacts) -> String {
        let speed = |host: &HostFacts| host.link.as_ref().map_or(0.0, |link| link.megabytes);
        let server = &self.server;
        format!(
            "the link from {} to {} has {:.0} MB/s, loopback on {} {:.0} MB/s",
            server.name,
            client.name,
            speed(client),
            server.name,
            speed(server)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, boot: &str, processors: usize, megabytes: f64) -> HostFacts {
        HostFacts {
            name: name.to_owned(),
            boot: boot.to_owned(),
            environment: LabEnvironment {
                processors: (0..processors).collect(),
                ..LabEnvironment::default()
            },
            link: Some(LinkFacts { megabytes, ..LinkFacts::default() }),
            ..HostFacts::default()
        }
    }

    fn hosts(processors: usize, boot: &str, megabytes: f64) -> Hosts {
        Hosts {
            server: host("a", "1", processors, 4000.0),
            clients: vec![host("b", "2", 1, 100.0), host("c", boot, 1, megabytes)],
        }
    }

    #[test]
    fn the_processors_of_the_server_decide() {
        for (processors, met) in [(1, 0), (4, 1), (8, 2), (16, 3)] {
            let hosts = hosts(processors, "3", 100.0);
            let needs = [4, 8, 16].map(|count| hosts.lacks(&Requirement::Cores(count)));
            assert_eq!(needs.iter().filter(|lack| lack.is_none()).count(), met, "{needs:?}");
            for lack in needs.into_iter().flatten() {
                assert!(lack.ends_with(&format!("and a has {processors}")), "{lack}");
            }
        }
        assert_eq!(hosts(8, "3", 0.0).meets(&Requirement::Cores(4)).as_deref(), Some("a has 8 processors"));
    }

    #[test]
    fn one_boot_is_one_machine() {
        let need = Requirement::SecondMachine;
        assert_eq!(hosts(4, "3", 100.0).lacks(&need), None);
        let said = hosts(4, "1", 100.0).lacks(&need).expect("c runs on the server");
        assert!(said.contains("a and c are one machine"), "{said}");
        assert!(hosts(4, "", 100.0).lacks(&need).is_some(), "it may be");
        assert_eq!(hosts(4, "3", 100.0).processors(), ((0..4).collect(), Vec::new()));
        assert_eq!(hosts(4, "1", 100.0).processors(), ((0..3).collect(), vec![3]));
    }

    #[test]
    fn a_link_as_fast_as_memory_is_no_network() {
        let need = Requirement::Network;
        let slow = hosts(4, "1", 1999.0);
        assert_eq!(slow.lacks(&need), None);
        let said = slow.meets(&need).expect("two links");
        assert!(
            said.contains("from a to b has 100 MB/s") && said.contains("from a to c has 1999 MB/s"),
            "{said}"
        );
        let said = hosts(4, "3", 2000.0).lacks(&need).expect("half of loopback");
        assert!(said.contains("from a to c has 2000 MB/s, loopback on a 4000 MB/s"), "{said}");
    }

    #[test]
    fn tools_are_those_of_the_server() {
        let mut hosts = hosts(4, "3", 100.0);
        assert_eq!(hosts.no_peer(Subject::Nginx).as_deref(), Some("nginx is not installed on a"));
        hosts.server.cannot_trace = Some("strace is not installed".to_owned());
        let said = hosts.lacks(&Requirement::Instrument(TRACER.to_owned())).expect("no tracer");
        assert_eq!(said, "it needs strace: strace is not installed on a");
        assert!(hosts.no_compiler().expect("none").ends_with("on a"));
    }

    #[test]
    fn a_lack_of_one_machine_is_a_reason() {
        let two = LabEnvironment { processors: vec![0, 1], ..LabEnvironment::default() };
        let one = Hosts::one(&two);
        assert_eq!(one.lacks(&Requirement::Cores(2)), None);
        assert!(one.lacks(&Requirement::Cores(4)).expect("too few").contains("this machine has 2"));
        assert!(
            one.lacks(&Requirement::SecondMachine).is_some() && one.lacks(&Requirement::Network).is_some()
        );
        let said = one.lacks(&Requirement::Museum("sundial".to_owned())).expect("no such exhibit");
        assert!(said.contains("does not carry"), "{said}");
        assert_eq!(one.meets(&Requirement::Cores(2)), None, "one machine needs no name");
    }

    #[test]
    fn facts_of_another_machine_are_bounded() {
        let mut wrong = host("\x1b[2J", "4", 2, f64::INFINITY);
        wrong.environment.processors.push(usize::MAX);
        wrong.environment.kernel = "6\x1b[31m".to_owned();
        wrong.peers = vec!["../../etc".to_owned(), "nginx".to_owned()];
        let found = wrong.made_safe("d");
        assert_eq!((found.name.as_str(), found.environment.processors.len()), ("d", 2));
        assert_eq!(found.peers, ["nginx"]);
        assert_eq!(found.link.map(|link| link.megabytes), Some(0.0));
        assert!(!found.environment.kernel.contains('\x1b'));
    }
}
