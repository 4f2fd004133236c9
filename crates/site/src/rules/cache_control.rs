//! Presets of `Cache-Control` (RFC 9111 §5.2.2, RFC 8246).

use std::borrow::Cow;

/// A preset of `Cache-Control`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheControl {
    /// Store for a year, and never revalidate.
    Immutable,
    /// [`CacheControl::Immutable`] if the file's name contains a hash of its content, otherwise
    /// [`CacheControl::Revalidate`].
    Hashed,
    /// Store, and revalidate before each use.
    Revalidate,
    /// Do not store.
    NoStore,
    /// Store for this many seconds.
    MaxAge(u32),
}

/// The minimum length of a hash in a file name.
const SHORTEST_HASH: usize = 8;

impl CacheControl {
    /// Returns the value of the field for a file of this name. Shared caches must not store a `private` file.
    pub(crate) fn value(self, name: &str, private: bool) -> Cow<'static, str> {
        match self {
            CacheControl::Hashed if is_hashed(name) => CacheControl::Immutable.value(name, private),
            CacheControl::Immutable if private => "private, max-age=31536000, immutable".into(),
            CacheControl::MaxAge(seconds) if private => format!("private, max-age={seconds}").into(),
            CacheControl::Immutable => "public, max-age=31536000, immutable".into(),
            CacheControl::Hashed | CacheControl::Revalidate => "no-cache".into(),
            CacheControl::NoStore => "no-store".into(),
            CacheControl::MaxAge(seconds) => format!("max-age={seconds}").into(),
        }
    }
}

/// Whether a file's name contains a hash, as build tools write it: `app.3f2a9c1b.js`, `app-BK4x9Qz1.css`. A
/// hash is a part between dots, hyphens or underscores, after the first part, of at least eight letters and
/// digits. It has both letters and digits: digits without letters are dates.
fn is_hashed(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    let mut parts = file.split(['.', '-', '_']).skip(1);
    parts.any(|part| {
        part.len() >= SHORTEST_HASH
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && part.bytes().any(|byte| byte.is_ascii_digit())
            && part.bytes().any(|byte| byte.is_ascii_alphabetic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_in_a_name_is_recognised_and_a_word_is_not() {
        for name in
            ["app.3f2a9c1b.js", "assets/app-BK4x9Qz1.css", "chunk_0a1b2c3d4e5f.mjs", "a.d41d8cd98f00b204.png"]
        {
            assert!(is_hashed(name), "{name}");
        }
        for name in [
            "app.js",
            "site.stylesheet.css",
            "photo-20261121.jpg",
            "3f2a9c1b.js",
            "a-1.2.3.js",
            "x.3f2a9c1b/app.js",
        ] {
            assert!(!is_hashed(name), "{name}");
        }
    }

    #[test]
    fn each_word_has_its_value() {
        let value = |cache: CacheControl, name| cache.value(name, false).into_owned();
        assert_eq!(CacheControl::MaxAge(60).value("a", true), "private, max-age=60");
        assert!(!CacheControl::Hashed.value("a.3f2a9c1b.js", true).contains("public"));
        assert_eq!(value(CacheControl::Immutable, "a.js"), "public, max-age=31536000, immutable");
        assert_eq!(value(CacheControl::Hashed, "a.3f2a9c1b.js"), "public, max-age=31536000, immutable");
        assert_eq!(value(CacheControl::Hashed, "a.js"), "no-cache");
        assert_eq!(value(CacheControl::Revalidate, "a.js"), "no-cache");
        assert_eq!(value(CacheControl::NoStore, "a.js"), "no-store");
        assert_eq!(value(CacheControl::MaxAge(60), "a.js"), "max-age=60");
    }
}
