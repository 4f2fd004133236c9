//! Line ends, and the bytes allowed in lines.

use crate::{all_refused, get, post, refused, understood};

#[test]
fn h06_folded_lines_are_refused() {
    all_refused(
        [
            "Host: here\r\nX: a\r\n b\r\n",
            "Host: here\r\nX: a\r\n\tb\r\n",
            "Host: here\r\nX:\r\n b\r\n",
            "Host: here\r\nX: a\r\n \r\n",
        ]
        .map(get),
        400,
    );
    refused(post("Transfer-Encoding:\r\n chunked\r\n"), 400);
}

#[test]
fn h07_white_space_around_a_name_is_refused() {
    all_refused(
        [
            "Host : here\r\n",
            "Host\t: here\r\n",
            " Host: here\r\n",
            "\tHost: here\r\n",
            " \r\nHost: here\r\n",
            "Host: here\r\nX Y: z\r\n",
            "Host: here\r\n: z\r\n",
            "Host: here\r\nX\r\n",
        ]
        .map(get),
        400,
    );
    refused(post("Content-Length : 5\r\n"), 400);
    refused(" GET /a HTTP/1.1\r\nHost: here\r\n\r\n", 400);
    // White space around a value does not belong to it.
    assert_eq!(understood("GET /a HTTP/1.1\r\nHost: \t here \t\r\n\r\n"), "GET /a None host=here Empty\n");
    assert_eq!(understood("GET /a HTTP/1.1\r\nHost:here\r\n\r\n"), "GET /a None host=here Empty\n");
}

#[test]
fn h08_a_bare_line_feed_is_refused() {
    all_refused(
        [
            "GET /a HTTP/1.1\nHost: here\r\n\r\n",
            "GET /a HTTP/1.1\r\nHost: here\n\r\n",
            "GET /a HTTP/1.1\r\nHost: here\r\n\n",
            "GET /a HTTP/1.1\r\nHost: here\n\n",
            "\nGET /a HTTP/1.1\r\nHost: here\r\n\r\n",
            "\r\n\nGET /a HTTP/1.1\r\nHost: here\r\n\r\n",
        ],
        400,
    );
    refused(get("Host: here\r\nX: a\nTransfer-Encoding: chunked\r\n"), 400);
}

#[test]
fn h08_an_empty_line_in_front_is_passed_over_and_two_are_refused() {
    assert_eq!(understood("\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n"), "GET /a None host=a Empty\n");
    let between = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n\r\n";
    assert_eq!(understood(between), "GET /a None host=a Empty\n");
    all_refused(["\r\n\r\nGET /a HTTP/1.1\r\nHost: a\r\n\r\n", "\r\n\r\n"], 400);
}

#[test]
fn h09_a_bare_carriage_return_is_refused() {
    all_refused(
        [
            "GET /a HTTP/1.1\rHost: here\r\n\r\n",
            "GET /a\rb HTTP/1.1\r\nHost: here\r\n\r\n",
            "GET /a HTTP/1.1\r\r\nHost: here\r\n\r\n",
            "\rGET /a HTTP/1.1\r\nHost: here\r\n\r\n",
        ],
        400,
    );
    all_refused(
        [
            "Host: here\r\nX: a\rb\r\n",
            "Host: here\r\nX: a\rTransfer-Encoding: chunked\r\n",
            "Host: here\r\r\n",
            "Host: here\r\nX\r: a\r\n",
        ]
        .map(get),
        400,
    );
}

#[test]
fn h10_control_characters_are_refused_everywhere() {
    for control in (0..b' ').chain([0x7f]).filter(|byte| !b"\t\r\n".contains(byte)) {
        refused(get([b"Host: here\r\nX: a", &[control][..], b"b\r\n"].concat()), 400);
        refused(get([b"Host: here\r\nX: ", &[control][..], b"\r\n"].concat()), 400);
        refused(get([b"Host: here\r\nX", &[control][..], b"Y: b\r\n"].concat()), 400);
        refused([b"GET /a", &[control][..], b" HTTP/1.1\r\nHost: here\r\n\r\n"].concat(), 400);
        refused([b"GET", &[control][..], b" /a HTTP/1.1\r\nHost: here\r\n\r\n"].concat(), 400);
        refused([b"GET /a HTTP/1.1", &[control][..], b"\r\nHost: here\r\n\r\n"].concat(), 400);
        refused(get([b"Host: he", &[control][..], b"re\r\n"].concat()), 400);
    }
    for wrong in b"\"(),/;<=>?@[\\]{} \x80\xff" {
        refused(get([b"Host: here\r\nX", &[*wrong][..], b"Y: b\r\n"].concat()), 400);
    }
}
