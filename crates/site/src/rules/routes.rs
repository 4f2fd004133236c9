//! The routing of paths, before a file is opened.

use tenfold_sys::links::Links;

use crate::rules::error_pages::ErrorPages;
use crate::rules::path::{Shown, SitePath};
use crate::rules::redirect::{Redirect, Rewrite};

/// The routing of paths. By default, each path leads to the file of its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// The first redirect that matches applies.
    pub redirects: Vec<Redirect>,
    /// The first rewrite that matches replaces the path.
    pub rewrites: Vec<Rewrite>,
    /// Whether the path of a folder ends with a slash.
    pub slash: Slash,
    /// Hidden names that are shown.
    pub shown: Shown,
    /// The symbolic links that are followed.
    pub links: Links,
    /// The bodies of errors.
    pub error_pages: ErrorPages,
}

/// Whether the path of a folder ends with a slash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Slash {
    /// With a slash: requests without it are redirected.
    #[default]
    Add,
    /// Without a slash: requests with a slash after a folder or a file are redirected.
    Remove,
    /// Either way, without a redirect.
    Either,
}

impl Routes {
    /// Returns the status and the location, if the request is redirected.
    pub(crate) fn redirect(&self, path: &SitePath, query: Option<&str>) -> Option<(u16, String)> {
        let by_rule = self.redirects.iter().find_map(|redirect| redirect.apply(path, query));
        if by_rule.is_some() || self.slash != Slash::Remove || !path.asks_for_directory() {
            return by_rule;
        }
        let mut location = path.canonical().trim_end_matches('/').to_owned();
        if location.is_empty() {
            return None;
        }
        if let Some(query) = query {
            location.push('?');
            location.push_str(query);
        }
        Some((301, location))
    }

    /// Returns the path that replaces `path`, if a rewrite matches.
    pub(crate) fn rewrite(&self, path: &SitePath) -> Option<SitePath> {
        self.rewrites.iter().find_map(|rewrite| rewrite.apply(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::pattern::Pattern;

    /// The redirect of a path with this query.
    fn redirect(routes: &Routes, path: &str, query: Option<&str>) -> Option<(u16, String)> {
        routes.redirect(&SitePath::parse(path).expect(path), query)
    }

    #[test]
    fn a_slash_that_is_not_wanted_is_taken_away() {
        let routes = Routes { slash: Slash::Remove, ..Routes::default() };
        for (path, query, expected) in [
            ("/a/", None, Some("/a")),
            ("//a/b//", Some("q"), Some("/a/b?q")),
            ("/", None, None),
            ("/a", None, None),
        ] {
            let location = redirect(&routes, path, query).map(|(_, location)| location);
            assert_eq!(location.as_deref(), expected, "{path}");
        }
        assert_eq!(redirect(&Routes::default(), "/a/", None), None);
    }

    #[test]
    fn the_first_that_fits_counts() {
        let rule = |from, to| Redirect::new(Pattern::new(from).expect(from), to, 302).expect(to);
        let redirects = vec![rule("/a/x", "/1"), rule("/a/**", "/2"), rule("/a/y", "/3")];
        let routes = Routes { redirects, ..Routes::default() };
        for (path, expected) in [("/a/x", "/1"), ("/a/y", "/2")] {
            assert_eq!(redirect(&routes, path, None), Some((302, expected.into())), "{path}");
        }
    }
}
