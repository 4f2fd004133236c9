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

/// A database client behind a cargo feature.
struct ClientFeature {
    database: &'static str,
    feature: &'static str,
    built: bool,
}

const SQLITE: ClientFeature =
    ClientFeature { database: "SQLite", feature: "sqlite", built: cfg!(feature = "sqlite") };
const POSTGRES: ClientFeature =
    ClientFeature { database: "PostgreSQL", feature: "postgresql", built: cfg!(feature = "postgresql") };
const MYSQL: ClientFeature =
    ClientFeature { database: "MySQL", feature: "mysql", built: cfg!(feature = "mysql") };

impl ClientFeature {
    fn require(&self) -> Result<(), String> {
        if self.built { Ok(()) } else { Err(self.missing()) }
    }

    fn missing(&self) -> String {
        let ClientFeature { database, feature, .. } = self;
        format!("this build has no {database}: build with the cargo feature `{feature}`")
    }
}

impl FromStr for DatabaseUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<DatabaseUrl, String> {
        let (scheme, rest) = text.split_once(':').unwrap_or((text, ""));
        Ok(DatabaseUrl(match scheme {
            "sqlite" => {
                SQLITE.require()?;
                DatabaseKind::Sqlite(path_behind("sqlite:", rest)?)
            }
            "file" => DatabaseKind::InFile(path_behind("file:", rest)?),
            "postgres" | "postgresql" => {
                POSTGRES.require()?;
                #[cfg(feature = "postgresql")]
                super::postgres::check(text)?;
                DatabaseKind::Postgres(text.to_owned())
            }
            "mysql" | "mariadb" => {
                MYSQL.require()?;
                let url = format!("mysql:{rest}");
                #[cfg(feature = "mysql")]
                super::mysql::check(&url)?;
                DatabaseKind::Mysql(url)
            }
            // The typed text may contain a password.
            _ => {
                return Err("a database is sqlite:PATH, postgres://USER:PASSWORD@HOST/NAME, \
                            mysql://USER:PASSWORD@HOST/NAME, or file:PATH of a file that holds one of the last two"
                    .into());
            }
        }))
    }
}

impl DatabaseUrl {
    /// The SQLite database in this file.
    ///
    /// # Errors
    /// This build has no SQLite.
    pub fn sqlite(path: &Path) -> Result<DatabaseUrl, String> {
        SQLITE.require()?;
        Ok(DatabaseUrl(DatabaseKind::Sqlite(path.to_owned())))
    }

    /// The file, if the database is one.
    pub fn file(&self) -> Option<&Path> {
        match &self.0 {
            DatabaseKind::Sqlite(path) => Some(path),
            DatabaseKind::InFile(_) | DatabaseKind::Postgres(_) | DatabaseKind::Mysql(_) => None,
        }
    }

    /// Resolves the path of a file relative to `base`.
    #[must_use]
    pub fn beneath(self, base: &Path) -> DatabaseUrl {
        match self.0 {
            DatabaseKind::Sqlite(path) if path != Path::new(":memory:") => {
                DatabaseUrl(DatabaseKind::Sqlite(base.join(path)))
            }
            DatabaseKind::InFile(path) => DatabaseUrl(DatabaseKind::InFile(base.join(path))),
            other => DatabaseUrl(other),
        }
    }

