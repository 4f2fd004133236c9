//! The end of a connection that the server or the client announces (RFC 9113 §6.8).

use std::time::Duration;

use tenfold_wire::frame::{ErrorCode, MOST_31_BITS, write};

use super::connection::Http2Connection;
use super::rest::Stage;
use super::stream::now;
use crate::io::Io;
use crate::limits::Limits;
use crate::out::Out;
use crate::service::GoAwayClass;

/// The content of the PING after the announcement of the end.
pub(super) const FAREWELL: [u8; 8] = *b"farewell";

/// The longest wait for the answer to this PING.
const FAREWELL_TIME: Duration = Duration::from_secs(1);

impl Http2Connection {
    /// Announces the end of a connection that has had all its requests, and fixes the last stream in time.
    pub(super) fn leave<I: Io>(&mut self, io: &mut I, limits: &Limits) {
        let last = limits.requests_per_connection.is_some_and(|most| self.rest.requests >= most);
        match self.rest.stage {
            Stage::Open if last => self.announce_end(io.split().1),
            Stage::Announced(by) if by <= now() => self.fix_last_stream(io.split().1),
            _ => {}
        }
    }

    /// Announces that the connection ends. The client stops making requests, and its answer to the PING follows all of
    /// them (§6.8).
    pub(super) fn announce_end(&mut self, out: &mut Out) {
        self.rest.stage = Stage::Announced(now() + FAREWELL_TIME);
        out.stage_by(|bytes| {
            write::goaway(MOST_31_BITS, ErrorCode::NO_ERROR, b"", bytes);
            write::ping(FAREWELL, false, bytes);
        });
    }

    /// Sends the GOAWAY after which the client's new streams are ignored (§6.8).
    pub(super) fn fix_last_stream(&mut self, out: &mut Out) {
        let last_stream = self.rest.last_stream;
        out.stage_by(|bytes| write::goaway(last_stream, ErrorCode::NO_ERROR, b"", bytes));
        self.counts.goaway = Some(GoAwayClass::NoError);
        self.rest.stage = Stage::Leaving(last_stream);
    }
}
