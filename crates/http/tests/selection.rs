//! Selection of ranges, conditions and encodings, for any input. The test of ranges is also a fuzz target:
//! `cargo xtask fuzz --minutes 10 ranges`.

mod common;

use common::assemble_small;
use tenfold_http::Method;
use tenfold_http::h1::parse_request;
use tenfold_http::semantics::condition::{self, ConditionResult, Validators};
use tenfold_http::semantics::negotiate::{ContentCoding, choose};
use tenfold_http::semantics::range::{self, Ranges};

#[test]
fn codings_are_chosen_by_the_rules_of_the_rfc() {
    use ContentCoding::{Brotli, Gzip, Identity, Zstd};
    const NAMES: [&str; 6] = ["gzip", "br", "zstd", "identity", "*", "deflate"];
    const ORDERS: [&[ContentCoding]; 6] = [
        &[Zstd, Brotli, Gzip, Identity],
        &[Gzip, Brotli, Identity],
        &[Identity, Gzip],
        &[Identity],
        &[Gzip, Zstd],
        &[],
    ];
    type Input = (u8, Vec<(u8, u16)>, Vec<u8>);
    bolero::check!().with_iterations(20_000).with_max_len(32).with_type::<Input>().for_each(
        |(order, members, text)| {
            let available = ORDERS[usize::from(*order) % ORDERS.len()];
            // Whatever is chosen is available.
            if let Some(coding) = choose([&text[..]], available) {
                assert!(available.contains(&coding));
            }
            let members: Vec<(&str, u16)> = members
                .iter()
                .map(|&(name, weight)| (NAMES[usize::from(name) % NAMES.len()], weight % 1001))
                .collect();
            let value: Vec<String> = members
                .iter()
                .map(|(name, weight)| format!("{name};q={}.{:03}", weight / 1000, weight % 1000))
                .collect();
            let found = choose([value.join(", ").as_bytes()], available);
            let named =
                |name: &str| members.iter().find(|(known, _)| *known == name).map(|(_, weight)| *weight);
            // In halves of a thousandth: what is merely not excluded comes after everything that is named.
            let weight = |coding: ContentCoding| match named(coding.token()).or(named("*")) {
                Some(weight) => 2 * weight,
                None => u16::from(coding == Identity),
            };
            let best = available.iter().map(|&coding| weight(coding)).max().unwrap_or(0);
            let expected = available.iter().find(|&&coding| best > 0 && weight(coding) == best);
            assert_eq!(found, expected.copied(), "{value:?}");
        },
    );
}

#[test]
fn several_ranges_are_all_that_was_asked_for_and_lie_apart() {
    type Input = (u16, Vec<(u16, u16)>);
    bolero::check!().with_iterations(20_000).with_max_len(64).with_type::<Input>().for_each(
        |(size, asked)| {
            let size = u64::from(*size);
            let asked: Vec<_> =
                asked.iter().map(|&(a, b)| (u64::from(a.min(b)), u64::from(a.max(b)))).collect();
            let list: Vec<String> = asked.iter().map(|(first, last)| format!("{first}-{last}")).collect();
            let found = range::select(format!("bytes={}", list.join(",")).as_bytes(), size, 8);
            let wanted: Vec<_> = asked.iter().filter(|(first, _)| *first < size).collect();
            let parts = match found {
                Ranges::Whole => return assert!(size == 0 || asked.is_empty() || asked.len() > 8),
                Ranges::Unsatisfiable => return assert!(wanted.is_empty()),
                Ranges::One(part) => vec![part],
                Ranges::Many(parts) => {
                    assert!(parts.len() > 1 && parts.len() <= 8);
                    parts
                }
            };
            assert!(parts.iter().all(|part| part.start < part.end && part.end <= size));
            for (at, part) in parts.iter().enumerate() {
                let apart = |other: &std::ops::Range<u64>| {
                    part.end + range::NEAR < other.start || other.end + range::NEAR < part.start
                };
                assert!(parts[at + 1..].iter().all(apart), "{parts:?}");
                // The start and end of each part were requested.
                assert!(wanted.iter().any(|(first, _)| *first == part.start));
                assert!(wanted.iter().any(|(_, last)| last.saturating_add(1).min(size) == part.end));
            }
            let holder = |&&(first, last): &&(u64, u64)| {
                let holds =
                    |part: &std::ops::Range<u64>| part.start <= first && last.min(size - 1) < part.end;
                parts.iter().position(holds).expect("every requested range is sent")
            };
            // The parts are in the order in which the request first names them.
            let mut order: Vec<usize> = wanted.iter().map(holder).collect();
            let mut seen = Vec::new();
            order.retain(|at| {
                !seen.contains(at) && {
                    seen.push(*at);
                    true
                }
            });
            assert!(order.is_sorted() && order.len() == parts.len(), "{order:?}");
        },
    );
}

/// Evaluates RFC 9110 §13.2.2 step by step, for a file with the tag `"v"` and one date.
fn verdict_by_the_book(
    method: Method,
    [matching, unmodified, none, modified]: [Option<bool>; 4],
) -> ConditionResult {
    let reads = matches!(method, Method::Get | Method::Head);
    // Steps 1 and 2.
    match (matching, unmodified) {
        (Some(false), _) | (None, Some(false)) => return ConditionResult::PreconditionFailed,
        _ => {}
    }
    // Steps 3 and 4.
    match (none, modified) {
        (Some(false), _) if reads => ConditionResult::NotModified,
        (Some(false), _) => ConditionResult::PreconditionFailed,
        (None, Some(false)) if reads => ConditionResult::NotModified,
        _ => ConditionResult::Proceed,
    }
}

