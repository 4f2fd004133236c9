//! The places of streams, and the memory that streams hold together.

use super::connection::Http2Connection;
use super::stream::{Abandoned, Stream, StreamResponse};
use crate::limits::Limits;
use crate::mux::account::Account;
use crate::mux::waiting;
use crate::out::OpenFile;

/// The bytes of waiting requests and copied bodies that all streams of a connection hold together, besides
/// [`STREAM_MEMORY`] of each.
const MOST_HELD: usize = 64 * 1024;

/// The bytes beyond which a deferred response is dropped. Requests in progress pass [`MOST_HELD`] by their responses.
const MOST_DEFERRED: usize = 256 * 1024;

/// The bytes of a stream that count with the stream itself.
const STREAM_MEMORY: usize = 1024;

impl Http2Connection {
    /// The places of [`max_streams`](crate::limits::Limits::max_streams) that are taken.
    pub(super) fn places(&self) -> usize {
        self.streams.len() + self.abandoned.len()
    }

    /// Whether new requests wait, because the streams hold [`MOST_HELD`] or a scarce file until their work is done or
    /// their bodies are sent. Neither needs a frame of the client.
    pub(super) fn defers_requests(&self, limits: &Limits) -> bool {
        self.held(false, waiting::is_beyond_bound()).0 > MOST_HELD || self.hold_scarce_file(false, limits)
    }

    /// Whether a new request is refused, because the streams hold [`MOST_HELD`] or a scarce file until the client sends
    /// content or widens a window. A single body of any size does not count.
    pub(super) fn refuses_requests(&self, limits: &Limits) -> bool {
        let (all, largest) = self.held(true, waiting::is_beyond_bound());
        all - largest > MOST_HELD || self.hold_scarce_file(true, limits)
    }

    /// Whether a deferred response is dropped, because the streams hold [`MOST_DEFERRED`]. A single body of any size does
    /// not count.
    pub(super) fn drops_deferred(&self) -> bool {
        let (all, largest) = self.held(true, false);
        all - largest > MOST_DEFERRED
    }

    /// Whether a body has a file while the process has many open files: all streams, or streams that do not wait for the
    /// client. A deferred response may have a file.
    fn hold_scarce_file(&self, is_all: bool, limits: &Limits) -> bool {
        OpenFile::count() > limits.open_files
            && self.select(is_all).any(|stream| match stream.response {
                StreamResponse::Later(..) => true,
                _ => stream.body.next_file().is_some(),
            })
    }

    /// Returns all streams, or the streams that do not wait for the client.
    fn select(&self, is_all: bool) -> impl Iterator<Item = &Stream> {
        let window = self.rest.send_window;
        self.streams.iter().filter(move |stream| is_all || !stream.waits_for_client(window))
    }

    /// The bytes that streams hold, and the most bytes of a single stream: of all streams, or of streams that do not
    /// wait for the client. `shared`: with shared content.
    fn held(&self, is_all: bool, shared: bool) -> (usize, usize) {
        let streams = self.select(is_all).map(|stream| stream.held(shared));
        let held = streams.chain(self.abandoned.iter().map(|work| work.request));
        held.fold((0, 0), |(all, largest), held| {
            let held = held.saturating_sub(STREAM_MEMORY);
            (all + held, largest.max(held))
        })
    }

    /// Removes a stream that either side has reset, and returns the price of the reset. Work that has begun keeps its
    /// place until it is done.
    pub(super) fn abandon(&mut self, index: usize) -> u32 {
        let stream = self.streams.remove(index);
        match stream.response {
            StreamResponse::Later(deferred, by) if deferred.has_begun() => {
                let Stream { request, kept_content, .. } = stream;
                self.abandoned.push(Abandoned { deferred, by, request, kept_content });
                Account::ABANDONED
            }
            StreamResponse::Later(..) => Account::ABANDONED,
            _ => Account::RESET,
        }
    }
}
