//! Frames of HTTP/2 (RFC 9113 §4 and §6, RFC 9218 §7.1).
//!
//! A receiver reads a [`FrameHeader`], checks it with [`FrameHeader::check`], which needs no payload, and parses the
//! whole payload with [`Frame::parse`]. The content of DATA may be used as it arrives
//! ([`FrameHeader::content`]), and frames of unknown types are skipped. Rules about the states of streams, windows and
//! floods belong to the connection.

pub mod error;
pub mod header;
pub mod payload;
pub mod settings;
pub mod write;

pub use error::{ErrorCode, FrameError};
pub use header::{FrameHeader, FrameKind, MOST_31_BITS, Receiver};
pub use payload::{Frame, Priority};
pub use settings::{Setting, SettingIter, Settings};

/// The first bytes of a client (RFC 9113 §3.4), before its SETTINGS.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
