//! Properties that hold for any input. Two tests are also fuzz targets: `cargo xtask fuzz --minutes 10 head
//! target`.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{PIECES, Site, assemble_small};
use tenfold_http::h1::parse_request;
use tenfold_http::script::Script;
use tenfold_http::{Body, Limits, Next, Request, Version};

/// Request lines, header lines and line ends, valid and malformed.
const LINES: [&str; 48] = [
    "GET /a HTTP/1.1\r\n",
    "GET /a HTTP/1.1\r\nHost: a\r\n",
    "GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD /a/b?c=d HTTP/1.1\r\nHost: a\r\n",
    "POST /b HTTP/1.1\r\nHost: a\r\n",
    "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxy",
    "GET http://b/c HTTP/1.9\r\nHost: a\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n",
    "CONNECT b:80 HTTP/1.1\r\nHost: a\r\n",
    "GET / HTTP/1.0\r\nConnection: keep-alive\r\n",
    "GET / HTTP/1.0\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: a\r\n",
    "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    "POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
    "3\r\nxyz\r\n",
    "3\r\nxyz\r\n0\r\n\r\n",
    "2;a=b\r\nxy\r\n0\r\nX: y\r\n\r\n",
    "0\r\n\r\n",
    "1000\r\n",
    "Host: a\r\n",
    "host:a:80\r\n",
    "Content-Length: 2\r\n",
    "Content-Length: 0\r\n",
    "content-length:  07\t\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "Connection: close\r\n",
    "Connection: x, Keep-Alive\r\n",
    "Expect: 100-continue\r\n",
    "If-None-Match: \"v\", W/\"w\"\r\n",
    "If-Match: *\r\n",
    "If-Range: \"v\"\r\n",
    "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
    "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
    "Range: bytes=0-1\r\n",
    "X: y\r\n",
    "X:\r\n",
    "X-Y_z: \u{e4} \t ;\r\n",
    "Accept: */*\r\n",
    "User-Agent: x/1.0 (y)\r\n",
    "Cookie: a=b\r\n",
    "\r\n",
    "\r\n",
    "\r\n",
    "\r\n\r\n",
    "\n",
    "xy",
    " x\r\n",
];

/// Assembles an input from random choices; it is often nearly a valid request, and sometimes valid.
fn assemble(choices: &[u8]) -> Vec<u8> {
    let piece = |&choice: &u8| match choice {
        0..192 => LINES[choice as usize % LINES.len()],
        192.. => PIECES[choice as usize % PIECES.len()],
    };
    choices.iter().flat_map(|choice| piece(choice).bytes()).collect()
}

#[test]
fn an_accepted_head_passes_a_strict_check() {
    let accepted = AtomicUsize::new(0);
    let check = |mut bytes: Vec<u8>| {
        let before = bytes.clone();
        parse_request(&mut bytes, |head| {
            if let Ok(head) = head {
                accepted.fetch_add(1, Ordering::Relaxed);
                check_strictly(&before, &head);
            }
        });
    };
    bolero::check!().with_iterations(10_000).with_max_len(12).with_type::<(u8, Vec<u8>)>().for_each(
        |(begin, choices)| {
            check(choices.clone());
            check([LINES[*begin as usize % 11].as_bytes(), &assemble(choices), b"\r\n"].concat());
        },
    );
    // The test is only meaningful if some heads are valid.
    assert!(accepted.into_inner() > 100, "too few heads are valid");
}

