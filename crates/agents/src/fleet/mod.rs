//! The side of the controller: agents on other machines.

pub mod command;
mod copy;
pub mod event;
mod link;
mod refusal;

use std::collections::VecDeque;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::poll::PollList;

use self::command::{AgentPlace, MOST_AGENTS, StartCommand};
use self::copy::Copy;
use self::event::FleetEvent;
pub use self::link::ClockEstimate;
use self::link::{FIRST_PINGS, Link, LinkState};
use self::refusal::refusal;
use crate::build;
use crate::message::Order;

pub use crate::text::safe;

/// The longest start of an agent.
const START: Duration = Duration::from_secs(30);
/// The longest end of all agents. A program that still runs is killed; its agent ends with its input.
const END: Duration = Duration::from_secs(2);
/// The most bytes of the messages of all agents.
const MOST_HELD: usize = 1 << 30;
/// The most events of an agent that wait.
const MOST_EVENTS: usize = 10_000;
/// The longest wait for readiness, so that pings are sent in time.
const TICK: Duration = Duration::from_millis(100);
/// The time without an exchange that does not count as silence of agents: this process was stopped or busy.
const PAUSE: Duration = Duration::from_secs(1);
/// The lines of standard error that are quoted for a lost agent.
const LINES: usize = 3;

/// The agents of a run, and the way to start them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetPlan {
    /// The places of agents.
    pub places: Vec<AgentPlace>,
    /// The command that starts an agent.
    pub command: StartCommand,
    /// Copy this program first, by OpenSSH.
    pub copy: bool,
}

impl FleetPlan {
    /// Checks the plan as a whole.
    pub fn check(&self) -> Result<(), String> {
        let count: usize = self.places.iter().map(|place| place.count).sum();
        if count > MOST_AGENTS {
            return Err(format!("{count} agents are more than {MOST_AGENTS}"));
        }
        let mut names: Vec<&str> = self.places.iter().map(|place| place.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("{:?} is named twice; use {}*2 for two agents", pair[0], pair[0]));
        }
        if self.copy && !self.command.is_default() {
            return Err("--on-copy copies by OpenSSH; remove --on-command".to_owned());
        }
        Ok(())
    }
}

/// Agents that run until this value is dropped.
#[derive(Debug)]
pub struct Fleet {
    links: Vec<Link>,
    /// The events of each agent that wait for [`Fleet::take`].
    inboxes: Vec<VecDeque<FleetEvent>>,
    /// The build id of this program.
    ours: String,
    /// The end of the last exchange.
    exchanged: Instant,
    /// The copies of this program, which are removed after the agents have ended.
    _copies: Vec<Copy>,
}

impl Fleet {
    /// Starts all agents, and waits until each is ready and its clock is known.
    ///
    /// # Errors
    /// A line for each agent that did not start; then all agents are ended. No line if a signal asked this process to stop.
    pub fn start(plan: &FleetPlan) -> Result<Fleet, Vec<String>> {
        let ours = build::id().map_err(|error| vec![format!("cannot read this program: {error}")])?;
        let agents: Vec<(String, &str)> = plan
            .places
            .iter()
            .flat_map(|place| place.labels().map(|label| (label, place.name.as_str())))
            .collect();
        let mut refused = Vec::new();
        let mut links = Vec::new();
        let mut copies = Vec::new();
        let mut commands: Vec<Result<Vec<String>, String>> = Vec::new();
        if plan.copy {
            let names: Vec<&str> = agents.iter().map(|(_, name)| *name).collect();
            for result in copy::copy_all(&names) {
                commands.push(result.map(|copy| {
                    let words = copy.words.clone();
                    copies.push(copy);
                    words
                }));
            }
        } else {
            commands.extend(agents.iter().map(|(_, name)| Ok(plan.command.words(name))));
        }
        for (result, (label, name)) in commands.into_iter().zip(&agents) {
            let started = result.and_then(|words| {
                Link::start(label.clone(), (*name).to_owned(), &words).map_err(|error| {
                    format!("the agent on {label}: cannot start {}: {error}", safe(&words[0]))
                })
            });
            match started {
                Ok(link) => links.push(link),
                Err(why) => refused.push(why),
            }
        }
        let inboxes = vec![VecDeque::new(); links.len()];
        let mut fleet = Fleet { links, inboxes, ours, exchanged: Instant::now(), _copies: copies };
        fleet.until_ready(&plan.command, &mut refused);
        if lifecycle::phase() != Phase::Serving {
            return Err(Vec::new());
        }
        if refused.is_empty() { Ok(fleet) } else { Err(refused) }
    }

    fn until_ready(&mut self, command: &StartCommand, refused: &mut Vec<String>) {
        let until = Instant::now() + START;
        let waits = |link: &Link| link.state != LinkState::Gone && link.pongs < FIRST_PINGS;
        while self.links.iter().any(waits) && lifecycle::phase() == Phase::Serving {
            self.exchange(TICK);
            for (link, inbox) in self.links.iter().zip(&mut self.inboxes) {
                for event in inbox.drain(..) {
                    let FleetEvent::Lost(why) = event else { continue };
                    refused.push(refusal(&link.label, &link.name, &why, &link.written.lines(LINES), command));
                }
            }
            if Instant::now() > until {
                for link in self.links.iter().filter(|link| waits(link)) {
                    let why = format!("did not start within {} s{}", START.as_secs(), link.quoted());
                    refused.push(refusal(&link.label, &link.name, &why, &link.written.lines(LINES), command));
                }
                return;
            }
        }
    }

