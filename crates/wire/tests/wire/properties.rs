//! Properties of any bytes, fields and frames. Two of these tests are also fuzz targets:
//! `cargo xtask fuzz --minutes 10 frame` and `hpack`.

use std::num::NonZeroU32;

use tenfold_wire::frame::header::{ACK, END_HEADERS, END_STREAM, PADDED, PRIORITY};
use tenfold_wire::frame::{
    ErrorCode, Frame, FrameHeader, FrameKind, MOST_31_BITS, Priority, Receiver, Setting, write,
};
use tenfold_wire::hpack::{Block, Constants, Decoder, Encoder, FieldList, HpackError, ListLimits};
use tenfold_wire::{huffman, integer};

use crate::random::Random;
use crate::slow::SlowDecoder;
use crate::{Field, WIDE, decode, fields};

/// Decodes a block in fragments of `step` bytes, as HEADERS and CONTINUATION bring it.
fn decode_in_fragments(
    decoder: &mut Decoder,
    block: &[u8],
    step: usize,
    list: &mut FieldList,
) -> Result<(), HpackError> {
    let mut fragments = block.chunks(step).peekable();
    let mut begun: Vec<u8> = Vec::new();
    loop {
        begun.extend_from_slice(fragments.next().unwrap_or_default());
        let is_last = fragments.peek().is_none();
        let length = decoder.decode(&begun, is_last, list)?;
        begun.drain(..length);
        if is_last {
            return Ok(());
        }
    }
}

#[test]
fn any_blocks_are_decoded_as_a_slow_decoder_decodes_them_however_they_are_cut() {
    bolero::check!().with_type::<(u8, u16, Vec<Vec<u8>>)>().for_each(|(step, limit, blocks)| {
        let limits = ListLimits { size: u32::from(limit % 1024), fields: 8 };
        let (mut whole, mut cut, mut bounded) = (Decoder::new(), Decoder::new(), Decoder::new());
        let mut slow = SlowDecoder::new();
        for block in blocks {
            let expected = slow.decode(block);
            let found = decode(&mut whole, block);
            assert_eq!(found.as_ref().ok(), expected.as_ref());
            let mut list = FieldList::new(WIDE);
            let in_fragments = decode_in_fragments(&mut cut, block, usize::from(*step) + 1, &mut list);
            let mut few = FieldList::new(limits);
            let with_limits = bounded.decode(block, true, &mut few);
            let Ok(found) = found else {
                assert!(in_fragments.is_err() && with_limits.is_err());
                return;
            };
            assert_eq!((in_fragments, fields(&list)), (Ok(()), found.clone()));
            assert_eq!(with_limits, Ok(block.len()));
            check_limits(limits, &few, &found);
            assert_eq!(bounded.heap_bytes(), whole.heap_bytes());
            assert!(whole.heap_bytes() <= 4096);
        }
    });
}

/// The list has as many fields as the limits allow, and counts the others.
fn check_limits(limits: ListLimits, list: &FieldList, all: &[Field]) {
    let size =
        |fields: &[Field]| fields.iter().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>();
    let is_within =
        |count: &usize| size(&all[..*count]) <= limits.size as usize && *count <= limits.fields as usize;
    let kept = (0..=all.len()).rev().find(is_within).expect("an empty list is within all limits");
    assert_eq!(fields(list), all[..kept]);
    assert_eq!(list.is_over(), kept < all.len());
    assert_eq!(list.size(), size(all) as u64);
}

