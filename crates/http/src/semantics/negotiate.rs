//! The choice of a content coding: `Accept-Encoding` (RFC 9110 §12.5.3).

/// A content coding (RFC 9110 §8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentCoding {
    /// Zstandard (RFC 8878).
    Zstd,
    /// Brotli (RFC 7932).
    Brotli,
    /// gzip (RFC 1952).
    Gzip,
    /// Uncompressed.
    Identity,
}

impl ContentCoding {
    /// Returns its name in `Content-Encoding` and `Accept-Encoding`.
    pub fn token(self) -> &'static str {
        match self {
            ContentCoding::Zstd => "zstd",
            ContentCoding::Brotli => "br",
            ContentCoding::Gzip => "gzip",
            ContentCoding::Identity => "identity",
        }
    }

    /// Returns the coding with this name. `x-gzip` is an alias of `gzip` (RFC 9110 §8.4.1.3).
    fn parse(token: &[u8]) -> Option<ContentCoding> {
        let is = |name: &str| token.eq_ignore_ascii_case(name.as_bytes());
        if is("x-gzip") {
            return Some(ContentCoding::Gzip);
        }
        [ContentCoding::Zstd, ContentCoding::Brotli, ContentCoding::Gzip, ContentCoding::Identity]
            .into_iter()
            .find(|coding| is(coding.token()))
    }
}

/// Chooses a coding by the values of all `Accept-Encoding` fields of a request, in order; None if the client
/// accepts no available coding, and the server chooses 406 or the uncompressed content (RFC 9110 §12.1).
/// `available` lists the codings of the representation in order of preference, with
/// [`ContentCoding::Identity`] if it can be sent uncompressed.
///
/// The greatest weight wins; for equal weights, the first coding in `available`. Identity is accepted unless
/// it is excluded, and has the lowest preference unless it is named. Malformed members and repeated names are
/// ignored.
pub fn choose<'v>(
    values: impl IntoIterator<Item = &'v [u8]>,
    available: &[ContentCoding],
) -> Option<ContentCoding> {
    let accepted = Accepted::parse(values);
    let mut best: Option<(Rank, ContentCoding)> = None;
    for &coding in available {
        let rank = accepted.rank(coding);
        if rank > Rank::EXCLUDED && best.is_none_or(|(before, _)| rank > before) {
            best = Some((rank, coding));
        }
    }
    best.map(|(_, coding)| coding)
}

/// Returns the weight of a media type in the `Accept` fields of a request, in thousandths (RFC 9110 §12.5.1).
/// The most specific range that matches the type counts. Without a field, every type has 1000. Malformed
/// members and other parameters are ignored.
pub fn accepted<'v>(values: impl IntoIterator<Item = &'v [u8]>, kind: &str, subtype: &str) -> u16 {
    let (mut any, mut best) = (false, None);
    for member in values.into_iter().flat_map(|value| value.split(|&byte| byte == b',')) {
        any = true;
        let mut pieces = member.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let mut range = pieces.next().unwrap_or_default().splitn(2, |&byte| byte == b'/');
        let is = |text: Option<&[u8]>, name: &str| {
            text.is_some_and(|text| text.eq_ignore_ascii_case(name.as_bytes()))
        };
        let narrow = match (range.next(), range.next()) {
            (first, second) if is(first, kind) && is(second, subtype) => 2,
            (first, Some(b"*")) if is(first, kind) => 1,
            (Some(b"*"), Some(b"*")) => 0,
            _ => continue,
        };
        let weight = match pieces.find_map(|piece| piece.strip_prefix(b"q=").or(piece.strip_prefix(b"Q="))) {
            Some(text) => Weight::parse(text),
            None => Some(Weight::ONE),
        };
        if let Some(weight) = weight
            && best.is_none_or(|(before, _)| narrow > before)
        {
            best = Some((narrow, weight.0));
        }
    }
    match best {
        Some((_, weight)) => weight,
        None if any => 0,
        None => Weight::ONE.0,
    }
}

