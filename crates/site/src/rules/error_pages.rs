//! The files sent as the bodies of errors.

/// Files beneath the root by status. An exact status wins over its class. Without either, 404 has [`USUAL`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPages(Vec<(Statuses, Option<String>)>);

/// The page for 404, if the file exists.
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

    /// Returns the file for a status, by its name beneath the root.
    pub(crate) fn of(&self, status: u16) -> Option<&str> {
        let find =
            |wanted| self.0.iter().find(|(known, _)| *known == wanted).map(|(_, name)| name.as_deref());
        let set = find(Statuses::One(status)).or_else(|| find(Statuses::Class(status / 100)));
        set.unwrap_or((status == 404).then_some(USUAL))
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
        assert_eq!((pages.of(404), pages.of(403), pages.of(500)), (Some("404.html"), None, None));
        pages.set("4xx", Some("/errors/any.html")).expect("legal");
        pages.set("403", None).expect("legal");
        pages.set("503", Some("/down.html")).expect("legal");
        assert_eq!((pages.of(404), pages.of(403)), (Some("errors/any.html"), None));
        assert_eq!(
            (pages.of(416), pages.of(503), pages.of(500)),
            (Some("errors/any.html"), Some("down.html"), None)
        );
        pages.set("404", None).expect("legal");
        assert_eq!(pages.of(404), None);
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
