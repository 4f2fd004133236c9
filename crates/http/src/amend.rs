//! A head that is changed after it was staged: for what is said of an answer whoever made it.

use std::ops::Range;

use crate::field::{FieldName, FieldValue};
use crate::out::Out;

/// Returns the place of the first final head in `staged`, without the empty line that ends it. Interim responses
/// (1xx) before it have heads of their own (RFC 9110 §15.2).
pub(crate) fn final_head(staged: &[u8]) -> Option<Range<usize>> {
    const END: &[u8] = b"\r\n\r\n";
    let mut begin = 0;
    loop {
        let end = begin + memchr::memmem::find(&staged[begin..], END)?;
        if !staged[begin..].starts_with(b"HTTP/1.1 1") {
            return Some(begin..end);
        }
        begin = end + END.len();
    }
}

impl Out {
    /// Sets a field of the first final response in the output, in place of any of that name. Interim responses before
    /// it keep their heads. The response must be alone in the output, as a deferred one is; without a complete head at
    /// the front nothing happens.
    pub fn set_field(&mut self, name: FieldName<'_>, value: FieldValue<'_>) {
        let Some((staged, begin, count)) = self.staged_front() else { return };
        let Some(Range { start, end }) = final_head(&staged[begin..begin + *count]) else { return };
        let (start, end) = (begin + start, begin + end);
        let is_other = |line: &&[u8]| {
            let found = line.split(|&byte| byte == b':').next().unwrap_or_default();
            !found.eq_ignore_ascii_case(name.as_str().as_bytes())
        };
        let mut head = Vec::with_capacity(end - start + 64);
        for line in staged[start..end].split(|&byte| byte == b'\n').filter(is_other) {
            head.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
            head.extend_from_slice(b"\r\n");
        }
        for piece in [name.as_str().as_bytes(), b": ", value.as_bytes()] {
            head.extend_from_slice(piece);
        }
        *count = *count + head.len() - (end - start);
        staged.splice(start..end, head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::Part;
    use std::sync::Arc;

    const PRIVATE: FieldValue<'static> = FieldValue::constant("private");

    fn bytes(out: &mut Out) -> Vec<u8> {
        let mut all = Vec::new();
        while !out.is_empty() {
            let mut slices = [std::io::IoSlice::new(b""); 8];
            let (filled, _) = out.memory(&mut slices);
            let round: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.to_vec()).collect();
            out.advance(round.len() as u64);
            all.extend(round);
        }
        all
    }

    #[test]
    fn a_field_takes_the_place_of_those_of_its_name() {
        let mut out = Out::new();
        out.stage(b"HTTP/1.1 200 OK\r\ncache-control: public\r\nA: b\r\nCache-Control: max-age=1\r\n\r\nbody\r\n\r\n");
        out.set_field(FieldName::CACHE_CONTROL, PRIVATE);
        let expected = b"HTTP/1.1 200 OK\r\nA: b\r\nCache-Control: private\r\n\r\nbody\r\n\r\n";
        assert_eq!(out.len(), expected.len() as u64);
        assert_eq!(bytes(&mut out), expected);
    }

    #[test]
    fn h82_a_field_belongs_to_the_final_response_after_any_interim_ones() {
        const HINTS: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
        for interim in [HINTS, b"HTTP/1.1 100 Continue\r\n\r\n", &[HINTS, HINTS].concat()] {
            let mut out = Out::new();
            out.stage(interim);
            out.stage(b"HTTP/1.1 200 OK\r\nCache-Control: public\r\n\r\nHTTP/1.1 body\r\n\r\n");
            out.set_field(FieldName::CACHE_CONTROL, PRIVATE);
            let expected = b"HTTP/1.1 200 OK\r\nCache-Control: private\r\n\r\nHTTP/1.1 body\r\n\r\n";
            assert_eq!(bytes(&mut out), [interim, expected].concat());
        }
        let mut out = Out::new();
        out.stage(HINTS);
        out.set_field(FieldName::CACHE_CONTROL, PRIVATE);
        assert_eq!(bytes(&mut out), HINTS, "an interim response alone has no final head");
    }

    #[test]
    fn what_stands_behind_the_head_stays_where_it_is() {
        let mut out = Out::new();
        out.stage(b"HTTP/1.1 304 Not Modified\r\n\r\n");
        out.push(Part::Shared(Arc::from(&b"shared"[..]), 0..6));
        out.stage(b"behind");
        out.set_field(FieldName::CACHE_CONTROL, PRIVATE);
        let expected = b"HTTP/1.1 304 Not Modified\r\nCache-Control: private\r\n\r\nsharedbehind";
        assert_eq!(bytes(&mut out), expected);
    }

    #[test]
    fn what_is_no_head_is_left_alone() {
        let mut out = Out::new();
        out.set_field(FieldName::CACHE_CONTROL, PRIVATE);
        assert!(out.is_empty());
        out.stage(b"HTTP/1.1 200 OK\r\n");
        out.set_field(FieldName::CACHE_CONTROL, PRIVATE);
        assert_eq!(bytes(&mut out), b"HTTP/1.1 200 OK\r\n");
    }
}
