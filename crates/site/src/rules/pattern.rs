//! Patterns of the paths that a rule matches.
//!
//! A pattern is a path in which `*` matches any characters except a slash, and `**` matches any characters.
//! It is compared with the decoded path. A slash at the end makes no difference, and a pattern that ends with
//! `/**` also matches the folder itself: a rule that protects `/private/**` protects `/private`.

use std::fmt;

/// A pattern of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The path without its first slash, and without `/` or `/**` at its end.
    stem: String,
    /// Whether the pattern ended with `/**`.
    beneath: bool,
}

/// The most bytes of a pattern, which bounds the cost of a comparison.
const LONGEST: usize = 512;

impl Pattern {
    /// Parses a pattern.
    pub fn new(text: &str) -> Result<Pattern, String> {
        let Some(rest) = text.strip_prefix('/') else {
            if text.contains(['^', '~', '(', '$']) {
                return Err("a pattern is not a regular expression: * matches a part of a name, and ** any \
                            characters, as in /assets/** or /**.css"
                    .into());
            }
            return Err(format!(
                "a pattern begins with a slash, such as /assets/**; write {:?}",
                format!("/{text}")
            ));
        };
        // Lower case can be longer.
        if text.len().max(text.to_lowercase().len()) > LONGEST {
            return Err(format!("a pattern has at most {LONGEST} bytes"));
        }
        if text.contains("***") {
            return Err(
                "*** has no meaning; * matches a part of a name, and ** any characters with slashes".into()
            );
        }
        if rest.contains("//") || rest.split('/').any(|name| matches!(name, "." | "..")) {
            return Err("a path cannot contain an empty name, . or ..".into());
        }
        if text.bytes().any(|byte| byte.is_ascii_control() || b"\\?#".contains(&byte)) {
            return Err("a path cannot contain control characters, a backslash, ? or #".into());
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (stem, beneath) = match rest.strip_suffix("**") {
            Some("") => ("", true),
            Some(stem) if stem.ends_with('/') => (&stem[..stem.len() - 1], true),
            _ => (rest, false),
        };
        Ok(Pattern { stem: stem.to_owned(), beneath })
    }

    /// Returns the pattern that matches every path.
    pub fn all() -> Pattern {
        Pattern { stem: String::new(), beneath: true }
    }

    /// Whether the pattern matches a path, decoded and without a slash at either end.
    pub(crate) fn matches(&self, relative: &str) -> bool {
        let (stem, path) = (self.stem.as_bytes(), relative.as_bytes());
        let Some(first) = self.stem.find('*') else {
            return match path.strip_prefix(stem) {
                Some([]) => true,
                Some(rest) => self.beneath && (stem.is_empty() || rest[0] == b'/'),
                None => false,
            };
        };
        let (before, stars) = stem.split_at(first);
        let Some(path) = path.strip_prefix(before) else { return false };
        if self.beneath {
            return fits(stars, path, true, || {});
        }
        let (stars, after) =
            stars.split_at(stars.iter().rposition(|byte| *byte == b'*').map_or(0, |last| last + 1));
        let Some(path) = path.strip_suffix(after) else { return false };
        match stars {
            b"**" => true,
            b"*" => !path.contains(&b'/'),
            _ => fits(stars, path, false, || {}),
        }
    }

    /// Removes those of the ascending `ends` up to which the path matches, in a single pass over the path.
    pub(crate) fn remove_fitting(&self, relative: &str, ends: &mut Vec<usize>) {
        if ends.len() < 2 || !self.stem.contains('*') {
            return ends.retain(|end| !self.matches(&relative[..*end]));
        }
        let (stem, path) = (self.stem.as_bytes(), relative.as_bytes());
        Follower::new(stem, self.beneath).remove_fitting(path, ends, || {});
    }

    /// Returns the part of a matching path that the final `**` matches, without a slash in front; empty for
    /// the folder itself.
    pub(crate) fn rest<'p>(&self, relative: &'p str) -> Option<&'p str> {
        let rest = relative.strip_prefix(&self.stem)?;
        match rest.strip_prefix('/') {
            Some(rest) if self.beneath => Some(rest),
            None if rest.is_empty() || (self.beneath && self.stem.is_empty()) => Some(rest),
            _ => None,
        }
    }

    /// Returns the path of a pattern without stars, and whether it also matches everything beneath the path.
    pub(crate) fn without_stars(&self) -> Option<(&str, bool)> {
        (!self.stem.contains('*')).then_some((&self.stem, self.beneath))
    }

    /// Returns the pattern in lower case.
    pub(crate) fn in_lower_case(&self) -> Pattern {
        Pattern { stem: self.stem.to_lowercase(), beneath: self.beneath }
    }

    /// Whether the pattern ends with `/**`, and contains no other star.
    pub(crate) fn is_prefix(&self) -> bool {
        self.beneath && !self.stem.contains('*')
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pattern { stem, beneath } = self;
        match (stem.as_str(), beneath) {
            (stem, false) => write!(f, "/{stem}"),
            ("", true) => f.write_str("/**"),
            (stem, true) => write!(f, "/{stem}/**"),
        }
    }
}