/// Parses `bytes` again, slowly and strictly, and compares the results.
fn check_strictly(bytes: &[u8], request: &Request<'_>) {
    let text = bytes.strip_suffix(b"\r\n\r\n").expect("a head ends with an empty line");
    let lines: Vec<&[u8]> = split_at_line_ends(text);
    assert!(bytes.iter().all(|&byte| byte >= b' ' && byte != 0x7f || b"\t\r\n".contains(&byte)));
    assert!(lines.iter().all(|line| !line.contains(&b'\r') && !line.contains(&b'\n')), "a bare line end");
    let parts: Vec<&[u8]> = lines[0].split(|&byte| byte == b' ').collect();
    let [method, target, version] = parts[..] else { panic!("a request line has three parts") };
    assert_eq!(request.method.as_str().as_bytes(), method);
    assert!(target.iter().all(u8::is_ascii_graphic));
    assert_eq!(request.version == Version::Http10, version == b"HTTP/1.0");
    assert!(version.starts_with(b"HTTP/1.") && version.len() == 8 && version[7].is_ascii_digit());
    let mut fields = Vec::new();
    for line in &lines[1..] {
        let colon = line.iter().position(|&byte| byte == b':').expect("a field has a colon");
        let name = std::str::from_utf8(&line[..colon]).expect("a name is ASCII").to_ascii_lowercase();
        assert!(
            !name.is_empty()
                && name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
        );
        fields.push((name, line[colon + 1..].trim_ascii()));
    }
    let values = |name: &str| -> Vec<&[u8]> {
        fields.iter().filter(|(known, _)| known == name).map(|(_, value)| *value).collect()
    };
    let (hosts, lengths, codings) = (values("host"), values("content-length"), values("transfer-encoding"));
    assert!(hosts.len() == 1 || hosts.is_empty() && request.version == Version::Http10);
    assert!(lengths.len() <= 1 && (lengths.is_empty() || codings.is_empty()), "two framings");
    let codings: Vec<_> = codings.iter().flat_map(|value| value.split(|&byte| byte == b',')).collect();
    let codings: Vec<_> = codings.iter().map(|one| one.trim_ascii()).filter(|one| !one.is_empty()).collect();
    assert!(codings.len() <= 1, "more than one coding");
    let length = lengths
        .first()
        .map(|value| std::str::from_utf8(value).expect("digits").parse::<u64>().expect("digits"));
    let body = match (length, codings.first()) {
        (None | Some(0), None) => Body::Empty,
        (Some(length), None) => Body::Length(length),
        (_, Some(coding)) => {
            assert!(coding.eq_ignore_ascii_case(b"chunked") && request.version == Version::Http11);
            Body::Streamed
        }
    };
    assert_eq!(request.body, body);
    let closes = values("connection").iter().any(|value| {
        value.split(|&byte| byte == b',').any(|option| option.trim_ascii().eq_ignore_ascii_case(b"close"))
    });
    if closes {
        let outcome = Script::new().sends(bytes).run(&Site::default(), &Limits::default());
        assert!(!matches!(outcome.next, Next::Park(_)), "the client asked to close the connection");
    }
    assert_eq!(request.host().is_some(), !hosts.is_empty() || request.target.authority.is_some());
    assert!(request.target.path.starts_with('/') || request.target.path == "*");
    let selective = fields.iter().any(|(name, _)| name == "range" || name.starts_with("if-"));
    assert_eq!(request.selective, selective);
    for (name, _) in &fields {
        assert!(request.values(name).eq(values(name)), "the values of {name}");
    }
}

fn split_at_line_ends(mut text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    while let Some(at) = text.windows(2).position(|pair| pair == b"\r\n") {
        lines.push(&text[..at]);
        text = &text[at + 2..];
    }
    lines.push(text);
    lines
}

#[test]
fn accepted_targets_have_only_allowed_bytes() {
    bolero::check!().with_iterations(20_000).with_max_len(24).with_type::<(bool, Vec<u8>)>().for_each(
        |(raw, choices)| {
            let target = if *raw { choices.clone() } else { assemble_small(choices) };
            if target.contains(&b'\n') || target.contains(&b' ') {
                return;
            }
            let mut bytes = [b"GET ", &target[..], b" HTTP/1.1\r\nHost: here\r\n\r\n"].concat();
            parse_request(&mut bytes, |head| {
                let Ok(head) = head else { return };
                let found = head.target;
                assert!(
                    found.path.starts_with('/') && found.path.bytes().all(|byte| byte.is_ascii_graphic())
                );
                assert!(!found.path.contains(['?', '#', '\\', '"', '<', '>']));
                assert!(!found.query.unwrap_or_default().contains('#'));
                assert_eq!(head.host(), Some(found.authority.unwrap_or("here")));
                assert!(!head.host().unwrap_or_default().contains(['@', '/', '?', ' ']));
                // Assembled again, an origin-form target equals the input.
                if found.authority.is_none() {
                    let query = found.query.map_or(String::new(), |query| format!("?{query}"));
                    assert_eq!(format!("{}{query}", found.path).as_bytes(), target);
                }
            });
        },
    );
}

#[test]
fn the_answers_do_not_depend_on_how_the_bytes_come() {
    let limits =
        Limits { max_head: 200, max_headers: 5, max_target: 50, max_discard: 20, ..Limits::default() };
    bolero::check!().with_iterations(4000).with_max_len(32).with_type::<(Vec<u8>, Vec<u8>)>().for_each(
        |(choices, splits)| {
            let bytes = assemble(choices);
            let whole = Script::new().sends(&bytes).ends().run(&Site::default(), &limits);
            let (mut script, mut rest) = (Script::new(), &bytes[..]);
            for &split in splits {
                let (piece, after) = rest.split_at(rest.len().min(split as usize % 16));
                (script, rest) = (script.sends(piece), after);
            }
            let split = script.sends(rest).ends().pausing().run(&Site::default(), &limits);
            // A client that sends the body without waiting gets no `100 Continue`.
            let shown = |sent: &[u8]| {
                sent.escape_ascii().to_string().replace("HTTP/1.1 100 Continue\\r\\n\\r\\n", "")
            };
            assert_eq!(shown(&split.sent), shown(&whole.sent));
            let drips = Script::new().drips(&bytes, Duration::ZERO).ends().run(&Site::default(), &limits);
            assert_eq!(shown(&drips.sent), shown(&whole.sent));
        },
    );
}
