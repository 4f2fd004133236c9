//! Requests from a seed: half of them well-formed, half of them mutated.

pub use tenfold_testkit::random::SeededRandom;

use crate::site::MODIFIED_DATE;

/// The input of one connection.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The number of requests from which they were made.
    pub requests: usize,
}

const METHODS: &[&str] =
    &["GET", "GET", "GET", "GET", "GET", "HEAD", "HEAD", "POST", "OPTIONS", "DELETE", "PUT"];
const ODD_METHODS: &[&str] = &["TRACE", "CONNECT", "BREW", "get", "G\u{c9}T", "", "GET/", "PATCH"];
const TARGETS: &[&str] = &[
    "/",
    "/1k.html",
    "/1k.html",
    "/16k.bin",
    "/style.css",
    "/empty.txt",
    "/folder/",
    "/folder",
    "/folder/page.html?x=1",
    "/with%20space.txt",
    "/none.html",
    "/in.html",
    "http://localhost/1k.html",
];
const ODD_TARGETS: &[&str] = &[
    "*",
    "",
    "1k.html",
    "//1k.html",
    "/%2e%2e/1k.html",
    "/folder/../1k.html",
    "/folder/%2e%2e/1k.html",
    "/./1k.html",
    "/..",
    "/../../../../etc/passwd",
    "/out.txt",
    "/etc/passwd",
    "/.secret",
    "/.git/config",
    "/folder/.hidden",
    "/pipe",
    "/bare",
    "/bare/",
    "/locked.txt",
    "/1k.html/",
    "/1k.html%00",
    "/%",
    "/%4",
    "/%zz",
    "/%252e",
    "/%c0%af",
    "/\\folder\\page.html",
    "/%5cfolder",
    "/a b",
    "/<script>",
    "/1k.html#here",
    "/1k.html?a=<b>",
    "/folder%2fpage.html",
    "https://localhost/style.css",
    "http:///1k.html",
    "http://evil.example/1k.html",
    "ftp://localhost/1k.html",
    "localhost:80",
    "/.well-known/hello.txt",
];
const VERSIONS: &[&str] = &["HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0"];
const ODD_VERSIONS: &[&str] = &[
    "HTTP/0.9",
    "HTTP/2.0",
    "HTTP/1.7",
    "HTTP/3.7",
    "HTTP/11",
    "http/1.1",
    "HTTP/1.1 ",
    "",
    "HTTP/1.",
    "HTCPCP/1.0",
];
const RANGES: &[&str] = &[
    "bytes=0-0",
    "bytes=0-99",
    "bytes=100-",
    "bytes=-10",
    "bytes=-0",
    "bytes=1023-",
    "bytes=1024-",
    "bytes=5-2",
    "bytes=a-b",
    "bytes= 1-2",
    "bytes=0-18446744073709551615",
    "bytes=0-99999999999999999999999",
    "lines=1-2",
    "bytes=0-1,5-6",
    "bytes=",
];
const ODD_FIELDS: &[&str] = &[
    "Host: other",
    "Host : localhost",
    "Host:",
    "Content-Length: 0",
    "Content-Length: 5",
    "Content-Length: +5",
    "Content-Length: 18446744073709551616",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: gzip",
    "Expect: 100-continue",
    "Expect: more",
    "Upgrade: h2c",
    " folded",
    "\tfolded",
    "no colon",
    ": no name",
    "X-Nul: a\0b",
    "X-Bare: a\rb",
    "X-Tab: a\tb",
    "X-High: \u{fc}",
    "Na me: value",
    "Connection: close",
    "Connection: keep-alive, close",
    "Connection: upgrade",
];