/// Whether `path` matches `pattern`, or with `beneath` is in a folder that does. Calls `step` for each
/// comparison with a byte: at most as often as the product of both lengths, for any path.
fn fits(pattern: &[u8], path: &[u8], beneath: bool, step: impl FnMut()) -> bool {
    Follower::new(pattern, beneath).read_part(path, step)
}

/// The words of a bit set of positions in a pattern.
const WORDS: usize = LONGEST / 64;

/// The positions in a pattern that a prefix of the path leads to, as a bit set.
struct Follower<'p> {
    pattern: &'p [u8],
    beneath: bool,
    positions: [u64; WORDS],
    /// Whether the path is in a folder that matches.
    is_beneath: bool,
}

impl Follower<'_> {
    fn new(pattern: &[u8], beneath: bool) -> Follower<'_> {
        let mut positions = [0; WORDS];
        add(&mut positions, pattern, 0);
        Follower { pattern, beneath, positions, is_beneath: false }
    }

    /// Reads the next part of the path. Returns whether the path matches up to the end of the part.
    fn read_part(&mut self, part: &[u8], mut step: impl FnMut()) -> bool {
        for byte in part {
            self.is_beneath |= self.beneath && *byte == b'/' && self.has_end();
            if self.is_beneath || self.positions == [0; WORDS] {
                return self.is_beneath;
            }
            let mut next = [0; WORDS];
            for (word, mut bits) in self.positions.into_iter().enumerate() {
                while bits != 0 {
                    let at = word * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    step();
                    match &self.pattern[at..] {
                        [b'*', b'*', ..] => add(&mut next, self.pattern, at),
                        [b'*', ..] if *byte != b'/' => add(&mut next, self.pattern, at),
                        [expected, ..] if expected == byte => add(&mut next, self.pattern, at + 1),
                        _ => {}
                    }
                }
            }
            self.positions = next;
        }
        self.is_beneath || self.has_end()
    }

    /// Like [`Pattern::remove_fitting`].
    fn remove_fitting(mut self, path: &[u8], ends: &mut Vec<usize>, mut step: impl FnMut()) {
        let mut read = 0;
        ends.retain(|end| {
            let part = &path[read..*end];
            read = *end;
            !self.read_part(part, &mut step)
        });
    }

    fn has_end(&self) -> bool {
        let at = self.pattern.len();
        self.positions[at / 64] & 1 << (at % 64) != 0
    }
}

