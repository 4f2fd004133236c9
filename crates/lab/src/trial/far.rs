//! Trials on several machines, from the side of the controller.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic;
use std::thread;
use std::time::{Duration, Instant};

use tenfold_agents::fleet::command::{AgentPlace, StartCommand};
use tenfold_agents::fleet::{FleetPlan, safe};
use tenfold_agents::{Fleet, FleetEvent};
use tenfold_load::{LoadFleet, RunSummary, ShareBy};

use crate::machine::doctor::{self, Diagnosis, MachinePart};
use crate::machine::environment::LabEnvironment;
use crate::machine::hosts::{HostFacts, Hosts, InterfaceFacts, LinkFacts};
use crate::machine::processes::Resources;
use crate::measure::Measure;
use crate::plan::Machines;
use crate::record::Trial;
use crate::trial::bench::{self, Workbench, interrupted};
use crate::trial::conclusion::conclude;
use crate::trial::host::{CheckedSubject, SubjectHost, SubjectUse, TrialOrder};
use crate::trial::remote::{FromHost, SUBJECT_TASK, ToHost};
use crate::trial::{client, link};

/// The longest wait for an answer, in addition to the time of a measurement: large files are written before a start.
const ANSWER: Duration = Duration::from_secs(300);
/// The longest task. An agent ends without its controller.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest end of tasks.
const END: Duration = Duration::from_secs(3);
/// The wait for messages while other work goes on.
const TICK: Duration = Duration::from_millis(20);
/// The most words of the command of a subject.
const MOST_WORDS: usize = 200;
/// The most disturbances and other remarks of a trial.
const MOST_FLAGS: usize = 20;
/// The most names of system calls.
const MOST_CALLS: usize = 1000;
/// The largest number that is believed; larger integers are not exact as JSON.
const LARGEST: f64 = (1u64 << 53) as f64;

/// The agents of a run on several machines, until this value is dropped.
#[derive(Debug)]
pub struct FarMachines {
    fleet: Fleet,
    /// The agent of the server's machine; `None` for this machine.
    server: Option<usize>,
    clients: Vec<usize>,
    machines: Machines,
    hosts: Hosts,
    /// The part of the load that the server's machine makes.
    load_on_server: f64,
    /// Whether clients may have tasks of a load.
    is_loading: bool,
    lost: Option<String>,
}

/// The findings about a machine.
#[derive(Debug)]
pub struct HostReport<'a> {
    /// The machine.
    pub host: &'a HostFacts,
    /// The findings.
    pub diagnoses: Vec<Diagnosis>,
}

impl FarMachines {
    /// Starts agents, and measures the link to each client by a transfer of this time.
    ///
    /// # Errors
    /// An agent does not start, or a client does not reach the server's machine.
    pub fn start(
        machines: &Machines,
        command: StartCommand,
        copy: bool,
        transfer: Duration,
    ) -> Result<FarMachines, String> {
        let plan = FleetPlan { places: places(machines)?, command, copy };
        plan.check()?;
        bench::prepare()?;
        let fleet = Fleet::start(&plan).map_err(|lines| lines.join("\n"))?;
        let server = machines.server.as_ref().map(|_| 0);
        let clients = (server.map_or(0, |agent| agent + 1)..fleet.len()).collect();
        let (hosts, machines) = (Hosts::default(), machines.clone());
        let mut far = FarMachines {
            fleet,
            server,
            clients,
            machines,
            hosts,
            load_on_server: 0.0,
            is_loading: false,
            lost: None,
        };
        far.describe(transfer)?;
        Ok(far)
    }

    /// The machines and their links.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// The machines as a plan has them.
    pub fn machines(&self) -> &Machines {
        &self.machines
    }

