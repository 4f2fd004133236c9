//! A slot of a worker: a role, and one connection at a time.

use crate::connection::{ClientConnection, ConnectionState};
use crate::measure::record::ConnectionStats;
use crate::plan::pacer::{ArrivalRate, Arrivals, Pacer, ScheduleShare};
use crate::worker::share::{Role, Share};

/// A slot for one connection at a time.
#[derive(Debug, Default)]
pub(crate) struct ConnectionSlot {
    pub(crate) connection: ClientConnection,
    pub(crate) role: Role,
    /// The number of its server.
    pub(crate) remote: u32,
    /// The number of the current connection. Events of other epochs are ignored.
    pub(crate) epoch: u32,
    /// Its own arrivals, instead of the worker's.
    pub(crate) own: Option<Box<Pacer>>,
    /// It is in the queue of slots with room for a request.
    pub(crate) queued: bool,
    /// It waits to connect.
    pub(crate) opening: bool,
    /// A slow connection that waits for its timer.
    pub(crate) paused: bool,
    /// The server ended its output during a pause.
    pub(crate) end_seen: bool,
    /// Consecutive failed connects.
    pub(crate) failures: u32,
    /// It was connected at least once.
    pub(crate) was_connected: bool,
    /// It had at least one request.
    pub(crate) had_request: bool,
    /// The time since which the slot has room for a request.
    pub(crate) free_since: u64,
    /// The time when a held connection closes; 0 without one.
    pub(crate) until: u64,
    /// The number of the next source address.
    pub(crate) next_source: u64,
}

impl ConnectionSlot {
    /// Whether another request may begin.
    #[inline]
    pub(crate) fn has_room(&self, share: &Share<'_>) -> bool {
        self.connection.in_flight() < self.connection.most_at_once(share.plan)
            && self.connection.begun < share.per_connection
            && match self.role {
                // Not even after records of TLS, such as tickets, which arrive without a request.
                Role::Idle => false,
                Role::Held => self.own.is_some(),
                Role::Active | Role::SlowReader | Role::SlowWriter => true,
            }
    }

    /// Whether its connection is finished.
    #[inline]
    pub(crate) fn is_spent(&self, share: &Share<'_>, now: u64) -> bool {
        self.connection.in_flight() == 0
            && match self.role {
                Role::Held => now >= self.until,
                _ => self.connection.begun >= share.per_connection,
            }
    }

    /// The most bytes that it may send now.
    #[inline]
    pub(crate) fn most_written(&self, share: &Share<'_>) -> usize {
        if self.role == Role::SlowWriter { share.slow_step } else { usize::MAX }
    }

    /// The most bytes that it may receive now.
    #[inline]
    pub(crate) fn most_read(&self, share: &Share<'_>) -> usize {
        if self.role == Role::SlowReader { share.slow_step } else { usize::MAX }
    }

    /// Starts the lifetime of a held connection, with its requests spread evenly.
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

    /// Ends the lifetime of a held connection.
    pub(crate) fn retire(&mut self) {
        self.own = None;
        self.until = 0;
        (self.connection.answers, self.connection.responses) = (0, 0);
        self.connection.begun = 0;
        (self.was_connected, self.had_request) = (false, false);
    }

    /// Adds its results to the counts.
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

/// The slots of all connections, spread over the servers in turn.
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
    fn an_idle_connection_costs_a_few_hundred_bytes() {
        // A million connections must fit in memory, in addition to the kernel's part.
        assert!(size_of::<ConnectionSlot>() <= 320, "{}", size_of::<ConnectionSlot>());
    }
}
