//! The examples of RFC 7541 appendix C.

use tenfold_wire::hpack::{Decoder, HpackError};

use crate::{decode, hex, owned};

/// Each block of a connection, its fields, and then the dynamic table with its size.
type Step<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)], usize);

fn check(mut decoder: Decoder, steps: &[Step<'_>]) {
    for (block, fields, table, size) in steps {
        assert_eq!(decode(&mut decoder, &hex(block)), Ok(owned(fields)), "{block}");
        let mut octets = 0;
        for (index, field) in (0x80 | 62..).zip(owned(table)) {
            octets += field.0.len() + field.1.len() + 32;
            assert_eq!(decode(&mut decoder, &[index]), Ok(vec![field]));
        }
        assert_eq!(octets, *size);
        let beyond = (0x80 | 62) + table.len() as u8;
        assert_eq!(decode(&mut decoder, &[beyond]), Err(HpackError::Index), "{block}");
    }
}

#[test]
fn representations_of_fields_are_decoded() {
    let custom = [("custom-key", "custom-header")];
    let check = |block, fields, table, size| check(Decoder::new(), &[(block, fields, table, size)]);
    check("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", &custom, &custom, 55);
    check("040c 2f73 616d 706c 652f 7061 7468", &[(":path", "/sample/path")], &[], 0);
    check("1008 7061 7373 776f 7264 0673 6563 7265 74", &[("password", "secret")], &[], 0);
    check("82", &[(":method", "GET")], &[], 0);
}

const AUTHORITY: (&str, &str) = (":authority", "www.example.com");
const NO_CACHE: (&str, &str) = ("cache-control", "no-cache");
const CUSTOM: (&str, &str) = ("custom-key", "custom-value");

fn requests(blocks: [&str; 3]) {
    let plain = [(":method", "GET"), (":scheme", "http"), (":path", "/"), AUTHORITY];
    let second = [plain[0], plain[1], plain[2], AUTHORITY, NO_CACHE];
    let third = [plain[0], (":scheme", "https"), (":path", "/index.html"), AUTHORITY, CUSTOM];
    check(
        Decoder::new(),
        &[
            (blocks[0], &plain, &[AUTHORITY], 57),
            (blocks[1], &second, &[NO_CACHE, AUTHORITY], 110),
            (blocks[2], &third, &[CUSTOM, NO_CACHE, AUTHORITY], 164),
        ],
    );
}

#[test]
fn requests_without_huffman_coding_are_decoded() {
    requests([
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ]);
}

#[test]
fn requests_with_huffman_coding_are_decoded() {
    requests([
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ]);
}

/// A table of 256 octets, from which entries are evicted.
fn responses(blocks: [&str; 3]) {
    let status = |code| (":status", code);
    let private = ("cache-control", "private");
    let date = |second| ("date", second);
    let (first_date, second_date) = ("Mon, 21 Oct 2013 20:13:21 GMT", "Mon, 21 Oct 2013 20:13:22 GMT");
    let location = ("location", "https://www.example.com");
    let gzip = ("content-encoding", "gzip");
    let cookie = ("set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1");
    let mut decoder = Decoder::new();
    decoder.set_limit(256);
    // The appendix assumes the table size; a connection announces it.
    let first = format!("3fe101 {}", blocks[0]);
    check(
        decoder,
        &[
            (
                &first,
                &[status("302"), private, date(first_date), location],
                &[location, date(first_date), private, status("302")],
                222,
            ),
            (
                blocks[1],
                &[status("307"), private, date(first_date), location],
                &[status("307"), location, date(first_date), private],
                222,
            ),
            (
                blocks[2],
                &[status("200"), private, date(second_date), location, gzip, cookie],
                &[cookie, gzip, date(second_date)],
                215,
            ),
        ],
    );
}

#[test]
fn responses_without_huffman_coding_are_decoded() {
    responses([
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 \
         474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 \
         666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 \
         3630 303b 2076 6572 7369 6f6e 3d31",
    ]);
}

#[test]
fn responses_with_huffman_coding_are_decoded() {
    responses([
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 \
         63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 \
         b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ]);
}
