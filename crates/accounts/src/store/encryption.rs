//! Encrypted connections: the parameters in the URL of a database.

use std::path::PathBuf;

/// The protection of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Encryption {
    /// None.
    Off,
    /// Encrypted, with any certificate: an attacker on the path can pretend to be the server.
    Unverified,
    /// Encrypted, with a certificate for the host of the URL, signed by a root of this file; None: a root of the system.
    Verified(Option<PathBuf>),
}

/// The parameters of a URL that a client of this database knows.
pub(crate) struct EncryptionNames {
    pub(crate) mode: &'static str,
    /// The parameter that names a file with root certificates.
    pub(crate) roots: &'static str,
    /// Two names for a connection without encryption.
    pub(crate) off: [&'static str; 2],
    pub(crate) unverified: &'static str,
    pub(crate) verified: &'static str,
}

impl Encryption {
    /// Takes the parameters with these names from a URL. Returns the URL without them. Errors do not contain the URL.
    pub(crate) fn take_from(url: &str, names: &EncryptionNames) -> Result<(Encryption, String), String> {
        let EncryptionNames { mode, roots, off: [off, preferred], unverified, verified } = *names;
        let (url, [chosen, file]) = take_parameters(url, [mode, roots]);
        let file = file.map(PathBuf::from);
        if file.as_ref().is_some_and(|file| file.is_relative()) {
            return Err(format!("{roots} requires an absolute path"));
        }
        let encryption = match chosen.as_deref() {
            Some(name) if name == verified => return Ok((Encryption::Verified(file), url)),
            Some(name) if name == unverified => Encryption::Unverified,
            Some(name) if name != off && name != preferred => {
                return Err(format!(
                    "{mode} is {off}, {preferred} (also without encryption), {unverified} (encrypted, with any \
                     certificate) or {verified} (with a certificate for the host)"
                ));
            }
            _ => Encryption::Off,
        };
        match file {
            None => Ok((encryption, url)),
            Some(_) => Err(format!("{roots} has no effect without {mode}={verified}")),
        }
    }
}

/// Takes the parameters with these names from the query of a URL. Returns the URL without them, and their values.
fn take_parameters<const N: usize>(url: &str, names: [&str; N]) -> (String, [Option<String>; N]) {
    let mut values = [const { None }; N];
    // A question mark before the host belongs to the password.
    let host = url.find('@').unwrap_or(0);
    let Some(start) = url[host..].find('?').map(|place| host + place) else {
        return (url.to_owned(), values);
    };
    let is_kept = |pair: &&str| {
        // In a URL of libpq, a plus sign is not a space.
        let pair = pair.replace('+', "%2B");
        let Some((name, value)) = form_urlencoded::parse(pair.as_bytes()).next() else { return true };
        let place = names.iter().position(|known| *known == name);
        if let Some(place) = place {
            values[place] = Some(value.into_owned());
        }
        place.is_none()
    };
    let kept: Vec<_> = url[start + 1..].split('&').filter(is_kept).collect();
    let mark = if kept.is_empty() { "" } else { "?" };
    (format!("{}{mark}{}", &url[..start], kept.join("&")), values)
}

#[cfg(all(test, feature = "postgresql"))]
mod tests {
    use super::super::postgres::NAMES;
    use super::*;

    #[test]
    fn the_mode_and_the_roots_are_taken_from_the_query() {
        let file = |path: &str| Encryption::Verified(Some(path.into()));
        for (query, encryption, rest) in [
            ("", Encryption::Off, ""),
            ("?sslmode=prefer", Encryption::Off, ""),
            ("?sslmode=disable&connect_timeout=1", Encryption::Off, "?connect_timeout=1"),
            ("?connect_timeout=1&sslmode=require", Encryption::Unverified, "?connect_timeout=1"),
            ("?sslmode=verify-full", Encryption::Verified(None), ""),
            ("?sslmode=verify-full&sslrootcert=/etc/ca.pem", file("/etc/ca.pem"), ""),
            ("?sslrootcert=%2Fa+b%20c&sslmode=verify-full&a=b+c", file("/a+b c"), "?a=b+c"),
        ] {
            for host in ["ann:se?sslmode=x@db", "db"] {
                let url = format!("postgres://{host}/x{query}");
                let expected = (encryption.clone(), format!("postgres://{host}/x{rest}"));
                assert_eq!(Encryption::take_from(&url, &NAMES), Ok(expected), "{url}");
            }
        }
    }

    #[test]
    fn parameters_without_effect_are_rejected() {
        for (query, named) in [
            ("sslmode=verify-ca", "verify-full"),
            ("sslmode=", "sslmode is"),
            ("sslrootcert=/ca.pem", "sslmode=verify-full"),
            ("sslmode=require&sslrootcert=/ca.pem", "sslmode=verify-full"),
            ("sslmode=verify-full&sslrootcert=ca.pem", "absolute"),
        ] {
            let why = Encryption::take_from(&format!("postgres://ann:secret@db/x?{query}"), &NAMES);
            let why = why.expect_err("it is wrong");
            assert!(why.contains(named) && !why.contains("secret"), "{why}");
        }
    }
}