#[test]
fn any_lists_survive_with_any_constants_and_sizes_of_the_table() {
    bolero::check!().with_type::<(u64, Vec<(u8, u16)>)>().for_each(|(seed, steps)| {
        let mut random = Random::new(*seed);
        let common = random.fields();
        let constants = Constants::new(common.iter().map(|(name, value)| (&name[..], &value[..])));
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
        let mut block = Block::new();
        for &(kind, limit) in steps {
            if kind % 8 == 0 {
                let limit = limit % 5000;
                encoder.set_limit(limit.into());
                decoder.set_limit(limit);
            }
            let mut sent = random.fields();
            if kind % 2 == 0 {
                sent.extend(common.iter().cloned());
            }
            block.clear();
            sent.iter().for_each(|(name, value)| block.field(&constants, name, value));
            let mut bytes = b"before".to_vec();
            assert_eq!(encoder.write(&constants, &block, &mut bytes), None);
            let mut received = decode(&mut decoder, &bytes[6..]).expect("the block is valid");
            let pseudo = received.iter().take_while(|field| field.0.starts_with(b":")).count();
            assert!(received[pseudo..].iter().all(|field| !field.0.starts_with(b":")));
            // Constants change the order.
            received.sort();
            sent.sort();
            assert_eq!(received, sent);
        }
    });
}

#[test]
fn every_part_of_a_valid_block_has_fewer_fields_or_is_an_error() {
    bolero::check!().with_type::<u64>().for_each(|seed| {
        let sent = Random::new(*seed).fields();
        let mut block = Block::new();
        sent.iter().for_each(|(name, value)| block.field(&Constants::default(), name, value));
        let mut bytes = Vec::new();
        Encoder::new().write(&Constants::default(), &block, &mut bytes);
        // Long values make many parts: their ends are the interesting ones.
        let step = 1 + bytes.len() / 500;
        for cut in (0..bytes.len()).step_by(step) {
            match decode(&mut Decoder::new(), &bytes[..cut]) {
                Ok(fields) => assert!(fields.len() < sent.len() && sent.starts_with(&fields)),
                Err(error) => assert_eq!(error, HpackError::Truncated),
            }
        }
    });
}

#[test]
fn any_text_survives_the_huffman_code_and_any_bytes_are_text_or_an_error() {
    bolero::check!().with_type::<Vec<u8>>().for_each(|bytes| {
        let mut encoded = Vec::new();
        huffman::encode(bytes, &mut encoded);
        assert_eq!(encoded.len(), huffman::encoded_len(bytes));
        let mut out = vec![0; bytes.len()];
        assert!(huffman::most_decoded(encoded.len()) >= bytes.len());
        assert_eq!(huffman::decode(&encoded, &mut out), Ok(bytes.len()));
        assert_eq!(&out, bytes);
        let mut text = vec![0; huffman::most_decoded(bytes.len())];
        if let Ok(length) = huffman::decode(bytes, &mut text) {
            encoded.clear();
            huffman::encode(&text[..length], &mut encoded);
            assert_eq!(&encoded, bytes, "the code has one form");
        }
    });
}

#[test]
fn any_integer_survives() {
    bolero::check!().with_type::<(u64, u8, u8)>().for_each(|&(value, prefix, high)| {
        let (value, prefix) = (value >> (2 + high % 62), 1 + prefix % 8);
        let mut bytes = Vec::new();
        integer::encode(value, prefix, high & !(u8::MAX >> (8 - prefix)), &mut bytes);
        assert_eq!(integer::decode(&bytes, prefix), Ok(Some((value, bytes.len()))));
    });
}

/// Writes the frame, without padding. `None`: no writer, because it is not sent.
fn written(stream: u32, frame: &Frame<'_>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match *frame {
        Frame::Data { content, end_stream } => {
            write::data_header(stream, content.len() as u32, end_stream, &mut out);
            out.extend_from_slice(content);
        }
        Frame::Headers { fragment, priority: None, end_stream, end_headers: true } => {
            let open = write::OpenHeaders::begin(stream, end_stream, &mut out);
            out.extend_from_slice(fragment);
            open.finish(16_384, &mut out);
        }
        Frame::Priority(priority) => write::priority(stream, priority, &mut out),
        Frame::ResetStream(code) => write::reset_stream(stream, code, &mut out),
        Frame::Settings(settings) => {
            let settings: Vec<Setting> = settings.collect::<Result<_, _>>().ok()?;
            write::settings(&settings, &mut out);
        }
        Frame::SettingsAck => write::settings_ack(&mut out),
        Frame::Ping { opaque, is_ack } => write::ping(opaque, is_ack, &mut out),
        Frame::GoAway { last_stream, code, debug } => write::goaway(last_stream, code, debug, &mut out),
        Frame::WindowUpdate(increment) => write::window_update(stream, increment.get(), &mut out),
        Frame::PriorityUpdate { stream, value } => write::priority_update(stream, value, &mut out),
        Frame::Headers { .. } | Frame::Continuation { .. } | Frame::Unknown => return None,
    }
    Some(out)
}

