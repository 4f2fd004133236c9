//! Bodies in chunks, read strictly (RFC 9112 §7.1).
//!
//! Requests are smuggled past two readers that disagree about the end of a chunk, so nothing is repaired: a size is
//! hexadecimal digits only, and every line ends with CR LF. Extensions and trailers are bounded, checked for control
//! characters, and dropped. Trailers are never merged into the fields of the head.

use std::ops::Range;

use crate::message::field::is_token;
use crate::message::refusal::Refusal;

/// Hexadecimal digits of a chunk's size: those of 64 bits.
const MOST_DIGITS: u8 = 16;

/// The state of a chunked body between one piece of input and the next. The result does not depend on how the input is
/// split.
///
/// ```
/// # use tenfold_http::h1::chunked::Decoder;
/// let (mut input, mut content) = (&b"3;x=y\r\nabc\r\n0\r\n\r\nGET /"[..], Vec::new());
/// let mut decoder = Decoder::new(100, 100);
/// loop {
///     let piece = decoder.decode(input).expect("the chunks are well-formed");
///     content.extend_from_slice(&input[piece.content]);
///     input = &input[piece.consumed..];
///     if piece.done {
///         break;
///     }
/// }
/// assert_eq!((&content[..], input), (&b"abc"[..], &b"GET /"[..]));
/// ```
#[derive(Clone, Debug)]
pub struct Decoder {
    state: State,
    /// Digits of the size that is being read.
    digits: u8,
    /// The size that is being read, then what is left of the chunk.
    chunk: u64,
    /// Bytes of content that may still come.
    content_left: u64,
    /// Bytes of extensions and trailers that may still come.
    extra_left: usize,
}

/// The result of [`Decoder::decode`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodedPiece {
    /// Bytes at the begin of the input that were decoded.
    pub consumed: usize,
    /// The content among them.
    pub content: Range<usize>,
    /// Whether the body ends with them. If it does not, the rest of the input is decoded next.
    pub done: bool,
}

