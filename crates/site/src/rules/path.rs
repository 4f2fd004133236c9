//! The path of a request: decoded once, with a single spelling for each file.
//!
//! All later code (the cache, the file system, authorisation) sees only a [`SitePath`], so it cannot
//! interpret the same bytes differently. The rules do not depend on the file system:
//!
//! - Percent-encoding is decoded exactly once: `%252e` is the four characters `%2e`.
//! - A bad `%`, bytes that are not UTF-8 (also overlong forms) and control characters such as NUL are
//!   malformed: 400. So is a backslash, encoded or not, because browsers treat it as a slash.
//! - `%2f` is not a separator, and no file name contains a slash: 404.
//! - Empty segments and plain `.` segments are ignored: `//a/.//b` is `/a/b` (RFC 3986 §5.2.4; `apt` requests
//!   `/./Packages`).
//! - A segment that begins with a dot, encoded or not, names nothing: 404. This covers `..`, an encoded `.`,
//!   and every dotfile. Names that are [`Shown`] are served; by default only `/.well-known` as the first
//!   segment (RFC 8615).
//! - A segment of more than 255 bytes, or a path of more than 4,095, names nothing: 404.
//! - A segment that ends with `~`, an editor's backup, names nothing: 404.

use tenfold_http::encode_path;

use crate::rules::pattern::Pattern;

/// A path beneath the root, in its single form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePath {
    relative: String,
    canonical: String,
}

/// The most bytes of a name, and of a path, that a file can have (`man 3 limits.h`: `NAME_MAX`, and `PATH_MAX` without its
/// end). Longer ones reach no rule, whose stars would cost time for each byte.
const LONGEST_NAME: usize = 255;
const LONGEST_PATH: usize = 4095;

/// The reason why a path names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// 400: no honest client sends such a path.
    Malformed,
    /// 404: the path is not shown, whether or not a file exists.
    Hidden,
    /// 404: no file can have the name.
    Impossible,
}

impl SitePath {
    /// Parses the path of a target: percent-encoded, beginning with `/`, without a query.
    pub fn parse(path: &str) -> Result<SitePath, PathError> {
        SitePath::parse_showing(path, &Shown::default())
    }

    /// Like [`SitePath::parse`], but shows the names in `shown`, even if they begin with a dot or end with
    /// `~`.
    pub fn parse_showing(path: &str, shown: &Shown) -> Result<SitePath, PathError> {
        let mut relative = String::with_capacity(path.len());
        let (mut is_none, mut hidden) = (false, Vec::new());
        for segment in path.split('/').filter(|segment| !is_here(segment)) {
            let name = decode(segment)?;
            if !relative.is_empty() {
                relative.push('/');
            }
            relative.push_str(&name);
            is_none |= is_nothing(&name) || name.len() > LONGEST_NAME || relative.len() > LONGEST_PATH;
            if is_hidden(name.as_bytes()) {
                hidden.push(relative.len());
            }
        }
        if is_none {
            return Err(PathError::Impossible);
        }
        if !shown.shows_all(&relative, hidden) {
            return Err(PathError::Hidden);
        }
        Ok(SitePath::of(relative, path.rsplit('/').next().is_some_and(is_here)))
    }

    /// Converts a decoded path of the configuration, which begins with a slash and contains no `.` or `..`.
    pub(crate) fn of_decoded(path: &str) -> SitePath {
        SitePath::of(path.trim_matches('/').to_owned(), path.ends_with('/'))
    }

    fn of(relative: String, directory: bool) -> SitePath {
        let mut canonical = String::with_capacity(relative.len() + 2);
        canonical.push('/');
        encode_path(&relative, &mut canonical);
        if directory && !relative.is_empty() {
            canonical.push('/');
        }
        SitePath { relative, canonical }
    }

    /// Returns the decoded path relative to the root, without a slash at either end; empty for the root
    /// itself.
    pub fn relative(&self) -> &str {
        &self.relative
    }

    /// Returns the single encoded spelling. It begins with exactly one slash, and parsing it returns this
    /// path.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// Returns the path of the entry called `name` in this directory.
    pub(crate) fn entry(&self, name: &str) -> SitePath {
        let relative =
            if self.relative.is_empty() { name.to_owned() } else { format!("{}/{name}", self.relative) };
        SitePath::of(relative, false)
    }

    /// Returns the encoded name of the entry `name` in this directory, as a relative URL; None if no URL
    /// leads to it.
    pub(crate) fn child(&self, name: &str, shown: &Shown) -> Option<String> {
        let (mut spelled, mut above) = (String::new(), String::from("/"));
        encode_path(name, &mut spelled);
        encode_path(&self.relative, &mut above);
        let path = SitePath::parse_showing(&format!("{above}/{spelled}"), shown).ok()?;
        // A name that a URL cannot express would be parsed as another name.
        let named = path.relative.strip_prefix(&self.relative)?.strip_prefix('/').unwrap_or(&path.relative);
        (named == name).then_some(spelled)
    }

    /// Whether the path ends with a slash, and thus requests a directory.
    pub fn asks_for_directory(&self) -> bool {
        self.canonical.ends_with('/')
    }
}

