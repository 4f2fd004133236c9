//! Prepared blocks on several connections.

use tenfold_wire::hpack::encoder::DATE_LENGTH;
use tenfold_wire::hpack::{Block, Constants, Decoder, Encoder};

use crate::{Field, decode, owned};

/// Both ends of a connection.
#[derive(Default)]
struct Pair {
    encoder: Encoder,
    decoder: Decoder,
}

impl Pair {
    /// The fields of the block as the peer decodes it, and its length in bytes.
    fn send(&mut self, constants: &Constants, block: &Block) -> (Vec<Field>, usize) {
        let mut bytes = Vec::new();
        let date = self.encoder.write(constants, block, &mut bytes);
        if let Some(at) = date {
            bytes[at..at + DATE_LENGTH].copy_from_slice(b"Mon, 21 Oct 2013 20:13:21 GMT");
        }
        (decode(&mut self.decoder, &bytes).expect("the block is valid"), bytes.len())
    }

    /// Changes the setting on both sides.
    fn limit(&mut self, size: u16) {
        self.encoder.set_limit(size.into());
        self.decoder.set_limit(size);
    }
}

const CONSTANT: [(&str, &str); 2] = [("server", "Tenfold"), ("x-content-type-options", "nosniff")];

fn constants() -> Constants {
    Constants::new(CONSTANT.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())))
}

/// A response with both constants.
fn response() -> (Block, Vec<Field>) {
    let mut block = Block::new();
    let constants = constants();
    block.date();
    block.status(200);
    block.field(&constants, b"content-type", b"text/html");
    for (name, value) in CONSTANT {
        block.field(&constants, name.as_bytes(), value.as_bytes());
    }
    let fields = owned(&[
        (":status", "200"),
        CONSTANT[0],
        CONSTANT[1],
        ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
        ("content-type", "text/html"),
    ]);
    (block, fields)
}

#[test]
fn a_prepared_block_is_decoded_equally_on_every_connection_and_shorter_from_the_second_on() {
    let (block, fields) = response();
    for _ in 0..2 {
        let mut pair = Pair::default();
        let (first, length) = pair.send(&constants(), &block);
        assert_eq!(first, fields);
        let (second, shorter) = pair.send(&constants(), &block);
        assert_eq!(second, fields);
        assert!(shorter + 20 < length, "{shorter} {length}");
        assert_eq!(pair.send(&constants(), &block), (second, shorter));
    }
}

#[test]
fn a_block_with_some_constants_inserts_nothing() {
    let constants = constants();
    let mut part = Block::new();
    part.status(404);
    part.field(&constants, b"server", b"Tenfold");
    let fields = owned(&[(":status", "404"), CONSTANT[0]]);
    let mut pair = Pair::default();
    let (before, length) = pair.send(&constants, &part);
    assert_eq!(before, fields);
    assert_eq!(pair.decoder.heap_bytes(), 0);
    pair.send(&constants, &response().0);
    let (after, shorter) = pair.send(&constants, &part);
    assert_eq!(after, fields);
    assert!(shorter == 2 && length > shorter);
}

#[test]
fn changes_of_the_peers_table_are_announced_and_constants_inserted_again() {
    let (block, fields) = response();
    let constants = constants();
    for sizes in
        [&[0][..], &[0, 4096], &[4095], &[50], &[200, 60], &[60, 200], &[4096], &[u16::MAX], &[100, 100]]
    {
        for early in [false, true] {
            let mut pair = Pair::default();
            if early {
                pair.send(&constants, &block);
            }
            for &size in sizes {
                pair.limit(size);
            }
            for _ in 0..3 {
                assert_eq!(pair.send(&constants, &block).0, fields, "{sizes:?}");
            }
            pair.limit(4096);
            for _ in 0..2 {
                assert_eq!(pair.send(&constants, &block).0, fields, "{sizes:?}");
            }
            assert!(pair.decoder.heap_bytes() > 0);
        }
    }
}

