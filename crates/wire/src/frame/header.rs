//! The nine bytes before each payload (RFC 9113 §4.1), and the rules that need no payload.

use std::ops::Range;

use crate::frame::error::FrameError;

/// The largest window of flow control (RFC 9113 §6.9.1), and the largest id of a stream: 2^31 - 1.
pub const MOST_31_BITS: u32 = (1 << 31) - 1;

/// The type of a frame. Frames of other types than these are skipped (RFC 9113 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameKind(pub u8);

impl FrameKind {
    /// Content of a message (RFC 9113 §6.1).
    pub const DATA: FrameKind = FrameKind(0x0);
    /// The first fragment of a field block (§6.2).
    pub const HEADERS: FrameKind = FrameKind(0x1);
    /// A priority of RFC 7540, which RFC 9113 §6.3 deprecates.
    pub const PRIORITY: FrameKind = FrameKind(0x2);
    /// The end of a stream by an error or a cancellation (§6.4).
    pub const RST_STREAM: FrameKind = FrameKind(0x3);
    /// Settings, or their acknowledgement (§6.5).
    pub const SETTINGS: FrameKind = FrameKind(0x4);
    /// A promise of a pushed response (§6.6).
    pub const PUSH_PROMISE: FrameKind = FrameKind(0x5);
    /// A probe, or its acknowledgement (§6.7).
    pub const PING: FrameKind = FrameKind(0x6);
    /// The end of a connection (§6.8).
    pub const GOAWAY: FrameKind = FrameKind(0x7);
    /// An increment of a window (§6.9).
    pub const WINDOW_UPDATE: FrameKind = FrameKind(0x8);
    /// A further fragment of a field block (§6.10).
    pub const CONTINUATION: FrameKind = FrameKind(0x9);
    /// A priority (RFC 9218 §7.1).
    pub const PRIORITY_UPDATE: FrameKind = FrameKind(0x10);
}

/// Flags: END_STREAM of DATA and HEADERS.
pub const END_STREAM: u8 = 0x1;
/// ACK of SETTINGS and PING.
pub const ACK: u8 = 0x1;
/// END_HEADERS of HEADERS and CONTINUATION.
pub const END_HEADERS: u8 = 0x4;
/// PADDED of DATA and HEADERS.
pub const PADDED: u8 = 0x8;
/// PRIORITY of HEADERS.
pub const PRIORITY: u8 = 0x20;

/// The side that receives a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// The receiver is the server.
    Server,
    /// The receiver is the client, which has disabled push.
    Client,
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The bytes of the payload: 24 bits.
    pub length: u32,
    /// The type.
    pub kind: FrameKind,
    /// Flags. Receivers ignore flags that the type does not define.
    pub flags: u8,
    /// The stream: 31 bits; 0 for the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// The bytes of a header.
    pub const LENGTH: usize = 9;

    /// Reads a header. All bytes are valid; the reserved bit is ignored.
    pub fn parse(bytes: &[u8; Self::LENGTH]) -> FrameHeader {
        let [l0, l1, l2, kind, flags, stream @ ..] = *bytes;
        FrameHeader {
            length: u32::from_be_bytes([0, l0, l1, l2]),
            kind: FrameKind(kind),
            flags,
            stream: u32::from_be_bytes(stream) & MOST_31_BITS,
        }
    }

    /// The bytes of the header.
    pub fn to_bytes(self) -> [u8; Self::LENGTH] {
        debug_assert!(self.length < 1 << 24 && self.stream <= MOST_31_BITS, "24 bits, and 31 bits");
        let [_, l0, l1, l2] = self.length.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [l0, l1, l2, self.kind.0, self.flags, s0, s1, s2, s3]
    }

    /// Whether the flag is set.
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Checks the rules that need no payload: the size, the stream, the place of CONTINUATION, and the direction.
    /// `most` is our SETTINGS_MAX_FRAME_SIZE. `open_block` is the stream whose field block is not complete.
    ///
    /// # Errors
    /// [`FrameError::Connection`]. RFC 9113 §5.4.1 allows it instead of a stream error for DATA that is too large.
    pub fn check(self, receiver: Receiver, most: u32, open_block: Option<u32>) -> Result<(), FrameError> {
        let fails = FrameError::protocol;
        if self.length > most {
            return Err(FrameError::size("a frame exceeds SETTINGS_MAX_FRAME_SIZE"));
        }
        match (open_block, self.kind) {
            (Some(stream), FrameKind::CONTINUATION) if stream == self.stream => return Ok(()),
            (Some(_), _) => return Err(fails("a frame interrupts a field block")),
            (None, FrameKind::CONTINUATION) => return Err(fails("CONTINUATION continues no field block")),
            (None, _) => {}
        }
        match self.kind {
            FrameKind::DATA | FrameKind::HEADERS | FrameKind::PRIORITY | FrameKind::RST_STREAM => {
                if self.stream == 0 { Err(fails("a frame of a stream has stream 0")) } else { Ok(()) }
            }
            FrameKind::SETTINGS | FrameKind::PING | FrameKind::GOAWAY if self.stream != 0 => {
                Err(fails("a frame of the connection has a stream"))
            }
            FrameKind::PRIORITY_UPDATE if self.stream != 0 => Err(fails("PRIORITY_UPDATE has a stream")),
            FrameKind::PRIORITY_UPDATE if receiver == Receiver::Client => {
                Err(fails("a server sent PRIORITY_UPDATE"))
            }
            FrameKind::PUSH_PROMISE => Err(fails("PUSH_PROMISE was not allowed")),
            _ => Ok(()),
        }
    }

    /// The place of the content in the payload of DATA. `first` is the first byte of the payload; only a padded frame
    /// needs it. Flow control counts the whole payload (RFC 9113 §6.9.1).
    ///
    /// # Errors
    /// [`FrameError::Connection`] if the padding is as long as the payload, or its length is missing (§6.1).
    pub fn content(self, first: Option<u8>) -> Result<Range<usize>, FrameError> {
        let length = self.length as usize;
        if !self.has(PADDED) {
            return Ok(0..length);
        }
        let padding =
            first.filter(|_| length > 0).ok_or(FrameError::size("the length of the padding is missing"))?;
        let end = length.checked_sub(padding.into()).filter(|end| *end > 0);
        end.map(|end| 1..end).ok_or(FrameError::protocol("the padding is as long as the payload"))
    }
}