/// The byte that is expected next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A digit, or the end of a size.
    Size,
    /// White space in front of the `;` of an extension.
    Blank,
    /// The name of an extension, or white space in front of it.
    ExtensionBegin,
    ExtensionName,
    /// White space between the name of an extension and its `=`.
    ExtensionNameBlank,
    /// The value of an extension, or white space in front of it.
    ExtensionValueBegin,
    ExtensionToken,
    ExtensionQuoted,
    /// The byte behind a backslash in a quoted value.
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
    /// A body that is about to begin: at most `most_content` bytes of content, and at most `most_extra`
    /// bytes of extensions and trailers, line ends of trailers included.
    pub fn new(most_content: u64, most_extra: usize) -> Decoder {
        Decoder {
            state: State::Size,
            digits: 0,
            chunk: 0,
            content_left: most_content,
            extra_left: most_extra,
        }
    }

    /// Reads on to the end of the next stretch of content, of the body, or of `input`.
    ///
    /// # Errors
    /// [`Refusal::Malformed`] for what is no body in chunks, [`Refusal::BodyTooLarge`] as soon as a chunk
    /// is announced that does not fit, [`Refusal::HeadTooLarge`] where extensions and trailers do not.
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
            (State::TrailerValue, _) => return wrong("the value of a trailer holds a control character"),
            (State::TrailerLineFeed, b'\n') => self.extra(State::Trailer)?,
            (State::LastLineFeed, b'\n') => State::Done,
            (State::SizeLineFeed | State::TrailerLineFeed | State::LastLineFeed, _) => {
                return wrong("a line of a chunked body does not end with CR LF");
            }
            (State::Content | State::Done, _) => unreachable!("content and the end are no single bytes"),
        })
    }

    fn size(&mut self, byte: u8) -> Result<State, Refusal> {
        if let Some(digit) = (byte as char).to_digit(16) {
            if self.digits == MOST_DIGITS {
                return Err(Refusal::Malformed("the size of a chunk has too many digits"));
            }
            // Sixteen digits fit.
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

    /// Reads a byte of `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )` (RFC 9112 §7.1.1).
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

    /// The line with a chunk's size has ended.
    fn begin_chunk(&mut self) -> Result<State, Refusal> {
        if self.chunk > i64::MAX as u64 {
            return Err(Refusal::Malformed("the size of a chunk is past every bound"));
        }
        let Some(left) = self.content_left.checked_sub(self.chunk) else {
            return Err(Refusal::BodyTooLarge);
        };
        self.content_left = left;
        Ok(if self.chunk == 0 { State::Trailer } else { State::Content })
    }

    /// Counts a byte that is neither content nor needed to frame it.
    fn extra(&mut self, next: State) -> Result<State, Refusal> {
        self.extra_left = self.extra_left.checked_sub(1).ok_or(Refusal::HeadTooLarge)?;
        Ok(next)
    }
}

/// Whether `byte` may stand in the value of a field (RFC 9110 §5.5).
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of a body, and what follows it.
    type Decoded<'a> = (Vec<u8>, &'a [u8]);

    /// Decodes all of `input`, which is all there is; none where the body has no end.
    fn decode(input: &[u8]) -> Result<Option<Decoded<'_>>, Refusal> {
        let (mut decoder, mut rest, mut content) = (Decoder::new(1000, 100), input, Vec::new());
        while !rest.is_empty() {
            let piece = decoder.decode(rest)?;
            content.extend_from_slice(&rest[piece.content]);
            rest = &rest[piece.consumed..];
            if piece.done {
                return Ok(Some((content, rest)));
            }
        }
        Ok(None)
    }

    #[track_caller]
    fn check(input: impl AsRef<[u8]>, content: &[u8], behind: &[u8]) {
        let input = input.as_ref();
        let found = decode(input).map(|found| found.map(|(content, behind)| (content, behind.to_vec())));
        assert_eq!(found, Ok(Some((content.to_vec(), behind.to_vec()))), "{}", input.escape_ascii());
    }

    #[track_caller]
    fn malformed(input: impl AsRef<[u8]>) {
        let (input, found) = (input.as_ref(), decode(input.as_ref()));
        assert!(matches!(found, Err(Refusal::Malformed(_))), "{}: {found:?}", input.escape_ascii());
    }

    #[test]
    fn chunks_are_put_together_and_nothing_behind_them_is_touched() {
        check("0\r\n\r\n", b"", b"");
        check("0\r\n\r\n\r\n", b"", b"\r\n");
        check("3\r\nabc\r\n0\r\n\r\nGET /", b"abc", b"GET /");
        check("3\r\nabc\r\n2\r\n\r\n\r\n0000\r\n\r\n", b"abc\r\n", b"");
        check("a\r\n0123456789\r\nA\r\nabcdefghij\r\n0\r\n\r\n", b"0123456789abcdefghij", b"");
        check("0000000000000003\r\nabc\r\n0\r\n\r\n", b"abc", b"");
    }

    #[test]
    fn h11_a_size_is_hexadecimal_digits_and_nothing_else() {
        let sizes = [
            "",
            "-1",
            "+3",
            "0x3",
            "0X3",
            "3_0",
            "_3",
            " 3",
            "\t3",
            "3 ",
            "3\t",
            "3 3",
            "g",
            "3g",
            "3.0",
            "3,",
            "\"3\"",
            "\u{ff13}",
            "\0",
            "3\0",
            "00000000000000003",
            "10000000000000000",
            "8000000000000000",
            "ffffffffffffffff",
            "ffffffffffffffffffff",
        ];
        for size in sizes {
            malformed(format!("{size}\r\nabc\r\n0\r\n\r\n"));
            malformed(format!("3\r\nabc\r\n{size}\r\n\r\n"));
        }
    }

    #[test]
    fn h08_h09_every_line_of_a_body_in_chunks_ends_with_cr_lf() {
        for input in [
            "3\nabc\r\n0\r\n\r\n",
            "3\r\nabc\n0\r\n\r\n",
            "3\r\nabc\r0\r\n\r\n",
            "3\r\nabc\r\n0\n\r\n",
            "3\r\nabc\r\n0\r\n\n",
            "3\rabc\r\n0\r\n\r\n",
            "3\r\r\nabc\r\n0\r\n\r\n",
            "0\r\n\rX",
            "0\r\nA: b\n\r\n",
            "0\r\nA: b\r\r\n\r\n",
            "0\r\nA: b\rC: d\r\n\r\n",
            "3;a\nabc\r\n0\r\n\r\n",
            "3;a\rb\r\nabc\r\n0\r\n\r\n",
            "3;a=\"\r\n\"\r\nabc\r\n0\r\n\r\n",
        ] {
            malformed(input);
        }
    }

    #[test]
    fn a_chunk_is_as_long_as_its_size() {
        for input in
            ["3\r\nabcd\r\n0\r\n\r\n", "3\r\nab\r\n0\r\n\r\n", "0\r\nabc\r\n\r\n", "3\r\nabc0\r\n\r\n"]
        {
            malformed(input);
        }
    }

    #[test]
    fn h12_extensions_and_trailers_are_dropped() {
        check("3;a\r\nabc\r\n0;b=c\r\n\r\n", b"abc", b"");
        check("3 \t;a=\"b;\\\" \u{e4}\" ; c\r\nabc\r\n0\r\n\r\n", b"abc", b"");
        check("3;a = b;c\t=\t\"\\\"\"\r\nabc\r\n0\r\n\r\n", b"abc", b"");
        check("0\r\nHost: evil\r\nContent-Length: 5\r\nX:\r\nY: \t\u{e4} z\r\n\r\nGET /", b"", b"GET /");
        for wrong in ["X", "X Y: z", "X : z", " X: y", ": y", "X: \0", "X: \x7f", "X\0: y", "\u{e4}: y"] {
            malformed(format!("0\r\n{wrong}\r\n\r\n"));
        }
        for control in (0..b' ').chain([0x7f]).filter(|byte| !b"\t\r".contains(byte)) {
            malformed([b"3;a=", &[control][..], b"\r\nabc\r\n0\r\n\r\n"].concat());
        }
    }

    #[test]
    fn h12_extensions_are_names_with_or_without_values() {
        let wrong = [
            ";",
            ";;a",
            ";a;",
            "; ",
            ";=b",
            ";a=",
            ";a=;b",
            ";bad@name",
            ";a b",
            ";a=b c",
            ";a=\"b",
            ";a=\"b\"c",
            ";a=\"b\\",
            ";a=b@c",
            ";a ",
            ";a=b ",
            ";a=\"b\" ",
            ";\u{e4}",
            " a",
        ];
        for extension in wrong {
            malformed(format!("3{extension}\r\nabc\r\n0\r\n\r\n"));
            malformed(format!("3\r\nabc\r\n0{extension}\r\n\r\n"));
        }
    }

    #[test]
    fn h12_the_bounds_are_exact() {
        let content = |length: usize| format!("{length:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(length));
        check(content(1000), "x".repeat(1000).as_bytes(), b"");
        // It is known before the first byte of the chunk.
        assert_eq!(decode(b"3e9\r\n"), Err(Refusal::BodyTooLarge));
        assert_eq!(decode(b"1\r\nx\r\n3e8\r\n"), Err(Refusal::BodyTooLarge));
        let extended = |length: usize| format!("0;{}\r\n\r\n", "x".repeat(length - 1));
        check(extended(100), b"", b"");
        assert_eq!(decode(extended(101).as_bytes()), Err(Refusal::HeadTooLarge));
        let trailed = |length: usize| format!("0\r\nX:{}\r\n\r\n", "x".repeat(length - 4));
        check(trailed(100), b"", b"");
        assert_eq!(decode(trailed(101).as_bytes()), Err(Refusal::HeadTooLarge));
        // They are counted together, over all chunks.
        assert_eq!(decode(&b"1;x\r\nx\r\n".repeat(51)), Err(Refusal::HeadTooLarge));
        check([&b"1;x\r\nx\r\n".repeat(50)[..], b"0\r\n\r\n"].concat(), &[b'x'; 50], b"");
    }

    #[test]
    fn a_body_without_an_end_has_none_at_any_byte() {
        let input = b"3;a=b\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nX: y\r\n\r\n";
        for end in 0..input.len() {
            assert_eq!(decode(&input[..end]), Ok(None), "{end}");
        }
    }
}
