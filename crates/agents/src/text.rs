//! Text from another machine, made safe for a terminal.

use std::collections::VecDeque;

/// The bytes of standard error that are kept.
const MOST_ERRORS: usize = 4096;
/// The longest text from another machine in a message, in characters.
const MOST_CHARACTERS: usize = 300;

/// Returns the text in one line of at most 300 characters, without control characters.
pub fn safe(text: &str) -> String {
    let is_hidden = |character: &char| {
        // Marks that change the direction of text could show another message (Unicode Annex 9).
        character.is_control()
            || matches!(character, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let shown: String = text
        .trim()
        .chars()
        .map(|one| if is_hidden(&one) { ' ' } else { one })
        .take(MOST_CHARACTERS)
        .collect();
    shown.trim().to_owned()
}

/// The last bytes of a program's standard error.
#[derive(Debug, Default)]
pub(crate) struct LastWords(VecDeque<u8>);

impl LastWords {
    /// Adds bytes and forgets the oldest beyond the bound.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
        let over = self.0.len().saturating_sub(MOST_ERRORS);
        self.0.drain(..over);
    }

    /// Returns the last `most` lines with words, made safe.
    pub(crate) fn lines(&self, most: usize) -> Vec<String> {
        let bytes: Vec<u8> = self.0.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let mut lines: Vec<String> = text.lines().map(safe).filter(|line| !line.is_empty()).collect();
        lines.drain(..lines.len().saturating_sub(most));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_control_a_terminal() {
        assert_eq!(safe("\x1b[31mred\x07\r\nnext\u{202e}"), "[31mred   next");
        assert_eq!(safe(&"é".repeat(1000)).chars().count(), MOST_CHARACTERS);
    }

    #[test]
    fn the_last_lines_are_kept() {
        let mut words = LastWords::default();
        for number in 0..10_000 {
            words.add(format!("line {number}\n\n").as_bytes());
        }
        assert_eq!(words.lines(2), ["line 9998", "line 9999"]);
        assert!(words.0.len() <= MOST_ERRORS);
    }
}
