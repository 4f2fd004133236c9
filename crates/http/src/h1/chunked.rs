//! Chunked bodies, parsed strictly (RFC 9112 §7.1).
//!
//! Request smuggling exploits two parsers that disagree about the end of a chunk, so nothing is repaired. A
//! size has only hexadecimal digits, and every line ends with CR LF. Extensions and trailers are bounded,
//! checked for control characters, and dropped. Trailers are never merged into the fields of the head.

use std::ops::Range;

use crate::message::field::is_token;
use crate::message::refusal::Refusal;

/// The most hexadecimal digits of a chunk's size: 64 bits.
const MOST_DIGITS: u8 = 16;

/// The state of a chunked body between two pieces of input. The result does not depend on how the input is
/// split.
#[derive(Clone, Debug)]
pub struct Decoder {
    state: State,
    /// The digits of the size read so far.
    digits: u8,
    /// The size read so far, then the rest of the chunk.
    chunk: u64,
    /// Bytes of content that may still follow.
    content_left: u64,
    /// Bytes of extensions and trailers that may still follow.
    extra_left: usize,
}

/// The result of [`Decoder::decode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedPiece {
    /// Decoded bytes at the beginning of the input.
    pub consumed: usize,
    /// The content among the decoded bytes.
    pub content: Range<usize>,
    /// Whether the body ends with the decoded bytes. If not, the rest of the input is decoded next.
    pub done: bool,
}

/// The expected next byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A digit, or the end of a size.
    Size,
    /// White space before the `;` of an extension.
    Blank,
    /// The name of an extension, or white space before it.
    ExtensionBegin,
    ExtensionName,
    /// White space between the name of an extension and its `=`.
    ExtensionNameBlank,
    /// The value of an extension, or white space before it.
    ExtensionValueBegin,
    ExtensionToken,
    ExtensionQuoted,
    /// The byte after a backslash in a quoted value.
    ExtensionQuotedPair,
    /// The end of a quoted value.
    ExtensionQuotedEnd,
    SizeLineFeed,
    Content,
    ContentReturn,
    ContentLineFeed,
    /// The first byte of a trailer, or the empty line.
    Trailer,
    TrailerName,
    TrailerValue,
    TrailerLineFeed,
    LastLineFeed,
    Done,
}

impl Decoder {
    /// Returns the decoder of a body with at most `most_content` bytes of content, and at most `most_extra`
    /// bytes of extensions and trailers. The line ends of trailers count too.
    pub fn new(most_content: u64, most_extra: usize) -> Decoder {
        Decoder {
            state: State::Size,
            digits: 0,
            chunk: 0,
            content_left: most_content,
            extra_left: most_extra,
        }
    }

    /// Decodes to the end of the next run of content, of the body, or of `input`.
    ///
    /// # Errors
    /// [`Refusal::Malformed`] for invalid chunks, [`Refusal::BodyTooLarge`] for a size that exceeds the bound,
    /// and [`Refusal::HeadTooLarge`] for extensions and trailers that exceed theirs.
    pub fn decode(&mut self, input: &[u8]) -> Result<DecodedPiece, Refusal> {
        let mut at = 0;
        while self.state != State::Done {
            if self.state == State::Content {
                let count = (input.len() - at).min(usize::try_from(self.chunk).unwrap_or(usize::MAX));
                self.chunk -= count as u64;
                if self.chunk == 0 {
                    self.state = State::ContentReturn;
                }
                return Ok(DecodedPiece { consumed: at + count, content: at..at + count, done: false });
            }
            let Some(&byte) = input.get(at) else {
                return Ok(DecodedPiece { consumed: at, content: at..at, done: false });
            };
            self.state = self.step(byte)?;
            at += 1;
        }
        Ok(DecodedPiece { consumed: at, content: at..at, done: true })
    }

    fn step(&mut self, byte: u8) -> Result<State, Refusal> {
        let wrong = |what| Err(Refusal::Malformed(what));
        Ok(match (self.state, byte) {
            (State::Size, _) => return self.size(byte),
            (
                State::Blank
                | State::ExtensionBegin
                | State::ExtensionName
                | State::ExtensionNameBlank
                | State::ExtensionValueBegin
                | State::ExtensionToken
                | State::ExtensionQuoted
                | State::ExtensionQuotedPair
                | State::ExtensionQuotedEnd,
                _,
            ) => return self.extension(byte),
            (State::SizeLineFeed, b'\n') => return self.begin_chunk(),
            (State::ContentReturn, b'\r') => State::ContentLineFeed,
            (State::ContentLineFeed, b'\n') => {
                self.digits = 0;
                State::Size
            }
            (State::ContentReturn | State::ContentLineFeed, _) => {
                return wrong("a chunk is longer than its size");
            }
            (State::Trailer, b'\r') => State::LastLineFeed,
            (State::TrailerName, b':') => self.extra(State::TrailerValue)?,
            (State::Trailer | State::TrailerName, _) if is_token(&[byte]) => {
                self.extra(State::TrailerName)?
            }
            (State::Trailer | State::TrailerName, _) => {
                return wrong("the name of a trailer is not a token followed by a colon");
            }
            (State::TrailerValue, b'\r') => self.extra(State::TrailerLineFeed)?,
            (State::TrailerValue, _) if is_text(byte) => self.extra(State::TrailerValue)?,
            (State::TrailerValue, _) => return wrong("the value of a trailer has a control character"),
            (State::TrailerLineFeed, b'\n') => self.extra(State::Trailer)?,
            (State::LastLineFeed, b'\n') => State::Done,
            (State::SizeLineFeed | State::TrailerLineFeed | State::LastLineFeed, _) => {
                return wrong("a line of a chunked body does not end with CR LF");
            }
            (State::Content | State::Done, _) => unreachable!("decode handles content and the end"),
        })
    }

