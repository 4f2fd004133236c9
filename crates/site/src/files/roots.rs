//! The folders of a site: its root, and a second root for a single name.

use std::sync::Arc;

use tenfold_sys::file::Root;

/// The folders of a site.
#[derive(Debug)]
pub(crate) struct Roots {
    main: Arc<Root>,
    /// The name, and the root that contains it.
    second: Option<(String, Arc<Root>)>,
}

impl Roots {
    /// Returns the roots. The second has the entry of its name and everything beneath it, the main root has the rest.
    pub(crate) fn new(main: Root, second: Option<(&str, Root)>) -> Roots {
        let second = second.map(|(name, root)| (name.to_owned(), Arc::new(root)));
        Roots { main: Arc::new(main), second }
    }

    /// Returns the root that contains `relative`.
    pub(crate) fn of(&self, relative: &str) -> &Arc<Root> {
        match &self.second {
            Some((name, root)) if is_beneath(relative, name) => root,
            _ => &self.main,
        }
    }

    /// Returns all roots, the main root first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Root>> {
        std::iter::once(&self.main).chain(self.second.iter().map(|(_, root)| root))
    }
}

fn is_beneath(relative: &str, name: &str) -> bool {
    relative.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_itself_and_paths_beneath_it_are_in_the_second_root() {
        let among = |relative| is_beneath(relative, "book");
        assert!(["book", "book/", "book/a.html", "book/models/epoll.html"].into_iter().all(among));
        assert!(!["", "books", "book.html", "bookshop/a", "a/book", "Book/a"].into_iter().any(among));
    }
}
