//! PROXY protocol headers, valid and malformed. This test is also a fuzz target:
//! `cargo xtask fuzz --minutes 10 proxy`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tenfold_http::proxy::{MOST_BYTES, ProxyError, ProxyHeader, parse};

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// A header of version 2.
fn second(version_and_command: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).expect("it is short").to_be_bytes();
    [&SIGNATURE[..], &[version_and_command, kind], &length, body].concat()
}

/// The address of the client; empty if the header names no client.
fn source(bytes: &[u8]) -> String {
    let header = parse(bytes).expect("it is a header").expect("it is whole");
    assert_eq!(header.length, bytes.len());
    header.source.map(|source| source.to_string()).unwrap_or_default()
}

#[test]
fn a_header_of_version_1_names_the_client() {
    for (line, expected) in [
        ("TCP4 192.0.2.1 198.51.100.1 56324 443", "192.0.2.1:56324"),
        ("TCP4 255.255.255.255 255.255.255.255 65535 65535", "255.255.255.255:65535"),
        ("TCP6 2001:db8::1 ::1 0 443", "[2001:db8::1]:0"),
        ("TCP6 ::ffff:192.0.2.1 ::1 1 2", "[::ffff:192.0.2.1]:1"),
        ("UNKNOWN", ""),
        ("UNKNOWN ffff:f...f:ffff and anything else", ""),
    ] {
        assert_eq!(source(format!("PROXY {line}\r\n").as_bytes()), expected, "{line}");
    }
    let longest = format!("PROXY UNKNOWN {}\r\n", "x".repeat(91));
    assert_eq!((longest.len(), source(longest.as_bytes())), (107, String::new()));
}

#[test]
fn a_header_of_version_2_names_the_client() {
    let four = [192, 0, 2, 1, 198, 51, 100, 1, 0xdc, 4, 1, 0xbb];
    let six = [&Ipv6Addr::LOCALHOST.octets()[..], &[0; 16], &[1, 0, 0, 80]].concat();
    let tlvs = [4, 0, 3, b'a', b'b', b'c', 0x20, 0, 0];
    for (command, kind, body, expected) in [
        (0x21, 0x11, four.to_vec(), "192.0.2.1:56324"),
        (0x21, 0x11, [&four[..], &tlvs].concat(), "192.0.2.1:56324"),
        (0x21, 0x21, six.clone(), "[::1]:256"),
        (0x21, 0x21, [&six[..], &tlvs].concat(), "[::1]:256"),
        // LOCAL, UNSPEC, a datagram, and a Unix socket.
        (0x20, 0x11, four.to_vec(), ""),
        (0x20, 0x00, vec![], ""),
        (0x20, 0xff, vec![1], ""),
        (0x21, 0x00, tlvs.to_vec(), ""),
        (0x21, 0x12, four.to_vec(), ""),
        (0x21, 0x31, vec![b'/'; 216], ""),
        (0x21, 0x11, [&four[..], &vec![0; MOST_BYTES - 28]].concat(), "192.0.2.1:56324"),
    ] {
        assert_eq!(source(&second(command, kind, &body)), expected, "{command:x} {kind:x}");
    }
}

#[test]
fn wrong_headers_are_refused() {
    for line in [
        "TCP4 192.0.2.1 198.51.100.1 56324 443\n",
        "TCP4 192.0.2.1 198.51.100.1 56324\r\n",
        "TCP4 192.0.2.1 198.51.100.1 56324 443 \r\n",
        "TCP4  192.0.2.1 198.51.100.1 56324 443\r\n",
        "TCP4 192.0.2.1 198.51.100.1 65536 443\r\n",
        "TCP4 192.0.2.1 198.51.100.1 +1 443\r\n",
        "TCP4 192.0.2.1 198.51.100.1 01 443\r\n",
        "TCP4 2001:db8::1 ::1 1 2\r\n",
        "TCP6 192.0.2.1 198.51.100.1 1 2\r\n",
        "UDP4 192.0.2.1 198.51.100.1 1 2\r\n",
        "\r\n",
    ] {
        assert_eq!(parse(format!("PROXY {line}").as_bytes()), Err(ProxyError::Malformed), "{line}");
    }
    let long = format!("PROXY {}", "x".repeat(200));
    assert_eq!(parse(long.as_bytes()), Err(ProxyError::TooLong));
    for (command, kind, body, why) in [
        (0x11, 0x11, vec![0; 12], ProxyError::Version),
        (0x31, 0x11, vec![0; 12], ProxyError::Version),
        (0x22, 0x11, vec![0; 12], ProxyError::Malformed),
        (0x21, 0x11, vec![0; 11], ProxyError::Malformed),
        (0x21, 0x21, vec![0; 35], ProxyError::Malformed),
        (0x21, 0x31, vec![0; 215], ProxyError::Malformed),
        (0x21, 0x41, vec![0; 36], ProxyError::Malformed),
        (0x21, 0x13, vec![0; 36], ProxyError::Malformed),
        (0x20, 0x00, vec![0; MOST_BYTES - 15], ProxyError::TooLong),
    ] {
        assert_eq!(parse(&second(command, kind, &body)), Err(why), "{command:x} {kind:x}");
    }
    for other in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"\x16\x03\x01",
        b"\r\nGET",
        b"PROXY2 ",
        b"proxy TCP4 ",
        b"\r\n\r\n\0\r\nQUIX",
    ] {
        assert_eq!(parse(other), Err(ProxyError::Missing), "{}", other.escape_ascii());
    }
}

