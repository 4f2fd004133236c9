//! The states of parked connections, from which a connection goes on.

use std::sync::{Mutex, PoisonError};

use tenfold_wire::frame::{ErrorCode, write};

use super::connection::serve;
use super::rest::Rest;
use crate::io::Io;
use crate::limits::Limits;
use crate::out::Out;
use crate::serve::session::{Next, Session};
use crate::service::{GoAwayClass, Http2Counts, Service};

/// The states of the parked HTTP/2 connections of a worker, by the key that a [`Session`] keeps.
#[derive(Debug, Default)]
pub struct ParkedHttp2(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    entries: Vec<Entry>,
    /// The first free entry.
    free: Option<u32>,
}

#[derive(Debug)]
enum Entry {
    Parked(Rest),
    /// The next free entry.
    Free(Option<u32>),
}

/// Whether a connection has HTTP/2: the handshake of the layer below chose it (RFC 9113 §3.2), or the connection was
/// parked.
pub(crate) fn chosen<I: Io>(io: &I, session: &Session) -> bool {
    session.http2_key().is_some()
        || io.connection().tls.as_ref().is_some_and(|facts| facts.alpn == Some("h2"))
}

/// Serves an HTTP/2 connection until no stream is open and no received bytes are left. Returns the driver's next step.
pub(crate) async fn serve_http2<I: Io>(
    io: &mut I,
    service: &dyn Service,
    limits: &Limits,
    session: &mut Session,
    parked: &ParkedHttp2,
) -> Next {
    // The key is invalid while the connection is served.
    let rest = std::mem::take(session).http2_key().and_then(|key| parked.take(key));
    let (next, rest) = serve(io, service, limits, rest).await;
    if let Some(rest) = rest {
        let answered = rest.requests > 0;
        *session = Session::http2(parked.put(rest), answered);
    }
    next
}

impl ParkedHttp2 {
    /// Stages the GOAWAY of an idle connection that its engine closes (RFC 9113 §6.8). Returns its frames.
    pub fn farewell(&self, session: Session, out: &mut Out) -> Http2Counts {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut counts = Http2Counts::default();
        if let Some(key) = session.http2_key()
            && let Some(Entry::Parked(rest)) = table.entries.get(key as usize)
        {
            let last_stream = rest.last_goaway();
            out.stage_by(|bytes| write::goaway(last_stream, ErrorCode::NO_ERROR, b"", bytes));
            counts.goaway = Some(GoAwayClass::NoError);
        }
        counts
    }

    /// Drops the state of a connection that has ended.
    pub fn release(&self, session: Session) {
        if let Some(key) = session.http2_key() {
            self.take(key);
        }
    }

    /// Keeps the state of a connection. Returns its key, which is less than 2^30.
    pub(crate) fn put(&self, rest: Rest) -> u32 {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(key) = table.free else {
            table.entries.push(Entry::Parked(rest));
            return u32::try_from(table.entries.len() - 1).expect("there are fewer connections");
        };
        let entry = std::mem::replace(&mut table.entries[key as usize], Entry::Parked(rest));
        table.free = match entry {
            Entry::Free(next) => next,
            Entry::Parked(_) => None,
        };
        key
    }

    /// Removes the state of a connection, which wakes or ends.
    pub(crate) fn take(&self, key: u32) -> Option<Rest> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = table.free;
        let entry = table.entries.get_mut(key as usize)?;
        match std::mem::replace(entry, Entry::Free(next)) {
            Entry::Parked(rest) => {
                table.free = Some(key);
                Some(rest)
            }
            free @ Entry::Free(_) => {
                *entry = free;
                None
            }
        }
    }
}
