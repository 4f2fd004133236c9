//! Arbitrary bytes as forms and cookies, compared with slow and simple parsers. The fuzz harnesses use it too: `cargo
//! xtask fuzz --minutes 10 form cookie`.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tenfold_http::h1::parse_request;
use tenfold_http::{Connection, Local, Out, Peer, Request, ResponseWriter};

use super::{LONGEST_FORM, ReplyAction, RequestAction, Web, WebSettings};
use crate::ask::{MOST_TRIED, Query, Refused, Reply};
use crate::token;

fn web() -> AssertUnwindSafe<Arc<Web>> {
    let settings = WebSettings {
        protect: vec!["/members/".parse().expect("a folder of the site")],
        ..WebSettings::default()
    };
    AssertUnwindSafe(Arc::new(Web::new(settings, |_| Ok(None)).expect("the built-in templates are good")))
}

fn connection() -> Connection {
    let peer = Peer::Internet(SocketAddr::from(([192, 0, 2, 1], 80)));
    Connection::plaintext(peer, Local { listener: 0 })
}

/// Joins chosen pieces; the last choices are literal bytes.
fn assemble(pieces: &[&str], choices: &[u8]) -> Vec<u8> {
    let piece = |choice: &u8| match choice {
        0..248 => pieces[usize::from(*choice) % pieces.len()].as_bytes().to_vec(),
        248.. => vec![*choice],
    };
    choices.iter().flat_map(piece).collect()
}

/// Reads the first value of a field as the URL Standard describes it (§5.1), among the first 16 fields.
fn field(body: &[u8], wanted: &str) -> String {
    let fields = body.split(|&byte| byte == b'&').filter(|field| !field.is_empty()).take(16);
    let mut pairs = fields.map(|field| match field.iter().position(|&byte| byte == b'=') {
        Some(at) => (decoded(&field[..at]), decoded(&field[at + 1..])),
        None => (decoded(field), String::new()),
    });
    pairs.find(|(name, _)| name == wanted).map(|(_, value)| value).unwrap_or_default()
}