/// Whether an encoded segment means the same folder.
fn is_here(segment: &str) -> bool {
    matches!(segment, "" | ".")
}

/// Decodes percent-encoding, once.
pub(crate) fn decode(segment: &str) -> Result<String, PathError> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes().iter();
    while let Some(&byte) = rest.next() {
        bytes.push(match byte {
            b'%' => match (rest.next().and_then(digit), rest.next().and_then(digit)) {
                (Some(high), Some(low)) => high << 4 | low,
                _ => return Err(PathError::Malformed),
            },
            byte => byte,
        });
    }
    url_name(&bytes).map(str::to_owned).ok_or(PathError::Malformed)
}

/// Returns a name that URLs can contain: UTF-8 without control characters and backslashes.
pub(crate) fn url_name(name: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(name).ok()?;
    (!name.bytes().any(|byte| byte.is_ascii_control() || byte == b'\\')).then_some(name)
}

fn digit(byte: &u8) -> Option<u8> {
    char::from(*byte).to_digit(16).map(|digit| digit as u8)
}

/// Whether the name cannot belong to a file, even if all names are shown.
fn is_nothing(name: &str) -> bool {
    name == "." || name.starts_with("..") || name.contains('/')
}

/// Whether files with this name are not served, unless the configuration shows them.
pub(crate) fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(b".") || name.ends_with(b"~")
}

/// Patterns of hidden names that are served, with the hidden folders above them. The default is
/// `/.well-known` (RFC 8615).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown(Vec<Pattern>);

impl Shown {
    /// Shows names that match one of `patterns`.
    pub fn new(patterns: Vec<Pattern>) -> Shown {
        Shown(patterns)
    }

    /// Shows every name, for callers that need the meaning of a path, shown or not.
    pub fn everything() -> Shown {
        Shown(vec![Pattern::all()])
    }

    /// Whether all parts of a path, from its beginning to one of `ends`, are shown. A visitor may send
    /// thousands of them.
    fn shows_all(&self, relative: &str, mut ends: Vec<usize>) -> bool {
        self.0.iter().for_each(|pattern| pattern.remove_fitting(relative, &mut ends));
        ends.is_empty()
    }
}

