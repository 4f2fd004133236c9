//! Settings (RFC 9113 §6.5, RFC 9218 §2.1).

use crate::frame::error::{ErrorCode, FrameError};
use crate::frame::header::{MOST_31_BITS, Receiver};

/// The smallest and largest SETTINGS_MAX_FRAME_SIZE.
const FRAME_SIZES: std::ops::RangeInclusive<u32> = 1 << 14..=(1 << 24) - 1;

/// One valid setting of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The most octets of the sender's decoding table, of any size.
    HeaderTableSize(u32),
    /// Whether the sender accepts PUSH_PROMISE.
    EnablePush(bool),
    /// The most streams that the receiver may have open.
    MaxConcurrentStreams(u32),
    /// The first window of each stream, at most 2^31 - 1; a change adjusts open streams.
    InitialWindowSize(u32),
    /// The largest payload that the sender accepts: 2^14 to 2^24 - 1.
    MaxFrameSize(u32),
    /// The most octets of a field list, as advice.
    MaxHeaderListSize(u32),
    /// Extended CONNECT (RFC 8441 §3).
    EnableConnectProtocol(bool),
    /// Whether the sender ignores priorities of RFC 7540 (RFC 9218 §2.1).
    NoRfc7540Priorities(bool),
    /// Any other setting, which is ignored: its identifier and value.
    Unknown(u16, u32),
}

impl Setting {
    /// Checks a setting that `receiver` received.
    ///
    /// # Errors
    /// [`FrameError::Connection`] for a value that RFC 9113 §6.5.2 excludes.
    pub fn parse(receiver: Receiver, id: u16, value: u32) -> Result<Setting, FrameError> {
        let is_on = |reason| match value {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(FrameError::protocol(reason)),
        };
        Ok(match id {
            1 => Setting::HeaderTableSize(value),
            2 => match is_on("SETTINGS_ENABLE_PUSH is not 0 or 1")? {
                true if receiver == Receiver::Client => {
                    return Err(FrameError::protocol("a server enabled push"));
                }
                is_on => Setting::EnablePush(is_on),
            },
            3 => Setting::MaxConcurrentStreams(value),
            4 if value > MOST_31_BITS => {
                let reason = "SETTINGS_INITIAL_WINDOW_SIZE exceeds 2^31 - 1";
                return Err(FrameError::Connection(ErrorCode::FLOW_CONTROL_ERROR, reason));
            }
            4 => Setting::InitialWindowSize(value),
            5 if !FRAME_SIZES.contains(&value) => {
                return Err(FrameError::protocol("SETTINGS_MAX_FRAME_SIZE is not 2^14 to 2^24 - 1"));
            }
            5 => Setting::MaxFrameSize(value),
            6 => Setting::MaxHeaderListSize(value),
            8 => Setting::EnableConnectProtocol(is_on("SETTINGS_ENABLE_CONNECT_PROTOCOL is not 0 or 1")?),
            9 => Setting::NoRfc7540Priorities(is_on("SETTINGS_NO_RFC7540_PRIORITIES is not 0 or 1")?),
            _ => Setting::Unknown(id, value),
        })
    }

    /// The identifier and the value.
    pub fn wire(self) -> (u16, u32) {
        match self {
            Setting::HeaderTableSize(size) => (1, size),
            Setting::EnablePush(is_on) => (2, is_on.into()),
            Setting::MaxConcurrentStreams(count) => (3, count),
            Setting::InitialWindowSize(size) => (4, size),
            Setting::MaxFrameSize(size) => (5, size),
            Setting::MaxHeaderListSize(size) => (6, size),
            Setting::EnableConnectProtocol(is_on) => (8, is_on.into()),
            Setting::NoRfc7540Priorities(is_on) => (9, is_on.into()),
            Setting::Unknown(id, value) => (id, value),
        }
    }
}

/// The settings of a SETTINGS frame, in their order. Each is checked as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingIter<'a> {
    receiver: Receiver,
    rest: &'a [[u8; 6]],
}

impl<'a> SettingIter<'a> {
    /// The settings of a payload. `None`: its length is not a multiple of 6.
    pub(crate) fn new(receiver: Receiver, payload: &'a [u8]) -> Option<SettingIter<'a>> {
        let (rest, end) = payload.as_chunks();
        end.is_empty().then_some(SettingIter { receiver, rest })
    }
}

impl Iterator for SettingIter<'_> {
    type Item = Result<Setting, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (&[i0, i1, value @ ..], rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(Setting::parse(self.receiver, u16::from_be_bytes([i0, i1]), u32::from_be_bytes(value)))
    }
}

/// The current settings of one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// SETTINGS_HEADER_TABLE_SIZE in octets.
    pub header_table_size: u32,
    /// SETTINGS_MAX_CONCURRENT_STREAMS; `u32::MAX` is no limit.
    pub max_concurrent_streams: u32,
    /// SETTINGS_INITIAL_WINDOW_SIZE in bytes.
    pub initial_window_size: u32,
    /// SETTINGS_MAX_FRAME_SIZE in bytes.
    pub max_frame_size: u32,
    /// SETTINGS_MAX_HEADER_LIST_SIZE in octets; `u32::MAX` is no limit.
    pub max_header_list_size: u32,
    /// SETTINGS_ENABLE_PUSH.
    pub enable_push: bool,
    /// SETTINGS_ENABLE_CONNECT_PROTOCOL.
    pub enable_connect_protocol: bool,
    /// SETTINGS_NO_RFC7540_PRIORITIES.
    pub no_rfc7540_priorities: bool,
}

impl Settings {
    /// The settings before the first SETTINGS frame.
    pub const INITIAL: Settings = Settings {
        header_table_size: 4096,
        max_concurrent_streams: u32::MAX,
        initial_window_size: 65_535,
        max_frame_size: 16_384,
        max_header_list_size: u32::MAX,
        enable_push: true,
        enable_connect_protocol: false,
        no_rfc7540_priorities: false,
    };

    /// Takes over a setting. Settings take effect in their order (RFC 9113 §6.5.3).
    pub fn apply(&mut self, setting: Setting) {
        match setting {
            Setting::HeaderTableSize(size) => self.header_table_size = size,
            Setting::EnablePush(is_on) => self.enable_push = is_on,
            Setting::MaxConcurrentStreams(count) => self.max_concurrent_streams = count,
            Setting::InitialWindowSize(size) => self.initial_window_size = size,
            Setting::MaxFrameSize(size) => self.max_frame_size = size,
            Setting::MaxHeaderListSize(size) => self.max_header_list_size = size,
            Setting::EnableConnectProtocol(is_on) => self.enable_connect_protocol = is_on,
            Setting::NoRfc7540Priorities(is_on) => self.no_rfc7540_priorities = is_on,
            Setting::Unknown(..) => {}
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::INITIAL
    }
}