/// Adds a position, and the positions after stars that may match nothing.
fn add(positions: &mut [u64], pattern: &[u8], mut at: usize) {
    loop {
        positions[at / 64] |= 1 << (at % 64);
        match &pattern[at..] {
            [b'*', b'*', ..] => at += 2,
            [b'*', ..] => at += 1,
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::new(text).expect(text)
    }

    #[test]
    fn a_pattern_is_for_these_paths_and_no_others() {
        for (text, fit, unfit) in [
            ("/", &[""][..], &["a", "a/b"][..]),
            ("/**", &["", "a", "a/b"], &[]),
            ("/a", &["a"], &["", "ab", "a/b", "b"]),
            ("/a/", &["a"], &["ab", "a/b"]),
            ("/a/**", &["a", "a/b", "a/b/c"], &["ab", "", "b/a"]),
            ("/a/*", &["a/b", "a/b.c"], &["a/b/c", "a", "b/c"]),
            ("/*.css", &["a.css", ".css"], &["a/b.css", "a.cssx", "css"]),
            ("/**.css", &["a.css", "a/b/c.css"], &["a.cs", "a.css/b"]),
            ("/a*/**", &["a", "ab", "ab/c/d"], &["b/a", ""]),
            ("/**/x/*.y", &["a/x/1.y", "a/b/x/2.y"], &["a/x/b/1.y", "x.y"]),
            ("/gr\u{fc}\u{df}e/*", &["gr\u{fc}\u{df}e/hallo"], &["gr\u{fc}\u{df}e"]),
        ] {
            let pattern = pattern(text);
            for path in fit {
                assert!(pattern.matches(path), "{text} is for {path:?}");
            }
            for path in unfit {
                assert!(!pattern.matches(path), "{text} is not for {path:?}");
            }
        }
    }

    #[test]
    fn the_text_that_a_star_matched_is_known() {
        let old = pattern("/old/**");
        assert!(old.is_prefix());
        assert_eq!(old.rest("old/a/b"), Some("a/b"));
        assert_eq!(old.rest("old"), Some(""));
        assert_eq!(old.rest("older"), None);
        assert_eq!(pattern("/**").rest("a/b"), Some("a/b"));
        assert_eq!(pattern("/a").rest("a"), Some(""));
        assert_eq!(pattern("/a").rest("a/b"), None);
        assert!(!pattern("/a*/**").is_prefix() && !pattern("/a").is_prefix());
    }

    #[test]
    fn malformed_patterns_are_refused() {
        for wrong in ["", "a", "*.css", "/a//b", "/../a", "/a/./b", "/***", "/a?b", "/a\\b", "/a\nb"] {
            assert!(Pattern::new(wrong).is_err(), "{wrong:?}");
        }
        assert!(Pattern::new(&format!("/{}", "a".repeat(LONGEST))).is_err());
    }

    #[test]
    fn a_pattern_is_shown_as_it_is_written() {
        for text in ["/", "/**", "/a", "/a/**", "/*.css", "/a*/**"] {
            assert_eq!(pattern(text).to_string(), text);
        }
    }

    /// The same by exhaustive search.
    fn fits_slowly(pattern: &[u8], path: &[u8]) -> bool {
        match pattern {
            [] => path.is_empty(),
            [b'*', b'*', rest @ ..] => (0..=path.len()).any(|n| fits_slowly(rest, &path[n..])),
            [b'*', rest @ ..] => {
                let end = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
                (0..=end).any(|n| fits_slowly(rest, &path[n..]))
            }
            [byte, rest @ ..] => path.first() == Some(byte) && fits_slowly(rest, &path[1..]),
        }
    }

    #[test]
    fn steps_are_at_most_the_product_of_both_lengths() {
        const LENGTH: usize = 1 << 16;
        for (pattern, path) in [
            ("**-*.js", "-".repeat(LENGTH)),
            ("**.*.js", format!("a{}", ".".repeat(LENGTH))),
            ("**a*b*c", format!("{}b", "a".repeat(LENGTH))),
            ("**/*/*.x", "/".repeat(LENGTH)),
        ] {
            for beneath in [false, true] {
                let mut steps = 0;
                assert!(!fits(pattern.as_bytes(), path.as_bytes(), beneath, || steps += 1), "{pattern}");
                assert!(steps <= (pattern.len() + 1) * (path.len() + 1), "{pattern}: {steps} steps");
            }
        }
    }

    #[test]
    fn thousands_of_names_in_a_path_take_linear_time() {
        const NAMES: usize = 1 << 12;
        let path = "a/.c".to_owned() + &"/.c".repeat(NAMES - 1);
        let all: Vec<usize> = (1..=NAMES).map(|name| 1 + 3 * name).collect();
        for pattern in ["**/.*", "**/.c*", "**.*", "**/.x*"] {
            let (mut steps, mut ends) = (0, all.clone());
            let follower = Follower::new(pattern.as_bytes(), false);
            follower.remove_fitting(path.as_bytes(), &mut ends, || steps += 1);
            assert_eq!(ends.is_empty(), pattern != "**/.x*", "{pattern}");
            assert!(steps <= (pattern.len() + 1) * (path.len() + 1), "{pattern}: {steps} steps");
        }
    }

    proptest! {
        #[test]
        fn ends_are_removed_as_the_parts_of_a_path_match(
            stem in "([ab/]|\\*{1,2}[ab/]){0,6}\\*{0,2}",
            path in "[ab/]{0,10}",
            beneath: bool,
        ) {
            let pattern = Pattern { stem, beneath };
            let mut ends: Vec<usize> = (0..=path.len()).collect();
            let expected: Vec<usize> =
                ends.iter().copied().filter(|end| !pattern.matches(&path[..*end])).collect();
            pattern.remove_fitting(&path, &mut ends);
            prop_assert_eq!(ends, expected, "{} {}", pattern, path);
        }

        #[test]
        fn fast_and_slow_agree(
            stem in "([ab/]|\\*{1,2}[ab/]){0,6}\\*{0,2}",
            path in "[ab/]{0,10}",
            beneath: bool,
            long: bool,
        ) {
                        // The long name makes the pattern span several words.
            let name = if long { "c".repeat(100) } else { String::new() };
            let (stem, path) = (format!("{stem}{name}"), format!("{path}{name}"));
            let slowly = |pattern: &str| fits_slowly(pattern.as_bytes(), path.as_bytes());
            let expected = slowly(&stem) || (beneath && slowly(&format!("{stem}/**")));
            let pattern = Pattern { stem, beneath };
            prop_assert_eq!(fits(pattern.stem.as_bytes(), path.as_bytes(), beneath, || {}), expected);
            if !pattern.stem.is_empty() {
                prop_assert_eq!(pattern.matches(&path), expected, "{} {}", pattern, path);
            }
        }
    }
}
