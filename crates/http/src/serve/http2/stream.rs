//! An open stream, and the server that answers it.

use crate::clock::{self, Instant};
use crate::limits::Limits;
use crate::message::connection::Connection;
use crate::message::owned::OwnedRequest;
use crate::message::request::Method;
use crate::mux::priority::Priority;
use crate::mux::waiting::{self, WaitingContent};
use crate::out::Out;
use crate::serve::session::Pace;
use crate::service::{DeferredResponse, Service};

/// The server of a stream, and the facts of its connection.
#[derive(Clone, Copy)]
pub(super) struct Server<'a> {
    pub(super) service: &'a dyn Service,
    pub(super) limits: &'a Limits,
    pub(super) connection: &'a Connection,
}

/// A stream from its HEADERS to the last byte of its response.
pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) method: Method,
    /// The priority of the client, and whether the client stated it.
    pub(super) priority: Priority,
    pub(super) has_priority: bool,
    /// The turn in which it sent last.
    pub(super) last_turn: u64,
    /// The bytes that we may send (§6.9.1). A change of the initial size can make it negative.
    pub(super) send_window: i64,
    /// The content of the request.
    pub(super) content: Content,
    pub(super) response: StreamResponse,
    /// The part of the body that is not in the output of the connection.
    pub(super) body: Out,
    /// The shared content of a body that remained after a turn.
    pub(super) waiting: Option<WaitingContent>,
    /// The minimum rate while the body waits for a window. Small increments do not end it.
    pub(super) stalled: Option<Pace>,
    /// Bytes given to the output of the connection: of the body, and of other bodies while this body waited only for the
    /// connection.
    pub(super) progress: u64,
    /// The bytes of the request.
    pub(super) request: usize,
    /// The bytes of content that a deferred response or its body may hold.
    pub(super) kept_content: u64,
}

/// The work of a stream that ended before it was done.
pub(super) struct Abandoned {
    pub(super) deferred: DeferredResponse,
    pub(super) by: Instant,
    /// The bytes of the request, and of its content.
    pub(super) request: usize,
    pub(super) kept_content: u64,
}

/// The content of a request as it arrives.
pub(super) struct Content {
    /// Whether the client can still send content.
    pub(super) open: bool,
    /// The value of `Content-Length`.
    pub(super) declared: Option<u64>,
    pub(super) received: u64,
    /// The bytes that the client may send.
    pub(super) window: i64,
    /// Received bytes that no WINDOW_UPDATE has returned.
    pub(super) due: u32,
}

/// The response of a stream.
pub(super) enum StreamResponse {
    /// The service needs the content first.
    Upload(Box<Upload>),
    /// It waits for another event.
    Later(DeferredResponse, Instant),
    /// Its head is in the output, and `body` follows.
    Sending,
}

/// A request whose content is being received.
pub(super) struct Upload {
    pub(super) request: OwnedRequest,
    pub(super) content: Vec<u8>,
    pub(super) most: u64,
    pub(super) pace: Pace,
}

impl Content {
    /// Records `count` bytes of content. Fails if they exceed the declared length.
    pub(super) fn receive(&mut self, count: usize) -> bool {
        self.received += count as u64;
        self.declared.is_none_or(|declared| self.received <= declared)
    }

    /// Records the end of the content. Fails if it is shorter than declared.
    pub(super) fn end(&mut self) -> bool {
        self.open = false;
        self.declared.is_none_or(|declared| self.received == declared)
    }
}

impl Stream {
    /// Whether a part of the body can be sent if the window of the connection permits it.
    pub(super) fn can_send(&self) -> bool {
        matches!(self.response, StreamResponse::Sending) && self.send_window > 0 && self.body.has_bytes()
    }

    /// Whether the body waits for the window of the stream or of the connection, instead of for its turn.
    pub(super) fn is_stalled(&self, window: i64) -> bool {
        matches!(self.response, StreamResponse::Sending)
            && self.send_window.min(window) <= 0
            && self.body.has_bytes()
    }

    /// Whether it waits for frames of the client. `window` is the window of the connection.
    pub(super) fn waits_for_client(&self, window: i64) -> bool {
        matches!(self.response, StreamResponse::Upload(_)) || self.is_stalled(window)
    }

    /// The bytes of its request, or of its body without files. `shared`: the body with its shared content.
    pub(super) fn held(&self, shared: bool) -> usize {
        match self.response {
            StreamResponse::Sending if shared => self.body.staged_memory() + waiting::bytes_of(&self.body),
            StreamResponse::Sending => self.body.staged_memory(),
            _ => self.request,
        }
    }

    /// The content of the request in memory. A body may hold it, but not more than its own bytes.
    pub(super) fn held_content(&self) -> u64 {
        match &self.response {
            StreamResponse::Upload(upload) => upload.content.len() as u64,
            StreamResponse::Later(..) => self.kept_content,
            StreamResponse::Sending => {
                let shared: usize = self.body.shared().map(|bytes| bytes.len()).sum();
                self.kept_content.min((self.body.staged_memory() + shared) as u64)
            }
        }
    }

    /// Returns the time until which the stream waits for the client or for its response.
    pub(super) fn deadline(&self) -> Instant {
        match &self.response {
            StreamResponse::Upload(upload) => upload.pace.by(),
            StreamResponse::Later(_, by) => *by,
            StreamResponse::Sending => self.stalled.as_ref().map_or(Instant::NEVER, Pace::by),
        }
    }

    /// Counts the shared content of a body that remains after a turn.
    pub(super) fn count_waiting(&mut self) {
        if self.waiting.is_none() && matches!(self.response, StreamResponse::Sending) {
            self.waiting = WaitingContent::of(&self.body);
        }
    }

    /// Begins the wait for a window. `window` is the window of the connection.
    pub(super) fn note_stall(&mut self, limits: &Limits, window: i64) {
        if self.stalled.is_none() && self.is_stalled(window) {
            self.stalled = Some(Pace::begin(limits.send_timeout, limits.min_rate, Some(self.progress)));
        }
    }
}

/// Returns the present time, for deadlines.
pub(super) fn now() -> Instant {
    clock::now()
}