    /// Returns the name of an agent, with a number if there are several of that name.
    pub fn label(&self, agent: usize) -> &str {
        &self.links[agent].label
    }

    /// Returns the number of agents.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether there are no agents.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Whether an agent is lost.
    pub fn is_lost(&self, agent: usize) -> bool {
        self.links[agent].state == LinkState::Gone
    }

    /// Returns the clock of an agent.
    pub fn clock(&self, agent: usize) -> ClockEstimate {
        self.links[agent].clock().unwrap_or(ClockEstimate { offset: 0, round_trip: u64::MAX })
    }

    /// Returns the last lines that an agent, or the program that started it, wrote to standard error.
    pub fn last_lines(&self, agent: usize) -> Vec<String> {
        self.links[agent].written.lines(LINES)
    }

    /// Begins a task, which is killed after `limit`. The agent must not have another.
    pub fn begin(&mut self, agent: usize, task: &str, limit: Duration) -> Result<(), String> {
        self.order(agent, &Order::Begin { task: task.into(), seconds: limit.as_secs() + 1 })
    }

    /// Sends a message to the task of an agent. A lost agent is ignored.
    pub fn say(&mut self, agent: usize, message: &impl Serialize) -> Result<(), String> {
        let raw = serde_json::value::to_raw_value(message).map_err(|error| error.to_string())?;
        self.order(agent, &Order::Say(&raw))
    }

    /// Sends SIGINT to the task of an agent.
    pub fn interrupt(&mut self, agent: usize) {
        // The message is short.
        let _ = self.order(agent, &Order::Interrupt);
    }

    /// Kills the task of an agent.
    pub fn end_task(&mut self, agent: usize) {
        let _ = self.order(agent, &Order::End);
    }

    fn order(&mut self, agent: usize, order: &Order<'_>) -> Result<(), String> {
        let link = &mut self.links[agent];
        link.order(order).map_err(|error| format!("{}: {error}", link.label))
    }

    /// Gives up an agent for this reason.
    pub fn give_up(&mut self, agent: usize, why: &str) {
        let link = &mut self.links[agent];
        if link.state != LinkState::Gone {
            link.state = LinkState::Gone;
            link.close();
            self.inboxes[agent].push_back(FleetEvent::Lost(why.to_owned()));
        }
    }

    /// Returns the next event of an agent, in the order in which they came.
    pub fn take(&mut self, agent: usize) -> Option<FleetEvent> {
        self.inboxes[agent].pop_front()
    }

    /// Exchanges messages for at most `limit` and 100 ms. A signal ends the wait. An agent whose controller does not call
    /// this for some seconds ends.
    pub fn exchange(&mut self, limit: Duration) {
        let pause = self.exchanged.elapsed();
        if pause > PAUSE {
            self.links.iter_mut().for_each(|link| link.forgive(pause));
        }
        let mut list = PollList::new();
        (0..).zip(&self.links).for_each(|(word, link)| link.watch(&mut list, word));
        // A failed wait is as good as a short wait: the exchange below finds the reason.
        let _ = list.wait(Some(limit.min(TICK).as_millis() as u32), |_| {});
        for agent in 0..self.links.len() {
            let inbox = &mut self.inboxes[agent];
            if let Err(why) = self.links[agent].exchange(&self.ours, inbox) {
                self.give_up(agent, &why);
            } else if inbox.len() > MOST_EVENTS {
                self.give_up(agent, "sent messages without end");
            }
        }
        self.bound_memory();
        self.exchanged = Instant::now();
    }

    /// Gives up the agent with the most bytes if the messages of all agents exceed [`MOST_HELD`].
    fn bound_memory(&mut self) {
        let text = |event: &FleetEvent| if let FleetEvent::Said(text) = event { text.len() } else { 0 };
        let held =
            |agent: usize| self.links[agent].held() + self.inboxes[agent].iter().map(text).sum::<usize>();
        let all: Vec<usize> = (0..self.links.len()).map(held).collect();
        if all.iter().sum::<usize>() <= MOST_HELD {
            return;
        }
        if let Some((agent, _)) = all.iter().enumerate().max_by_key(|(_, held)| **held) {
            self.inboxes[agent].clear();
            self.give_up(agent, "sent more than there is memory for messages");
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.links.iter_mut().for_each(Link::close);
        let until = Instant::now() + END;
        loop {
            let mut run: Vec<&mut Link> =
                self.links.iter_mut().filter_map(|link| (!link.has_ended()).then_some(link)).collect();
            if run.is_empty() {
                return;
            }
            if Instant::now() > until {
                run.iter_mut().for_each(|link| link.kill());
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}
