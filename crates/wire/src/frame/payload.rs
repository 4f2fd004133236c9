//! The payloads of frames, parsed with the rules of RFC 9113 §6.

use std::num::NonZeroU32;

use crate::frame::error::{ErrorCode, FrameError};
use crate::frame::header::{
    ACK, END_HEADERS, END_STREAM, FrameHeader, FrameKind, MOST_31_BITS, PADDED, PRIORITY, Receiver,
};
use crate::frame::settings::SettingIter;

/// A priority of RFC 7540 §5.3, in HEADERS or PRIORITY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// Whether the stream takes over the other dependents of its parent.
    pub is_exclusive: bool,
    /// The stream on which it depends; 0: no stream.
    pub dependency: u32,
    /// 1 to 256.
    pub weight: u16,
}

/// A frame with its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Content without its padding.
    Data {
        /// The content.
        content: &'a [u8],
        /// Whether the message ends.
        end_stream: bool,
    },
    /// The first fragment of a field block, without its padding.
    Headers {
        /// The start of the block.
        fragment: &'a [u8],
        /// The priority of RFC 7540.
        priority: Option<Priority>,
        /// Whether the message ends after the block.
        end_stream: bool,
        /// Whether the block ends.
        end_headers: bool,
    },
    /// A priority of RFC 7540.
    Priority(Priority),
    /// The end of a stream.
    ResetStream(ErrorCode),
    /// Settings.
    Settings(SettingIter<'a>),
    /// The acknowledgement of our oldest SETTINGS.
    SettingsAck,
    /// A PING, or the answer to ours.
    Ping {
        /// Any bytes, which the answer repeats.
        opaque: [u8; 8],
        /// Whether it answers our PING.
        is_ack: bool,
    },
    /// The end of the connection.
    GoAway {
        /// The last stream that the peer may have processed.
        last_stream: u32,
        /// The reason.
        code: ErrorCode,
        /// Text or any bytes for a log.
        debug: &'a [u8],
    },
    /// An increment of the window of a stream or, on stream 0, of the connection.
    WindowUpdate(NonZeroU32),
    /// A further fragment of a field block.
    Continuation {
        /// The fragment.
        fragment: &'a [u8],
        /// Whether the block ends.
        end_headers: bool,
    },
    /// A priority of RFC 9218, which may come before its stream.
    PriorityUpdate {
        /// The stream, not 0.
        stream: u32,
        /// The value of a `Priority` field, not parsed.
        value: &'a [u8],
    },
    /// A type that is skipped.
    Unknown,
}