/// Parses a header slowly, following the words of the specification.
fn read_slowly(bytes: &[u8]) -> Option<ProxyHeader> {
    if let Some(rest) = bytes.strip_prefix(SIGNATURE) {
        let length = usize::from(*rest.get(2)?) << 8 | usize::from(*rest.get(3)?);
        let body = rest[4..].get(..length)?;
        let port = |at: usize| u16::from(body[at]) << 8 | u16::from(body[at + 1]);
        let source = match (rest[0], rest[1]) {
            (0x20, _) => None,
            (0x21, 0x11) if length >= 12 => {
                Some(SocketAddr::new(Ipv4Addr::new(body[0], body[1], body[2], body[3]).into(), port(8)))
            }
            (0x21, 0x21) if length >= 36 => {
                let address: [u8; 16] = body[..16].try_into().expect("so many");
                Some(SocketAddr::new(address.into(), port(32)))
            }
            (0x21, 0x00..=0x02 | 0x10 | 0x12 | 0x20 | 0x22 | 0x30..=0x32) => {
                let least = [0, 12, 36, 216][usize::from(rest[1] >> 4)];
                (length >= least).then_some(None)?
            }
            _ => return None,
        };
        return (16 + length <= MOST_BYTES).then_some(ProxyHeader { length: 16 + length, source });
    }
    let end = bytes.iter().take(107).position(|byte| *byte == b'\n')?;
    let line = std::str::from_utf8(&bytes[..end]).ok()?.strip_suffix('\r')?;
    let words: Vec<_> = line.split(' ').collect();
    let source = match words[..] {
        ["PROXY", "UNKNOWN", ..] => None,
        ["PROXY", family @ ("TCP4" | "TCP6"), from, to, port, other] => {
            let address =
                |text: &str| text.parse().ok().filter(|ip: &IpAddr| ip.is_ipv4() == (family == "TCP4"));
            let number = |text: &str| text.parse::<u16>().ok().filter(|port| port.to_string() == text);
            let _ = (address(to)?, number(other)?);
            Some(SocketAddr::new(address(from)?, number(port)?))
        }
        _ => return None,
    };
    Some(ProxyHeader { length: end + 1, source })
}

const PIECES: [&[u8]; 22] = [
    b"PROXY ",
    b"TCP4 ",
    b"TCP6 ",
    b"UNKNOWN",
    b"192.0.2.1 ",
    b"2001:db8::1 ",
    b"1 ",
    b"65535",
    b"0",
    b"\r\n",
    b" ",
    SIGNATURE,
    b"\x21",
    b"\x20",
    b"\x11",
    b"\x21\x00\x24",
    b"\x00\x0c",
    b"\x00",
    b"0123456789ab",
    b"\x0f\xf0",
    b"\x31",
    b"0123456789abcdef0123456789abcdef0123",
];

#[test]
fn a_proxy_header_is_read_as_a_slow_reader_reads_it_however_it_is_cut() {
    let check = bolero::check!().with_iterations(20_000).with_max_len(24);
    check.with_type::<(Vec<u8>, Vec<u8>)>().for_each(|(choices, tail)| {
        let pieces = choices.iter().flat_map(|choice| PIECES[usize::from(*choice) % PIECES.len()]);
        let bytes: Vec<u8> = pieces.chain(tail).copied().collect();
        let found = parse(&bytes);
        assert_eq!(found.ok().flatten(), read_slowly(&bytes), "{}", bytes.escape_ascii());
        // A header is incomplete until its last byte; malformed input fails from its first wrong byte on.
        let whole = found.ok().flatten().map_or(bytes.len(), |header| header.length);
        let mut failed = None;
        for end in 0..whole {
            match (parse(&bytes[..end]), failed) {
                (Err(why), None) => failed = Some(why),
                (Err(why), Some(before)) => assert_eq!(why, before),
                (Ok(None), None) => {}
                (other, before) => panic!("{other:?} after {before:?} at {end}: {}", bytes.escape_ascii()),
            }
        }
        assert!(failed.is_none() || found == Err(failed.expect("it failed")), "{}", bytes.escape_ascii());
    });
}
