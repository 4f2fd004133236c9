//! Text in pieces of whole lines, each of which a pipe takes in one write.

/// The bytes of the whole lines that fit in `most`, or of the first line if it does not fit.
pub(crate) fn whole_lines(lines: &[u8], most: usize) -> usize {
    if lines.len() <= most {
        return lines.len();
    }
    match memchr::memrchr(b'\n', &lines[..most]) {
        Some(end) => end + 1,
        None => memchr::memchr(b'\n', lines).map_or(lines.len(), |end| end + 1),
    }
}

pub(crate) fn count(lines: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', lines).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_gets_pieces_that_end_with_a_line() {
        let lines = b"first\nsecond\nthird\n";
        assert_eq!(whole_lines(lines, 100), lines.len());
        assert_eq!(whole_lines(lines, 13), 13);
        assert_eq!(whole_lines(lines, 12), 6);
        assert_eq!(whole_lines(lines, 3), 6);
    }
}
