//! Patterns of the paths that a rule applies to.
//!
//! A pattern is a path in which `*` stands for any characters but a slash, and `**` for any characters. It is
//! compared with the decoded path, so it is written as people read it. A slash at the end makes no difference,
//! and what ends with `/**` is for the folder itself, too: a rule that protects `/private/**` protects
//! `/private`.

use std::fmt;

/// A pattern of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Without the slash it begins with; nor one at the end, nor the `/**` there.
    stem: String,
    /// Whether it ended with `/**`.
    beneath: bool,
}

/// Bytes of a pattern at most, to bound the cost of one comparison.
const LONGEST: usize = 512;

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// In words that say how to mend it.
    pub fn new(text: &str) -> Result<Pattern, String> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err(format!(
                "a pattern begins with a slash, such as /assets/**; write {:?}",
                format!("/{text}")
            ));
        };
        if text.len() > LONGEST {
            return Err(format!("a pattern has at most {LONGEST} bytes"));
        }
        if text.contains("***") {
            return Err(
                "three stars mean nothing; * is for a part of a name, ** for any number of names".into()
            );
        }
        if rest.contains("//") || rest.split('/').any(|name| matches!(name, "." | "..")) {
            return Err("no path that is looked at holds an empty name, . or ..".into());
        }
        if text.bytes().any(|byte| byte.is_ascii_control() || b"\\?#".contains(&byte)) {
            return Err("a path holds no control characters, backslash, ? or #".into());
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (stem, beneath) = match rest.strip_suffix("**") {
            Some("") => ("", true),
            Some(stem) if stem.ends_with('/') => (&stem[..stem.len() - 1], true),
            _ => (rest, false),
        };
        Ok(Pattern { stem: stem.to_owned(), beneath })
    }

    /// The pattern that every path fits.
    pub fn all() -> Pattern {
        Pattern { stem: String::new(), beneath: true }
    }

    /// Whether a path fits, which is given decoded and without a slash at either end.
    pub(crate) fn matches(&self, relative: &str) -> bool {
        let (stem, path) = (self.stem.as_bytes(), relative.as_bytes());
        if !self.stem.contains('*') {
            return match path.strip_prefix(stem) {
                Some([]) => true,
                Some(rest) => self.beneath && (stem.is_empty() || rest[0] == b'/'),
                None => false,
            };
        }
        fits(stem, path) || (self.beneath && fits(&[stem, b"/**"].concat(), path))
    }

    /// The part of a matching path that the final `**` stands for; empty for the folder itself, and without a
    /// slash in front.
    pub(crate) fn rest<'p>(&self, relative: &'p str) -> Option<&'p str> {
        let rest = relative.strip_prefix(&self.stem)?;
        match rest.strip_prefix('/') {
            Some(rest) if self.beneath => Some(rest),
            None if rest.is_empty() || (self.beneath && self.stem.is_empty()) => Some(rest),
            _ => None,
        }
    }

    /// The path that it is for, if that is one path, and whether it is for everything beneath it as well.
    pub(crate) fn without_stars(&self) -> Option<(&str, bool)> {
        (!self.stem.contains('*')).then_some((&self.stem, self.beneath))
    }

    /// Whether it ends with `/**`, and holds no star before.
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

/// Whether `path` matches `pattern`. The match of the last `*` is extended first, and if that leads nowhere, the
/// match of the last `**`: at most the product of both lengths in steps.
fn fits(pattern: &[u8], path: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    let (mut star, mut stars) = (None, None);
    loop {
        match (pattern.get(at..).unwrap_or_default(), path.get(place)) {
            ([b'*', b'*', ..], _) => {
                stars = Some((at, place));
                star = None;
                at += 2;
                continue;
            }
            ([b'*', ..], _) => {
                star = Some((at, place));
                at += 1;
                continue;
            }
            ([], None) => return true,
            ([expected, ..], Some(byte)) if expected == byte => {
                at += 1;
                place += 1;
                continue;
            }
            _ => {}
        }
        match (star, stars) {
            (Some((back, from)), _) if path.get(from).is_some_and(|byte| *byte != b'/') => {
                star = Some((back, from + 1));
                (at, place) = (back + 1, from + 1);
            }
            (_, Some((back, from))) if from < path.len() => {
                (star, stars) = (None, Some((back, from + 1)));
                (at, place) = (back + 2, from + 1);
            }
            _ => return false,
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
    fn what_stood_for_the_rest_is_known() {
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
    fn what_is_no_pattern_is_refused() {
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

    /// The same, by trying everything.
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

    proptest! {
        #[test]
        fn fast_and_slow_agree(pattern in "[ab/*]{0,8}", path in "[ab/]{0,10}") {
            let pattern = pattern.replace("***", "**");
            prop_assume!(!pattern.contains("***"));
            prop_assert_eq!(
                fits(pattern.as_bytes(), path.as_bytes()),
                fits_slowly(pattern.as_bytes(), path.as_bytes()),
                "{} {}", pattern, path
            );
        }
    }
}
