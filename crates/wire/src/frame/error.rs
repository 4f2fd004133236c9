//! Error codes, and the errors of frames.

use std::fmt;

/// A code of RST_STREAM and GOAWAY (RFC 9113 §7). Unknown codes are values too, and have no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// No error: a graceful end.
    pub const NO_ERROR: ErrorCode = ErrorCode(0x0);
    /// A violation of the protocol without a code of its own.
    pub const PROTOCOL_ERROR: ErrorCode = ErrorCode(0x1);
    /// A failure inside the sender of the code.
    pub const INTERNAL_ERROR: ErrorCode = ErrorCode(0x2);
    /// More bytes than a window allows, or a window that is too large.
    pub const FLOW_CONTROL_ERROR: ErrorCode = ErrorCode(0x3);
    /// No acknowledgement of SETTINGS in time.
    pub const SETTINGS_TIMEOUT: ErrorCode = ErrorCode(0x4);
    /// A frame for a stream whose sender had closed its half.
    pub const STREAM_CLOSED: ErrorCode = ErrorCode(0x5);
    /// A frame of a wrong size.
    pub const FRAME_SIZE_ERROR: ErrorCode = ErrorCode(0x6);
    /// A stream that was not processed at all.
    pub const REFUSED_STREAM: ErrorCode = ErrorCode(0x7);
    /// A stream that is no longer needed.
    pub const CANCEL: ErrorCode = ErrorCode(0x8);
    /// A field block that cannot be decoded.
    pub const COMPRESSION_ERROR: ErrorCode = ErrorCode(0x9);
    /// A connection for CONNECT that was reset.
    pub const CONNECT_ERROR: ErrorCode = ErrorCode(0xa);
    /// A peer that causes too much work.
    pub const ENHANCE_YOUR_CALM: ErrorCode = ErrorCode(0xb);
    /// Properties of TLS that RFC 9113 §9.2 excludes.
    pub const INADEQUATE_SECURITY: ErrorCode = ErrorCode(0xc);
    /// A request that needs HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: ErrorCode = ErrorCode(0xd);

    /// The name of RFC 9113 §7; `UNKNOWN` for other codes.
    pub fn name(self) -> &'static str {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(self.0 as usize).unwrap_or(&"UNKNOWN")
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A frame that breaks a rule: its code, and a reason for a log. It ends the connection or only its stream (RFC 9113
/// §5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// GOAWAY with this code ends the connection.
    Connection(ErrorCode, &'static str),
    /// RST_STREAM with this code ends the stream of the frame.
    Stream(ErrorCode, &'static str),
}

impl FrameError {
    /// The code of GOAWAY or RST_STREAM.
    pub fn code(self) -> ErrorCode {
        let (FrameError::Connection(code, _) | FrameError::Stream(code, _)) = self;
        code
    }

    /// Whether the connection ends.
    pub fn ends_connection(self) -> bool {
        matches!(self, FrameError::Connection(..))
    }

    pub(crate) const fn protocol(reason: &'static str) -> FrameError {
        FrameError::Connection(ErrorCode::PROTOCOL_ERROR, reason)
    }

    pub(crate) const fn size(reason: &'static str) -> FrameError {
        FrameError::Connection(ErrorCode::FRAME_SIZE_ERROR, reason)
    }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (FrameError::Connection(code, reason) | FrameError::Stream(code, reason)) = self;
        write!(f, "{code}: {reason}")
    }
}

impl std::error::Error for FrameError {}
