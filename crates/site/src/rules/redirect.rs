//! Redirects, which send the client to another URL, and rewrites, which the client does not see.

use tenfold_http::encode_path;

use crate::rules::path::SitePath;
use crate::rules::pattern::Pattern;

/// Redirects clients from some paths to another URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    from: Pattern,
    to: RedirectTarget,
    status: u16,
}

/// Answers some paths with the file of another path, without a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    from: Pattern,
    to: RedirectTarget,
}

/// The target of a redirect or a rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RedirectTarget {
    /// The text before the rest of the path; the whole target if no rest follows.
    text: String,
    /// Whether the match of the pattern's `**` follows.
    rest: bool,
}

impl Redirect {
    /// The statuses that redirect.
    pub const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

    /// Redirects paths that match `from` to `to`: a path, or an `http://` or `https://` URL. If both end with `/**`,
    /// the rest of the path is appended. The query is also appended, unless `to` has one.
    pub fn new(from: Pattern, to: &str, status: u16) -> Result<Redirect, String> {
        let target = RedirectTarget::new(&from, to)?;
        if !Redirect::STATUSES.contains(&status) {
            return Err(format!("{status} is not a status of redirects; use 301, 302, 303, 307 or 308"));
        }
        let local = to.starts_with('/') && !to.starts_with("//");
        if !local && !["http://", "https://"].iter().any(|scheme| to.starts_with(scheme)) {
            return Err(
                "a redirect needs a path that begins with a slash, or an http:// or https:// URL".into()
            );
        }
        // Other characters would be ambiguous without encoding.
        if !to.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err(
                "a URL has only ASCII characters and no spaces; encode others, as %20 or %C3%A4".into()
            );
        }
        let own = SitePath::parse(target.text.split(['?', '#']).next().unwrap_or_default());
        if local && own.is_ok_and(|own| from.matches(own.relative())) {
            return Err(format!("{to} matches {from} itself, so the redirect would be a loop"));
        }
        Ok(Redirect { from, to: target, status })
    }

    /// Returns the status and the location, if the redirect matches the request.
    pub(crate) fn apply(&self, path: &SitePath, query: Option<&str>) -> Option<(u16, String)> {
        let mut location = self.to.apply(&self.from, path, true)?;
        if let Some(query) = query.filter(|_| !location.contains(['?', '#'])) {
            location.push('?');
            location.push_str(query);
        }
        Some((self.status, location))
    }
}

impl Rewrite {
    /// Answers paths that match `from` with the file at the path `to`. If both end with `/**`, the rest of
    /// the path is appended.
    pub fn new(from: Pattern, to: &str) -> Result<Rewrite, String> {
        // Patterns and paths allow the same characters.
        Pattern::new(to)?;
        let to = RedirectTarget::new(&from, to)?;
        if to.text.contains('%') {
            return Err("a path in a rewrite has no percent-encoding; write it decoded".into());
        }
        Ok(Rewrite { from, to })
    }

    /// Returns the path that replaces `path`, if the rewrite matches.
    pub(crate) fn apply(&self, path: &SitePath) -> Option<SitePath> {
        Some(SitePath::of_decoded(&self.to.apply(&self.from, path, false)?))
    }
}

impl RedirectTarget {
    fn new(from: &Pattern, to: &str) -> Result<RedirectTarget, String> {
        let (text, rest) = match to.strip_suffix("**") {
            Some(front) if front.ends_with('/') => (front, true),
            _ => (to, false),
        };
        if text.contains('*') {
            return Err(
                "a target can have a star only in a final /**; if from and to end with /**, the rest of the path is kept".into()
            );
        }
        if text.split('$').skip(1).any(|rest| rest.starts_with(|first: char| first.is_ascii_digit())) {
            return Err(
                "captures do not exist; if from and to end with /**, the rest of the path is kept".into()
            );
        }
        if rest && !from.is_prefix() {
            return Err(format!(
                "the target ends with /**, so {from} must end with /** and have no other star"
            ));
        }
        Ok(RedirectTarget { text: text.to_owned(), rest })
    }

