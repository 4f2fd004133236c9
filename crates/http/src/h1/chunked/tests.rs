//! Chunked bodies: framing, extensions, trailers and bounds.

use super::*;

/// The content of a body, and the bytes after it.
type Decoded<'a> = (Vec<u8>, &'a [u8]);

/// Decodes all of `input`; None if the body does not end.
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
fn check(input: impl AsRef<[u8]>, content: impl AsRef<[u8]>, rest: &[u8]) {
    let input = input.as_ref();
    let found = decode(input).map(|found| found.map(|(content, rest)| (content, rest.to_vec())));
    assert_eq!(found, Ok(Some((content.as_ref().to_vec(), rest.to_vec()))), "{}", input.escape_ascii());
}

#[track_caller]
fn malformed(input: impl AsRef<[u8]>) {
    let (input, found) = (input.as_ref(), decode(input.as_ref()));
    assert!(matches!(found, Err(Refusal::Malformed(_))), "{}: {found:?}", input.escape_ascii());
}

/// Puts each of `words` in place of the star of each body.
#[track_caller]
fn all_malformed(bodies: [&str; 2], words: &[&str]) {
    for word in words {
        bodies.iter().for_each(|body| malformed(body.replace('*', word)));
    }
}

#[test]
fn h12_chunks_are_joined_without_extensions_and_trailers_and_later_bytes_are_not_read() {
    check("0\r\n\r\n", "", b"");
    check("0\r\n\r\n\r\n", "", b"\r\n");
    check("3\r\nabc\r\n0\r\n\r\nGET /", "abc", b"GET /");
    check("3\r\nabc\r\n2\r\n\r\n\r\n0000\r\n\r\n", "abc\r\n", b"");
    check("a\r\n0123456789\r\nA\r\nabcdefghij\r\n0\r\n\r\n", "0123456789abcdefghij", b"");
    check("0000000000000003\r\nabc\r\n0\r\n\r\n", "abc", b"");
    check("3;a\r\nabc\r\n0;b=c\r\n\r\n", "abc", b"");
    check("3 \t;a=\"b;\\\" \u{e4}\" ; c\r\nabc\r\n0\r\n\r\n", "abc", b"");
    check("3;a = b;c\t=\t\"\\\"\"\r\nabc\r\n0\r\n\r\n", "abc", b"");
    check("0\r\nHost: evil\r\nContent-Length: 5\r\nX:\r\nY: \t\u{e4} z\r\n\r\nGET /", "", b"GET /");
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
        "10000000000000003",
        "10000000000000000",
        "8000000000000000",
        "ffffffffffffffff",
        "ffffffffffffffffffff",
    ];
    all_malformed(["*\r\nabc\r\n0\r\n\r\n", "3\r\nabc\r\n*\r\n\r\n"], &sizes);
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
    for input in ["3\r\nabcd\r\n0\r\n\r\n", "3\r\nab\r\n0\r\n\r\n", "0\r\nabc\r\n\r\n", "3\r\nabc0\r\n\r\n"] {
        malformed(input);
    }
}

#[test]
fn h12_malformed_extensions_and_trailers_are_refused() {
    for wrong in ["X", "X Y: z", "X : z", " X: y", ": y", "X: \0", "X: \x7f", "X\0: y", "\u{e4}: y"] {
        malformed(format!("0\r\n{wrong}\r\n\r\n"));
    }
    for control in (0..b' ').chain([0x7f]).filter(|byte| !b"\t\r".contains(byte)) {
        malformed([b"3;a=", &[control][..], b"\r\nabc\r\n0\r\n\r\n"].concat());
    }
}

#[test]
fn h12_extensions_are_names_with_or_without_values() {
    let extensions = [
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
    all_malformed(["3*\r\nabc\r\n0\r\n\r\n", "3\r\nabc\r\n0*\r\n\r\n"], &extensions);
}

#[test]
fn h12_the_bounds_are_exact() {
    let content = |length: usize| format!("{length:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(length));
    check(content(1000), "x".repeat(1000), b"");
    // The bound is checked before the first byte of the chunk.
    assert_eq!(decode(b"3e9\r\n"), Err(Refusal::BodyTooLarge));
    assert_eq!(decode(b"1\r\nx\r\n3e8\r\n"), Err(Refusal::BodyTooLarge));
    let extended = |length: usize| format!("0;{}\r\n\r\n", "x".repeat(length - 1));
    check(extended(100), b"", b"");
    assert_eq!(decode(extended(101).as_bytes()), Err(Refusal::HeadTooLarge));
    let trailed = |length: usize| format!("0\r\nX:{}\r\n\r\n", "x".repeat(length - 4));
    check(trailed(100), b"", b"");
    assert_eq!(decode(trailed(101).as_bytes()), Err(Refusal::HeadTooLarge));
    // All chunks share the bound.
    assert_eq!(decode(&b"1;x\r\nx\r\n".repeat(51)), Err(Refusal::HeadTooLarge));
    check([&b"1;x\r\nx\r\n".repeat(50)[..], b"0\r\n\r\n"].concat(), "x".repeat(50), b"");
}

#[test]
fn an_endless_body_is_incomplete_at_every_byte() {
    let input = b"3;a=b\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nX: y\r\n\r\n";
    for end in 0..input.len() {
        assert_eq!(decode(&input[..end]), Ok(None), "{end}");
    }
}