/// A weight in thousandths, 0 to 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Weight(u16);

impl Weight {
    const ONE: Weight = Weight(1000);

    /// Parses a `qvalue` (RFC 9110 §12.4.2): `0` or `1` with at most three decimals, up to 1.
    fn parse(text: &[u8]) -> Option<Weight> {
        let (whole, decimals) = match text {
            [whole @ (b'0' | b'1')] => (whole, &[][..]),
            [whole @ (b'0' | b'1'), b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
            _ => return None,
        };
        let mut thousandths = u16::from(whole - b'0') * 1000;
        for (digit, unit) in decimals.iter().zip([100, 10, 1]) {
            thousandths += u16::from(digit.checked_sub(b'0').filter(|digit| *digit <= 9)?) * unit;
        }
        (thousandths <= 1000).then_some(Weight(thousandths))
    }
}

/// The preference for a coding. Unnamed codings rank below named codings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(u16);

impl Rank {
    const EXCLUDED: Rank = Rank(0);
    const UNNAMED: Rank = Rank(1);

    fn of(weight: Weight) -> Rank {
        if weight == Weight(0) { Rank::EXCLUDED } else { Rank(weight.0 + 1) }
    }
}

/// The codings named in a request.
#[derive(Default)]
struct Accepted {
    /// By [`ContentCoding`].
    named: [Option<Weight>; 4],
    /// `*`: all codings that are not named.
    others: Option<Weight>,
}

impl Accepted {
    fn parse<'v>(values: impl IntoIterator<Item = &'v [u8]>) -> Accepted {
        let mut accepted = Accepted::default();
        for value in values {
            for (name, weight) in value.split(|&byte| byte == b',').filter_map(member) {
                let slot = match ContentCoding::parse(name) {
                    Some(coding) => &mut accepted.named[coding as usize],
                    None if name == b"*" => &mut accepted.others,
                    None => continue,
                };
                slot.get_or_insert(weight);
            }
        }
        accepted
    }

    fn rank(&self, coding: ContentCoding) -> Rank {
        match self.named[coding as usize].or(self.others) {
            Some(weight) => Rank::of(weight),
            // Without a field every coding is allowed, but clients that can decode a coding send the field.
            None if coding == ContentCoding::Identity => Rank::UNNAMED,
            None => Rank::EXCLUDED,
        }
    }
}