fn decoded(mut text: &[u8]) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|&byte| char::from(byte).to_digit(16));
    let mut bytes = Vec::new();
    while let Some((&first, rest)) = text.split_first() {
        let (byte, length) = match (first, digit(rest.first()), digit(rest.get(1))) {
            (b'%', Some(high), Some(low)) => ((high * 16 + low) as u8, 3),
            (b'+', ..) => (b' ', 1),
            _ => (first, 1),
        };
        bytes.push(byte);
        text = &text[length..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Renders the page for a wrong password, whatever was typed.
fn is_answered(wanted: RequestAction, request: &Request<'_>) {
    let page = match wanted {
        RequestAction::Page(page) => page,
        RequestAction::Query(ask) => match (ask.then)(Reply::Refused(Refused::Wrong)) {
            ReplyAction::Page(page) => page,
            ReplyAction::Serve => panic!("a form serves no file"),
        },
        RequestAction::Nothing | RequestAction::Body(_) => panic!("a form is answered by a page"),
    };
    let mut out = Out::new();
    page.stage(request, &mut ResponseWriter::http1(&mut out));
    assert!(matches!(page.status, 303 | 403 | 415 | 422), "{}", page.status);
}

#[test]
fn any_form_is_read_as_a_slow_reader_reads_it() {
    const PIECES: [&str; 24] = [
        "name=",
        "password=",
        "next=",
        "token=",
        "&",
        "&",
        "=",
        "+",
        "%",
        "%2",
        "%26",
        "%3D",
        "%00",
        "%ff",
        "%C3%A9",
        "%2Fmembers%2F",
        "ann",
        "password",
        "<script>",
        "'; --",
        "\u{e9}",
        ";",
        "&&",
        "nam%65=",
    ];
    let (web, asked) = (web(), AtomicUsize::new(0));
    let token = token::of_form("abc", "");
    bolero::check!().with_iterations(4000).with_max_len(48).with_type::<(u8, Vec<u8>)>().for_each(
        |(form, choices)| {
            let sent = assemble(&PIECES, choices);
            let body = match form % 4 {
                0 => sent,
                _ => [format!("token={token}&").as_bytes(), &sent].concat(),
            };
            assert!(body.len() as u64 <= LONGEST_FORM);
            let mut bytes = b"POST /account/login HTTP/1.1\r\nHost: a\r\nCookie: form=abc\r\n\
                Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 1\r\n\r\n"
                .to_vec();
            parse_request(&mut bytes, |request| {
                let request = request.expect("the request is good");
                let wanted = web.submit("account/login", &request, &body, &connection());
                if let RequestAction::Query(ask) = &wanted {
                    let Query::Login { name, password, .. } = &ask.request else {
                        panic!("a login asks nothing else")
                    };
                    assert_eq!(*name, field(&body, "name"));
                    assert_eq!(*password, field(&body, "password"));
                    assert_eq!(field(&body, "token"), token);
                    asked.fetch_add(1, Ordering::Relaxed);
                }
                is_answered(wanted, &request);
            });
        },
    );
    // Otherwise the test proves nothing.
    assert!(asked.into_inner() > 100, "hardly any form was a login");
}

/// Reads the sessions from cookie lines: the first different values of that name whose characters are valid in a session.
fn sessions<'l>(lines: impl Iterator<Item = &'l [u8]>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for line in lines {
        // Each byte is a character here, so that no other space looks like a blank.
        let line: String = line.iter().map(|byte| char::from(*byte)).collect();
        for pair in line.split(';') {
            if let Some(value) = pair.trim_matches([' ', '\t']).strip_prefix("session=") {
                found.push(value.to_owned());
            }
        }
    }
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    found.retain(|value| (1..=256).contains(&value.len()) && value.bytes().all(is_legal));
    let mut first = Vec::new();
    for value in found {
        if !first.contains(&value) {
            first.push(value);
        }
    }
    first.truncate(MOST_TRIED);
    first
}

#[test]
fn any_cookies_are_sessions_or_none() {
    const PIECES: [&str; 21] = [
        "session=",
        "session=",
        "session",
        "__Host-session=",
        "form=",
        "known=",
        ";",
        "; ",
        "=",
        ",",
        "abc",
        "A-b_c.9",
        "\"",
        " ",
        "\t",
        "\r\nCookie: ",
        "\u{e9}",
        "\u{2000}",
        "%3b",
        "Session=",
        "0123456789abcdefghijklmnopqrstuvwxyz",
    ];
    let (web, asked) = (web(), AtomicUsize::new(0));
    bolero::check!().with_iterations(4000).with_max_len(16).with_type::<(u8, Vec<u8>)>().for_each(
        |(form, choices)| {
            let first = ["", "session=abc; ", "form=a; session="][usize::from(form % 3)];
            let cookie = [first.as_bytes(), &assemble(&PIECES, choices)].concat();
            let mut bytes =
                [b"GET /members/a HTTP/1.1\r\nHost: a\r\nCookie: ", &cookie[..], b"\r\n\r\n"].concat();
            if bytes.windows(4).filter(|end| end == b"\r\n\r\n").count() != 1 {
                return;
            }
            parse_request(&mut bytes, |request| {
                let Ok(request) = request else { return };
                let expected = sessions(request.values("cookie"));
                match (web.begin("members/a", &request, &connection()), &expected[..]) {
                    (RequestAction::Query(ask), [_, ..]) => {
                        let Query::Check { session } = ask.request else { panic!("nothing else is asked") };
                        let digests: Vec<_> = expected.iter().map(|value| token::digest(value)).collect();
                        assert_eq!(session, digests.join(" "));
                        asked.fetch_add(1, Ordering::Relaxed);
                    }
                    (RequestAction::Page(page), []) => {
                        assert!(matches!(page.status, 303 | 401), "{}", page.status)
                    }
                    _ => {
                        panic!("{:?} are other sessions than {expected:?}", String::from_utf8_lossy(&cookie))
                    }
                }
            });
        },
    );
    assert!(asked.into_inner() > 100, "hardly any cookie was a session");
}
