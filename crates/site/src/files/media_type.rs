//! The media type of a file, by the extension of its name.

use tenfold_http::semantics::negotiate::ContentCoding;

use crate::rules::codings::suffix;
use crate::rules::policy::Policy;

/// The type of names without a known extension: a browser offers to save the file, and with `nosniff` does
/// not guess.
const UNKNOWN: &str = "application/octet-stream";

/// Types for which browsers and players expect another value than the general table has.
const CORRECTIONS: &[(&str, &str)] = &[
    ("m4a", "audio/mp4"),        // RFC 4337
    ("map", "application/json"), // source maps, ECMA-426
    ("ts", "video/mp2t"),        // segments of HLS, RFC 8216 §10
];

/// Returns the `Content-Type` of a file with this name under `policy`. Text has a charset, UTF-8 by default.
pub(crate) fn of(name: &str, policy: &Policy) -> String {
    let file = name.rsplit('/').next().unwrap_or(name);
    let essence = match policy.types.find(file) {
        // A configured type with parameters is complete.
        Some(own) if own.contains(';') => return own.to_owned(),
        Some(own) => own,
        None => by_extension(file),
    };
    match (&policy.charset, is_text(essence)) {
        (None, true) => format!("{essence}; charset=utf-8"),
        (Some(Some(charset)), true) => format!("{essence}; charset={charset}"),
        _ => essence.to_owned(),
    }
}

/// Returns the coding and the inner name of a file that is compressed by its name, such as `app.js.gz`.
/// Browsers must process the inner type, and the configuration must not give the outer name a type. An
/// archive such as `a.tar.gz` keeps its own type, because programs that fetch it expect it unchanged.
pub(crate) fn compressed(name: &str, policy: &Policy) -> Option<(ContentCoding, String)> {
    const CODED: [ContentCoding; 3] = [ContentCoding::Brotli, ContentCoding::Gzip, ContentCoding::Zstd];
    let lower = name.to_ascii_lowercase();
    let (coding, inner) = match lower.strip_suffix(".svgz") {
        Some(stem) => (ContentCoding::Gzip, format!("{}.svg", &name[..stem.len()])),
        None => CODED.into_iter().find_map(|coding| {
            let stem = lower.strip_suffix(suffix(coding))?;
            Some((coding, name[..stem.len()].to_owned()))
        })?,
    };
    let file = |name: &str| name.rsplit('/').next().unwrap_or(name).to_owned();
    if policy.types.find(&file(name)).is_some() {
        return None;
    }
    let file = file(&inner);
    (policy.types.find(&file).is_some() || is_processed(by_extension(&file))).then_some((coding, inner))
}

/// Whether browsers process content of this type instead of storing it.
fn is_processed(essence: &str) -> bool {
    const KINDS: [&str; 5] = ["image/", "audio/", "video/", "font/", "model/"];
    is_text(essence) || essence == "application/wasm" || KINDS.iter().any(|kind| essence.starts_with(kind))
}

fn by_extension(file: &str) -> &'static str {
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    let corrected = CORRECTIONS.iter().find(|(known, _)| extension.eq_ignore_ascii_case(known));
    match corrected {
        Some((_, essence)) => essence,
        None => mime_infer::from_ext(extension).first_raw().unwrap_or(UNKNOWN),
    }
}

