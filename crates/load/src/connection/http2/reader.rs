//! Frames from received bytes, which may end anywhere. The content of DATA is not collected.

use tenfold_wire::frame::error::{ErrorCode, FrameError};
use tenfold_wire::frame::header::{ACK, PADDED};
use tenfold_wire::frame::{Frame, FrameHeader, FrameKind, Receiver, Settings};

/// A frame, or a part of DATA.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    /// A whole frame other than DATA.
    Frame(FrameHeader, Frame<'a>),
    /// Content of a stream. `end` is the header of its frame, if the frame is complete.
    Content { stream: u32, bytes: &'a [u8], end: Option<FrameHeader> },
}

/// The frame that is being received.
#[derive(Debug, Default)]
pub(super) struct FrameReader {
    /// Whether the first header was valid.
    is_begun: bool,
    /// The first bytes of a header, and their number.
    head: [u8; FrameHeader::LENGTH],
    head_length: usize,
    /// The header of an incomplete frame other than DATA.
    header: Option<FrameHeader>,
    /// The first bytes of its payload.
    partial: Vec<u8>,
    /// Whether the last piece was in `partial`.
    is_returned: bool,
    data: Option<DataProgress>,
}

#[derive(Clone, Copy, Debug)]
struct DataProgress {
    header: FrameHeader,
    /// Bytes of content and of padding that have not arrived; `None` before the length of the padding.
    left: Option<(usize, usize)>,
}

impl FrameReader {
    /// Takes the next piece from the start of `rest`. `open_block` is the stream whose field block is not complete.
    /// Returns `None` if `rest` is used up.
    ///
    /// # Errors
    /// A malformed frame, after which the connection must end.
    pub(super) fn next<'s, 'b: 's>(
        &'s mut self,
        rest: &mut &'b [u8],
        open_block: Option<u32>,
    ) -> Result<Option<Piece<'s>>, FrameError> {
        if std::mem::take(&mut self.is_returned) {
            self.partial.clear();
        }
        if self.data.is_none() {
            let header = match self.header.take() {
                Some(header) => header,
                None => match self.read_header(rest, open_block)? {
                    Some(header) => header,
                    None => return Ok(None),
                },
            };
            if header.kind != FrameKind::DATA {
                return self.whole(header, rest);
            }
            self.data = Some(DataProgress { header, left: None });
        }
        self.content(rest)
    }

    fn read_header(
        &mut self,
        rest: &mut &[u8],
        open_block: Option<u32>,
    ) -> Result<Option<FrameHeader>, FrameError> {
        let header = match rest.split_first_chunk() {
            Some((bytes, after)) if self.head_length == 0 => {
                *rest = after;
                FrameHeader::parse(bytes)
            }
            _ => {
                let count = rest.len().min(FrameHeader::LENGTH - self.head_length);
                self.head[self.head_length..][..count].copy_from_slice(&rest[..count]);
                *rest = &rest[count..];
                self.head_length += count;
                if self.head_length < FrameHeader::LENGTH {
                    return Ok(None);
                }
                self.head_length = 0;
                FrameHeader::parse(&self.head)
            }
        };
        // The first frame of a server is SETTINGS (RFC 9113 §3.4).
        let is_settings = header.kind == FrameKind::SETTINGS && !header.has(ACK);
        if !std::mem::replace(&mut self.is_begun, true) && !is_settings {
            return Err(FrameError::Connection(ErrorCode::PROTOCOL_ERROR, "the first frame is not SETTINGS"));
        }
        header.check(Receiver::Client, Settings::INITIAL.max_frame_size, open_block)?;
        Ok(Some(header))
    }

    /// Returns a frame whose payload is complete.
    fn whole<'s, 'b: 's>(
        &'s mut self,
        header: FrameHeader,
        rest: &mut &'b [u8],
    ) -> Result<Option<Piece<'s>>, FrameError> {
        let length = header.length as usize;
        let payload = if self.partial.is_empty() && rest.len() >= length {
            let (payload, after) = rest.split_at(length);
            *rest = after;
            payload
        } else {
            let count = (length - self.partial.len()).min(rest.len());
            self.partial.extend_from_slice(&rest[..count]);
            *rest = &rest[count..];
            if self.partial.len() < length {
                self.header = Some(header);
                return Ok(None);
            }
            self.is_returned = true;
            &self.partial
        };
        Ok(Some(Piece::Frame(header, Frame::parse(header, payload, Receiver::Client)?)))
    }

    /// Returns the content of DATA that has arrived.
    fn content<'a>(&mut self, rest: &mut &'a [u8]) -> Result<Option<Piece<'a>>, FrameError> {
        let Some(DataProgress { header, left }) = self.data else { return Ok(None) };
        let (content, padding) = match left {
            Some(left) => left,
            None => {
                let is_padded = header.has(PADDED) && header.length > 0;
                if is_padded && rest.is_empty() {
                    return Ok(None);
                }
                let place = header.content(rest.first().copied())?;
                *rest = &rest[usize::from(is_padded)..];
                (place.len(), header.length as usize - place.end)
            }
        };
        let (bytes, after) = rest.split_at(content.min(rest.len()));
        let left = (content - bytes.len(), padding - padding.min(after.len()));
        // Padding follows only after all of the content, which `after` then begins with.
        *rest = &after[padding - left.1..];
        if left == (0, 0) {
            self.data = None;
            return Ok(Some(Piece::Content { stream: header.stream, bytes, end: Some(header) }));
        }
        self.data = Some(DataProgress { header, left: Some(left) });
        Ok((!bytes.is_empty()).then_some(Piece::Content { stream: header.stream, bytes, end: None }))
    }
}
