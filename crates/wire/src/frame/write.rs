//! Frames as bytes, appended to a buffer.

use crate::frame::error::ErrorCode;
use crate::frame::header::{ACK, END_HEADERS, END_STREAM, FrameHeader, FrameKind};
use crate::frame::payload::Priority;
use crate::frame::settings::Setting;

/// Appends the header of DATA without padding; `length` bytes of content follow.
pub fn data_header(stream: u32, length: u32, end_stream: bool, out: &mut Vec<u8>) {
    header(length, FrameKind::DATA, if end_stream { END_STREAM } else { 0 }, stream, out);
}

/// HEADERS whose block is being appended to the same buffer.
#[derive(Debug)]
#[must_use = "the length of the frame is not written yet"]
pub struct OpenHeaders {
    /// The place of the frame in the buffer.
    start: usize,
    stream: u32,
    flags: u8,
}

impl OpenHeaders {
    /// Appends the header of HEADERS. The block is appended next.
    pub fn begin(stream: u32, end_stream: bool, out: &mut Vec<u8>) -> OpenHeaders {
        let start = out.len();
        out.extend([0; FrameHeader::LENGTH]);
        OpenHeaders { start, stream, flags: if end_stream { END_STREAM } else { 0 } }
    }

    /// Writes the length of the block. `most` is the peer's SETTINGS_MAX_FRAME_SIZE: a longer block is divided into
    /// HEADERS and CONTINUATION. Places in the block, such as that of the date, are valid only before this.
    pub fn finish(self, most: u32, out: &mut Vec<u8>) {
        let first = self.start + FrameHeader::LENGTH;
        let most = most as usize;
        let length = out.len() - first;
        let (length, rest) =
            if length <= most { (length, vec![]) } else { (most, out.split_off(first + most)) };
        let last = if rest.is_empty() { END_HEADERS } else { 0 };
        let header_bytes = FrameHeader {
            length: length as u32,
            kind: FrameKind::HEADERS,
            flags: self.flags | last,
            stream: self.stream,
        };
        out[self.start..first].copy_from_slice(&header_bytes.to_bytes());
        let mut parts = rest.chunks(most).peekable();
        while let Some(part) = parts.next() {
            let flags = if parts.peek().is_none() { END_HEADERS } else { 0 };
            header(part.len() as u32, FrameKind::CONTINUATION, flags, self.stream, out);
            out.extend_from_slice(part);
        }
    }
}

/// Appends SETTINGS.
pub fn settings(settings: &[Setting], out: &mut Vec<u8>) {
    header(6 * settings.len() as u32, FrameKind::SETTINGS, 0, 0, out);
    for setting in settings {
        let (id, value) = setting.wire();
        out.extend(id.to_be_bytes());
        out.extend(value.to_be_bytes());
    }
}

/// Appends the acknowledgement of the peer's SETTINGS.
pub fn settings_ack(out: &mut Vec<u8>) {
    header(0, FrameKind::SETTINGS, ACK, 0, out);
}

/// Appends PING, or the answer to the peer's PING.
pub fn ping(opaque: [u8; 8], is_ack: bool, out: &mut Vec<u8>) {
    header(8, FrameKind::PING, if is_ack { ACK } else { 0 }, 0, out);
    out.extend(opaque);
}

/// Appends GOAWAY. `last_stream` is the last stream that was or may be processed; `debug` is text for the peer's log.
pub fn goaway(last_stream: u32, code: ErrorCode, debug: &[u8], out: &mut Vec<u8>) {
    header(8 + debug.len() as u32, FrameKind::GOAWAY, 0, 0, out);
    out.extend(last_stream.to_be_bytes());
    out.extend(code.0.to_be_bytes());
    out.extend_from_slice(debug);
}

/// Appends RST_STREAM.
pub fn reset_stream(stream: u32, code: ErrorCode, out: &mut Vec<u8>) {
    header(4, FrameKind::RST_STREAM, 0, stream, out);
    out.extend(code.0.to_be_bytes());
}

/// Appends WINDOW_UPDATE; `increment` is 1 to 2^31 - 1, and stream 0 is the connection.
pub fn window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    debug_assert!((1..1 << 31).contains(&increment), "1 to 2^31 - 1");
    header(4, FrameKind::WINDOW_UPDATE, 0, stream, out);
    out.extend(increment.to_be_bytes());
}

/// Appends PRIORITY, as clients of RFC 7540 send it.
pub fn priority(stream: u32, priority: Priority, out: &mut Vec<u8>) {
    header(5, FrameKind::PRIORITY, 0, stream, out);
    out.extend((priority.dependency | u32::from(priority.is_exclusive) << 31).to_be_bytes());
    // 1 to 256 is sent as 0 to 255.
    out.push(priority.weight.wrapping_sub(1) as u8);
}

/// Appends PRIORITY_UPDATE with the value of a `Priority` field (RFC 9218 §7.1).
pub fn priority_update(stream: u32, value: &[u8], out: &mut Vec<u8>) {
    header(4 + value.len() as u32, FrameKind::PRIORITY_UPDATE, 0, 0, out);
    out.extend(stream.to_be_bytes());
    out.extend_from_slice(value);
}

fn header(length: u32, kind: FrameKind, flags: u8, stream: u32, out: &mut Vec<u8>) {
    out.extend(FrameHeader { length, kind, flags, stream }.to_bytes());
}