/// Makes exchange `index` of this seed: one request, or several pipelined ones. Half of all requests are mutated.
/// Mutated requests are in short exchanges, because most of them end their connection. In long exchanges only the last
/// request may close.
pub fn exchange(seed: u64, index: usize) -> Exchange {
    let index = u64::try_from(index).expect("a number of exchanges fits 64 bits");
    let mut random =
        SeededRandom::new(SeededRandom::new(seed ^ index.wrapping_mul(0xd6e8_feb8_6659_fd93)).number());
    let random = &mut random;
    let mut bytes = Vec::new();
    if random.once_in(7) {
        let requests = 4 + random.below(17);
        for at in 1..=requests {
            bytes.extend(well_formed(random, at == requests));
        }
        return Exchange { bytes, requests };
    }
    let requests = 1 + random.below(5);
    for _ in 0..requests {
        let mut one = well_formed(random, true);
        if !random.once_in(6) {
            mutate(&mut one, random);
        }
        bytes.extend(one);
    }
    Exchange { bytes, requests }
}

/// A well-formed request; one with `Connection: close` only if it is the last.
fn well_formed(random: &mut SeededRandom, last: bool) -> Vec<u8> {
    let method = random.of(METHODS);
    let version = if last { random.of(VERSIONS) } else { "HTTP/1.1" };
    let mut text = format!("{method} {} {version}\r\nHost: localhost\r\n", random.of(TARGETS));
    let mut field = |line: &str| text.push_str(&format!("{line}\r\n"));
    if random.once_in(4) {
        field(&format!("Range: {}", random.of(RANGES)));
    }
    if random.once_in(6) {
        field(&format!("If-None-Match: {}", random.of(&["*", "\"x\"", "W/\"x\", \"y\"", "", "x"])));
    }
    if random.once_in(6) {
        let dates =
            [MODIFIED_DATE, "Sat, 01 Jan 2000 00:00:00 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "yesterday"];
        field(&format!("If-Modified-Since: {}", random.of(&dates)));
    }
    if random.once_in(10) {
        field(&format!("If-Range: {}", random.of(&[MODIFIED_DATE, "\"x\"", "W/\"x\""])));
    }
    if random.once_in(12) {
        field(&format!(
            "{}: {}",
            random.of(&["If-Match", "If-Unmodified-Since"]),
            random.of(&["*", "\"x\"", MODIFIED_DATE])
        ));
    }
    if random.once_in(6) {
        let options: &[&str] =
            if last { &["close", "keep-alive", "Keep-Alive"] } else { &["keep-alive", "Keep-Alive"] };
        field(&format!("Connection: {}", random.of(options)));
    }
    let body = if matches!(method, "POST" | "PUT") { random.below(40) } else { 0 };
    if body > 0 {
        field(&format!("Content-Length: {body}"));
    }
    text.push_str("\r\n");
    text.push_str(&"b".repeat(body));
    text.into_bytes()
}

fn mutate(bytes: &mut Vec<u8>, random: &mut SeededRandom) {
    match random.below(9) {
        0 => {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        1 => {
            let at = random.below(bytes.len());
            bytes[at] = u8::try_from(random.below(256)).expect("it is below 256");
        }
        2 => bytes.truncate(random.below(bytes.len())),
        3 => {
            let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
            let part = bytes[from.min(to)..from.max(to)].to_vec();
            let at = random.below(bytes.len());
            bytes.splice(at..at, part);
        }
        4 => {
            let (from, to) = (random.below(bytes.len()), random.below(bytes.len()));
            bytes.drain(from.min(to)..from.max(to));
        }
        5 => replace_word(bytes, 0, random.of(ODD_METHODS)),
        6 => replace_word(bytes, 1, random.of(ODD_TARGETS)),
        7 => replace_word(bytes, 2, random.of(ODD_VERSIONS)),
        _ => {
            let ends: Vec<usize> =
                bytes.windows(2).enumerate().filter(|(_, two)| two == b"\r\n").map(|(at, _)| at).collect();
            let at = ends[random.below(ends.len())] + 2;
            bytes.splice(at..at, format!("{}\r\n", random.of(ODD_FIELDS)).into_bytes());
        }
    }
}

/// Replaces a word of the request line.
fn replace_word(bytes: &mut Vec<u8>, index: usize, word: &str) {
    let line = bytes.iter().position(|&byte| byte == b'\r').unwrap_or(bytes.len());
    let mut words: Vec<&[u8]> = bytes[..line].split(|&byte| byte == b' ').collect();
    words[index] = word.as_bytes();
    let new = words.join(&b' ');
    bytes.splice(..line, new);
}
