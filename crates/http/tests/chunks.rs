//! Chunked bodies, compared with a slow and simple reader. This test is also a fuzz target:
//! `cargo xtask fuzz --minutes 10 chunked`.

use std::sync::atomic::{AtomicUsize, Ordering};

use tenfold_http::h1::chunked::Decoder;

/// Parts of chunked bodies, valid and malformed.
const CHUNKS: [&str; 35] = [
    "0\r\n\r\n",
    "0\r\n",
    "\r\n",
    "1\r\nx\r\n",
    "3\r\nxyz\r\n",
    "A\r\n0123456789\r\n",
    "2;a=b\r\n\r\n\r\n",
    "1 \t; a=\"b;c\"\r\nx\r\n",
    "000002\r\nxy\r\n",
    "0;a\r\nX: y\r\n\r\n",
    "X: y\r\n",
    "X:\r\n",
    "X-Y_z:\t\u{e4}\r\n",
    "X : y\r\n",
    "10\r\n0123456789abcdef\r\n",
    "11\r\n",
    "40\r\n",
    "ffffffffffffffff\r\n",
    "10000000000000000\r\n",
    "-1\r\n",
    "0x1\r\n",
    "1\n",
    "x",
    "\r",
    "\n",
    ";",
    " ",
    "=",
    "\"",
    "\\",
    ":",
    "\0",
    "g",
    "1",
    "0",
];

fn is_token(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte)
}

/// Whether `rest` is `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )` (RFC 9112 §7.1.1).
fn are_extensions(mut rest: &[u8]) -> bool {
    let blank = |rest: &[u8]| rest.iter().take_while(|byte| b" \t".contains(byte)).count();
    let token = |rest: &[u8]| rest.iter().take_while(|byte| is_token(byte)).count();
    while !rest.is_empty() {
        let Some(behind) = rest[blank(rest)..].strip_prefix(b";") else { return false };
        rest = &behind[blank(behind)..];
        let name = token(rest);
        if name == 0 {
            return false;
        }
        rest = &rest[name..];
        let Some(value) = rest[blank(rest)..].strip_prefix(b"=") else { continue };
        rest = &value[blank(value)..];
        let length = if rest.starts_with(b"\"") { quoted(rest) } else { token(rest) };
        if length == 0 {
            return false;
        }
        rest = &rest[length..];
    }
    true
}

/// The length of the quoted string at the start of `rest`, or 0 if it does not end (RFC 9110 §5.6.4).
fn quoted(rest: &[u8]) -> usize {
    let text = |byte: u8| byte == b'\t' || byte >= b' ' && byte != 0x7f;
    let mut at = 1;
    loop {
        match rest[at..] {
            [b'"', ..] => return at + 1,
            [b'\\', byte, ..] if text(byte) => at += 2,
            [byte, ..] if byte != b'\\' && text(byte) => at += 1,
            _ => return 0,
        }
    }
}

/// Reads a chunked body following RFC 9112 §7.1 word by word. Returns the content and the length of the body,
/// or `None` if the body is malformed, incomplete or exceeds a bound.
fn read_chunks(input: &[u8], most_content: usize, most_extra: usize) -> Option<(Vec<u8>, usize)> {
    let text = |byte: &u8| *byte == b'\t' || *byte >= b' ' && *byte != 0x7f;
    let (mut at, mut content, mut extra) = (0, Vec::new(), 0);
    let line = |at: usize| {
        let length = input[at..].windows(2).position(|pair| pair == b"\r\n")?;
        Some(&input[at..at + length])
    };
    loop {
        let size_line = line(at)?;
        let digits = size_line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (digits, extension) = size_line.split_at(digits);
        let size = u128::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        // Zeros before a size count like an extension, except the only digit of the last chunk.
        extra += if zeros == digits.len() { zeros - 1 } else { zeros };
        if digits.len() - zeros > 16 || size > i64::MAX as u128 || !are_extensions(extension) {
            return None;
        }
        extra += extension.len();
        at += size_line.len() + 2;
        if size == 0 {
            break;
        }
        let size = usize::try_from(size).ok()?;
        content.extend_from_slice(input.get(at..at.checked_add(size)?)?);
        at += size;
        at += input[at..].starts_with(b"\r\n").then_some(2)?;
    }
    loop {
        let trailer = line(at)?;
        at += trailer.len() + 2;
        if trailer.is_empty() {
            break;
        }
        let (name, value) = trailer.split_at(trailer.iter().position(|&byte| byte == b':')?);
        if name.is_empty() || !name.iter().all(is_token) || !value.iter().all(text) {
            return None;
        }
        extra += trailer.len() + 2;
    }
    (content.len() <= most_content && extra <= most_extra).then_some((content, at))
}

#[test]
fn chunks_are_read_as_a_slow_reader_reads_them_however_they_are_cut() {
    let accepted = AtomicUsize::new(0);
    let check = |input: &[u8], cuts: &[u8]| {
        let expected = read_chunks(input, 64, 32);
        accepted.fetch_add(usize::from(expected.is_some()), Ordering::Relaxed);
        let (mut decoder, mut content, mut consumed, mut done) = (Decoder::new(64, 32), Vec::new(), 0, false);
        let mut cuts = cuts.iter().map(|&cut| usize::from(cut % 8)).chain(std::iter::repeat(usize::MAX));
        while !done && consumed < input.len() {
            let piece = &input[consumed..];
            let mut piece = &piece[..piece.len().min(cuts.next().expect("there is no end of cuts"))];
            while !done && !piece.is_empty() {
                let Ok(found) = decoder.decode(piece) else {
                    return assert_eq!(expected, None, "{}", input.escape_ascii());
                };
                assert!(found.consumed > 0 || found.done, "the decoder makes no progress");
                content.extend_from_slice(&piece[found.content]);
                piece = &piece[found.consumed..];
                (consumed, done) = (consumed + found.consumed, found.done);
            }
        }
        assert_eq!(done.then_some((content, consumed)), expected, "{}", input.escape_ascii());
    };
    bolero::check!()
        .with_iterations(20_000)
        .with_max_len(24)
        .with_type::<(bool, Vec<u8>, Vec<u8>)>()
        .for_each(|(raw, choices, cuts)| {
            if *raw {
                return check(choices, cuts);
            }
            let piece = |&choice: &u8| match choice {
                0..200 => CHUNKS[choice as usize % 10],
                200.. => CHUNKS[choice as usize % CHUNKS.len()],
            };
            let input: Vec<u8> = choices.iter().flat_map(|choice| piece(choice).bytes()).collect();
            check(&input, cuts);
        });
    // The comparison is only meaningful if some bodies are valid.
    assert!(accepted.into_inner() > 100, "too few bodies are valid");
}
