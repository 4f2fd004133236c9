//! A strict parser of responses: heads, and bodies with a length, in chunks, or up to the end of the connection (RFC
//! 9112 §6.3).
//!
//! Most servers send the same head, byte for byte, until the clock shows another second. The parser therefore keeps
//! the last head of a target, and reuses its result if a response begins with the same bytes.

use std::mem::MaybeUninit;

use memchr::memmem;
use sha2::{Digest, Sha256};
use tenfold_http::Refusal;
use tenfold_http::h1::chunked::Decoder;

/// The most bytes of a head.
const MOST_HEAD: usize = 64 << 10;
/// The most fields of a head.
const MOST_FIELDS: usize = 128;

/// Properties of a request that the framing of its response depends on.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestTraits {
    /// The response to HEAD has no body.
    pub head: bool,
    /// The response ends with the connection, even if it has a length.
    pub to_end: bool,
    /// The parser computes a hash of the body.
    pub hash: bool,
}

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedResponse {
    /// Its status.
    pub status: u16,
    /// The length of its body in bytes.
    pub length: u64,
    /// The SHA-256 of its body, if requested.
    pub hash: Option<[u8; 32]>,
    /// Whether the connection persists.
    pub persistent: bool,
}

/// The result of parsing a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ParsedHead {
    status: u16,
    body: BodyFraming,
    persistent: bool,
    /// A head that precedes the final one (100, 103).
    interim: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyFraming {
    Fixed(u64),
    Chunked,
    ToEnd,
}

/// The last head of a target, with the result of parsing it.
#[derive(Clone, Debug, Default)]
pub struct HeadCache {
    bytes: Vec<u8>,
    parsed: Option<ParsedHead>,
}

/// The parser of one connection's responses.
#[derive(Debug, Default)]
pub struct ResponseParser {
    state: ParserState,
    /// The first part of an incomplete head.
    partial: Vec<u8>,
    chunks: Option<Decoder>,
    hasher: Option<Box<Sha256>>,
    status: u16,
    persistent: bool,
    length: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ParserState {
    #[default]
    Head,
    Fixed(u64),
    ToEnd(Option<u64>),
    Chunked,
}

impl ResponseParser {
    /// Parses the start of `input`. Returns the number of bytes used, and the response that they complete.
    ///
    /// # Errors
    /// The reason why the bytes are malformed. The connection is unusable afterwards.
    #[inline]
    pub fn feed(
        &mut self,
        input: &[u8],
        traits: RequestTraits,
        known: &mut HeadCache,
    ) -> Result<(usize, Option<ReceivedResponse>), &'static str> {
        let mut taken = 0;
        if self.state == ParserState::Head {
            let (used, parsed) = self.head(input, traits, known)?;
            taken = used;
            let Some(parsed) = parsed else { return Ok((taken, None)) };
            // The usual case: the whole response is in the input.
            if let BodyFraming::Fixed(length) = parsed.body
                && length <= (input.len() - taken) as u64
                && !(traits.to_end || traits.hash)
            {
                let ParsedHead { status, persistent, .. } = parsed;
                return Ok((
                    taken + length as usize,
                    Some(ReceivedResponse { status, length, hash: None, persistent }),
                ));
            }
            self.begin(parsed, traits);
        }
        let (used, done) = self.body(&input[taken..])?;
        Ok((taken + used, done))
    }

    /// Whether no byte of a response has arrived.
    pub fn is_fresh(&self) -> bool {
        self.state == ParserState::Head && self.partial.is_empty()
    }

    /// The remaining bytes of the body that need no parsing.
    #[inline]
    pub fn skippable(&self) -> u64 {
        match self.state {
            ParserState::Fixed(left) if self.hasher.is_none() => left,
            _ => 0,
        }
    }

    /// Counts `count` discarded bytes of the body. Returns the response if they complete it.
    pub fn skipped(&mut self, count: u64) -> Option<ReceivedResponse> {
        let ParserState::Fixed(left) = self.state else { return None };
        self.length += count;
        self.state = ParserState::Fixed(left - count);
        (left == count).then(|| self.finish())
    }

