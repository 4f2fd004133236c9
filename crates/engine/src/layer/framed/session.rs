//! The server's state of a connection behind the hello exchange.

use std::sync::Arc;

use tenfold_http::TlsFacts;

use super::record::{Alert, RecordKey};

/// The most records without plaintext that a peer may send in a row. Each one may begin a new wait.
pub(super) const EMPTY_RECORDS: u8 = 32;

/// Keys of both directions, and the facts that services see. An idle connection is these and nothing else.
#[derive(Debug)]
pub struct FramedSession {
    pub(super) receiving: RecordKey,
    pub(super) sending: RecordKey,
    pub(super) facts: Arc<TlsFacts>,
    /// Consecutive records without plaintext.
    empty: u8,
}

impl FramedSession {
    /// Both sides have said hello with these numbers.
    pub(super) fn new(client: u64, server: u64) -> FramedSession {
        let (receiving, sending) = (RecordKey::of_client(client), RecordKey::of_server(client, server));
        let facts = TlsFacts {
            version: "framed",
            cipher: "checksum",
            server_name: None,
            alpn: None,
            resumed: false,
            certificate_names: None,
        };
        FramedSession { receiving, sending, facts: Arc::new(facts), empty: 0 }
    }

    /// Counts a record with so many bytes of plaintext.
    pub(super) fn count(&mut self, plaintext: usize) -> Result<(), Alert> {
        self.empty = if plaintext > 0 { 0 } else { self.empty + 1 };
        if self.empty > EMPTY_RECORDS { Err(Alert::TooManyEmpty) } else { Ok(()) }
    }
}
