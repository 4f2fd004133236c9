//! In which form files are served.

use tenfold_http::negotiate::Coding;
use tenfold_site::{Listing, TagFrom};

use super::super::Text;
use super::super::table::Initial::Value;
use super::super::table::{Row, many, one};
use super::super::units::{number, size, switch, word};

const HEADING: &str = "Content";
const MB: u64 = 1 << 20;

pub(super) static ROWS: &[Row] = &[
    many(
        ("precompressed", "on|CODING|off", HEADING),
        Value("off"),
        "serve page.html.br, .zst or .gz beside page.html to who takes it: on, off, or br, zstd and gzip in the order \
         of preference",
        |settings, texts| {
            settings.codings.siblings = codings(texts, &[Coding::Brotli, Coding::Zstd, Coding::Gzip])?;
            Ok(())
        },
    )
    .not_null(),
    many(
        ("compress", "on|CODING|off", HEADING),
        Value("off"),
        "compress what no file beside it has: on, off, or zstd, br and gzip in the order of preference",
        |settings, texts| {
            settings.codings.made = codings(texts, &[Coding::Zstd, Coding::Brotli, Coding::Gzip])?;
            Ok(())
        },
    )
    .not_null(),
    many(
        ("compress-types", "TYPE", HEADING),
        Value("text"),
        "media types that are compressed, such as text/* or image/svg+xml; text: all that usually are",
        |settings, texts| {
            settings.codings.types = types(texts)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("compress-from", "BYTES", HEADING),
        Value("1 KB"),
        "of a file that is compressed; a smaller one goes as it is",
        |settings, text| {
            settings.codings.from = size(text.text, 1..=64 * MB)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("compress-up-to", "BYTES", HEADING),
        Value("2 MB"),
        "of a file that is compressed; a larger one goes as it is",
        |settings, text| {
            settings.codings.up_to = size(text.text, 1..=64 * MB)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("compress-cache", "BYTES", HEADING),
        Value("32 MB"),
        "of what was compressed, kept by each process for its workers",
        |settings, text| {
            settings.codings.cache_bytes = size(text.text, 1..=64 * 1024 * MB)? as usize;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("etag", "time|content", HEADING),
        Value("time"),
        "what entity tags are made of: time (and size), or content, for which each file is read once",
        |settings, text| {
            settings.tags = word(text.text, "source of entity tags", TAGS)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("etag-up-to", "BYTES", HEADING),
        Value("64 MB"),
        "of a file that is read for its entity tag; a larger one has that of its time and size",
        |settings, text| {
            settings.tags_up_to = size(text.text, 1..=1024 * 1024 * MB)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("listing", "html|json|off", HEADING),
        Value("off"),
        "what is shown of a folder without an index: html (JSON for who prefers it), json, or off",
        |settings, text| {
            settings.listing = listing(text.text)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("listing-entries", "N", HEADING),
        Value("10000"),
        "names that are read of a folder that is listed",
        |settings, text| {
            settings.listing_entries = number(text.text, 1..=1_000_000u32)? as usize;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("watch", "on|off", HEADING),
        Value("off"),
        "see a changed file at once (inotify), and not only after a second",
        |settings, text| {
            settings.watch = switch(text.text)?;
            Ok(())
        },
    )
    .not_null(),
    one(
        ("watch-folders", "N", HEADING),
        Value("1024"),
        "folders that each process watches; the files of others are looked at after a second",
        |settings, text| {
            settings.watch_folders = number(text.text, 1..=1_000_000u32)? as usize;
            Ok(())
        },
    )
    .not_null(),
];

const TAGS: &[(&str, TagFrom)] = &[("time", TagFrom::Time), ("content", TagFrom::Content)];

const LISTINGS: &[(&str, Listing)] =
    &[("off", Listing::Off), ("html", Listing::Html), ("json", Listing::Json)];

/// What is shown of a folder.
pub(in crate::settings) fn listing(text: &str) -> Result<Listing, String> {
    word(text, "listing", LISTINGS)
}

/// Codings in the order of preference; `all` where the word is `on`.
fn codings(texts: &[Text<'_>], all: &[Coding]) -> Result<Vec<Coding>, String> {
    match texts {
        [only] if only.text == "off" => return Ok(Vec::new()),
        [only] if only.text == "on" => return Ok(all.to_vec()),
        _ => {}
    }
    let mut found = Vec::new();
    for Text { text, .. } in texts {
        let coding = all.iter().find(|coding| coding.token() == *text);
        let coding = *coding.ok_or_else(|| {
            format!("{text:?} is not a coding: on alone, off alone, or some of br, zstd and gzip")
        })?;
        if found.contains(&coding) {
            return Err(format!("{text} stands twice"));
        }
        found.push(coding);
    }
    match found.is_empty() {
        true => Err("a coding is missing: on, off, or some of br, zstd and gzip".into()),
        false => Ok(found),
    }
}

/// Media types, with `*` for all of a kind, and `text` for all that are text by their nature.
fn types(texts: &[Text<'_>]) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for Text { text, .. } in texts {
        let token = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
        };
        match text.split_once('/') {
            None if *text == "text" => found.append(&mut tenfold_site::Codings::default().types),
            Some((kind, rest)) if token(kind) && (rest == "*" || token(rest)) => {
                found.push(text.to_string());
            }
            _ => return Err(format!("{text:?} is not a media type, such as text/html or text/*")),
        }
    }
    match found.is_empty() {
        true => Err("a media type is missing, such as text/html or text/*".into()),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn read<T>(how: impl Fn(&[Text<'_>]) -> Result<T, String>, words: &[&str]) -> Result<T, String> {
        let base = Path::new("");
        how(&words.iter().map(|text| Text { text, base }).collect::<Vec<_>>())
    }

    #[test]
    fn codings_are_in_the_order_in_which_they_are_given() {
        let all = &[Coding::Zstd, Coding::Brotli, Coding::Gzip];
        let codings = |words: &[&str]| read(|texts| codings(texts, all), words);
        assert_eq!(codings(&["off"]), Ok(vec![]));
        assert_eq!(codings(&["on"]), Ok(all.to_vec()));
        assert_eq!(codings(&["gzip", "br"]), Ok(vec![Coding::Gzip, Coding::Brotli]));
        for wrong in [&["on", "br"][..], &["deflate"], &["br", "br"], &[], &["identity"], &["BR"], &[""]] {
            assert!(codings(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn types_are_types() {
        let types = |words: &[&str]| read(types, words);
        assert_eq!(types(&["image/svg+xml", "font/*"]), Ok(vec!["image/svg+xml".into(), "font/*".into()]));
        assert!(types(&["text", "image/x"]).is_ok_and(|types| types.contains(&"text/*".to_owned())));
        for wrong in [&["*/*"][..], &["html"], &["text/"], &["/x"], &["text/h*"], &[], &["a b/c"]] {
            assert!(types(wrong).is_err(), "{wrong:?}");
        }
    }
}
