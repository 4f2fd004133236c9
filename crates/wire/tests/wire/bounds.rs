//! The bounds of the decoder: malformed blocks, sizes of the table, limits of a list.

use tenfold_wire::hpack::{Decoder, FieldList, HpackError, ListLimits};
use tenfold_wire::huffman::HuffmanError;

use crate::{decode, fields, hex, owned};

fn error(block: &str) -> HpackError {
    decode(&mut Decoder::new(), &hex(block)).expect_err(block)
}

#[test]
fn malformed_blocks_are_errors() {
    assert_eq!(error("80"), HpackError::Index);
    assert_eq!(error("be"), HpackError::Index);
    assert_eq!(error("7f00 0161"), HpackError::Index);
    assert_eq!(error("ff ffff ffff ffff ffff ff"), HpackError::Integer);
    assert_eq!(error("ff ffff ffff ffff ffff 1f"), HpackError::Index);
    assert_eq!(error("3f"), HpackError::Truncated);
    assert_eq!(error("3fff ffff ffff ffff ffff ff"), HpackError::Integer);
    assert_eq!(error("0003 6162"), HpackError::Truncated);
    assert_eq!(error("00 7f ffff ffff ffff ffff 1f"), HpackError::Truncated);
    assert_eq!(error("0001 6181 ff"), HpackError::Huffman(HuffmanError::Padding));
    assert_eq!(error("0001 6184 ffff ffff"), HpackError::Huffman(HuffmanError::EndOfString));
}

#[test]
fn a_change_of_the_size_comes_first_at_most_twice_and_within_the_limit() {
    let mut decoder = Decoder::new();
    assert_eq!(decode(&mut decoder, &hex("20 3fe11f 82")), Ok(owned(&[(":method", "GET")])));
    assert_eq!(decode(&mut decoder, &hex("20")), Ok(vec![]));
    assert_eq!(decode(&mut decoder, &hex("3fe11f")), Ok(vec![]));
    assert_eq!(error("82 20"), HpackError::MisplacedUpdate);
    assert_eq!(error("20 20 20"), HpackError::MisplacedUpdate);
    assert_eq!(error("3fe21f"), HpackError::TooLargeUpdate);
    assert_eq!(error("3fffff ffff 0f"), HpackError::TooLargeUpdate);
}

#[test]
fn a_change_of_the_size_after_a_field_of_an_earlier_fragment_is_an_error() {
    let mut decoder = Decoder::new();
    let mut list = FieldList::new(crate::WIDE);
    assert_eq!(decoder.decode(&hex("82"), false, &mut list), Ok(1));
    assert_eq!(decoder.decode(&hex("20"), true, &mut list), Err(HpackError::MisplacedUpdate));
}

#[test]
fn a_reduction_by_our_settings_must_be_announced() {
    let reduced = || {
        let mut decoder = Decoder::new();
        decoder.set_limit(100);
        decoder.set_limit(2000);
        decoder
    };
    for (block, expected) in [
        ("82", Err(HpackError::MissingUpdate)),
        ("", Err(HpackError::MissingUpdate)),
        ("3f46 82", Err(HpackError::MissingUpdate)),
        ("3f45 82", Ok(owned(&[(":method", "GET")]))),
        ("20 3fb10f 82", Ok(owned(&[(":method", "GET")]))),
        ("20 3fb20f 82", Err(HpackError::TooLargeUpdate)),
    ] {
        assert_eq!(decode(&mut reduced(), &hex(block)), expected, "{block}");
    }
    let mut decoder = Decoder::new();
    decoder.set_limit(4096);
    assert!(decode(&mut decoder, &hex("82")).is_ok(), "the limit was not reduced");
    decoder.set_limit(60_000);
    assert!(decode(&mut decoder, &hex("82")).is_ok(), "a larger limit may stay unused");
}

/// Inserts `name: value` with this count of bytes in the value.
fn insertion(name: u8, length: usize) -> Vec<u8> {
    let mut block = vec![0x40, 1, name];
    tenfold_wire::integer::encode(length as u64, 7, 0, &mut block);
    block.extend(std::iter::repeat_n(b'v', length));
    block
}