    pub(super) fn connect(&self) -> Result<Box<dyn DatabaseConnection>, StoreError> {
        match &self.0 {
            #[cfg(feature = "sqlite")]
            DatabaseKind::Sqlite(path) => super::sqlite::open(path),
            DatabaseKind::InFile(path) => {
                let url: DatabaseUrl =
                    read(path).and_then(|text| text.parse()).map_err(StoreError::Failed)?;
                match url.0 {
                    DatabaseKind::Sqlite(_) | DatabaseKind::InFile(_) => Err(StoreError::Failed(format!(
                        "{} does not hold the URL of a database server; write postgres://… or mysql://… into it",
                        path.display()
                    ))),
                    DatabaseKind::Postgres(_) | DatabaseKind::Mysql(_) => url.connect(),
                }
            }
            #[cfg(feature = "postgresql")]
            DatabaseKind::Postgres(url) => super::postgres::open(url),
            #[cfg(feature = "mysql")]
            DatabaseKind::Mysql(url) => super::mysql::open(url),
            // A URL is only parsed if its client is part of the build.
            #[cfg(not(feature = "sqlite"))]
            DatabaseKind::Sqlite(_) => Err(StoreError::Failed(SQLITE.missing())),
            #[cfg(not(feature = "postgresql"))]
            DatabaseKind::Postgres(_) => Err(StoreError::Failed(POSTGRES.missing())),
            #[cfg(not(feature = "mysql"))]
            DatabaseKind::Mysql(_) => Err(StoreError::Failed(MYSQL.missing())),
        }
    }
}

impl fmt::Display for DatabaseUrl {
    /// Omits the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            DatabaseKind::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            DatabaseKind::InFile(path) => write!(f, "file:{}", path.display()),
            DatabaseKind::Postgres(url) | DatabaseKind::Mysql(url) => f.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn path_behind(scheme: &str, rest: &str) -> Result<PathBuf, String> {
    match rest.strip_prefix("//").unwrap_or(rest) {
        "" => Err(format!("{scheme} requires a path")),
        path if path.contains("://") => Err(format!("{scheme} takes the path of a file, not another URL")),
        path => Ok(PathBuf::from(path)),
    }
}

/// Reads a URL from a file, at most 4 KiB, without surrounding white space. The file keeps the URL out of command
/// lines, the configuration, and the memory of processes that only pass the path on.
///
/// # Errors
/// A message with the path, but without the content of the file.
pub fn read(path: &Path) -> Result<String, String> {
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

/// Removes the password and the query, which may contain one, from a URL. An invalid URL is reduced to its scheme,
/// except the path of a file. Without a user, text after the host's colon is shown only if it is a port.
pub fn without_password(url: &str) -> String {
    const QUERY: [char; 2] = ['?', '#'];
    if url.starts_with("file:") && !url.contains("://") {
        return url.to_owned();
    }
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
            ("redis:/:hunter2@127.0.0.1", "redis:"),
            ("hunter2", ""),
            ("file:/etc/redis.url", "file:/etc/redis.url"),
            ("redis://:pa?ss@127.0.0.1", "redis://@…"),
            ("postgres://ann:se#cret@db/x", "postgres://ann@…"),
            ("postgres://ann@db/x?password=se@cret", "postgres://ann@…"),
            ("postgres://db/x?password=secret", "postgres://db/x"),
            ("redis+unix:///run/redis.sock?pass=secret", "redis+unix:///run/redis.sock"),
            ("redis://:hunter2", "redis://:…"),
            ("redis://host:hunter2/0", "redis://host:…"),
            ("redis://host:6379/0", "redis://host:6379/0"),
            ("redis://[::1]:6379/0", "redis://[::1]:6379/0"),
            ("file:redis://:hunter2@h", "file:redis://@h"),
        ] {
            assert_eq!(without_password(url), shown, "{url}");
        }
    }

    #[test]
    fn h78_a_url_behind_the_scheme_of_a_path_is_refused_and_not_shown() {
        for wrong in ["sqlite:postgres://ann:hunter2@db/x", "file:postgres://ann:hunter2@db/x"] {
            let why = wrong.parse::<DatabaseUrl>().err();
            assert!(why.is_some_and(|why| !why.contains("hunter2")), "{wrong}");
        }
    }

    #[test]
    fn a_client_that_is_not_built_is_named_with_its_feature() {
        let absent = ClientFeature { built: false, ..SQLITE };
        let why = absent.require().expect_err("it is not built");
        assert_eq!(why, "this build has no SQLite: build with the cargo feature `sqlite`");
        for (url, client) in [("sqlite:a.db", SQLITE), ("postgres://db/x", POSTGRES), ("mysql://db/x", MYSQL)]
        {
            assert_eq!(url.parse::<DatabaseUrl>().is_ok(), client.built, "{url}");
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