    /// The reason why no trial can follow, if there is one.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    fn describe(&mut self, transfer: Duration) -> Result<(), String> {
        let all: Vec<usize> = (0..self.fleet.len()).collect();
        for agent in &all {
            self.fleet.begin(*agent, SUBJECT_TASK, LONGEST)?;
        }
        self.hosts.server = match self.server {
            Some(agent) => self.facts(agent)?,
            None => self.meanwhile(|| HostFacts::here(&LabEnvironment::find()).made_safe("this machine")),
        };
        for agent in self.clients.clone() {
            let facts = self.facts(agent)?;
            self.hosts.clients.push(facts);
        }
        let address = self.machines.address;
        let count = self.clients.len() + 1;
        let to = match self.server {
            Some(agent) => match self.ask(agent, &ToHost::Listen { address, clients: count })? {
                FromHost::Listening(to) if to.ip() == address => to,
                answer => return Err(self.unexpected(agent, answer)),
            },
            None => link::listen(address, count)?,
        };
        let mut loopback = match self.server {
            Some(agent) => self.measure_link(agent, to, transfer)?,
            None => self.meanwhile(|| link::measure(to, transfer))?,
        };
        // Packets to the own address leave by loopback; clients come by the interface that has the address.
        loopback.interface = self.interface(address)?;
        self.hosts.server.link = Some(loopback);
        for (place, agent) in self.clients.clone().into_iter().enumerate() {
            self.hosts.clients[place].link = Some(self.measure_link(agent, to, transfer)?);
        }
        let is_shared = |client: &&HostFacts| client.is_same_machine(&self.hosts.server);
        let shared = self.hosts.clients.iter().filter(is_shared).count();
        self.load_on_server = shared as f64 / self.clients.len().max(1) as f64;
        Ok(())
    }

    fn facts(&mut self, agent: usize) -> Result<HostFacts, String> {
        match self.ask(agent, &ToHost::Describe)? {
            FromHost::Host(facts) => Ok(facts.made_safe(self.fleet.label(agent))),
            answer => Err(self.unexpected(agent, answer)),
        }
    }

    fn measure_link(&mut self, agent: usize, to: SocketAddr, time: Duration) -> Result<LinkFacts, String> {
        let milliseconds = time.as_millis() as u64;
        match self.ask(agent, &ToHost::Link { to, milliseconds })? {
            FromHost::Link(facts) => Ok(facts.made_safe()),
            answer => Err(self.unexpected(agent, answer)),
        }
    }

    fn interface(&mut self, address: Ipv4Addr) -> Result<InterfaceFacts, String> {
        let Some(agent) = self.server else { return Ok(link::interface(address)) };
        match self.ask(agent, &ToHost::Interface(address))? {
            FromHost::Interface(interface) => {
                Ok(LinkFacts { interface, ..LinkFacts::default() }.made_safe().interface)
            }
            answer => Err(self.unexpected(agent, answer)),
        }
    }

    /// Examines all machines. No trial follows.
    pub fn examine(&mut self) -> Result<Vec<HostReport<'_>>, String> {
        let mut all = Vec::new();
        for (agent, part) in self.parts() {
            let diagnoses = match self.ask(agent, &ToHost::Examine(part))? {
                FromHost::Diagnoses(mut found) => {
                    found.truncate(MOST_CALLS);
                    found.into_iter().map(|one| Diagnosis {
                        gravity: one.gravity,
                        found: safe(&one.found),
                        mend: safe(&one.mend),
                    })
                }
                answer => return Err(self.unexpected(agent, answer)),
            };
            all.push((self.fleet.clock(agent), diagnoses.collect()));
        }
        let report = |(host, (clock, mut diagnoses)): (_, (_, Vec<Diagnosis>))| {
            diagnoses.extend(doctor::examine_link(&self.hosts, host, Some(clock)));
            HostReport { host, diagnoses }
        };
        let hosts = self.hosts.list().into_iter().skip(usize::from(self.server.is_none()));
        Ok(hosts.zip(all).map(report).collect())
    }

    /// The agents with their parts, the server first.
    fn parts(&self) -> Vec<(usize, MachinePart)> {
        let server = self.server.map(|agent| (agent, MachinePart::Server));
        server.into_iter().chain(self.clients.iter().map(|agent| (*agent, MachinePart::Client))).collect()
    }

    /// Prepares for trials: the subjects run on these processors of the server's machine.
    pub fn prepare(&mut self, processors: &[usize]) -> Result<(), String> {
        for agent in self.clients.clone() {
            self.fleet.say(agent, &ToHost::Leave)?;
        }
        self.end_of(&self.clients.clone());
        let Some(agent) = self.server else { return Ok(()) };
        let processors = processors.to_vec();
        match self.ask(agent, &ToHost::Prepare { address: self.machines.address, processors })? {
            FromHost::Prepared => Ok(()),
            answer => Err(self.unexpected(agent, answer)),
        }
    }

    /// Runs a trial of a cell.
    pub(super) fn trial(
        &mut self,
        bench: &Workbench,
        order: TrialOrder,
        trial: &mut Trial,
    ) -> Result<(), String> {
        let result = self.attempt(bench, order, trial);
        if result.is_err() {
            self.end_trial();
        }
        result
    }

    /// Ends the parts of a trial that failed.
    fn end_trial(&mut self) {
        if let Some(agent) = self.server {
            // A lost agent needs no message.
            let _ = self.fleet.say(agent, &ToHost::Stop);
        }
        let all = self.clients.iter().chain(&self.server);
        if let Some(lost) = all.copied().find(|agent| self.fleet.is_lost(*agent)) {
            let label = self.fleet.label(lost);
            self.lost.get_or_insert_with(|| format!("the agent on {label} was lost"));
            return;
        }
        if std::mem::take(&mut self.is_loading) {
            self.clients.iter().for_each(|agent| self.fleet.end_task(*agent));
            self.end_of(&self.clients.clone());
        }
    }

    fn attempt(&mut self, bench: &Workbench, order: TrialOrder, trial: &mut Trial) -> Result<(), String> {
        let load = order.cell.load.clone();
        if order.cell.subject.is_in_process() {
            let Some(agent) = self.server else { return Err("it runs in process, without a client".into()) };
            let (values, flags) = match self.ask(agent, &ToHost::Measure(Box::new(order)))? {
                FromHost::Measured(values, flags) => (values, flags),
                answer => return Err(self.unexpected(agent, answer)),
            };
            trial.values = values.into_iter().map(|(measure, value)| (measure, number(value))).collect();
            trial.flags = texts(flags);
            return Ok(());
        }
        let (mut subject, checked) = self.start_subject(bench, &order, trial)?;
        let words = bench.words_of_load(&order, &checked)?;
        trial.client.clone_from(&words);
        let plan = (bench.own.load_plan)(&words)?;
        self.is_loading = true;
        let ready = LoadFleet::prepare(&plan, &mut self.fleet, &self.clients, ShareBy::Equal);
        let mut ready = ready.map_err(|error| error.to_string())?;
        match &mut subject {
            FarSubject::Here(host) => host.begin(),
            FarSubject::There(agent) => match ask(ready.fleet(), *agent, &ToHost::Begin) {
                Ok(FromHost::Begun) => {}
                Ok(answer) => {
                    drop(ready);
                    return Err(self.unexpected(*agent, answer));
                }
                Err(why) => {
                    drop(ready);
                    return Err(self.lose(why));
                }
            },
        }
        let report = ready.run(false).map_err(|error| error.to_string())?;
        self.is_loading = false;
        if report.interrupted() {
            return Err("interrupted".to_owned());
        }
        let agents = || report.runs.iter().flat_map(|run| &run.agents);
        if let Some((agent, why)) = agents().find_map(|agent| Some((agent, agent.lost.as_ref()?))) {
            return Err(format!("the agent on {} {why}", agent.name));
        }
        let loaded = report.runs.into_iter().reduce(client::sum).ok_or("the clients made no run")?;
        let used = self.end_subject(subject, self.load_on_server * processor_time(&loaded))?;
        conclude(&load, &loaded, used, trial)
    }

    fn start_subject<'a>(
        &mut self,
        bench: &'a Workbench,
        order: &TrialOrder,
        trial: &mut Trial,
    ) -> Result<(FarSubject<'a>, CheckedSubject), String> {
        let Some(agent) = self.server else {
            let mut subject = self.meanwhile(|| SubjectHost::start(bench, order.clone()))?;
            trial.server = subject.command().to_vec();
            let checked = self.meanwhile(|| subject.check())?;
            return Ok((FarSubject::Here(Box::new(subject)), checked));
        };
        let checked = match self.ask(agent, &ToHost::Start(Box::new(order.clone())))? {
            FromHost::Started(command, checked) => {
                trial.server = command.iter().take(MOST_WORDS).map(|word| safe(word)).collect();
                checked.map_err(|why| safe(&why))?
            }
            answer => return Err(self.unexpected(agent, answer)),
        };
        // The clients make requests at no other address, also if the agent names another.
        match checked.address.ip() == self.machines.address {
            true => Ok((FarSubject::There(agent), self.expected(*checked, order)?)),
            false => {
                Err(format!("the agent on {} named an address of another machine", self.fleet.label(agent)))
            }
        }
    }

    /// Refuses a target with texts that no trial has.
    fn expected(&self, checked: CheckedSubject, order: &TrialOrder) -> Result<CheckedSubject, String> {
        let is_path = |path: &str| {
            path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()) && path.len() < 100
        };
        let is_page = |urls: &str| {
            let begin = format!("http://{}/", checked.address);
            let mut lines = urls.lines();
            urls.len() < 1 << 20
                && lines
                    .all(|line| line.strip_prefix(&begin).is_some_and(|rest| is_path(&format!("/{rest}"))))
        };
        let is_file = checked.file.as_ref().is_none_or(|file| file.bytes == order.cell.load.file_bytes());
        let is_status = [200, 404].contains(&checked.status);
        match is_path(&checked.path) && is_file && is_status && checked.urls.as_deref().is_none_or(is_page) {
            true => Ok(checked),
            false => Err("the agent of the server named an impossible target".to_owned()),
        }
    }

    fn end_subject(&mut self, subject: FarSubject<'_>, load: f64) -> Result<SubjectUse, String> {
        let agent = match subject {
            FarSubject::Here(host) => return self.meanwhile(|| host.end(load)),
            FarSubject::There(agent) => agent,
        };
        match self.ask(agent, &ToHost::End(load))? {
            FromHost::Ended(used) => Ok(used_safely(*used)),
            answer => Err(self.unexpected(agent, answer)),
        }
    }

    /// Works in another thread, and exchanges messages, without which agents end.
    pub fn meanwhile<T: Send>(&mut self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let work = scope.spawn(work);
            while !work.is_finished() {
                self.fleet.exchange(TICK);
            }
            work.join().unwrap_or_else(|cause| panic::resume_unwind(cause))
        })
    }

    /// Asks the task of an agent. Without an answer, the run cannot go on.
    fn ask(&mut self, agent: usize, message: &ToHost) -> Result<FromHost, String> {
        ask(&mut self.fleet, agent, message).map_err(|why| self.lose(why))
    }

    /// Notes the reason why no trial can follow.
    fn lose(&mut self, why: String) -> String {
        if !interrupted() {
            self.lost.get_or_insert_with(|| why.clone());
        }
        why
    }

    /// The reason why an order was not carried out.
    fn unexpected(&mut self, agent: usize, answer: FromHost) -> String {
        match answer {
            FromHost::Failed(why) => safe(&why),
            _ => {
                let label = self.fleet.label(agent).to_owned();
                self.lose(format!("the agent on {label} sent a message out of order"))
            }
        }
    }

    /// Waits for the ends of tasks that were asked to end.
    fn end_of(&mut self, agents: &[usize]) {
        let until = Instant::now() + END;
        for agent in agents {
            while Instant::now() < until && !self.fleet.is_lost(*agent) {
                match self.fleet.take(*agent) {
                    Some(FleetEvent::Ended(_)) => break,
                    Some(_) => {}
                    None => self.fleet.exchange(TICK),
                }
            }
        }
    }
}