#[test]
fn a_list_over_its_limits_leaves_the_table_as_the_peer_has_it() {
    let size = |size| ListLimits { size, fields: 100 };
    let count = |fields| ListLimits { size: 100_000, fields };
    for limits in [size(0), size(33), size(70), count(0), count(1), count(2)] {
        let mut decoder = Decoder::new();
        let mut list = FieldList::new(limits);
        let block = [insertion(b'a', 1), insertion(b'b', 40), insertion(b'c', 2)].concat();
        assert_eq!(decoder.decode(&block, true, &mut list), Ok(block.len()));
        assert!(list.is_over());
        assert!(list.len() <= 2);
        let expected = owned(&[("c", "vv"), ("b", &"v".repeat(40)), ("a", "v")]);
        assert_eq!(decode(&mut decoder, &hex("bebfc0")), Ok(expected));
    }
}

#[test]
fn limits_are_exact() {
    let block = hex("82 86 84 4101 61");
    let octets = 7 + 3 + 7 + 4 + 5 + 1 + 10 + 1 + 4 * 32;
    for (size, fields, is_over) in
        [(octets, 4, false), (octets - 1, 4, true), (octets, 3, true), (octets + 1, 5, false)]
    {
        let mut list = FieldList::new(ListLimits { size, fields });
        assert!(Decoder::new().decode(&block, true, &mut list).is_ok());
        assert_eq!(list.is_over(), is_over);
        assert_eq!(list.len(), if is_over { 3 } else { 4 });
        assert_eq!(list.size(), u64::from(octets));
    }
}

#[test]
fn one_byte_fields_of_a_large_entry_cost_no_memory_beyond_the_limit() {
    let mut decoder = Decoder::new();
    let limits = ListLimits { size: 16_384, fields: 100 };
    let mut list = FieldList::new(limits);
    decoder.decode(&insertion(b'n', 4000), true, &mut list).expect("the block is valid");
    list.clear(limits);
    let bomb = vec![0xbe; 1 << 20];
    assert_eq!(decoder.decode(&bomb, true, &mut list), Ok(bomb.len()));
    assert!(list.is_over());
    assert_eq!((list.len(), list.size()), (4, (4001 + 32) << 20));
    assert!(list.heap_bytes() <= 40_000, "{}", list.heap_bytes());
    assert!(decoder.heap_bytes() <= 4096);
}

#[test]
fn a_long_string_over_the_limits_costs_no_memory_and_empties_the_table() {
    let mut decoder = Decoder::new();
    let mut list = FieldList::new(ListLimits { size: 1000, fields: 100 });
    let block = [insertion(b'a', 1), insertion(b'b', 1 << 20), hex("82")].concat();
    assert_eq!(decoder.decode(&block, true, &mut list), Ok(block.len()));
    assert!(list.is_over());
    assert_eq!(fields(&list), owned(&[("a", "v")]));
    assert!(list.heap_bytes() <= 10_000, "{}", list.heap_bytes());
    assert_eq!(decode(&mut decoder, &hex("be")), Err(HpackError::Index));
}

#[test]
fn a_new_field_with_the_name_of_the_entry_that_it_evicts_is_inserted() {
    let mut decoder = Decoder::new();
    decode(&mut decoder, &insertion(b'n', 4063)).expect("the block is valid");
    let mut block = vec![0x7e];
    block.extend(&insertion(b'x', 4063)[3..]);
    let field = (b"n".to_vec(), vec![b'v'; 4063]);
    assert_eq!(decode(&mut decoder, &block), Ok(vec![field.clone()]));
    assert_eq!(decode(&mut decoder, &hex("be")), Ok(vec![field]));
    assert_eq!(decoder.heap_bytes(), 4096);
}

#[test]
fn fields_are_found_in_order_and_the_list_keeps_its_memory() {
    let mut list = FieldList::new(crate::WIDE);
    let mut decoder = Decoder::new();
    decoder.decode(&hex("82 4101 61"), true, &mut list).expect("the block is valid");
    assert_eq!(list.get(1), Some((&b":authority"[..], &b"a"[..])));
    assert_eq!(list.get(2), None);
    let bytes = list.heap_bytes();
    list.clear(crate::WIDE);
    assert!(list.is_empty() && list.size() == 0);
    assert_eq!(list.heap_bytes(), bytes);
}
