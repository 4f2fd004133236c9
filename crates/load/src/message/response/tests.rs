//! Responses in pieces of any size.

use proptest::prelude::*;

use super::*;

/// Feeds `bytes` in pieces of the given sizes, in turn, and collects complete responses.
fn read(bytes: &[u8], traits: RequestTraits, sizes: &[usize]) -> Result<Vec<ReceivedResponse>, &'static str> {
    let (mut reader, mut known, mut found) = (ResponseParser::default(), HeadCache::default(), Vec::new());
    let mut rest = bytes;
    for size in sizes.iter().cycle() {
        let (mut piece, after) = rest.split_at((*size).min(rest.len()));
        while !piece.is_empty() {
            let (used, done) = reader.feed(piece, traits, &mut known)?;
            assert!(used > 0, "the parser makes progress");
            piece = &piece[used..];
            found.extend(done);
        }
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    found.extend(reader.end()?);
    Ok(found)
}

fn plain(bytes: &str) -> Result<Vec<ReceivedResponse>, &'static str> {
    read(bytes.as_bytes(), RequestTraits::default(), &[usize::MAX])
}

fn response(status: u16, length: u64, persistent: bool) -> ReceivedResponse {
    ReceivedResponse { status, length, hash: None, persistent }
}

#[test]
fn a_body_ends_by_length_by_chunks_or_with_the_connection() {
    let ok = |head: &str, body: &str| plain(&format!("HTTP/1.1 200 OK\r\n{head}\r\n{body}"));
    assert_eq!(ok("Content-Length: 5\r\n", "12345"), Ok(vec![response(200, 5, true)]));
    assert_eq!(ok("Content-Length: 5\r\nConnection: close\r\n", "12345"), Ok(vec![response(200, 5, false)]));
    assert_eq!(
        ok("Transfer-Encoding: chunked\r\n", "3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n"),
        Ok(vec![response(200, 13, true)])
    );
    assert_eq!(ok("", "all of it"), Ok(vec![response(200, 9, false)]));
    assert_eq!(plain("HTTP/1.1 204 No Content\r\n\r\n"), Ok(vec![response(204, 0, true)]));
    assert_eq!(plain("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"), Ok(vec![response(200, 1, false)]));
    assert_eq!(
        plain("HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: Keep-Alive\r\n\r\nx"),
        Ok(vec![response(200, 1, true)])
    );
    let interim = "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(plain(interim), Ok(vec![response(200, 0, true)]));
}

#[test]
fn the_request_determines_the_end_of_the_response() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let head = RequestTraits { head: true, ..RequestTraits::default() };
    assert_eq!(read(bytes, head, &[9]), Ok(vec![response(200, 0, true)]));
    let to_end = RequestTraits { to_end: true, ..RequestTraits::default() };
    let whole = [&bytes[..], b"12345"].concat();
    assert_eq!(read(&whole, to_end, &[9]), Ok(vec![response(200, 5, false)]));
    assert!(read(&whole[..whole.len() - 1], to_end, &[9]).is_err());
    assert!(read(&[&whole[..], b"6"].concat(), to_end, &[9]).is_err());
    let hash = RequestTraits { hash: true, ..RequestTraits::default() };
    let found = read(&whole, hash, &[7]).expect("it is well-formed");
    assert_eq!(found[0].hash.map(|hash| hash[..4].to_vec()), Some(vec![0x59, 0x94, 0x47, 0x1a]));
}

#[test]
fn malformed_responses_have_a_reason() {
    for (bytes, why) in [
        ("HTTP/2 200 OK\r\n\r\n", "not an HTTP/1"),
        ("hello\r\n\r\n", "not an HTTP/1"),
        ("HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n", "bare line feed"),
        ("HTTP/1.1 999 OK\r\n\r\n", "status"),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "not a number"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", "two different lengths"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nx", "both"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx", "not chunked"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "size of a chunk"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n",
            "precedes no extension",
        ),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "longer than its size"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", "middle"),
        ("HTTP/1.1 200 OK\r\nContent-", "middle"),
    ] {
        let said = plain(bytes).expect_err(bytes);
        assert!(said.contains(why), "{bytes:?}: {said}");
    }
    assert!(plain(&format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(MOST_HEAD))).is_err());
}

#[test]
fn a_cached_head_equals_a_parsed_one() {
    let one = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
    let other = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    let all = [one, one, other, one, other, other].concat();
    let statuses: Vec<u16> = plain(&all).expect("it is well-formed").iter().map(|one| one.status).collect();
    assert_eq!(statuses, [200, 200, 404, 200, 404, 404]);
}

proptest! {
    #[test]
    fn the_result_does_not_depend_on_how_bytes_are_split(
        bodies in proptest::collection::vec((0usize..60, 0u8..3), 1..6),
        sizes in proptest::collection::vec(1usize..40, 1..8),
        hash: bool,
    ) {
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for (size, kind) in bodies {
            let body = vec![b'x'; size];
            match kind {
                0 => bytes.extend(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").into_bytes()),
                1 => bytes.extend(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
                _ => bytes.extend(b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"),
            }
            match kind {
                0 => bytes.extend(&body),
                1 => {
                    for piece in body.chunks(7) {
                        bytes.extend(format!("{:x}\r\n", piece.len()).into_bytes());
                        bytes.extend(piece);
                        bytes.extend(b"\r\n");
                    }
                    bytes.extend(b"0\r\n\r\n");
                }
                _ => {}
            }
            expected.push((if kind == 2 { 304 } else { 200 }, if kind == 2 { 0 } else { size as u64 }));
        }
        let traits = RequestTraits { hash, ..RequestTraits::default() };
        let found = read(&bytes, traits, &sizes).expect("it is well-formed");
        let found: Vec<_> = found.iter().map(|one| (one.status, one.length)).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), sizes in proptest::collection::vec(1usize..40, 1..8)) {
        let _ = read(&bytes, RequestTraits::default(), &sizes);
        let _ = read(&[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &bytes[..]].concat(), RequestTraits::default(), &sizes);
    }
}