/// Parses a name with its weight: `gzip`, or `gzip;q=0.5` with white space around the semicolon.
fn member(text: &[u8]) -> Option<(&[u8], Weight)> {
    let mut pieces = text.splitn(2, |&byte| byte == b';').map(<[u8]>::trim_ascii);
    let name = pieces.next().filter(|name| !name.is_empty())?;
    match pieces.next() {
        None => Some((name, Weight::ONE)),
        Some([b'q' | b'Q', b'=', weight @ ..]) => Some((name, Weight::parse(weight)?)),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::ContentCoding::{Brotli, Gzip, Identity, Zstd};
    use super::*;

    const ALL: &[ContentCoding] = &[Zstd, Brotli, Gzip, Identity];

    #[track_caller]
    fn check(values: &[&str], available: &[ContentCoding], expected: impl Into<Option<ContentCoding>>) {
        let choice = choose(values.iter().map(|value| value.as_bytes()), available);
        let expected: Option<ContentCoding> = expected.into();
        assert_eq!(choice, expected, "{values:?} of {available:?}");
    }

    #[test]
    fn without_accept_encoding_the_content_is_not_encoded() {
        check(&[], ALL, Identity);
        check(&[""], ALL, Identity);
        check(&["deflate, compress;q=0.5"], ALL, Identity);
        check(&["gzip"], &[Zstd, Identity], Identity);
    }

    #[test]
    fn of_equal_weights_the_server_chooses() {
        check(&["gzip, deflate, br, zstd"], ALL, Zstd);
        check(&["gzip, deflate, br, zstd"], &[Gzip, Brotli, Identity], Gzip);
        check(&["gzip, deflate, br"], ALL, Brotli);
        check(&["gzip", "br"], ALL, Brotli);
        check(&["*"], ALL, Zstd);
        check(&["identity, gzip"], &[Identity, Gzip], Identity);
    }

    #[test]
    fn the_greatest_weight_wins() {
        check(&["gzip;q=0.9, br;q=0.8, zstd;q=0.1"], ALL, Gzip);
        check(&["gzip;q=0.001"], ALL, Gzip);
        check(&["gzip;q=0.5, identity"], ALL, Identity);
        check(&["gzip;q=0.5, identity;q=0.4"], ALL, Gzip);
        check(&["*;q=0.1, br;q=0.2"], ALL, Brotli);
        check(&["gzip;q=1.000, br;q=0.999"], ALL, Gzip);
    }

    #[test]
    fn zero_excludes() {
        check(&["zstd;q=0, *"], ALL, Brotli);
        check(&["gzip;q=0"], &[Gzip, Identity], Identity);
        check(&["identity;q=0"], &[Identity], None);
        check(&["identity;q=0, gzip"], &[Zstd, Gzip, Identity], Gzip);
        check(&["identity;q=0.000"], ALL, None);
        check(&["*;q=0"], ALL, None);
        check(&["*;q=0, identity"], ALL, Identity);
        check(&["*;q=0, gzip;q=0.1"], ALL, Gzip);
        check(&["*;q=0.5, identity;q=0"], &[Identity], None);
        check(&["gzip"], &[Gzip], Gzip);
        check(&["br"], &[Gzip], None);
        check(&["*"], &[], None);
    }

    #[test]
    fn names_are_compared_without_regard_to_case_and_blanks_are_passed_over() {
        check(&["GZip ; Q=0.5 ,\tBR ;\tq=0.6"], ALL, Brotli);
        check(&["x-gzip"], ALL, Gzip);
        check(&[", ,gzip,,"], ALL, Gzip);
    }

    #[test]
    fn malformed_elements_are_ignored() {
        for wrong in [
            "q=2",
            "q=1.1",
            "q=1.001",
            "q=0.1234",
            "q=.5",
            "q=-1",
            "q=",
            "q",
            "q=0,5",
            "q = 0.5",
            "q=0.5x",
            "q=1.0000",
            "x=1",
            "q=0.5;x=1",
            "",
            "q=00",
            "q=+1",
            "q=0.\u{665}",
        ] {
            check(&[&format!("br;{wrong}, gzip;q=0.1")], &[Brotli, Gzip, Identity], Gzip);
        }
        check(&["gzip br"], ALL, Identity);
        check(&["gzip, gzip;q=0"], ALL, Gzip);
        check(&["gzip;q=0, gzip"], ALL, Identity);
    }

    #[test]
    fn the_narrowest_range_that_a_type_is_in_gives_its_weight() {
        let weights = |values: &[&str]| {
            let weight = |kind, subtype| accepted(values.iter().map(|value| value.as_bytes()), kind, subtype);
            (weight("text", "html"), weight("application", "json"))
        };
        for (values, expected) in [
            (&[][..], (1000, 1000)),
            (&["*/*"], (1000, 1000)),
            (&["application/json"], (0, 1000)),
            (&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"], (1000, 800)),
            (&["*/*;q=0.1", "text/*;q=0.5", "APPLICATION/JSON;charset=utf-8;q=0.7"], (500, 700)),
            (&["text/html;q=0, */*"], (0, 1000)),
            (&["text/html;q=2, text;q=1, /html, text/htmlx, */json"], (0, 0)),
            (&[""], (0, 0)),
        ] {
            assert_eq!(weights(values), expected, "{values:?}");
        }
    }
}
