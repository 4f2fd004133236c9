//! The legal plans, by the table of models.

use std::fmt;

use super::models::MODELS;
use crate::plan::choice::{Accept, Dispatch, Engine, Method, Sender, TimerKind, Topology, Trigger, Triggers};
use crate::plan::mechanism::Driver;
use crate::plan::{Bounds, Plan};

impl Plan {
    /// A plan for `engine`. `None` is the default; that of the topology depends on `workers`.
    ///
    /// # Errors
    /// The combination is illegal; the message names the legal choices.
    pub fn new(
        engine: Engine,
        topology: Option<Topology>,
        workers: Option<usize>,
        sender: Sender,
        triggers: Option<Triggers>,
        bounds: Bounds,
    ) -> Result<Plan, String> {
        let model = engine.model();
        let legal = join(model.topologies);
        let topology = match topology {
            Some(topology) if model.topologies.contains(&topology) => topology,
            Some(topology) => {
                return Err(format!(
                    "engine {engine} does not run in topology {topology}; it runs in {legal}"
                ));
            }
            None if workers.unwrap_or(1) > 1 && model.topologies.contains(&Topology::ReuseportProcesses) => {
                Topology::ReuseportProcesses
            }
            None => Topology::Single,
        };
        let workers = match (topology, workers) {
            (_, Some(0)) => return Err("workers is 0; at least 1 is needed".into()),
            (Topology::Single, Some(count)) if count > 1 && model.topologies.len() == 1 => {
                return Err(format!("engine {engine} has one worker, not {count}"));
            }
            (Topology::Single, Some(count)) if count > 1 => {
                return Err(format!(
                    "topology single has one worker, not {count}; for more choose one of {legal}"
                ));
            }
            (Topology::Single, _) => 1,
            (_, Some(count)) if count > Plan::MOST_WORKERS => {
                return Err(format!("workers is {count}; the most is {}", Plan::MOST_WORKERS));
            }
            (_, Some(count)) => count,
            (_, None) => std::thread::available_parallelism().map_or(1, usize::from).min(Plan::MOST_WORKERS),
        };
        if !model.senders.contains(&sender) {
            return Err(format!("engine {engine} has no sender {sender}; it has {}", join(model.senders)));
        }
        if triggers.is_some() && !model.triggers {
            let able: Vec<_> = MODELS.iter().filter(|model| model.triggers).map(|model| model.name).collect();
            let able = able.join(" and ");
            return Err(format!("engine {engine} has no choice of triggers; engines {able} have one"));
        }
        let triggers = triggers.unwrap_or_default();
        Ok(Plan {
            engine,
            driver: model.driver,
            topology,
            workers,
            sender,
            triggers,
            dispatch: Dispatch::Inline,
            method: None,
            timer: TimerKind::Wheel,
            accept: Accept::All,
            cork: false,
            confined: false,
            denied: Vec::new(),
            bounds,
        })
    }

    /// The same plan with this dispatch.
    ///
    /// # Errors
    /// The engine has no such dispatch; the message names the engines that have it.
    pub fn with_dispatch(self, dispatch: Dispatch) -> Result<Plan, String> {
        if self.engine.model().dispatches.contains(&dispatch) {
            return Ok(Plan { dispatch, ..self });
        }
        let able = MODELS.iter().filter(|model| model.dispatches.contains(&dispatch));
        let able: Vec<_> = able.map(|model| model.name).collect();
        let why = match self.engine.model().driver {
            Driver::Blocking => "it has no loop",
            Driver::Readiness | Driver::Completion => "the kernel completes its calls before it reports them",
        };
        let (engine, able) = (self.engine, able.join(", "));
        Err(format!("engine {engine} does not run with dispatch {dispatch}: {why}; {able} do"))
    }

    /// The same plan with libevent forced to use `method`; `triggers` are the requested triggers.
    ///
    /// # Errors
    /// The engine is not libevent, or the method has no edge triggering.
    pub fn with_method(self, method: Method, triggers: Option<Triggers>) -> Result<Plan, String> {
        const LEVELS: Triggers = Triggers { listener: Trigger::Level, connections: Trigger::Level };
        if self.engine != Engine::Libevent {
            return Err(format!("libevent-method is for engine libevent, not {}", self.engine));
        }
        match (method, triggers) {
            (Method::Epoll, _) => Ok(Plan { method: Some(method), ..self }),
            (_, None | Some(LEVELS)) => Ok(Plan { method: Some(method), triggers: LEVELS, ..self }),
            (_, Some(triggers)) => Err(format!(
                "trigger {triggers} does not go with libevent-method {method}, which knows only lt+lt"
            )),
        }
    }

    /// Whether a worker is many threads or processes, which come and go with connections.
    pub fn is_many(&self) -> bool {
        matches!(self.engine, Engine::Fork | Engine::Thread | Engine::Pool)
    }

    /// Whether its workers choose how many connections they accept at a time.
    pub fn accepts_in_batches(&self) -> bool {
        self.engine.accepts_in_batches() && self.topology != Topology::Handoff
    }
}

fn join<T: fmt::Display>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}
