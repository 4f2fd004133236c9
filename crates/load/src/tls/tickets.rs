//! The sessions of a server that a worker can resume.
//!
//! rustls' own store keeps eight tickets for a server. A worker opens more connections together than that, and each
//! ticket of TLS 1.3 serves one connection (RFC 8446 §C.4), so most of them would perform a full handshake.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// The sessions of one server. The name of the server is not compared, because each server has its own store.
#[derive(Debug)]
pub(super) struct TicketStore {
    most: usize,
    sessions: Mutex<StoredTickets>,
}

#[derive(Debug, Default)]
struct StoredTickets {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: VecDeque<Tls13ClientSessionValue>,
}

impl TicketStore {
    /// An empty store of at most `most` tickets.
    pub(super) fn new(most: usize) -> TicketStore {
        TicketStore { most, sessions: Mutex::default() }
    }

    fn sessions(&self) -> MutexGuard<'_, StoredTickets> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for TicketStore {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.sessions().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.sessions().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.sessions().tls12 = Some(value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.sessions().tls12.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.sessions().tls12 = None;
    }

    /// Adds a ticket, in the place of the oldest if the store is full.
    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut sessions = self.sessions();
        if sessions.tls13.len() >= self.most {
            sessions.tls13.pop_front();
        }
        sessions.tls13.push_back(value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.sessions().tls13.pop_back()
    }
}