impl<'a> Frame<'a> {
    /// Parses the whole payload of a frame whose header [`FrameHeader::check`] accepts.
    ///
    /// # Errors
    /// [`FrameError`] for a wrong length or value, with the scope and the code of RFC 9113 §6.
    pub fn parse(
        header: FrameHeader,
        payload: &'a [u8],
        receiver: Receiver,
    ) -> Result<Frame<'a>, FrameError> {
        debug_assert_eq!(header.length as usize, payload.len(), "the payload is whole");
        Ok(match header.kind {
            FrameKind::DATA => {
                let content = &payload[header.content(payload.first().copied())?];
                Frame::Data { content, end_stream: header.has(END_STREAM) }
            }
            FrameKind::HEADERS => return headers(header, payload),
            FrameKind::PRIORITY => {
                let reason = "PRIORITY has not 5 bytes";
                let wrong = FrameError::Stream(ErrorCode::FRAME_SIZE_ERROR, reason);
                Frame::Priority(priority(payload.try_into().map_err(|_| wrong)?))
            }
            FrameKind::RST_STREAM => {
                Frame::ResetStream(ErrorCode(number(payload, "RST_STREAM has not 4 bytes")?))
            }
            FrameKind::SETTINGS if header.has(ACK) => {
                if !payload.is_empty() {
                    return Err(FrameError::size("an acknowledgement of SETTINGS has a payload"));
                }
                Frame::SettingsAck
            }
            FrameKind::SETTINGS => {
                let settings = SettingIter::new(receiver, payload);
                Frame::Settings(settings.ok_or(FrameError::size("SETTINGS has a part of a setting"))?)
            }
            FrameKind::PUSH_PROMISE => return Err(FrameError::protocol("PUSH_PROMISE was not allowed")),
            FrameKind::PING => {
                let opaque = payload.try_into().map_err(|_| FrameError::size("PING has not 8 bytes"))?;
                Frame::Ping { opaque, is_ack: header.has(ACK) }
            }
            FrameKind::GOAWAY => {
                let short = || FrameError::size("GOAWAY has less than 8 bytes");
                let (fixed, debug) = payload.split_at_checked(8).ok_or_else(short)?;
                let last_stream = stream_id(fixed.first_chunk().ok_or_else(short)?);
                let code = ErrorCode(number(&fixed[4..], "GOAWAY has less than 8 bytes")?);
                Frame::GoAway { last_stream, code, debug }
            }
            FrameKind::WINDOW_UPDATE => window_update(header, payload)?,
            FrameKind::CONTINUATION => {
                Frame::Continuation { fragment: payload, end_headers: header.has(END_HEADERS) }
            }
            FrameKind::PRIORITY_UPDATE => {
                let short = FrameError::size("PRIORITY_UPDATE has less than 4 bytes");
                let (stream, value) = payload.split_first_chunk().ok_or(short)?;
                let stream = stream_id(stream);
                if stream == 0 {
                    return Err(FrameError::protocol("PRIORITY_UPDATE is for stream 0"));
                }
                Frame::PriorityUpdate { stream, value }
            }
            _ => Frame::Unknown,
        })
    }
}

fn headers(header: FrameHeader, payload: &[u8]) -> Result<Frame<'_>, FrameError> {
    let mut fragment = &payload[header.content(payload.first().copied())?];
    let mut found = None;
    if header.has(PRIORITY) {
        let is_short = payload.len() < 5 + usize::from(header.has(PADDED));
        let wrong = if is_short {
            FrameError::size("HEADERS is too short for its priority")
        } else {
            FrameError::protocol("the padding is longer than the field block")
        };
        let (bytes, rest) = fragment.split_first_chunk().ok_or(wrong)?;
        (found, fragment) = (Some(priority(bytes)), rest);
    }
    Ok(Frame::Headers {
        fragment,
        priority: found,
        end_stream: header.has(END_STREAM),
        end_headers: header.has(END_HEADERS),
    })
}

fn priority(bytes: &[u8; 5]) -> Priority {
    let [dependency @ .., weight] = bytes;
    Priority {
        is_exclusive: dependency[0] & 0x80 != 0,
        dependency: stream_id(dependency),
        weight: u16::from(*weight) + 1,
    }
}

fn window_update(header: FrameHeader, payload: &[u8]) -> Result<Frame<'_>, FrameError> {
    let increment = number(payload, "WINDOW_UPDATE has not 4 bytes")? & MOST_31_BITS;
    let code = ErrorCode::PROTOCOL_ERROR;
    let reason = "WINDOW_UPDATE has increment 0";
    match NonZeroU32::new(increment) {
        Some(increment) => Ok(Frame::WindowUpdate(increment)),
        None if header.stream == 0 => Err(FrameError::Connection(code, reason)),
        None => Err(FrameError::Stream(code, reason)),
    }
}

/// The only number of a payload.
fn number(payload: &[u8], reason: &'static str) -> Result<u32, FrameError> {
    payload.try_into().map(u32::from_be_bytes).map_err(|_| FrameError::size(reason))
}

/// The id of a stream, without the bit before it.
fn stream_id(bytes: &[u8; 4]) -> u32 {
    u32::from_be_bytes(*bytes) & MOST_31_BITS
}
