//! Output in more pieces than it needs: what [`Write`] asks for, made after an answer was staged.

use std::collections::VecDeque;

use super::{Out, Segment};
use crate::amend::final_head;
use crate::limits::Write;

/// A place in the output at which an answer begins.
#[derive(Clone, Copy)]
struct Mark {
    segments: usize,
    tail: usize,
}

impl Out {
    /// Runs `stage`, which stages an answer, and lets its head leave as `write` says.
    #[inline]
    pub(crate) fn answer<T>(&mut self, write: Write, stage: impl FnOnce(&mut Out) -> T) -> T {
        let mark =
            (write != Write::Joined).then_some(Mark { segments: self.segments.len(), tail: self.tail });
        let answer = stage(self);
        if let Some(mark) = mark {
            self.set_apart(mark, write);
        }
        answer
    }

    /// Gives the head of the answer that begins at `mark` calls of its own. Nothing has left since then.
    #[cold]
    fn set_apart(&mut self, mark: Mark, write: Write) {
        let own = match self.segments.get(mark.segments) {
            None => self.tail - mark.tail,
            Some(Segment::Staged(count)) => count - mark.tail,
            // No head was staged.
            Some(_) => return,
        };
        let before: u64 = self
            .segments
            .iter()
            .take(mark.segments)
            .filter(|segment| segment.is_staged())
            .map(Segment::len)
            .sum();
        let begin = self.gone + before as usize + mark.tail;
        let answer = &self.staged[begin..begin + own];
        let Some(last) = final_head(answer) else { return };
        // Interim responses (1xx) leave by themselves as well.
        let (interim, last) = (&answer[..last.start], &answer[last.start..last.end + 4]);
        let head = &answer[..interim.len() + last.len()];
        let mut pieces: VecDeque<_> =
            (mark.tail > 0).then_some(Segment::Staged(mark.tail)).into_iter().collect();
        match write {
            Write::Joined => return,
            Write::Split => {
                let heads = [interim.len(), last.len()].into_iter().filter(|length| *length > 0);
                pieces.extend(heads.map(Segment::Alone));
            }
            Write::PerHeader => {
                pieces.extend(
                    head.split_inclusive(|&byte| byte == b'\n').map(|line| Segment::Alone(line.len())),
                );
            }
        }
        let body = own - head.len();
        let mut behind = self.segments.split_off(mark.segments);
        self.segments.append(&mut pieces);
        if behind.pop_front().is_none() {
            self.tail = body;
            return;
        }
        if body > 0 {
            self.segments.push_back(Segment::Staged(body));
        }
        self.segments.append(&mut behind);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::IoSlice;
    use std::sync::Arc;

    use super::super::{OpenFile, Part};
    use super::*;

    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";

    fn answer(out: &mut Out, write: Write, body: &[u8]) {
        out.answer(write, |out| {
            out.stage(HEAD);
            out.stage(body);
        });
    }

    /// What leaves by each call, and whether the call says that more follows.
    fn calls(out: &mut Out) -> Vec<(String, bool)> {
        let mut calls = Vec::new();
        while !out.is_empty() {
            if let Some((_, range, more)) = out.file() {
                let count = range.end - range.start;
                calls.push((format!("file {count}"), more));
                out.advance(count);
                continue;
            }
            let mut slices = [IoSlice::new(&[]); 8];
            let (filled, more) = out.memory(&mut slices);
            let bytes: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.iter().copied()).collect();
            out.advance(bytes.len() as u64);
            calls.push((String::from_utf8(bytes).expect("text"), more));
        }
        calls
    }

    fn pieces(out: &mut Out) -> Vec<(usize, bool)> {
        let mut pieces = Vec::new();
        while let Some(super::super::Memory::Staged(bytes, from)) = out.pop_memory(Vec::new()) {
            pieces.push((bytes.len() - from, out.follows()));
        }
        pieces
    }

    #[test]
    fn joined_output_is_staged_bytes_alone() {
        let mut out = Out::new();
        answer(&mut out, Write::Joined, b"body");
        answer(&mut out, Write::Joined, b"body");
        assert_eq!(out.staged_alone().map(<[u8]>::len), Some(2 * (HEAD.len() + 4)));
    }

    #[test]
    fn a_split_answer_leaves_in_two_calls_that_promise_nothing() {
        let mut out = Out::new();
        answer(&mut out, Write::Split, b"one.");
        answer(&mut out, Write::Split, b"");
        answer(&mut out, Write::Split, b"two.");
        let head = || (String::from_utf8_lossy(HEAD).into_owned(), false);
        let body = |text: &str| (text.to_owned(), false);
        assert_eq!(calls(&mut out), [head(), body("one."), head(), head(), body("two.")]);
    }

    #[test]
    fn h82_a_final_head_leaves_apart_from_the_interim_response_before_it() {
        const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n";
        let mut out = Out::new();
        out.answer(Write::Split, |out| {
            out.stage(HINTS.as_bytes());
            out.stage(HEAD);
            out.stage(b"body");
        });
        let leaves = [HINTS, &String::from_utf8_lossy(HEAD), "body"].map(|text| (text.to_owned(), false));
        assert_eq!(calls(&mut out), leaves);
    }

    #[test]
    fn each_line_of_a_head_leaves_by_itself() {
        let mut out = Out::new();
        answer(&mut out, Write::PerHeader, b"body");
        let said = calls(&mut out);
        let lines: Vec<_> = said.iter().map(|(line, _)| line.as_str()).collect();
        assert_eq!(lines, ["HTTP/1.1 200 OK\r\n", "Content-Length: 4\r\n", "\r\n", "body"]);
        assert!(said.iter().all(|(_, more)| !more));
    }

    #[test]
    fn a_body_that_is_a_file_is_apart_from_heads_and_its_parts_are_together() {
        let file = Arc::new(OpenFile { file: File::open("/dev/null").expect("Linux has it"), size: 9 });
        let mut out = Out::new();
        for _ in 0..2 {
            out.answer(Write::Split, |out| {
                out.stage(HEAD);
                out.stage(b"--part");
                out.push(Part::File(file.clone(), 0..9));
                out.stage(b"--end");
                out.watch(Box::new(|_| {}));
            });
        }
        let head = || (String::from_utf8_lossy(HEAD).into_owned(), false);
        let once = [head(), ("--part".into(), true), ("file 9".into(), true), ("--end".into(), false)];
        assert_eq!(calls(&mut out), [once.clone(), once].concat());
    }

    #[test]
    fn what_is_taken_over_keeps_its_pieces() {
        let mut out = Out::new();
        answer(&mut out, Write::Split, b"body");
        answer(&mut out, Write::Split, b"body");
        let once = [(HEAD.len(), false), (4, false)];
        assert_eq!(pieces(&mut out), [once, once].concat());
    }
}
