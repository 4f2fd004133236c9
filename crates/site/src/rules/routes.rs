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

    fn path(text: &str) -> SitePath {
        SitePath::parse(text).expect(text)
    }

    #[test]
    fn a_slash_that_is_not_wanted_is_taken_away() {
        let routes = Routes { slash: Slash::Remove, ..Routes::default() };
        let location = |asked, query| routes.redirect(&path(asked), query).map(|(_, location)| location);
        assert_eq!(location("/a/", None).as_deref(), Some("/a"));
        assert_eq!(location("//a/b//", Some("q")).as_deref(), Some("/a/b?q"));
        assert_eq!(location("/", None), None);
        assert_eq!(location("/a", None), None);
        assert_eq!(Routes::default().redirect(&path("/a/"), None), None);
    }

    #[test]
    fn the_first_that_fits_counts() {
        let redirect = |from, to| Redirect::new(Pattern::new(from).expect(from), to, 302).expect(to);
        let redirects = vec![redirect("/a/x", "/1"), redirect("/a/**", "/2"), redirect("/a/y", "/3")];
        let routes = Routes { redirects, ..Routes::default() };
        assert_eq!(routes.redirect(&path("/a/x"), None), Some((302, "/1".into())));
        assert_eq!(routes.redirect(&path("/a/y"), None), Some((302, "/2".into())));
    }
}
