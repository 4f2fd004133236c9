//! The URL of a database.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::connection::{DatabaseConnection, StoreError};

/// The URL of a database.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(DatabaseKind);

#[derive(Clone, PartialEq, Eq)]
enum DatabaseKind {
    Sqlite(PathBuf),
    /// A file that contains the URL of a database server.
    InFile(PathBuf),
    Postgres(String),
    Mysql(String),
}
use DatabaseKind::{InFile, Mysql, Postgres, Sqlite};

impl FromStr for DatabaseUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<DatabaseUrl, String> {
        let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
        match scheme {
            "sqlite" => DatabaseUrl::sqlite(&path_after("sqlite:", rest)?),
            "file" => Ok(DatabaseUrl(InFile(path_after("file:", rest)?))),
            "postgres" | "postgresql" => {
                super::postgres::check(text).map(|()| DatabaseUrl(Postgres(text.to_owned())))
            }
            "mysql" | "mariadb" => {
                let url = format!("mysql:{rest}");
                super::mysql::check(&url).map(|()| DatabaseUrl(Mysql(url)))
            }
            // The typed text may contain a password.
            _ => Err("a database is sqlite:PATH, postgres://USER:PASSWORD@HOST/NAME, \
                      mysql://USER:PASSWORD@HOST/NAME, or file:PATH of a file that holds one of the last two"
                .into()),
        }
    }
}

impl DatabaseUrl {
    /// The file that contains the password of the database server, if it has one: a file of its own, or `config`, which
    /// names this database.
    pub fn password_file<'a>(&'a self, config: &'a Path) -> Option<&'a Path> {
        match &self.0 {
            Sqlite(_) => None,
            InFile(path) => Some(path),
            Postgres(url) | Mysql(url) => holds_password(url).then_some(config),
        }
    }

    /// The SQLite database in this file.
    pub fn sqlite(path: &Path) -> Result<DatabaseUrl, String> {
        super::sqlite::check(path).map(|()| DatabaseUrl(Sqlite(path.to_owned())))
    }

    /// The file, if the database is one.
    pub fn file(&self) -> Option<&Path> {
        match &self.0 {
            Sqlite(path) => Some(path),
            InFile(_) | Postgres(_) | Mysql(_) => None,
        }
    }

    /// Resolves the path of a file relative to `base`.
    #[must_use]
    pub fn beneath(self, base: &Path) -> DatabaseUrl {
        DatabaseUrl(match self.0 {
            Sqlite(path) if path != Path::new(":memory:") => Sqlite(base.join(path)),
            InFile(path) => InFile(base.join(path)),
            other => other,
        })
    }

    pub(super) fn connect(&self) -> Result<Box<dyn DatabaseConnection>, StoreError> {
        match &self.0 {
            Sqlite(path) => super::sqlite::open(path),
            Postgres(url) => super::postgres::open(url),
            Mysql(url) => super::mysql::open(url),
            InFile(path) => match read(path).and_then(|url| url.parse()).map_err(StoreError::Failed)? {
                DatabaseUrl(Sqlite(_) | InFile(_)) => Err(StoreError::Failed(format!(
                    "{} does not hold the URL of a database server; write postgres://… or mysql://… into it",
                    path.display()
                ))),
                url => url.connect(),
            },
        }
    }
}

impl fmt::Display for DatabaseUrl {
    /// Omits the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            InFile(path) => write!(f, "file:{}", path.display()),
            Postgres(url) | Mysql(url) => f.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn path_after(scheme: &str, rest: &str) -> Result<PathBuf, String> {
    match rest.strip_prefix("//").unwrap_or(rest) {
        "" => Err(format!("{scheme} requires a path")),
        path if path.contains("://") => Err(format!("{scheme} takes the path of a file, not another URL")),
        path => Ok(PathBuf::from(path)),
    }
}

/// Reads a URL from a file, at most 4 KiB, without surrounding white space. The file keeps the URL out of command
/// lines, the configuration, and the memory of processes that only pass the path on. Errors do not contain the content.
fn read(path: &Path) -> Result<String, String> {
    const LONGEST: u64 = 4096;
    let wrong = |why: &dyn fmt::Display| {
        format!("cannot read the URL in {}: {why}; make it readable for the accounts user", path.display())
    };
    let mut text = String::new();
    let file = File::open(path).map_err(|error| wrong(&error))?;
    file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| wrong(&error))?;
    if text.len() as u64 > LONGEST {
        return Err(format!("{} is longer than {LONGEST} bytes, so it cannot be a URL", path.display()));
    }
    Ok(text.trim().to_owned())
}

/// Whether a URL contains a password, before its host or in its query.
fn holds_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) || rest.contains("password=")
}