    fn size(&mut self, byte: u8) -> Result<State, Refusal> {
        if let Some(digit) = (byte as char).to_digit(16) {
            if self.digits > 0 && self.chunk == 0 {
                // The size began with a zero.
                self.chunk = u64::from(digit);
                return self.extra(State::Size);
            }
            if self.digits == MOST_DIGITS {
                return Err(Refusal::Malformed("the size of a chunk has too many digits"));
            }
            // Sixteen digits fit 64 bits.
            self.chunk = (if self.digits == 0 { 0 } else { self.chunk }) << 4 | u64::from(digit);
            self.digits += 1;
            return Ok(State::Size);
        }
        match byte {
            _ if self.digits == 0 => Err(Refusal::Malformed("the size of a chunk is missing")),
            b'\r' => Ok(State::SizeLineFeed),
            b';' => self.extra(State::ExtensionBegin),
            b' ' | b'\t' => self.extra(State::Blank),
            _ => Err(Refusal::Malformed("the size of a chunk is not hexadecimal digits")),
        }
    }

    /// Parses a byte of `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )` (RFC 9112 §7.1.1).
    fn extension(&mut self, byte: u8) -> Result<State, Refusal> {
        use State::{
            Blank, ExtensionBegin, ExtensionName, ExtensionNameBlank, ExtensionQuoted, ExtensionQuotedEnd,
            ExtensionQuotedPair, ExtensionToken, ExtensionValueBegin, SizeLineFeed,
        };
        let next = match (self.state, byte) {
            (ExtensionName | ExtensionToken | ExtensionQuotedEnd, b'\r') => return Ok(SizeLineFeed),
            (ExtensionQuoted, b'"') => ExtensionQuotedEnd,
            (ExtensionQuoted, b'\\') => ExtensionQuotedPair,
            (ExtensionQuoted | ExtensionQuotedPair, _) if is_text(byte) => ExtensionQuoted,
            (Blank | ExtensionToken | ExtensionQuotedEnd, b' ' | b'\t') => Blank,
            (ExtensionName, b' ' | b'\t') => ExtensionNameBlank,
            (ExtensionBegin | ExtensionNameBlank | ExtensionValueBegin, b' ' | b'\t') => self.state,
            (Blank | ExtensionName | ExtensionNameBlank | ExtensionToken | ExtensionQuotedEnd, b';') => {
                ExtensionBegin
            }
            (ExtensionName | ExtensionNameBlank, b'=') => ExtensionValueBegin,
            (ExtensionBegin | ExtensionName, _) if is_token(&[byte]) => ExtensionName,
            (ExtensionValueBegin, b'"') => ExtensionQuoted,
            (ExtensionValueBegin | ExtensionToken, _) if is_token(&[byte]) => ExtensionToken,
            (Blank, _) => {
                return Err(Refusal::Malformed("white space in a chunk's size line precedes no extension"));
            }
            _ => return Err(Refusal::Malformed("the extension of a chunk is malformed")),
        };
        self.extra(next)
    }

    /// Begins a chunk after the line with its size.
    fn begin_chunk(&mut self) -> Result<State, Refusal> {
        if self.chunk > i64::MAX as u64 {
            return Err(Refusal::Malformed("the size of a chunk exceeds 63 bits"));
        }
        let Some(left) = self.content_left.checked_sub(self.chunk) else {
            return Err(Refusal::BodyTooLarge);
        };
        self.content_left = left;
        Ok(if self.chunk == 0 { State::Trailer } else { State::Content })
    }

    /// Counts a byte of an extension or a trailer.
    fn extra(&mut self, next: State) -> Result<State, Refusal> {
        self.extra_left = self.extra_left.checked_sub(1).ok_or(Refusal::HeadTooLarge)?;
        Ok(next)
    }
}

/// Whether a field value may contain `byte` (RFC 9110 §5.5).
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests;