impl Drop for FarMachines {
    fn drop(&mut self) {
        if let Some(agent) = self.server.filter(|agent| !self.fleet.is_lost(*agent)) {
            // The task removes its files. A killed task would not.
            if self.fleet.say(agent, &ToHost::Leave).is_ok() {
                self.end_of(&[agent]);
            }
        }
    }
}

/// A subject on this machine or on that of an agent.
enum FarSubject<'a> {
    Here(Box<SubjectHost<'a>>),
    There(usize),
}

/// The places of agents: the server first. A client of the same name is another agent of that place.
fn places(machines: &Machines) -> Result<Vec<AgentPlace>, String> {
    let mut places = Vec::new();
    if let Some(server) = &machines.server {
        let place: AgentPlace = server.parse()?;
        if place.count != 1 {
            return Err(format!("{server}: there is one server; remove the number"));
        }
        places.push(place);
    }
    for client in &machines.clients {
        let place: AgentPlace = client.parse()?;
        match places.first_mut() {
            Some(server) if machines.server.as_ref() == Some(&place.name) && server.count == 1 => {
                server.count += place.count;
            }
            _ => places.push(place),
        }
    }
    Ok(places)
}

fn ask(fleet: &mut Fleet, agent: usize, message: &ToHost) -> Result<FromHost, String> {
    fleet.say(agent, message)?;
    let time = match message {
        ToHost::Measure(order) => Duration::from_millis(order.milliseconds),
        _ => Duration::ZERO,
    };
    let until = Instant::now() + ANSWER + time;
    let mut said = String::new();
    let why = loop {
        match fleet.take(agent) {
            Some(FleetEvent::Said(text)) => match serde_json::from_str(&text) {
                Ok(answer) => return Ok(answer),
                Err(error) => break format!("sent an unknown message: {}", safe(&error.to_string())),
            },
            Some(FleetEvent::Failed(why)) => said = why,
            Some(FleetEvent::Ended(_)) if !said.is_empty() => break format!("failed: {said}"),
            Some(FleetEvent::Ended(how)) => break format!("lost its task, which {how}"),
            Some(FleetEvent::Lost(why)) => break why,
            Some(FleetEvent::Ready) => {}
            None if interrupted() => return Err("interrupted".to_owned()),
            None if fleet.is_lost(agent) => break "is lost".to_owned(),
            None if Instant::now() > until => {
                break format!("has not answered for {} s", (ANSWER + time).as_secs());
            }
            None => fleet.exchange(TICK),
        }
    };
    Err(format!("the agent on {} {why}", fleet.label(agent)))
}