/// Removes the password and the query, which may contain one, from a URL. An invalid URL is reduced to its scheme.
/// Without a user, text after the colon of the host is shown only if it is a port.
fn without_password(url: &str) -> String {
    const QUERY: [char; 2] = ['?', '#'];
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.split_once(':').map_or_else(String::new, |(scheme, _)| format!("{scheme}:"));
    };
    let before = |text: &str, ends: &[char]| text.split(ends).next().unwrap_or_default().to_owned();
    match rest.rsplit_once('@') {
        Some((user, host)) => {
            // The `@` may be in the query, or the `?` in the password.
            let host = if user.contains(QUERY) { "…".to_owned() } else { before(host, &QUERY) };
            format!("{scheme}://{}@{host}", before(user, &[':', '/', '?', '#', '@']))
        }
        None => {
            let rest = before(rest, &QUERY);
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            match host.rsplit_once(':') {
                Some((_, port)) if !port.bytes().all(|byte| byte.is_ascii_digit()) => {
                    format!("{scheme}://{}:…", before(host, &[':']))
                }
                _ => format!("{scheme}://{host}{path}"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(feature = "sqlite", feature = "postgresql", feature = "mysql"))]
    #[test]
    fn a_password_is_never_shown() {
        for (url, shown) in [
            ("postgres://ann:secret@db/members?password=secret", "postgres://ann@db/members"),
            ("mariadb://ann:se:cr@et@db:3306/members", "mysql://ann@db:3306/members"),
            ("sqlite:members.db", "sqlite:members.db"),
        ] {
            let url: DatabaseUrl = url.parse().expect("a legal URL");
            assert_eq!((format!("{url}"), format!("{url:?}")), (shown.into(), shown.into()));
        }
    }

    #[test]
    fn h78_no_part_of_a_password_is_shown_whatever_is_in_it() {
        for (url, shown) in [
            ("mysql:/:hunter2@127.0.0.1", "mysql:"),
            ("hunter2", ""),
            ("mysql://:pa?ss@127.0.0.1", "mysql://@…"),
            ("postgres://ann:se#cret@db/x", "postgres://ann@…"),
            ("postgres://ann@db/x?password=se@cret", "postgres://ann@…"),
            ("postgres://db/x?password=secret", "postgres://db/x"),
            ("mysql://:hunter2", "mysql://:…"),
            ("mysql://host:hunter2/x", "mysql://host:…"),
            ("mysql://host:3306/x", "mysql://host:3306/x"),
            ("mysql://[::1]:3306/x", "mysql://[::1]:3306/x"),
        ] {
            assert_eq!(without_password(url), shown, "{url}");
        }
    }

    #[test]
    fn h78_a_url_after_the_scheme_of_a_path_is_refused_and_not_shown() {
        for wrong in ["sqlite:postgres://ann:hunter2@db/x", "file:postgres://ann:hunter2@db/x"] {
            let why = wrong.parse::<DatabaseUrl>().err();
            assert!(why.is_some_and(|why| !why.contains("hunter2")), "{wrong}");
        }
    }

    #[cfg(all(feature = "postgresql", feature = "mysql"))]
    #[test]
    fn a_url_requests_encryption_in_the_words_of_its_database() {
        const ROOTS: &str = "=/ca.pem";
        for (scheme, mode, roots, legal) in [
            ("postgres", "sslmode", "sslrootcert", ["prefer", "disable", "require", "verify-full"]),
            ("mysql", "ssl-mode", "ssl-ca", ["PREFERRED", "DISABLED", "REQUIRED", "VERIFY_IDENTITY"]),
        ] {
            let [.., required, verified] = legal;
            let parse = |query: &str| format!("{scheme}://ann:secret@db/x?{query}").parse::<DatabaseUrl>();
            for name in legal {
                assert!(parse(&format!("{mode}={name}")).is_ok(), "{name}");
            }
            assert!(parse(&format!("{mode}={verified}&{roots}{ROOTS}")).is_ok());
            for (wrong, named) in [
                (format!("{mode}=verify-ca"), verified),
                (format!("{mode}={required}&{roots}{ROOTS}"), "no effect"),
                (format!("{roots}{ROOTS}"), "no effect"),
                (format!("{mode}={verified}&{roots}=ca.pem"), "absolute"),
            ] {
                let why = parse(&wrong).expect_err(&wrong);
                assert!(why.contains(named) && why.contains(mode) | why.contains(roots), "{why}");
                assert!(!why.contains("secret"), "{why}");
            }
        }
        for (query, named) in [
            ("require_ssl=true", "ssl-mode"),
            ("require_ssl=true&verify_ca=false", "ssl-mode"),
            ("ssl-mode=REQUIRED&socket=/run/mysqld/mysqld.sock", "socket"),
        ] {
            let why = format!("mysql://ann:secret@db/x?{query}").parse::<DatabaseUrl>().expect_err(query);
            assert!(why.contains(named) && !why.contains("secret"), "{why}");
        }
    }

    #[test]
    fn a_url_in_a_file_is_read_by_the_process_that_connects() {
        let path = std::env::temp_dir().join(format!("tenfold-url-{}", std::process::id()));
        let named: DatabaseUrl = format!("file:{}", path.display()).parse().expect("a legal URL");
        let failure = |content: Option<&str>| {
            let _ = std::fs::remove_file(&path);
            if let Some(content) = content {
                std::fs::write(&path, content).expect("a temporary folder");
            }
            named.connect().err().expect("there is no such database").to_string()
        };
        let mut all =
            vec![failure(None), failure(Some("sqlite:x")), failure(Some("oracle://ann:secret@db/x"))];
        all.push(failure(Some(&"x".repeat(5000))));
        // Port 1 is closed, so the URL was parsed.
        #[cfg(feature = "postgresql")]
        all.push(failure(Some("postgres://ann:secret@127.0.0.1:1/x\n")));
        std::fs::remove_file(&path).expect("our own file");
        let expected = ["accounts user", "database server", "a database is", "4096", "refused"];
        for (said, expected) in all.iter().zip(expected) {
            assert!(said.contains(expected) && !said.contains("secret"), "{said}");
        }
        assert_eq!(format!("{named:?}"), format!("file:{}", path.display()));
        assert_eq!(named.file(), None);
    }

    #[test]
    fn invalid_urls_are_rejected_without_being_repeated() {
        for wrong in ["", "sqlite:", "oracle://ann:secret@db/x", "secret"] {
            let why = wrong.parse::<DatabaseUrl>().expect_err("it is none");
            assert!(!why.contains("secret"), "{why}");
        }
    }
}
