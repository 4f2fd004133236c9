//! The news of agents.

/// News of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetEvent {
    /// It has started, and is the same program.
    Ready,
    /// Its task sent this message, as JSON. It is as trustworthy as the machine of the agent.
    Said(String),
    /// Its task failed, for this reason.
    Failed(String),
    /// Its task has ended: empty if it succeeded, otherwise the way.
    Ended(String),
    /// It is lost, for this reason. No other event follows.
    Lost(String),
}
