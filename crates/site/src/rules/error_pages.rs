//! The files sent as the bodies of errors.

/// Files beneath the root by status. An exact status wins over its class, and for 404 [`USUAL`] does, if it exists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPages(Vec<(Statuses, Option<String>)>);

/// The page for 404 without a key of its own, if the file exists.
const USUAL: &str = "404.html";

/// A status, or all statuses that begin with a digit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statuses {
    One(u16),
    Class(u16),
}

impl ErrorPages {
    /// Sets the file at `path` beneath the root as the body of `statuses` (`404`, or `5xx`). Without `path`,
    /// the body is a line of text. A later call wins.
    pub fn set(&mut self, statuses: &str, path: Option<&str>) -> Result<(), String> {
        let class = statuses.strip_suffix("xx").and_then(|digit| digit.parse().ok());
        let statuses = match (class, statuses.parse()) {
            (Some(class @ 4..=5), _) => Statuses::Class(class),
            (None, Ok(status @ 400..=599)) => Statuses::One(status),
            _ => return Err(format!("{statuses:?} is not an error status: 400 to 599, 4xx or 5xx")),
        };
        let name = match path {
            None => None,
            Some(path) => Some(page_name(path)?),
        };
        self.0.retain(|(known, _)| *known != statuses);
        self.0.push((statuses, name));
        Ok(())
    }

    /// Returns the files for a status, by their names beneath the root. The first that exists is the page.
    pub(crate) fn of(&self, status: u16) -> impl Iterator<Item = &str> {
        let find =
            |wanted| self.0.iter().find(|(known, _)| *known == wanted).map(|(_, name)| name.as_deref());
        let names = match find(Statuses::One(status)) {
            Some(name) => [name, None],
            None => [(status == 404).then_some(USUAL), find(Statuses::Class(status / 100)).flatten()],
        };
        names.into_iter().flatten()
    }
}

/// Converts the path of a file to its name beneath the root.
pub fn page_name(path: &str) -> Result<String, String> {
    let Some(name) = path.strip_prefix('/') else {
        return Err(format!("a path beneath the root begins with a slash: write {:?}", format!("/{path}")));
    };
    let wrong =
        |name: &str| matches!(name, "" | "." | "..") || name.bytes().any(|byte| byte.is_ascii_control());
    if name.split('/').any(wrong) {
        return Err(format!("{path:?} is not the path of a file beneath the root, such as /404.html"));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_status_wins_over_its_class() {
        let mut pages = ErrorPages::default();
        let of = |pages: &ErrorPages, status| pages.of(status).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!((of(&pages, 404), of(&pages, 500)), (vec!["404.html".to_owned()], vec![]));
        pages.set("4xx", Some("/errors/any.html")).expect("legal");
        pages.set("403", None).expect("legal");
        pages.set("503", Some("/down.html")).expect("legal");
        assert_eq!(of(&pages, 404), ["404.html", "errors/any.html"]);
        assert_eq!(of(&pages, 416), ["errors/any.html"]);
        assert_eq!(of(&pages, 503), ["down.html"]);
        assert!(of(&pages, 403).is_empty() && of(&pages, 500).is_empty());
        pages.set("404", None).expect("legal");
        assert!(of(&pages, 404).is_empty());
    }

    #[test]
    fn invalid_statuses_and_files_of_error_pages_are_refused() {
        for statuses in ["399", "600", "3xx", "4x", "", "oops", "xx", "44xx"] {
            assert!(ErrorPages::default().set(statuses, Some("/a.html")).is_err(), "{statuses}");
        }
        for path in ["", "/", "a.html", "/../a", "/a/", "//a", "/a\n"] {
            assert!(ErrorPages::default().set("404", Some(path)).is_err(), "{path:?}");
        }
    }
}
