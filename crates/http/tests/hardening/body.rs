//! The length of a body: unambiguous, or refused.

use tenfold_http::script::Script;

use crate::common::only_response;
use crate::{all_refused, post, refused, run, understood};

#[test]
fn h01_a_length_with_a_transfer_coding_is_refused() {
    all_refused(
        [
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
            "Transfer-Encoding: gzip, chunked\r\nContent-Length: 5\r\n",
            "Content-Length: 5\r\nTransfer-Encoding: gzip, chunked\r\n",
        ]
        .map(post),
        400,
    );
}

#[test]
fn h02_a_length_that_stands_twice_is_refused_even_where_it_is_the_same() {
    all_refused(
        [
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: 5\r\ncontent-length: 5\r\n",
            "Content-Length: 5, 6\r\n",
            "Content-Length: 5, 5\r\n",
            "Content-Length: 5,\r\n",
        ]
        .map(post),
        400,
    );
}

#[test]
fn h03_a_length_is_digits_that_fit_and_nothing_else() {
    for length in [
        "+5",
        "-1",
        "0x5",
        "5 6",
        "",
        "5;",
        "5.0",
        "1e1",
        "\u{0665}",
        "18446744073709551616",
        "18446744073709551615",
        "9223372036854775808",
    ] {
        refused(post(&format!("Content-Length: {length}\r\n")), 400);
    }
    // The largest length, and a length padded with zeros.
    let outcome = run(Script::new().sends(post("Content-Length: 9223372036854775807\r\n")));
    assert_eq!(only_response(&outcome.sent).text(), "POST /a None host=here Length(9223372036854775807)\n");
    for length in ["0002", "0000000000000000000000002"] {
        let outcome = understood(&(post(&format!("Content-Length: {length}\r\n")) + "xy"));
        assert_eq!(outcome, "POST /a None host=here Length(2)\n");
    }
    assert_eq!(understood(&post("Content-Length: 0\r\n")), "POST /a None host=here Empty\n");
}

#[test]
fn h04_a_transfer_coding_is_chunked_or_refused() {
    for fields in [
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: gzip,, chunked\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
    ] {
        refused(post(fields), 501);
    }
    for fields in [
        "Transfer-Encoding: chunked,\r\n",
        "Transfer-Encoding: , chunked\r\n",
        "Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n",
    ] {
        let outcome = understood(&(post(fields) + "00000000000000000000002\r\nxy\r\n0\r\n\r\n"));
        assert_eq!(outcome, "POST /a None host=here Streamed\n", "{fields}");
    }
    for coding in [
        "",
        "identity",
        "gzip",
        "chunked, gzip",
        "chunked, identity",
        "xchunked",
        "chunkedx",
        "chunked;q=1",
        "\"chunked\"",
        "chunked chunked",
        "chunked, chunked",
        ",",
        "chunked,, gzip",
        "chun\tked",
        "\u{212a}hunked",
    ] {
        refused(post(&format!("Transfer-Encoding: {coding}\r\n")), 400);
    }
    all_refused(
        [
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            "Transfer-Encoding: gzip, chunked\r\nTransfer-Encoding: chunked\r\n",
            "Transfer_Encoding : chunked\r\n",
        ]
        .map(post),
        400,
    );
}

#[test]
fn h05_a_transfer_coding_in_http_1_0_is_refused() {
    all_refused(
        [
            "POST /a HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST /a HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: identity\r\n\r\n",
        ],
        400,
    );
}
