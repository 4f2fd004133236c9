//! The state of a connection without streams, which is kept while the connection is parked.

use tenfold_wire::hpack::{self, Decoder};

use crate::clock::Instant;
use crate::mux::account::Account;
use crate::mux::priority::Priority;

/// The window of a connection and of a stream at its start (§6.9.2).
pub(super) const INITIAL_WINDOW: i64 = 65_535;

/// The longest frame that we accept: the initial SETTINGS_MAX_FRAME_SIZE (§6.5.2).
pub(super) const MOST_FRAME: u32 = 16_384;

/// The state of a connection without streams.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(super) decoder: Decoder,
    pub(super) encoder: hpack::Encoder,
    /// The peer's SETTINGS_INITIAL_WINDOW_SIZE and SETTINGS_MAX_FRAME_SIZE.
    pub(super) peer_window: i64,
    pub(super) peer_frame: u32,
    pub(super) send_window: i64,
    pub(super) receive_window: i64,
    /// Received bytes that no WINDOW_UPDATE has returned.
    pub(super) due: u32,
    /// The last stream of the peer.
    pub(super) last_stream: u32,
    pub(super) requests: u32,
    pub(super) account: Account,
    pub(super) stage: Stage,
    /// Whether weights of RFC 7540 mean priorities.
    pub(super) weights: bool,
    /// The priorities of PRIORITY_UPDATE frames that came before their streams.
    pub(super) early: Vec<(u32, Priority)>,
    /// The highest stream that we reset, and the time until which late frames of closed streams up to it are ignored.
    pub(super) reset: (u32, Instant),
    /// The time of the last request or the end of its response, or of the begin.
    pub(super) last_use: Instant,
}

/// The stage of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The client's preface is not complete.
    Preface,
    /// The first frame must be SETTINGS (§3.4).
    FirstSettings,
    Open,
    /// A GOAWAY with 2^31-1 was sent, and a PING after it. The answer, or this time, fixes the last stream.
    Announced(Instant),
    /// A GOAWAY with this last stream was sent: new streams are ignored.
    Leaving(u32),
}

impl Rest {
    pub(super) fn new(now: Instant) -> Rest {
        Rest {
            decoder: Decoder::new(),
            encoder: hpack::Encoder::new(),
            peer_window: INITIAL_WINDOW,
            peer_frame: MOST_FRAME,
            send_window: INITIAL_WINDOW,
            receive_window: INITIAL_WINDOW,
            due: 0,
            last_stream: 0,
            requests: 0,
            account: Account::new(now),
            stage: Stage::Preface,
            weights: true,
            early: Vec::new(),
            reset: (0, now),
            last_use: now,
        }
    }

    /// Returns the last stream for a GOAWAY. A later GOAWAY has no higher stream (§6.8).
    pub(super) fn last_goaway(&self) -> u32 {
        match self.stage {
            Stage::Leaving(last) => last,
            _ => self.last_stream,
        }
    }
}