    /// Handles the end of the connection. Returns the response that it completes, if any.
    pub fn end(&mut self) -> Result<Option<ReceivedResponse>, &'static str> {
        match self.state {
            ParserState::Head if self.partial.is_empty() => Ok(None),
            ParserState::ToEnd(None) => Ok(Some(self.finish())),
            ParserState::ToEnd(Some(length)) if length == self.length => Ok(Some(self.finish())),
            ParserState::ToEnd(Some(length)) if length < self.length => {
                Err("the body is longer than its Content-Length")
            }
            _ => Err("the connection ended in the middle of a response"),
        }
    }

    fn begin(&mut self, parsed: ParsedHead, traits: RequestTraits) {
        (self.status, self.length) = (parsed.status, 0);
        self.persistent = parsed.persistent && !traits.to_end;
        self.hasher = traits.hash.then(|| Box::new(Sha256::new()));
        self.state = match parsed.body {
            BodyFraming::Fixed(length) if traits.to_end => ParserState::ToEnd(Some(length)),
            BodyFraming::Fixed(length) => ParserState::Fixed(length),
            BodyFraming::Chunked => {
                // The decoder stores no byte, so it needs no bounds. Without bounds it refuses only malformed bytes.
                self.chunks = Some(Decoder::new(u64::MAX, usize::MAX));
                ParserState::Chunked
            }
            BodyFraming::ToEnd => ParserState::ToEnd(None),
        };
    }

    fn finish(&mut self) -> ReceivedResponse {
        self.state = ParserState::Head;
        let hash = self.hasher.take().map(|hasher| hasher.finalize().into());
        ReceivedResponse { status: self.status, length: self.length, hash, persistent: self.persistent }
    }

    #[inline]
    fn head(
        &mut self,
        input: &[u8],
        traits: RequestTraits,
        known: &mut HeadCache,
    ) -> Result<(usize, Option<ParsedHead>), &'static str> {
        if self.partial.is_empty()
            && let Some(parsed) = known.parsed
            && input.starts_with(&known.bytes)
        {
            return Ok((known.bytes.len(), Some(parsed)));
        }
        self.read_head(input, traits, known)
    }

    /// Parses heads up to a final one; interim heads are skipped.
    fn read_head(
        &mut self,
        input: &[u8],
        traits: RequestTraits,
        known: &mut HeadCache,
    ) -> Result<(usize, Option<ParsedHead>), &'static str> {
        let mut taken = 0;
        loop {
            let (used, parsed) = match self.up_to_body(&input[taken..])? {
                (used, false) => return Ok((taken + used, None)),
                (used, true) => {
                    let from_parts = std::mem::take(&mut self.partial);
                    let head =
                        if from_parts.is_empty() { &input[taken..taken + used] } else { &from_parts[..] };
                    let parsed = parse(head, traits)?;
                    if !parsed.interim {
                        known.bytes.clear();
                        known.bytes.extend_from_slice(head);
                        known.parsed = Some(parsed);
                    }
                    (used, parsed)
                }
            };
            taken += used;
            if !parsed.interim {
                return Ok((taken, Some(parsed)));
            }
        }
    }

    /// Finds the end of a head in `partial` and `input`. Returns the number of input bytes that belong to the head, and
    /// whether it is complete. A head that arrives in parts is collected in `partial`; otherwise `partial` stays empty.
    fn up_to_body(&mut self, input: &[u8]) -> Result<(usize, bool), &'static str> {
        const END: &[u8] = b"\r\n\r\n";
        let had = self.partial.len();
        if had == 0
            && let Some(at) = memmem::find(input, END)
        {
            return if at < MOST_HEAD {
                Ok((at + END.len(), true))
            } else {
                Err("the head is larger than 64 KiB")
            };
        }
        self.partial.extend_from_slice(&input[..input.len().min(MOST_HEAD - had.min(MOST_HEAD))]);
        let from = had.saturating_sub(END.len() - 1);
        match memmem::find(&self.partial[from..], END) {
            Some(at) => {
                let end = from + at + END.len();
                self.partial.truncate(end);
                Ok((end - had, true))
            }
            None if self.partial.len() >= MOST_HEAD => Err("the head is larger than 64 KiB"),
            None => Ok((input.len(), false)),
        }
    }

    fn body(&mut self, input: &[u8]) -> Result<(usize, Option<ReceivedResponse>), &'static str> {
        let mut taken = 0;
        loop {
            let rest = &input[taken..];
            match self.state {
                ParserState::Head => return Ok((taken, None)),
                ParserState::Fixed(left) => {
                    let count = self.take(rest, left);
                    taken += count;
                    self.state = ParserState::Fixed(left - count as u64);
                    let done = (left == count as u64).then(|| self.finish());
                    return Ok((taken, done));
                }
                ParserState::ToEnd(_) => return Ok((taken + self.take(rest, u64::MAX), None)),
                ParserState::Chunked => {
                    let Some(decoder) = &mut self.chunks else { return Ok((taken, None)) };
                    let piece = decoder.decode(rest).map_err(Refusal::words)?;
                    self.take(&rest[piece.content], u64::MAX);
                    taken += piece.consumed;
                    if piece.done || taken == input.len() {
                        return Ok((taken, piece.done.then(|| self.finish())));
                    }
                }
            }
        }
    }

    fn take(&mut self, input: &[u8], left: u64) -> usize {
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&input[..count]);
        }
        self.length += count as u64;
        count
    }
}