impl Default for Shown {
    fn default() -> Shown {
        Shown(vec![Pattern::new("/.well-known").expect("it is a pattern")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn relative(path: &str) -> Result<String, PathError> {
        SitePath::parse(path).map(|path| path.relative)
    }

    #[test]
    fn a_path_that_no_file_can_have_names_nothing() {
        let path = |length: usize| "/a".repeat(length / 2);
        for (path, is_path) in [
            (format!("/{}", "a".repeat(255)), true),
            (format!("/{}", "%61".repeat(255)), true),
            (format!("/{}", "a".repeat(256)), false),
            (path(4096), true),
            (path(4098), false),
        ] {
            assert_eq!(relative(&path).is_ok(), is_path, "{} bytes", path.len());
        }
    }

    /// Parses each path of a list that is separated by spaces.
    #[track_caller]
    fn all_are(error: PathError, paths: &str) {
        for path in paths.split(' ') {
            assert_eq!(relative(path), Err(error), "{path}");
        }
    }

    fn canonical(path: &str) -> String {
        SitePath::parse(path).expect("the path is good").canonical
    }

    #[test]
    fn h39_no_spelling_of_dots_names_anything() {
        let paths = "/.. /../x /a/.. /a/../b /%2e%2e/x /.%2e/x /%2e./x /%2E%2E /%2e /a/%2e/b /%2e/x /./.. \
             /a/./../b /..;/x /..;a=b/x /... /a/..%2f..%2fx /%2e%2e%2fx";
        all_are(PathError::Impossible, paths);
    }

    #[test]
    fn h40_a_path_is_decoded_once() {
        assert_eq!(relative("/a/%252e%252e/b").as_deref(), Ok("a/%2e%2e/b"));
        assert_eq!(relative("/%2541").as_deref(), Ok("%41"));
        assert_eq!(relative("/%41").as_deref(), Ok("A"));
        assert_eq!(relative("/a%252fb").as_deref(), Ok("a%2fb"));
    }

    #[test]
    fn h41_a_backslash_is_malformed_in_either_spelling() {
        all_are(PathError::Malformed, "/a\\b /a%5cb /%5C /..%5c..%5cx /%5cevil/");
    }

    #[test]
    fn h42_bytes_that_are_not_text_are_malformed() {
        let paths = "/%00 /a%00.html /% /%4 /%zz /%4g /%+1 /a% /%c0%ae /%c0%af /%e0%80%af /%ff /%ed%a0%80 \
             /%0d%0aX /%1b /%7f /.%00";
        all_are(PathError::Malformed, paths);
        assert_eq!(relative("/%c3%a9").as_deref(), Ok("é"));
    }

    #[test]
    fn h43_an_encoded_slash_separates_nothing_and_empty_segments_are_ignored() {
        all_are(PathError::Impossible, "/a%2fb /%2F /%2fetc/passwd");
        assert_eq!(relative("//a///b").as_deref(), Ok("a/b"));
        assert_eq!(canonical("//a///b//"), "/a/b/");
        assert_eq!((relative("/").as_deref(), canonical("/")), (Ok(""), "/".to_owned()));
        assert_eq!(relative("/./a/.//./b").as_deref(), Ok("a/b"));
        assert_eq!(canonical("/a/./b/."), "/a/b/");
        assert_eq!((relative("/.").as_deref(), canonical("/.")), (Ok(""), "/".to_owned()));
        assert_eq!((relative("//").as_deref(), canonical("//")), (Ok(""), "/".to_owned()));
    }

    #[test]
    fn h47_dotfiles_and_backups_are_hidden_and_well_known_is_not() {
        let paths = "/.git /.git/config /.env /a/.htaccess /%2egit/config /a/.hidden/b /page.html~ \
             /dir~/page /page%7e /a/.well-known/b /.well-known/.env /.Well-Known/x /~";
        all_are(PathError::Hidden, paths);
        assert_eq!(relative("/.well-known/security.txt").as_deref(), Ok(".well-known/security.txt"));
        assert_eq!(relative("/~user/a.b").as_deref(), Ok("~user/a.b"));
    }

    #[test]
    fn h47_only_configured_dotfiles_are_shown() {
        let shown =
            ["/.well-known", "/a/.b", "/.all/**", "/**/.c*"].map(|text| Pattern::new(text).expect(text));
        let shown = Shown::new(shown.to_vec());
        for path in ["/.well-known/x", "/a/.b", "/a/.b/c", "/.all/.x/y~", "/d/e/.config", "/%2ewell-known/"] {
            assert!(SitePath::parse_showing(path, &shown).is_ok(), "{path}");
        }
        for path in ["/.git", "/a/.bc", "/.b", "/.well-known/.x", "/d~"] {
            assert_eq!(SitePath::parse_showing(path, &shown), Err(PathError::Hidden), "{path}");
        }
        for path in ["/.all/..", "/.all/../x", "/.all/%2e", "/.all/..;"] {
            assert_eq!(SitePath::parse_showing(path, &shown), Err(PathError::Impossible), "{path}");
        }
        assert!(SitePath::parse_showing("/.well-known/x", &Shown::new(Vec::new())).is_err());
    }

    #[test]
    fn files_in_a_folder_are_reached_through_its_path_or_not_at_all() {
        for directory in ["/", "/a%20b/c/"] {
            let path = SitePath::parse(directory).expect("the path is good");
            for name in ["page.html", "a b", "é", "50%", "a?b#c", "x:y", "<i>", "a&b\"c'", "~x", "%2e"] {
                let child = path.child(name, &Shown::default()).expect("a URL leads to it");
                let found = relative(&format!("{directory}{child}")).expect("the URL is a path");
                assert_eq!(found.rsplit('/').next(), Some(name), "{directory}{child}");
            }
            for name in [".env", "x~", "a\\b", "a\nb", "..", "\u{7f}"] {
                assert_eq!(path.child(name, &Shown::default()), None, "{name:?}");
            }
        }
    }

    #[test]
    fn every_spelling_has_one_canonical_path() {
        for path in ["/a b", "/a%20b", "//a%20b", "/%61%20b"] {
            assert_eq!(canonical(path), "/a%20b", "{path}");
        }
        assert_eq!(canonical("/%c3%a9|[x]/"), "/%C3%A9%7C%5Bx%5D/");
        assert!(SitePath::parse("/a/").expect("the path is good").asks_for_directory());
    }

    proptest! {
        /// Combines the building blocks of path traversal attacks in any order.
        #[test]
        fn h39_no_decoded_path_escapes(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "/", "..", ".", "%2e", "%2E", "%2f", "%5c", "\\", "%25", "25", "2e", "%00", "%c0%ae", ";", "a",
                "~", "%0d%0a", ".well-known", "%", "é",
            ]), 0..24)
        ) {
            stays_inside(&format!("/{}", pieces.concat()))?;
        }

        #[test]
        fn h39_no_decoded_text_escapes(text in "\\PC{0,40}") {
            stays_inside(&format!("/{text}"))?;
        }
    }

    fn stays_inside(path: &str) -> Result<(), TestCaseError> {
        let Ok(parsed) = SitePath::parse(path) else { return Ok(()) };
        let relative = parsed.relative();
        prop_assert!(!relative.starts_with('/') && !relative.ends_with('/'));
        prop_assert!(!relative.bytes().any(|byte| byte.is_ascii_control() || byte == b'\\'));
        if !relative.is_empty() {
            for (at, segment) in relative.split('/').enumerate() {
                prop_assert!(!segment.is_empty());
                prop_assert!(!segment.starts_with('.') || (at == 0 && segment == ".well-known"));
            }
        }
        let canonical = parsed.canonical();
        prop_assert!(canonical.starts_with('/') && !canonical.starts_with("//"));
        prop_assert!(canonical.bytes().all(|byte| byte.is_ascii_graphic()));
        prop_assert_eq!(SitePath::parse(canonical), Ok(parsed.clone()));
        Ok(())
    }
}