fn is_text(essence: &str) -> bool {
    let named = ["application/javascript", "application/json", "application/xml", "application/toml"];
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || named.contains(&essence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::media_types::MediaTypes;
    use tenfold_http::FieldValue;

    fn of(name: &str) -> String {
        super::of(name, &Policy::default())
    }

    fn types(all: &[(&str, &str)]) -> MediaTypes {
        let mut types = MediaTypes::default();
        all.iter().for_each(|(key, media_type)| types.insert(key, media_type).expect(key));
        types
    }

    #[test]
    fn names_without_an_extension_and_patterns_have_types() {
        let types = types(&[
            ("", "text/x-none"),
            ("README*", "text/x-readme"),
            ("*.min.*", "text/x-min"),
            (".js", "text/javascript"),
            ("readme.js", "text/x-name"),
        ]);
        let policy = Policy { types, charset: Some(None), ..Policy::default() };
        for (name, expected) in [
            ("a.b/LICENSE", "text/x-none"),
            ("Makefile", "text/x-none"),
            ("README", "text/x-readme"),
            ("read", "text/x-none"),
            ("a/readme.1", "text/x-readme"),
            ("app.min.js", "text/x-min"),
            ("app.js", "text/javascript"),
            ("README.js", "text/x-name"),
            ("photo.png", "image/png"),
            ("trailing.", UNKNOWN),
        ] {
            assert_eq!(super::of(name, &policy), expected, "{name}");
        }
        assert_eq!(super::compressed("LICENSE.gz", &policy), Some((ContentCoding::Gzip, "LICENSE".into())));
        assert!(MediaTypes::default().insert("a/*", "a/b").is_err());
        assert!(MediaTypes::default().insert("***", "a/b").is_err());
    }

    #[test]
    fn the_configuration_knows_better() {
        let types = types(&[
            (".md", "text/markdown"),
            (".tar.gz", "application/x-tar"),
            ("license", "text/plain"),
            (".x", "a/b; c=d"),
        ]);
        let policy = Policy { types, charset: Some(Some("iso-8859-1".into())), ..Policy::default() };
        for (name, expected) in [
            ("a/README.MD", "text/markdown; charset=iso-8859-1"),
            ("a.b.tar.gz", "application/x-tar"),
            ("a/LICENSE", "text/plain; charset=iso-8859-1"),
            ("a.x", "a/b; c=d"),
            ("index.html", "text/html; charset=iso-8859-1"),
            ("photo.png", "image/png"),
        ] {
            assert_eq!(super::of(name, &policy), expected, "{name}");
        }
        let bare = Policy { charset: Some(None), ..Policy::default() };
        assert_eq!(super::of("index.html", &bare), "text/html");
    }

    #[test]
    fn h59_a_name_has_a_type_and_the_type_of_text_has_a_charset() {
        for (name, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a/b/site.css", "text/css; charset=utf-8"),
            ("site.js", "text/javascript; charset=utf-8"),
            ("module.mjs", "text/javascript; charset=utf-8"),
            ("data.json", "application/json; charset=utf-8"),
            ("icon.svg", "image/svg+xml; charset=utf-8"),
            ("feed.xml", "text/xml; charset=utf-8"),
            ("robots.txt", "text/plain; charset=utf-8"),
            ("app.webmanifest", "application/manifest+json; charset=utf-8"),
            ("script.js.map", "application/json; charset=utf-8"),
            // Audio and video have the types that players expect.
            ("film.mp4", "video/mp4"),
            ("film.webm", "video/webm"),
            ("segment.ts", "video/mp2t"),
            ("song.M4A", "audio/mp4"),
            ("photo.JPG", "image/jpeg"),
            ("photo.png", "image/png"),
            ("photo.avif", "image/avif"),
            ("font.woff2", "font/woff2"),
            ("code.wasm", "application/wasm"),
            ("notes.pdf", "application/pdf"),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
    }

    #[test]
    fn a_compressed_name_has_the_coding_of_its_suffix_if_its_type_is_known() {
        use ContentCoding::{Brotli, Gzip, Zstd};
        let found = |name: &str| super::compressed(name, &Policy::default());
        for (name, coding, inner) in [
            ("a.svgz", Gzip, "a.svg"),
            ("b/A.SVGZ", Gzip, "b/A.svg"),
            ("game.wasm.gz", Gzip, "game.wasm"),
            ("app.js.br", Brotli, "app.js"),
            ("site.css.zst", Zstd, "site.css"),
        ] {
            assert_eq!(found(name), Some((coding, inner.to_owned())), "{name}");
        }
        for name in
            ["a.svg", "all.tar.gz", "all.tgz", "LICENSE.gz", "image.iso.gz", "a.js.xz", ".gz", "a.js.br/x"]
        {
            assert_eq!(found(name), None, "{name}");
        }
        let typed =
            |ending: &str| Policy { types: types(&[(ending, "application/x-own")]), ..Policy::default() };
        assert_eq!(super::compressed("a.js.gz", &typed(".gz")), None);
        assert_eq!(super::compressed("a.data.gz", &typed(".data")), Some((Gzip, "a.data".to_owned())));
    }

    #[test]
    fn a_name_without_a_known_suffix_has_the_type_of_bytes() {
        for name in ["LICENSE", "a.b/c", "x.unheardof", "trailing.", "", "archive.tar.", "a.html/raw"] {
            assert_eq!(of(name), UNKNOWN, "{name}");
        }
    }

    #[test]
    fn every_type_can_stand_in_a_field() {
        for name in ["a.html", "a.mp4", "a", "a.é", "a.ſvg"] {
            assert!(FieldValue::new(of(name).as_bytes()).is_some(), "{name}");
        }
    }
}
