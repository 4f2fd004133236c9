//! The reason of a failed attempt.

use std::fmt;

/// The most characters of a reason, whose length the authority chooses.
pub(super) const MAX_REASON: usize = 500;

/// A failed step and its reason, in one line: control characters from the authority are escaped.
#[derive(Debug)]
pub struct AcmeError(String);

impl AcmeError {
    /// Returns the error of a step, which begins with a verb: `create the account`.
    pub(super) fn new(step: &str, reason: impl fmt::Display) -> AcmeError {
        let reason = reason.to_string();
        let (mut characters, mut line) = (reason.chars(), String::new());
        for character in characters.by_ref().take(MAX_REASON) {
            match character.is_control() {
                true => line.extend(character.escape_default()),
                false => line.push(character),
            }
        }
        if characters.next().is_some() {
            line.push('…');
        }
        AcmeError(format!("cannot {step}: {line}"))
    }

    /// Returns a function that converts a reason to such an error.
    pub(super) fn at<E: fmt::Display>(step: &str) -> impl FnOnce(E) -> AcmeError {
        move |reason| AcmeError::new(step, reason)
    }
}

impl fmt::Display for AcmeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AcmeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_bounded_line() {
        let error = AcmeError::new("ask", "no\ntenfold: \x1b[31mforged\u{9b}");
        assert_eq!(error.to_string(), "cannot ask: no\\ntenfold: \\u{1b}[31mforged\\u{9b}");
        let long = AcmeError::new("ask", "é".repeat(501)).to_string();
        assert_eq!(long, format!("cannot ask: {}…", "é".repeat(500)));
    }
}