#[test]
fn secret_fields_are_never_indexed_nor_constant() {
    let cookie: (&[u8], &[u8]) = (b"set-cookie", b"id=1");
    let constants = Constants::new([cookie]);
    assert!(constants.is_empty());
    let mut block = Block::new();
    block.field(&constants, cookie.0, cookie.1);
    let mut bytes = Vec::new();
    Encoder::new().write(&constants, &block, &mut bytes);
    assert_eq!(bytes[..2], [0x1f, 55 - 15], "a literal that is never indexed");
    assert_eq!(decode(&mut Decoder::new(), &bytes), Ok(owned(&[("set-cookie", "id=1")])));
}

#[test]
fn statuses_and_pseudo_fields_precede_other_fields() {
    let none = Constants::default();
    let mut block = Block::new();
    for (status, length) in [(200, 1), (206, 1), (304, 1), (103, 4), (599, 5)] {
        block.clear();
        block.status(status);
        let mut out = Vec::new();
        assert_eq!(Encoder::new().write(&none, &block, &mut out), None);
        assert_eq!(out.len(), length);
        assert_eq!(decode(&mut Decoder::new(), &out), Ok(owned(&[(":status", &status.to_string())])));
    }
    let request = [("user-agent", "t"), (":method", "GET"), (":path", "/x"), ("te", "trailers")];
    block.clear();
    for (name, value) in request {
        block.field(&none, name.as_bytes(), value.as_bytes());
    }
    let sent = Pair::default().send(&none, &block).0;
    assert_eq!(sent, owned(&[request[1], request[2], request[0], request[3]]));
}

#[test]
fn the_fields_of_a_repeated_request_take_a_byte_each() {
    let request = [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/file/1.html"),
        (":authority", "localhost:8443"),
        ("user-agent", "tenfold"),
    ];
    let fields = request.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let constants = Constants::new(fields.clone());
    assert_eq!(constants.len(), 3, "the static table has the others");
    let mut block = Block::new();
    fields.for_each(|(name, value)| block.field(&constants, name, value));
    let mut pair = Pair::default();
    for round in 0..3 {
        let (sent, length) = pair.send(&constants, &block);
        assert_eq!(sent, owned(&request));
        assert!(round == 0 || length == 5);
    }
}

#[test]
fn constants_are_bounded_and_the_rest_stays_literal() {
    let long = vec![b'v'; 5000];
    let names: Vec<String> = (0..40).map(|number| format!("x-{number}")).collect();
    let all = || {
        let long = std::iter::once((&b"x-long"[..], &long[..]));
        long.chain(names.iter().map(|name| (name.as_bytes(), &b"value"[..])))
    };
    let constants = Constants::new(all());
    assert_eq!(constants.len(), tenfold_wire::hpack::encoder::MOST_CONSTANTS);
    let mut block = Block::new();
    all().for_each(|(name, value)| block.field(&constants, name, value));
    let mut pair = Pair::default();
    for _ in 0..2 {
        let sent = pair.send(&constants, &block).0;
        assert_eq!(sent.len(), 41);
        assert!(all().all(|(name, value)| sent.iter().any(|field| field.0 == name && field.1 == value)));
    }
}

#[test]
fn names_in_any_case_are_sent_in_lower_case() {
    let long = "X-".repeat(50);
    let constants = Constants::new([(&b"Server"[..], &b"Tenfold"[..])]);
    let mut block = Block::new();
    for name in ["ETag", "SERVER", "Set-Cookie", &long] {
        block.field(&constants, name.as_bytes(), b"Tenfold");
    }
    let lower = long.to_lowercase();
    let expected = ["server", "etag", "set-cookie", &lower].map(|name| (name, "Tenfold"));
    assert_eq!(Pair::default().send(&constants, &block).0, owned(&expected));
}

#[test]
fn a_constant_that_occurs_twice_is_sent_twice() {
    let constants = constants();
    let (mut block, mut fields) = response();
    block.field(&constants, b"server", b"Tenfold");
    fields.extend(owned(&CONSTANT[..1]));
    let mut pair = Pair::default();
    for _ in 0..2 {
        assert_eq!(pair.send(&constants, &block).0, fields);
    }
}
