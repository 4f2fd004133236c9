//! Fields of honest proxies and of attackers.

use super::*;
use crate::h1::parse_request;

const ALL: ForwardedFields = ForwardedFields { x_for: true, x_proto: true, x_host: true, forwarded: true };
const USUAL: ForwardedFields = ForwardedFields { x_host: false, ..ALL };

fn client<T>(
    fields: ForwardedFields,
    lines: &[&[u8]],
    seen: impl FnOnce(&TrustedProxies, ForwardedClient<'_>) -> T,
) -> T {
    let proxies = ["10.0.0.0/8", "fd00::/8"].map(|text| text.parse().expect("a network")).to_vec();
    let trusted = TrustedProxies { proxies, fields };
    let mut bytes = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
    for line in lines {
        bytes.extend_from_slice(line);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    parse_request(&mut bytes, |request| {
        seen(&trusted, trusted.client(&request.expect("the request is good")))
    })
}

/// An empty `expected` stands for no address.
#[track_caller]
fn assert_address(lines: &[&str], expected: &str) {
    let lines: Vec<_> = lines.iter().map(|line| line.as_bytes()).collect();
    let found = client(USUAL, &lines, |_, client| client.address);
    assert_eq!(found.map(|found| found.to_string()).unwrap_or_default(), expected, "{lines:?}");
}

#[test]
fn the_client_is_the_last_address_that_no_trusted_proxy_has() {
    for (list, expected) in [
        ("192.0.2.1", "192.0.2.1"),
        ("203.0.113.9, 192.0.2.1", "192.0.2.1"),
        ("203.0.113.9, 192.0.2.1, 10.0.0.7,10.0.0.8", "192.0.2.1"),
        ("2001:db8::1, fd00::1", "2001:db8::1"),
        ("192.0.2.1:4711", "192.0.2.1"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("192.0.2.1, ,", "192.0.2.1"),
        // All addresses are trusted: the first address is the client.
        ("10.0.0.9, 10.0.0.7", "10.0.0.9"),
        ("unknown, 10.0.0.7", "10.0.0.7"),
        ("192.0.2.1, unknown", ""),
        ("", ""),
        ("1.2.3, x", ""),
    ] {
        assert_address(&[&format!("X-Forwarded-For: {list}")], expected);
    }
    let lines = ["X-Forwarded-For: 203.0.113.9", "x-forwarded-for: 192.0.2.1", "X-FORWARDED-FOR: 10.0.0.7"];
    assert_address(&lines, "192.0.2.1");
    for (list, expected) in [
        ("for=192.0.2.1", "192.0.2.1"),
        ("For=\"192.0.2.1:80\";proto=http;by=10.0.0.1", "192.0.2.1"),
        ("for=203.0.113.9, for=\"[2001:db8::1]:4711\"; host=\"a,b\", for=10.0.0.7", "2001:db8::1"),
        ("proto=https;for=192.0.2.1;", "192.0.2.1"),
        ("by=\"a;for=192.0.2.9\" ; for=192.0.2.1", "192.0.2.1"),
        ("for=192.0.2.1, for=unknown", ""),
        ("for=192.0.2.1, for=_hidden", ""),
        ("for=192.0.2.1;for=192.0.2.2", ""),
        ("for=192.0.2.1, for", ""),
        ("for=\"192.0.2.1", ""),
        ("for=\"192.0.2\\.1\"", ""),
    ] {
        assert_address(&[&format!("Forwarded: {list}")], expected);
    }
    assert_address(&["Forwarded: for=203.0.113.9", "Forwarded: for=192.0.2.1"], "192.0.2.1");
}

#[test]
fn h100_client_input_does_not_hide_the_element_of_a_proxy() {
    for forged in
        [&b"\"for=\""[..], b"for=\"", b"for=\"\\", b"\\\"", b"\xff\xfe", b",,,", b"for=\"a\\\"", b"for=x;"]
    {
        let list = [b"X-Forwarded-For: ", forged, b", 192.0.2.1"].concat();
        let elements = [b"Forwarded: ", forged, b", for=192.0.2.1;proto=https"].concat();
        let quoted = [b"Forwarded: ", forged, b", for=\"192.0.2.1:80\""].concat();
        for line in [list, elements, quoted] {
            let found = client(USUAL, &[&line], |_, client| client.address);
            assert_eq!(found, Some([192, 0, 2, 1].into()), "{}", line.escape_ascii());
        }
    }
}

#[test]
fn h100_fields_that_disagree_name_no_client() {
    let both = |fields, list: &str, elements: &str| {
        let lines = [format!("X-Forwarded-For: {list}"), format!("Forwarded: {elements}")];
        let lines: Vec<_> = lines.iter().map(|line| line.as_bytes()).collect();
        client(fields, &lines, |_, client| (client.address.map(|ip| ip.to_string()), client.ambiguous))
    };
    let (listed, elements) = ("203.0.113.9, 192.0.2.1", "for=192.0.2.1");
    assert_eq!(both(USUAL, listed, elements), (Some("192.0.2.1".into()), false));
    assert_eq!(both(USUAL, listed, "for=192.0.2.2"), (None, true));
    assert_eq!(both(USUAL, listed, "garbage"), (None, true));
    let one = ForwardedFields { forwarded: false, ..USUAL };
    assert_eq!(both(one, listed, "for=192.0.2.2"), (Some("192.0.2.1".into()), false));
    let other = ForwardedFields { forwarded: true, ..ForwardedFields::default() };
    assert_eq!(both(other, listed, "for=192.0.2.2"), (Some("192.0.2.2".into()), false));
}

#[test]
fn scheme_and_host_are_those_of_the_same_element_or_of_their_own_fields() {
    let seen = |fields, lines: &[&str]| {
        let lines: Vec<_> = lines.iter().map(|line| line.as_bytes()).collect();
        client(fields, &lines, |_, client| (client.scheme, client.host.map(str::to_owned)))
    };
    let only = ForwardedFields { forwarded: true, ..ForwardedFields::default() };
    let element =
        "Forwarded: for=192.0.2.1;proto=https;host=\"a.example:8080\", for=10.0.0.1;proto=http;host=b";
    assert_eq!(seen(only, &[element]), (Some(Scheme::Https), Some("a.example:8080".into())));
    // A proxy that does not support the field would forward its client's field.
    assert_eq!(seen(USUAL, &[element]), (Some(Scheme::Https), None));
    let lines = ["X-Forwarded-Proto: http, HTTPS", "X-Forwarded-Host: evil.example, b.example"];
    assert_eq!(seen(ALL, &lines), (Some(Scheme::Https), Some("b.example".into())));
    assert_eq!(seen(USUAL, &lines), (Some(Scheme::Https), None));
    assert_eq!(seen(USUAL, &["X-Forwarded-Proto: gopher"]), (None, None));
}

#[test]
fn a_request_takes_a_valid_host_and_no_other() {
    let mut bytes = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    parse_request(&mut bytes, |request| {
        let request = request.expect("the request is good");
        let host = |host| request.with_host(host).and_then(|request| request.host().map(str::to_owned));
        assert_eq!(host("b.example:80").as_deref(), Some("b.example:80"));
        for wrong in ["", "a/b", "a b", "\u{e4}", "a:b"] {
            assert_eq!(host(wrong), None, "{wrong}");
        }
    });
}

#[test]
fn any_fields_have_a_client_that_stands_in_them() {
    bolero::check!().with_iterations(4000).with_max_len(48).with_type::<(Vec<u8>, Vec<u8>)>().for_each(
        |(list, elements)| {
            let clean = |bytes: &[u8]| -> Vec<u8> {
                bytes.iter().copied().filter(|byte| *byte >= b' ' && *byte != 0x7f).collect()
            };
            let (list, elements) = (clean(list), clean(elements));
            let lines =
                [[b"X-Forwarded-For: ", &list[..]].concat(), [b"Forwarded: ", &elements[..]].concat()];
            let lines: Vec<_> = lines.iter().map(Vec::as_slice).collect();
            client(ALL, &lines, |_, client| {
                if let Some(host) = client.host {
                    assert!(host.len() <= elements.len());
                }
                assert!(!(client.ambiguous && client.address.is_some()));
            });
        },
    );
}
