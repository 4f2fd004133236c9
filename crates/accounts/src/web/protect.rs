//! The paths that are for members only.

use std::str::FromStr;

use super::page::PLACE;

/// A folder of the site, with everything beneath it.
///
/// It is compared with a decoded, normalised path, ignoring case, because some file systems treat `members` and
/// `MEMBERS` alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtectedFolder {
    /// Decoded, in lower case, without outer slashes; empty for the whole site.
    lower: String,
    written: String,
}

impl FromStr for ProtectedFolder {
    type Err = String;

    fn from_str(text: &str) -> Result<ProtectedFolder, String> {
        let wrong = |why: &str| Err(format!("{text:?} is not a folder of the site such as /members/: {why}"));
        let inner = text.trim_matches('/');
        match () {
            () if !text.starts_with('/') => wrong("it must begin with a slash"),
            // A file may have several names, compressed or without its suffix; a folder has one.
            () if !text.ends_with('/') => wrong("it must end with a slash"),
            () if text.contains(['%', '\\', '?', '#']) => wrong("it must be decoded, without % and query"),
            () if text.chars().any(|c| c.is_control() || c == '"') => {
                wrong("it contains a control character or a quotation mark")
            }
            () if inner.split('/').any(|name| name.is_empty() || name.starts_with('.'))
                && !inner.is_empty() =>
            {
                wrong("its names must not be empty or begin with a dot")
            }
            () if inner.eq_ignore_ascii_case(PLACE) => wrong("it contains the login pages"),
            () => Ok(ProtectedFolder { lower: inner.to_lowercase(), written: text.to_owned() }),
        }
    }
}

impl ProtectedFolder {
    /// Whether a decoded path without outer slashes is this folder or inside it.
    pub fn holds(&self, path: &str) -> bool {
        if self.lower.is_empty() {
            return true;
        }
        if path.is_ascii() {
            let (path, folder) = (path.as_bytes(), self.lower.as_bytes());
            return path.len() >= folder.len()
                && path[..folder.len()].eq_ignore_ascii_case(folder)
                && path.get(folder.len()).is_none_or(|&byte| byte == b'/');
        }
        let path = path.to_lowercase();
        path.strip_prefix(&self.lower).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Its path beneath a root as written, without outer slashes.
    pub fn name(&self) -> &str {
        self.written.trim_matches('/')
    }

    /// Its URL path.
    pub fn url(&self) -> String {
        let encode = |name: &str| {
            form_urlencoded::byte_serialize(name.as_bytes()).collect::<String>().replace('+', "%20")
        };
        self.written.split('/').map(encode).collect::<Vec<_>>().join("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(text: &str) -> ProtectedFolder {
        text.parse().unwrap_or_else(|why| panic!("{why}"))
    }

    #[test]
    fn a_folder_contains_itself_and_its_content() {
        let members = folder("/members/");
        for path in ["members", "members/a", "members/a/b.html", "MEMBERS/a", "Members"] {
            assert!(members.holds(path), "{path}");
        }
        for path in ["", "member", "members2", "members.html", "a/members", "membersa/b"] {
            assert!(!members.holds(path), "{path}");
        }
        assert!(folder("/").holds("anything") && folder("/").holds(""));
        assert!(folder("/für uns/").holds("FÜR UNS/x") && !folder("/für uns/").holds("für uns2"));
        assert_eq!(folder("/für uns/").url(), "/f%C3%BCr%20uns/");
    }

    #[test]
    fn invalid_folders_are_rejected() {
        for wrong in
            ["", "members/", "/members", "/a%20b/", "/../", "/a//b/", "/.git/", "/account/", "/a\\b/"]
        {
            assert!(wrong.parse::<ProtectedFolder>().is_err(), "{wrong}");
        }
    }
}