    fn apply(&self, from: &Pattern, path: &SitePath, encoded: bool) -> Option<String> {
        if !from.matches(path.relative()) {
            return None;
        }
        let mut target = self.text.clone();
        if self.rest {
            let rest = from.rest(path.relative())?;
            match encoded {
                true => encode_path(rest, &mut target),
                false => target.push_str(rest),
            }
            if path.asks_for_directory() && !rest.is_empty() {
                target.push('/');
            }
        }
        Some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::new(text).expect(text)
    }

    fn path(text: &str) -> SitePath {
        SitePath::parse(text).expect(text)
    }

    fn redirect(from: &str, to: &str) -> Redirect {
        Redirect::new(pattern(from), to, 301).expect(to)
    }

    #[test]
    fn a_path_leads_elsewhere_with_its_rest_and_its_query() {
        for (from, to, asked, query, location) in [
            ("/old", "/new", "/old", None, Some("/new")),
            ("/old", "/new", "/old/", Some("a=b"), Some("/new?a=b")),
            ("/old", "/new", "/older", None, None),
            ("/old", "/new?x", "/old", Some("a=b"), Some("/new?x")),
            ("/old", "/new#x", "/old", Some("a=b"), Some("/new#x")),
            ("/old/**", "/new/**", "/old/a/b", None, Some("/new/a/b")),
            ("/old/**", "/new/**", "/old/a/", None, Some("/new/a/")),
            ("/old/**", "/new/**", "/old", None, Some("/new/")),
            ("/old/**", "/new/**", "/old/%c3%a4 b", None, Some("/new/%C3%A4%20b")),
            ("/old/**", "/new", "/old/a", None, Some("/new")),
            ("/**", "https://b.example/**", "/a/b", Some("q"), Some("https://b.example/a/b?q")),
            ("/*.php", "/", "/index.php", None, Some("/")),
        ] {
            let found = redirect(from, to).apply(&path(asked), query).map(|(_, location)| location);
            assert_eq!(found.as_deref(), location, "{from} {to} {asked}");
        }
    }

    #[test]
    fn h43_no_rest_makes_a_path_another_host() {
        let all = redirect("/x/**", "/**");
        for asked in ["/x//evil.example", "/x/%2f%2fevil.example", "/x///evil.example/"] {
            if let Ok(asked) = SitePath::parse(asked) {
                let (_, location) = all.apply(&asked, None).expect("it fits");
                assert!(location.starts_with("/evil"), "{location}");
            }
        }
    }

    #[test]
    fn a_rewrite_leads_to_a_path() {
        let rewrite = Rewrite::new(pattern("/app/**"), "/dist/**").expect("legal");
        assert_eq!(rewrite.apply(&path("/app/a%20b/")).expect("it fits"), path("/dist/a%20b/"));
        assert_eq!(rewrite.apply(&path("/app")).expect("it fits"), path("/dist/"));
        assert_eq!(rewrite.apply(&path("/other")), None);
        let one = Rewrite::new(pattern("/a/*"), "/one.html").expect("legal");
        assert_eq!(one.apply(&path("/a/b")).expect("it fits"), path("/one.html"));
    }

    #[test]
    fn redirects_that_lead_nowhere_are_refused() {
        for (from, to) in [
            ("/a", "b"),
            ("/a", "//b"),
            ("/a", "javascript:x"),
            ("/a", "/\u{e4}"),
            ("/a", "/a b"),
            ("/a", "/b\r\nX: y"),
            ("/a", "/b/**"),
            ("/a/*/**", "/b/**"),
            ("/a", "/a/"),
            ("/a", "/a?b"),
            ("/a/**", "/a/b"),
            ("/**", "/**"),
            ("/a/**", "/**/b"),
            ("/a/*", "/b/*"),
            ("/a/**", "/b/$1"),
        ] {
            assert!(Redirect::new(pattern(from), to, 301).is_err(), "{from} {to}");
        }
        assert!(Redirect::new(pattern("/a"), "/b", 200).is_err());
        for (from, to) in [("/a", "b"), ("/a", "/../b"), ("/a", "/b%20"), ("/a", "/b/**"), ("/a/**", "/*/**")]
        {
            assert!(Rewrite::new(pattern(from), to).is_err(), "{from} {to}");
        }
    }
}
