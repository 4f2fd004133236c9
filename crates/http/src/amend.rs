//! A head that is changed after it was staged: for what is said of an answer whoever made it.

use crate::field::{FieldName, FieldValue};
use crate::out::Out;

impl Out {
    /// Gives the head that stands at the front of the output this field, in place of any of that name. For an answer
    /// that is alone in the output, as one that came later is; nothing happens where no whole head is there.
    pub fn set_field(&mut self, name: FieldName<'_>, value: FieldValue<'_>) {
        let Some((staged, begin, count)) = self.staged_front() else { return };
        let run = &staged[begin..begin + *count];
        let Some(end) = memchr::memmem::find(run, b"\r\n\r\n") else { return };
        let is_other = |line: &&[u8]| {
            let found = line.split(|&byte| byte == b':').next().unwrap_or_default();
            !found.eq_ignore_ascii_case(name.as_str().as_bytes())
        };
        let mut head = Vec::with_capacity(end + 64);
        for line in run[..end].split(|&byte| byte == b'\n').filter(is_other) {
            head.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
            head.extend_from_slice(b"\r\n");
        }
        for piece in [name.as_str().as_bytes(), b": ", value.as_bytes()] {
            head.extend_from_slice(piece);
        }
        *count = *count + head.len() - end;
        staged.splice(begin..begin + end, head);
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