/// The seconds of processor time that a load used.
fn processor_time(loaded: &RunSummary) -> f64 {
    let answers = loaded.answers + loaded.warm_up.answers;
    loaded.generator.per_answer_us.unwrap_or_default() * answers as f64 / 1e6
}

/// A number of another machine, within reason.
fn number(value: f64) -> f64 {
    if value.is_finite() { value.clamp(0.0, LARGEST) } else { 0.0 }
}

/// Texts of another machine, made safe and few.
fn texts(all: Vec<String>) -> Vec<String> {
    all.iter().take(MOST_FLAGS).map(|text| safe(text)).collect()
}

/// Measurements of another machine, within reason.
fn used_safely(used: SubjectUse) -> SubjectUse {
    let count = |count: u64| count.min(LARGEST as u64);
    let of = used.resources;
    let counted = |(name, calls): (String, u64)| (safe(&name), count(calls));
    let events = used.events.into_iter().map(|(event, events)| (event, count(events)));
    SubjectUse {
        resources: Resources {
            cpu: number(of.cpu),
            user: number(of.user),
            system: number(of.system),
            switches: count(of.switches),
            faults: count(of.faults),
            memory: count(of.memory),
        },
        flags: texts(used.flags),
        events: events.collect::<BTreeMap<Measure, u64>>(),
        pss: used.pss.map(count),
        ended: used.ended.map(|why| safe(&why)),
        calls: used.calls.map(|calls| calls.into_iter().take(MOST_CALLS).map(counted).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machines(server: Option<&str>, clients: &[&str]) -> Machines {
        Machines {
            server: server.map(str::to_owned),
            address: Ipv4Addr::LOCALHOST,
            clients: clients.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn the_server_is_the_first_agent() {
        let of = |server, clients: &[&str]| {
            places(&machines(server, clients))
                .map(|all| all.into_iter().map(|place| (place.name, place.count)).collect::<Vec<_>>())
        };
        let pair = |name: &str, count| (name.to_owned(), count);
        assert_eq!(of(Some("a"), &["b", "c*2"]), Ok(vec![pair("a", 1), pair("b", 1), pair("c", 2)]));
        assert_eq!(of(Some("a"), &["b", "a*2"]), Ok(vec![pair("a", 3), pair("b", 1)]));
        assert_eq!(of(None, &["b"]), Ok(vec![pair("b", 1)]));
        assert!(of(Some("a*2"), &["b"]).is_err() && of(Some("-a"), &["b"]).is_err());
    }

    #[test]
    fn impossible_measurements_are_bounded() {
        let wrong = SubjectUse {
            resources: Resources { cpu: -1.0, user: f64::NAN, memory: u64::MAX, ..Resources::default() },
            flags: vec!["\x1b[2J".to_owned(); 1000],
            calls: Some(BTreeMap::from([("read\n".to_owned(), u64::MAX)])),
            ..SubjectUse::default()
        };
        let found = used_safely(wrong);
        assert_eq!((found.resources.cpu, found.resources.user), (0.0, 0.0));
        assert_eq!((found.resources.memory, found.flags.len()), (1 << 53, MOST_FLAGS));
        assert_eq!(found.calls, Some(BTreeMap::from([("read".to_owned(), 1 << 53)])));
    }
}