#[test]
fn conditions_are_evaluated_in_the_order_of_the_rfc() {
    const NAMES: [&str; 4] = ["If-Match", "If-Unmodified-Since", "If-None-Match", "If-Modified-Since"];
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const THEN: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    // Values that make each condition false, and values that make it true.
    const VALUES: [[&str; 2]; 4] = [["\"w\"", "\"v\""], [BEFORE, THEN], ["W/\"v\"", "\"w\""], [THEN, BEFORE]];
    let validators = Validators { etag: b"\"v\"", modified: Some(784_111_777) };
    let methods =
        [("GET", Method::Get), ("HEAD", Method::Head), ("POST", Method::Post), ("PUT", Method::Put)];
    for number in 0..81usize {
        let holds: [Option<bool>; 4] = std::array::from_fn(|at| match number / 3usize.pow(at as u32) % 3 {
            0 => None,
            state => Some(state == 2),
        });
        let fields: String = (0..4)
            .filter_map(|at| Some(format!("{}: {}\r\n", NAMES[at], VALUES[at][usize::from(holds[at]?)])))
            .collect();
        for (name, method) in methods {
            let mut bytes = format!("{name} / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes();
            let verdict = parse_request(&mut bytes, |head| {
                condition::evaluate(&head.expect("the head is well-formed"), validators)
            });
            assert_eq!(verdict, verdict_by_the_book(method, holds), "{name}\n{fields}");
        }
    }
}

#[test]
fn a_range_is_within_the_representation() {
    bolero::check!().with_iterations(20_000).with_max_len(24).with_type::<(u64, bool, Vec<u8>)>().for_each(
        |(size, raw, text)| {
            const PIECES: [&str; 12] = [
                "0",
                "1",
                "5",
                "9",
                "-",
                "-",
                ",",
                " ",
                "18446744073709551615",
                "18446744073709551616",
                "99",
                "x",
            ];
            let value: Vec<u8> = match raw {
                true => text.clone(),
                false => {
                    text.iter().flat_map(|&choice| PIECES[choice as usize % PIECES.len()].bytes()).collect()
                }
            };
            let size = if size % 3 == 0 { *size } else { size % 12 };
            if let Ranges::One(range) = range::select(&[b"bytes=", &value[..]].concat(), size, 8) {
                assert!(range.start < range.end && range.end <= size);
            }
            range::select(&value, size, 8);
        },
    );
}

#[test]
fn a_single_range_agrees_with_wide_arithmetic() {
    type Range = (Option<u64>, Option<u64>, u64);
    bolero::check!().with_iterations(20_000).with_type::<(bool, Range)>().for_each(
        |(small, (first, last, size))| {
            let near = |number: u64| if *small { number % 8 } else { number };
            let (first, last, size) = (first.map(near), last.map(near), near(*size));
            let shown = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
            let found = range::select(format!("bytes={}-{}", shown(first), shown(last)).as_bytes(), size, 8);
            // The rules of RFC 9110 §14.1.2 word by word, in 128 bits so that nothing overflows.
            let (wide, whole) = (u128::from(size), found == Ranges::Whole);
            let expected = match (first.map(u128::from), last.map(u128::from)) {
                (None, None) => return assert!(whole),
                (Some(first), Some(last)) if last < first => return assert!(whole),
                _ if size == 0 => return assert!(whole),
                (None, Some(0)) => None,
                (None, Some(count)) => Some((wide - count.min(wide), wide)),
                (Some(first), _) if first >= wide => None,
                (Some(first), last) => Some((first, last.map_or(wide, |last| (last + 1).min(wide)))),
            };
            let found = match found {
                Ranges::One(range) => Some((u128::from(range.start), u128::from(range.end))),
                Ranges::Unsatisfiable => None,
                Ranges::Whole | Ranges::Many(_) => panic!("a well-formed range was ignored"),
            };
            assert_eq!(found, expected);
        },
    );
}

#[test]
fn conditions_never_panic_and_an_unknown_tag_never_matches() {
    bolero::check!().with_iterations(10_000).with_max_len(16).with_type::<(bool, Vec<u8>)>().for_each(
        |(raw, choices)| {
            let value = if *raw { choices.clone() } else { assemble_small(choices) };
            // A line end would begin another header line.
            if value.contains(&b'\n') {
                return;
            }
            for name in ["If-Match", "If-None-Match", "If-Range", "If-Modified-Since", "If-Unmodified-Since"]
            {
                let mut bytes =
                    [b"GET / HTTP/1.1\r\nHost: a\r\n", name.as_bytes(), b": ", &value[..], b"\r\n\r\n"]
                        .concat();
                parse_request(&mut bytes, |head| {
                    let Ok(head) = head else { return };
                    let validators = Validators { etag: b"\"other\"", modified: None };
                    let verdict = condition::evaluate(&head, validators);
                    let star = head.values(name).any(|value| value == b"*");
                    if name == "If-None-Match" && !star {
                        assert_eq!(verdict, condition::ConditionResult::Proceed);
                    }
                    if name == "If-Range" {
                        assert!(!condition::range_applies(&head, validators));
                    }
                    condition::evaluate(&head, Validators { etag: b"\"v\"", modified: Some(784_111_777) });
                });
            }
        },
    );
}
