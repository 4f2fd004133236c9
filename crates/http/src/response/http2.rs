//! Response heads in the format of HTTP/2 (RFC 9113 §8.3.2), and prepared responses.

use std::sync::OnceLock;

use tenfold_wire::frame::FrameHeader;
use tenfold_wire::frame::header::END_STREAM;
use tenfold_wire::frame::write::{OpenHeaders, data_header};
use tenfold_wire::hpack::{self, Block, Constants};

use crate::clock;
use crate::message::header_lines::HeaderLines;
use crate::message::server_field;
use crate::out::Out;

/// Encodes a response on a stream. Its heads, and the body of a short prepared response, go to the output of the
/// connection; other bodies go to the output of the stream.
pub(crate) struct Http2Encoder<'w> {
    pub(crate) stream: &'w mut StreamHeads,
    /// The output of the connection.
    pub(crate) out: &'w mut Out,
    /// The state of the header compression.
    pub(crate) hpack: &'w mut hpack::Encoder,
    /// Memory for a field block.
    pub(crate) block: &'w mut Block,
}

/// The progress of a response, and the bounds of its frames.
#[derive(Debug)]
pub(crate) struct StreamHeads {
    /// The stream.
    pub(crate) id: u32,
    /// The peer's SETTINGS_MAX_FRAME_SIZE.
    pub(crate) most: u32,
    /// The most bytes of a body that may leave with the head: the windows and the turn permit them.
    pub(crate) room: u64,
    /// The place of the final head in the output of the connection.
    begun: Option<usize>,
    /// Whether the response is complete in the output of the connection: the bytes of its body.
    pub(crate) complete: Option<u64>,
    /// The media type of the final head, which has a default priority.
    pub(crate) priority: Option<crate::mux::priority::Priority>,
}

impl StreamHeads {
    pub(crate) fn new(id: u32, most: u32, room: u64) -> StreamHeads {
        StreamHeads { id, most, room, begun: None, complete: None, priority: None }
    }

    /// Whether the final head is written.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Marks the head, which is the last output of the stream, as the end of the response.
    pub(crate) fn end(&mut self, out: &mut Out) {
        if let Some(begun) = self.begun.filter(|_| self.complete.is_none()) {
            *out.staged_at(begun + FLAGS) |= END_STREAM;
            self.complete = Some(0);
        }
    }
}

/// The place of the flags in the header of a frame.
const FLAGS: usize = 4;

/// The fields that are indexed on every connection.
pub(crate) fn constants() -> &'static Constants {
    static CONSTANTS: OnceLock<Constants> = OnceLock::new();
    CONSTANTS.get_or_init(|| {
        Constants::new([
            (&b"server"[..], &b"tenfold"[..]),
            (b"x-content-type-options", b"nosniff"),
            (b"accept-ranges", b"bytes"),
            (b"vary", b"Accept-Encoding"),
        ])
    })
}

/// Begins the block of a final head.
pub(crate) fn begin(status: u16, block: &mut Block) {
    block.clear();
    block.status(status);
    if server_field::is_shown() {
        block.field(constants(), b"server", b"tenfold");
    }
    block.date();
}

/// Adds a field to a block.
pub(crate) fn field(name: &str, value: &[u8], block: &mut Block) {
    // Names of fields are short; a longer name is not ours.
    let mut lower = [0; 64];
    match lower.get_mut(..name.len()) {
        Some(lower) => {
            lower.copy_from_slice(name.as_bytes());
            lower.make_ascii_lowercase();
            block.field(constants(), lower, value);
        }
        None => block.field(constants(), name.to_ascii_lowercase().as_bytes(), value),
    }
}

impl Http2Encoder<'_> {
    pub(super) fn reborrow(&mut self) -> Http2Encoder<'_> {
        let Http2Encoder { stream, out, hpack, block } = self;
        Http2Encoder { stream, out, hpack, block }
    }

    /// Stages an interim response.
    pub(super) fn interim(&mut self, status: u16, fields: &HeaderLines) {
        self.block.clear();
        self.block.status(status);
        for (name, value) in fields.iter() {
            field(name.as_str(), value.as_bytes(), self.block);
        }
        stage(self.stream, self.hpack, self.block, self.out);
    }

    pub(super) fn begin(&mut self, status: u16) {
        begin(status, self.block);
    }

    pub(super) fn field(&mut self, name: &str, value: &[u8]) {
        if name == "Content-Type" {
            self.stream.priority = crate::mux::priority::Priority::of_media_type(value);
        }
        field(name, value, self.block);
    }

    /// Stages the final head.
    pub(super) fn end(&mut self) {
        let begun = stage(self.stream, self.hpack, self.block, self.out);
        self.stream.begun = Some(begun);
    }

    /// Stages a prepared response: its head, and its body if the body fits. Returns whether the body is staged.
    pub(super) fn prepared(&mut self, block: &Block, body: &[u8]) -> bool {
        let begun = stage(self.stream, self.hpack, block, self.out);
        self.stream.begun = Some(begun);
        if body.is_empty() || body.len() as u64 > self.stream.room || body.len() > self.stream.most as usize {
            return body.is_empty();
        }
        let id = self.stream.id;
        self.out.stage_by(|bytes| data_header(id, body.len() as u32, true, bytes));
        self.out.stage(body);
        self.stream.complete = Some(body.len() as u64);
        true
    }
}

/// Stages `block` in HEADERS. Returns its place.
fn stage(stream: &StreamHeads, hpack: &mut hpack::Encoder, block: &Block, out: &mut Out) -> usize {
    out.stage_by(|bytes| {
        let headers = OpenHeaders::begin(stream.id, false, bytes);
        if let Some(at) = hpack.write(constants(), block, bytes) {
            clock::with_date(|date| bytes[at..at + date.len()].copy_from_slice(date));
        }
        headers.finish(stream.most, bytes);
    })
}

const _: () = assert!(FLAGS < FrameHeader::LENGTH);
