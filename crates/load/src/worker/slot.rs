//! A slot in a worker: it has one connection after the other, and a role.

use crate::connection::{ClientConnection, ConnectionState};
use crate::measure::record::ConnectionStats;
use crate::plan::pacer::{ArrivalRate, Arrivals, Pacer, ScheduleShare};
use crate::worker::share::{Role, Share};

/// A slot for one connection after the other.
#[derive(Debug, Default)]
pub(crate) struct ConnectionSlot {
    pub(crate) connection: ClientConnection,
    pub(crate) role: Role,
    /// Which server it connects to.
    pub(crate) remote: u32,
    /// Which of its connections this is; what epoll says of another is not meant.
    pub(crate) generation: u32,
    /// What lets its requests begin, where that is not the worker's pacer.
    pub(crate) own: Option<Box<Pacer>>,
    /// It stands among those that have room for a request.
    pub(crate) queued: bool,
    /// It waits for its turn to connect.
    pub(crate) opening: bool,
    /// A slow one that rests until its timer.
    pub(crate) paused: bool,
    /// The server ended its output while it rested.
    pub(crate) end_seen: bool,
    /// Connects that failed in a row.
    pub(crate) failures: u32,
    /// It had a connection once.
    pub(crate) was_connected: bool,
    /// It had a request to make once.
    pub(crate) had_request: bool,
    /// Since when it has had room for a request.
    pub(crate) free_since: u64,
    /// When a held connection is closed; 0 where there is none.
    pub(crate) until: u64,
    /// Number of the next source address.
    pub(crate) next_source: u64,
}

impl ConnectionSlot {
    /// Whether one more request may begin.
    #[inline]
    pub(crate) fn has_room(&self, share: &Share<'_>) -> bool {
        self.connection.in_flight() < share.plan.pipeline as usize
            && self.connection.begun < share.per_connection
            && (self.role != Role::Held || self.own.is_some())
    }

    /// Whether its connection has done all that it was for.
    #[inline]
    pub(crate) fn is_spent(&self, share: &Share<'_>, now: u64) -> bool {
        self.connection.in_flight() == 0
            && match self.role {
                Role::Held => now >= self.until,
                _ => self.connection.begun >= share.per_connection,
            }
    }

    /// Bytes that it may send now.
    #[inline]
    pub(crate) fn most_written(&self, share: &Share<'_>) -> usize {
        if self.role == Role::SlowWriter { share.slow_step } else { usize::MAX }
    }

    /// Bytes that it may receive now.
    #[inline]
    pub(crate) fn most_read(&self, share: &Share<'_>) -> usize {
        if self.role == Role::SlowReader { share.slow_step } else { usize::MAX }
    }

    /// Begins the life of a held connection: its requests are spread evenly over it.
    pub(crate) fn hold(&mut self, share: &Share<'_>, due: u64, now: u64) {
        let life = share.hold;
        let rate = ArrivalRate::constant(share.per_connection as f64 * 1e9 / life as f64);
        let whole = ScheduleShare { index: 0, of: 1 };
        let span = (due, u64::MAX, life);
        let own = Pacer::scheduled(rate, Arrivals::Constant, whole, 0, span, share.per_connection);
        self.own = Some(Box::new(own));
        self.until = now + life;
        self.free_since = now;
    }

    /// Ends the life of a held connection.
    pub(crate) fn retire(&mut self) {
        self.own = None;
        self.until = 0;
        (self.connection.answers, self.connection.responses) = (0, 0);
        self.connection.begun = 0;
        (self.was_connected, self.had_request) = (false, false);
    }

    /// Adds what became of it.
    pub(crate) fn add_to(&self, all: &mut ConnectionStats) {
        match self.role {
            Role::Active | Role::Held => {
                all.slots += 1;
                all.shares.push(self.connection.answers);
                if self.had_request && self.connection.responses == 0 {
                    all.never_answered += 1;
                    all.never_connected += u64::from(!self.was_connected);
                }
            }
            Role::Idle => all.idle_held += u64::from(self.connection.state == ConnectionState::Open),
            Role::SlowReader | Role::SlowWriter => {}
        }
    }
}

/// Places for all connections, spread over the servers in turn.
pub(super) fn slots(share: &Share<'_>) -> Vec<ConnectionSlot> {
    let active = if share.plan.hold.is_some() { Role::Held } else { Role::Active };
    let mut slots = Vec::new();
    for role in [Role::Idle, Role::SlowReader, Role::SlowWriter, active] {
        for _ in 0..share.count(role) {
            let number = slots.len() as u64 * u64::from(share.workers) + u64::from(share.index);
            let measured = role == active;
            let slow = matches!(role, Role::SlowReader | Role::SlowWriter);
            slots.push(ConnectionSlot {
                connection: ClientConnection::new(measured),
                role,
                remote: (number % share.remotes.len() as u64) as u32,
                own: slow.then(|| Box::new(Pacer::free(share.begin, u64::MAX, u64::MAX))),
                next_source: number,
                ..ConnectionSlot::default()
            });
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_rests_costs_a_few_hundred_bytes() {
        // A million of them are to fit into a machine, beside what the kernel needs.
        assert!(size_of::<ConnectionSlot>() <= 320, "{}", size_of::<ConnectionSlot>());
    }
}