#[test]
fn any_bytes_are_frames_that_survive_writing_or_errors() {
    bolero::check!().with_type::<Vec<u8>>().for_each(|bytes| {
        let mut rest = &bytes[..];
        let mut open_block = None;
        while let Some((header, after)) = rest.split_first_chunk() {
            let mut header = FrameHeader::parse(header);
            // Lengths of random bytes are too large; the flags that choose a rule are kept.
            header.length = header.length.min(after.len() as u32);
            header.flags &= ACK | END_STREAM | END_HEADERS | PADDED | PRIORITY;
            let receiver = if bytes.len() % 4 == 0 { Receiver::Client } else { Receiver::Server };
            if header.check(receiver, 16_384, open_block).is_err() {
                return;
            }
            let (payload, after) = after.split_at(header.length as usize);
            rest = after;
            let content = header.content(payload.first().copied());
            let frame = match Frame::parse(header, payload, receiver) {
                Ok(frame) => frame,
                Err(error) if error.ends_connection() => return,
                Err(error) => {
                    assert!(
                        [FrameKind::PRIORITY, FrameKind::WINDOW_UPDATE].contains(&header.kind),
                        "{error}"
                    );
                    continue;
                }
            };
            match frame {
                Frame::Headers { end_headers, .. } | Frame::Continuation { end_headers, .. } => {
                    open_block = (!end_headers).then_some(header.stream);
                }
                Frame::Data { content: found, .. } => {
                    assert_eq!(content.map(|place| &payload[place]), Ok(found));
                }
                Frame::Unknown => assert!(header.kind.0 > 9 && header.kind != FrameKind::PRIORITY_UPDATE),
                _ => {}
            }
            check_written(header.stream, frame, receiver);
        }
    });
}

fn check_written(stream: u32, frame: Frame<'_>, receiver: Receiver) {
    let Some(bytes) = written(stream, &frame) else { return };
    let (header, payload) = bytes.split_first_chunk().expect("a frame has a header");
    let header = FrameHeader::parse(header);
    assert_eq!(header.length as usize, payload.len());
    assert_eq!(header.check(receiver, 16_384, None), Ok(()));
    assert_eq!(Frame::parse(header, payload, receiver), Ok(frame));
}

#[test]
fn frames_at_the_edges_of_their_values_survive() {
    for number in [0, 1, MOST_31_BITS] {
        let frames = [
            Frame::ResetStream(ErrorCode(number)),
            Frame::GoAway { last_stream: number, code: ErrorCode(u32::MAX), debug: b"" },
            Frame::GoAway { last_stream: number, code: ErrorCode::NO_ERROR, debug: b"text" },
            Frame::Priority(Priority { is_exclusive: number == 0, dependency: number, weight: 256 }),
            Frame::Priority(Priority { is_exclusive: number != 0, dependency: number, weight: 1 }),
            Frame::WindowUpdate(NonZeroU32::new(number.max(1)).expect("at least 1")),
            Frame::PriorityUpdate { stream: number.max(1), value: b"u=7" },
        ];
        for frame in frames {
            let stream =
                if matches!(frame, Frame::GoAway { .. } | Frame::PriorityUpdate { .. }) { 0 } else { 1 };
            check_written(stream, frame, Receiver::Server);
        }
    }
}
