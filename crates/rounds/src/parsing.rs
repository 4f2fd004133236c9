//! Parsers of heads: the server's, and a published state machine that reads byte by byte (T23).

use std::hint::black_box;
use std::time::Instant as Clock;

use tenfold_http::h1::parse_request;

use crate::{Operation, Round};

/// Heads of a round.
const HEADS: u32 = 500;
/// Bytes of the cookies of a long head, which is below the limit of the server.
const COOKIES: usize = 4096;

const SMALL: &str =
    "GET /index.html HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n";
const BROWSER: &str = "GET /assets/pictures/header.png?version=17 HTTP/1.1\r\nHost: www.example.org\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
    Accept: image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5\r\n\
    Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br, zstd\r\nConnection: keep-alive\r\n\
    Referer: https://www.example.org/assets/style.css\r\nSec-Fetch-Dest: image\r\nSec-Fetch-Mode: no-cors\r\n\
    Sec-Fetch-Site: same-origin\r\nPriority: u=5, i\r\nPragma: no-cache\r\nCache-Control: no-cache\r\n\r\n";

/// The parser of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parser {
    /// The parser of this server.
    Own,
    /// The published parser (T23), byte by byte.
    ByByte,
}

/// A round that parses one head repeatedly; `None` if the operation is not parsing.
pub fn round(parser: Parser, operation: Operation) -> Option<Box<Round>> {
    let mut head = head(operation)?;
    Some(Box::new(move |_| {
        let clock = Clock::now();
        for _ in 0..HEADS {
            let bytes = black_box(&mut head[..]);
            match parser {
                Parser::ByByte => drop(black_box(ByteHead::parse(bytes))),
                Parser::Own => parse_request(bytes, |parsed| {
                    let _ = black_box(parsed.map(|request| request.host().map(str::len)));
                }),
            }
        }
        (clock.elapsed().as_nanos() as f64 / f64::from(HEADS), None)
    }))
}

fn head(operation: Operation) -> Option<Vec<u8>> {
    Some(match operation {
        Operation::ParseSmall => SMALL.into(),
        Operation::ParseBrowser => BROWSER.into(),
        Operation::ParseCookies => {
            let cookies = format!("Cookie: session={}\r\n\r\n", "0123456789abcdef".repeat(COOKIES / 16));
            [BROWSER.trim_end_matches("\r\n"), "\r\n", &cookies].concat().into()
        }
        _ => return None,
    })
}

/// The parts of a head that the published parser keeps.
#[derive(Debug, Default, PartialEq, Eq)]
struct ByteHead<'a> {
    target: &'a [u8],
    host: &'a [u8],
    persistent: bool,
    length: usize,
}

impl<'a> ByteHead<'a> {
    /// Parses a complete head; `None` if it is malformed. It supports two methods, one version and three fields, checks
    /// no characters, and ignores other fields.
    fn parse(bytes: &'a [u8]) -> Option<ByteHead<'a>> {
        let mut head = ByteHead::default();
        let (mut from, mut first) = (0, true);
        loop {
            let line = line(&bytes[from..])?;
            from += line.len() + 2;
            if line.is_empty() {
                return (!first).then_some(head);
            }
            if std::mem::take(&mut first) {
                head.request_line(line)?;
            } else {
                head.field(line)?;
            }
        }
    }

    fn request_line(&mut self, line: &'a [u8]) -> Option<()> {
        let mut words = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        self.target = target;
        let known = method.eq_ignore_ascii_case(b"GET") || method.eq_ignore_ascii_case(b"POST");
        (known && version.eq_ignore_ascii_case(b"HTTP/1.1") && target.first() == Some(&b'/')).then_some(())
    }

    fn field(&mut self, line: &'a [u8]) -> Option<()> {
        let after = |name: &str| {
            let start = line.get(..name.len()).filter(|start| start.eq_ignore_ascii_case(name.as_bytes()))?;
            Some(line[start.len()..].trim_ascii_start())
        };
        if let Some(value) = after("Connection:") {
            self.persistent = value.eq_ignore_ascii_case(b"keep-alive");
        } else if let Some(value) = after("Content-length:") {
            self.length = std::str::from_utf8(value).ok()?.parse().ok()?;
        } else if let Some(value) = after("Host:") {
            self.host = value;
        }
        Some(())
    }
}

/// The bytes before the first CRLF, found byte by byte. `None` without a CRLF, or for a bare CR or LF.
fn line(bytes: &[u8]) -> Option<&[u8]> {
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\r' => return (bytes.get(at + 1) == Some(&b'\n')).then(|| &bytes[..at]),
            b'\n' => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Operation; 3] = [Operation::ParseSmall, Operation::ParseBrowser, Operation::ParseCookies];

    #[test]
    fn both_parsers_accept_every_head_and_agree() {
        for operation in ALL {
            let mut bytes = head(operation).expect("a head");
            let host = ByteHead::parse(&bytes).map(|head| head.host.to_vec());
            let host = host.unwrap_or_else(|| panic!("{operation:?} is not accepted"));
            assert_eq!(host, b"www.example.org");
            parse_request(&mut bytes, |parsed| {
                let request = parsed.unwrap_or_else(|refusal| panic!("{operation:?}: {refusal:?}"));
                assert_eq!(request.host().map(str::as_bytes), Some(&host[..]));
                assert_eq!(request.only("Cookie").is_some(), operation == Operation::ParseCookies);
            });
        }
        assert!(head(Operation::ParseCookies).expect("a head").len() > 10 * SMALL.len());
    }

    #[test]
    fn the_published_parser_refuses_malformed_heads() {
        for wrong in
            ["", "GET / HTTP/1.1\r\n", "PUT / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n", "\r\n"]
        {
            assert_eq!(ByteHead::parse(wrong.as_bytes()), None, "{wrong:?}");
        }
        let found =
            ByteHead::parse(b"POST /a HTTP/1.1\r\ncontent-length: 7\r\nConnection: keep-alive\r\n\r\n");
        let found = found.expect("it is one");
        assert_eq!((found.target, found.length, found.persistent), (&b"/a"[..], 7, true));
    }

    #[test]
    fn a_round_has_a_time_and_a_timer_is_no_parser() {
        for parser in [Parser::Own, Parser::ByByte] {
            for operation in ALL {
                let mut round = round(parser, operation).expect("it parses");
                assert!(round(&mut fastrand::Rng::with_seed(1)).0 > 0.0);
            }
            assert!(round(parser, Operation::Tick).is_none());
        }
    }
}
