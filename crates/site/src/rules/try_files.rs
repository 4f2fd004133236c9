//! Candidate files of a path, in order: `try-files`.

use crate::rules::path::SitePath;

/// A candidate file: a path beneath the root, in which `{path}` means the requested path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TryFile {
    before: String,
    /// The text after `{path}`; None without `{path}`.
    after: Option<String>,
}

/// The candidate for a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Tried {
    /// The file that the path means without rules.
    Itself,
    /// A file, by its name beneath the root.
    File(String),
    /// The index of a folder, by its name beneath the root.
    IndexOf(String),
}

impl TryFile {
    /// Parses `{path}`, `{path}.html`, `{path}/`, `/en/{path}`, `/index.html`.
    pub fn new(text: &str) -> Result<TryFile, String> {
        if text.contains('$') {
            return Err(format!("$uri of nginx is {{path}}; write {}", from_nginx(text)));
        }
        let (before, after) = match text.split_once("{path}") {
            Some((before, after)) => (before, Some(after)),
            None => (text, None),
        };
        let rest = after.unwrap_or_default();
        let begins = before.starts_with('/') || before.is_empty() && after.is_some();
        if !begins {
            return Err(format!(
                "a file begins with {{path}} or with a slash; write {:?}",
                format!("/{text}")
            ));
        }
        if [before, rest].iter().any(|piece| piece.contains(['{', '}', '*', '%', '\\'])) {
            return Err("a file can contain {path} once, but no other placeholders or patterns".into());
        }
        if format!("{before}x{rest}").split('/').skip(1).any(|name| matches!(name, "." | "..")) {
            return Err("a file is beneath the root: its path cannot contain . or ..".into());
        }
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err("the name of a served file has no control characters".into());
        }
        Ok(TryFile { before: before.to_owned(), after: after.map(str::to_owned) })
    }

    /// Whether every path leads to this file.
    pub(crate) fn is_fixed(&self) -> bool {
        self.after.is_none()
    }

    /// Returns the candidate for `path`.
    pub(crate) fn apply(&self, path: &SitePath) -> Tried {
        let TryFile { before, after } = self;
        let name = match after.as_deref() {
            Some("") if before.is_empty() => return Tried::Itself,
            Some(after) => format!("{before}/{}{after}", path.relative()),
            None => before.clone(),
        };
        let names: Vec<_> = name.split('/').filter(|name| !name.is_empty()).collect();
        match name.ends_with('/') {
            true => Tried::IndexOf(names.join("/")),
            false => Tried::File(names.join("/")),
        }
    }
}

/// Returns the list that has the meaning of `try_files` of nginx. `=404` is the meaning of every list.
fn from_nginx(text: &str) -> String {
    let files = text.split_ascii_whitespace().filter(|file| !file.starts_with('='));
    let files: Vec<_> = files.map(|file| format!("{:?}", file.replace("$uri", "{path}"))).collect();
    format!("[{}]", files.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_tried_for_a_path() {
        for (text, path, tried) in [
            ("{path}", "/a/b", Tried::Itself),
            ("{path}.html", "/a/b", Tried::File("a/b.html".into())),
            ("{path}.html", "/a/b/", Tried::File("a/b.html".into())),
            ("{path}/", "/a", Tried::IndexOf("a".into())),
            ("{path}/", "/", Tried::IndexOf(String::new())),
            ("{path}/index.htm", "/a%20b", Tried::File("a b/index.htm".into())),
            ("/en{path}", "/a", Tried::File("en/a".into())),
            ("/en/{path}/", "/a", Tried::IndexOf("en/a".into())),
            ("/index.html", "/a", Tried::File("index.html".into())),
        ] {
            let file = TryFile::new(text).expect(text);
            assert_eq!(file.apply(&SitePath::parse(path).expect(path)), tried, "{text} {path}");
        }
    }

    #[test]
    fn try_files_of_nginx_are_translated() {
        let why = TryFile::new("$uri $uri.html $uri/ =404").expect_err("it is not a file");
        assert!(why.ends_with(r#"write ["{path}", "{path}.html", "{path}/"]"#), "{why}");
    }

    #[test]
    fn try_files_that_name_no_file_are_refused() {
        for wrong in [
            "",
            "index.html",
            "x{path}",
            "{path}{path}",
            "$uri",
            "/{uri}",
            "/../a",
            "{path}/..",
            "/a\n",
            "/*",
        ] {
            assert!(TryFile::new(wrong).is_err(), "{wrong:?}");
        }
    }
}