/// Parses a complete head with its empty line.
fn parse(head: &[u8], traits: RequestTraits) -> Result<ParsedHead, &'static str> {
    if memchr::memchr_iter(b'\n', head).any(|at| at == 0 || head[at - 1] != b'\r') {
        return Err("a line of the head ends with a bare line feed");
    }
    let mut table = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    match config.parse_response_with_uninit_headers(&mut response, head, &mut table) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        Ok(_) => return Err("the head is incomplete"),
        Err(httparse::Error::TooManyHeaders) => return Err("the head has more than 128 fields"),
        Err(_) => return Err("the head is not an HTTP/1 response"),
    }
    let status = response.code.unwrap_or_default();
    if !(100..600).contains(&status) {
        return Err("the status is not from 100 to 599");
    }
    let (mut length, mut chunked) = (None, false);
    let mut persistent = response.version == Some(1);
    for field in response.headers.iter() {
        if field.name.eq_ignore_ascii_case("content-length") {
            let value = number(field.value).ok_or("Content-Length is not a number")?;
            if length.replace(value).is_some_and(|before| before != value) {
                return Err("the head has two different lengths");
            }
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            if chunked || !field.value.eq_ignore_ascii_case(b"chunked") {
                return Err("Transfer-Encoding is not chunked");
            }
            chunked = true;
        } else if field.name.eq_ignore_ascii_case("connection") {
            for option in field.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                if option.eq_ignore_ascii_case(b"close") {
                    persistent = false;
                } else if option.eq_ignore_ascii_case(b"keep-alive") && response.version == Some(0) {
                    persistent = true;
                }
            }
        }
    }
    let interim = status < 200 && status != 101;
    let body = match (chunked, length) {
        (true, Some(_)) => return Err("the head has both Content-Length and chunks"),
        _ if traits.head || status < 200 || status == 204 || status == 304 => BodyFraming::Fixed(0),
        (true, None) => BodyFraming::Chunked,
        (false, Some(length)) => BodyFraming::Fixed(length),
        (false, None) => BodyFraming::ToEnd,
    };
    Ok(ParsedHead { status, body, persistent: persistent && body != BodyFraming::ToEnd, interim })
}

fn number(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| digits)?.parse().ok()
}

#[cfg(test)]
mod tests;
