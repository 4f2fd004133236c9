//! A head that outlives the bytes it was read from.

use crate::head::{self, Head};
use crate::limits::Limits;

/// A copy of a request's head, for an answer that comes when the bytes that arrived are gone.
#[derive(Clone, Debug)]
pub struct KeptHead {
    bytes: Vec<u8>,
    persistent: bool,
}

impl Head<'_> {
    /// A copy of this head, with what was decided about the connection.
    pub fn keep(&self) -> KeptHead {
        KeptHead { bytes: self.bytes.to_vec(), persistent: self.persistent }
    }
}

impl KeptHead {
    /// Hands over the head, as it was when it was kept.
    pub fn read<T>(&mut self, use_it: impl FnOnce(&Head<'_>) -> T) -> T {
        // It has passed the bounds of its connection.
        let limits =
            Limits { max_target: usize::MAX, max_headers: Limits::MOST_HEADERS, ..Limits::default() };
        let mut table = head::table();
        let parsed = Head::parse(&mut self.bytes, &mut table, &limits);
        let mut head = parsed.expect("what was parsed can be parsed again");
        head.persistent = self.persistent;
        use_it(&head)
    }
}

#[cfg(test)]
mod tests {
    use crate::head::parse_head;

    #[test]
    fn what_is_kept_is_what_came() {
        let mut bytes = b"GET /a?b HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\n\r\n".to_vec();
        let mut kept = parse_head(&mut bytes, |head| {
            let mut head = head.expect("the request is good");
            assert!(head.persistent);
            head.persistent = false;
            head.keep()
        });
        drop(bytes);
        for _ in 0..2 {
            kept.read(|head| {
                assert_eq!((head.target.path, head.target.query, head.host()), ("/a", Some("b"), Some("x")));
                assert_eq!(head.only("range"), Some(&b"bytes=0-1"[..]));
                assert!(!head.persistent && head.selective);
            });
        }
    }
}
