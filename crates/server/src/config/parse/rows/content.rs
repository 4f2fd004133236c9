//! Settings of the served content.

use tenfold_http::semantics::negotiate::ContentCoding;
use tenfold_site::{Codings, MADE_CODINGS, TagFrom};

use super::read::{path, rows, size, some, switch, word};
use crate::config::parse::row::Initial::{Follows, Value};
use crate::config::parse::row::{SettingRow, Text};
use crate::config::parse::units;
use crate::config::values::ListenEntry;

const MIB: u64 = 1 << 20;

pub(super) static SITE: &[SettingRow] = rows! { "The site":
    Many "listen" "PORT|ADDRESS" = Value("127.0.0.1:8080"), fixed;
        listen = addresses;
        "an address to listen on: PORT (only this machine), :PORT (all addresses: to share with phones and other machines of the network), ADDRESS:PORT, [::]:80 or unix:PATH; the prefix http: turns TLS off for it, proxy: requires a PROXY header (version 1 or 2) of a trusted-proxy, proxy+http: does both; repeatable; with tls NAME the default is port 443 and http: port 80 of all addresses, with tls internal 127.0.0.1:8443";
    One "root" "DIR" = Value("."), not_null;
        root = path;
        "the folder to serve";
    Many "index" "NAME" = Value("index.html"), not_null;
        index = indexes;
        "the file to serve for a folder; repeatable: the first one that exists";
    One "book" "on|off" = Follows("off; on for the demonstration site"), not_null;
        book = some(switch);
        "serve this version's manual at /book/ of the default site";
    One "echo" "PATH|off" = Value("off"), not_null;
        echo = url_path_or_off;
        "a path that answers any method with the body of the request, for tests of framing";
};

pub(super) static CONTENT: &[SettingRow] = rows! { "Content":
    Many "precompressed" "on|CODING|off" = Value("off"), not_null;
        codings.siblings = codings(&[ContentCoding::Brotli, ContentCoding::Zstd, ContentCoding::Gzip]);
        "serve page.html.br, .zst or .gz in place of page.html if the client accepts it: on, off, or br, zstd and gzip in order of preference";
    Many "compress" "on|CODING|off" = Value("off"), not_null;
        codings.made = codings(MADE_CODINGS);
        "compress files that have no compressed file beside them: on, off, or zstd, br and gzip in order of preference";
    Many "compress-types" "TYPE" = Value("text"), not_null;
        codings.types = types;
        "media types to compress, such as text/* or image/svg+xml; text means the types that usually compress well";
    One "compress-from" "BYTES" = Value("1 KiB"), not_null;
        codings.from = size(1..=2 * MIB);
        "smallest file to compress";
    One "etag" "time|content" = Value("time"), not_null;
        tags = word("source of entity tags", &[("time", TagFrom::Time), ("content", TagFrom::Content)]);
        "the source of entity tags: time (and size), or content, which requires reading each file once";
    One "listing" "html|json|off" = Follows("off; without a configuration file: html if only this machine can connect, or if the root has no index and --listen opens it"), not_null;
        listing = |given: Text<'_>| units::listing(given.text).map(Some);
        "the response for a folder without an index: html (JSON if the client prefers it), json, or off";
    One "archives" "on|off" = Follows("off; without a configuration file: on"), not_null;
        archives = some(switch);
        "whether a listed folder can be downloaded as a tar archive (?archive=tar)";
    One "watch" "on|off" = Value("off"), not_null;
        watch = switch;
        "notice changed files immediately (inotify) instead of after a second";
};

fn addresses(given: &[Text<'_>]) -> Result<Vec<ListenEntry>, String> {
    match given {
        [] => Err("at least one address is needed".into()),
        several => Ok(several.iter().map(Text::listen_entries).collect::<Result<Vec<_>, _>>()?.concat()),
    }
}

fn indexes(given: &[Text<'_>]) -> Result<Vec<String>, String> {
    match given {
        [] => Err("a name is missing, such as index.html".into()),
        several => several.iter().map(|given| units::file_name(given.text)).collect(),
    }
}

/// Reads the path of a URL, or `off`.
fn url_path_or_off(given: Text<'_>) -> Result<Option<String>, String> {
    let legal = |byte: u8| byte.is_ascii_graphic() && !b"?#".contains(&byte);
    match given.text {
        "off" => Ok(None),
        path if path.starts_with('/') && path.bytes().all(legal) => Ok(Some(path.to_owned())),
        other => Err(format!("{other:?} is not the path of a URL, such as /echo, or off")),
    }
}

/// Reads codings in the order of preference; the word `on` means `all`.
fn codings(all: &[ContentCoding]) -> impl Fn(&[Text<'_>]) -> Result<Vec<ContentCoding>, String> {
    move |texts| read_codings(texts, all)
}

fn read_codings(texts: &[Text<'_>], all: &[ContentCoding]) -> Result<Vec<ContentCoding>, String> {
    match texts {
        [only] if only.text == "off" => return Ok(Vec::new()),
        [only] if only.text == "on" => return Ok(all.to_vec()),
        _ => {}
    }
    let mut found = Vec::new();
    for Text { text, .. } in texts {
        let coding = all.iter().find(|coding| coding.token() == *text);
        let coding = *coding.ok_or_else(|| match *text {
            "zstd" => {
                "this build cannot compress with zstd; build with --features zstd, or use the package".into()
            }
            _ => format!("{text:?} is not a coding: on alone, off alone, or some of br, zstd and gzip"),
        })?;
        if found.contains(&coding) {
            return Err(format!("duplicate coding {text}"));
        }
        found.push(coding);
    }
    match found.is_empty() {
        true => Err("a coding is missing: on, off, or some of br, zstd and gzip".into()),
        false => Ok(found),
    }
}

/// Reads media types, with `*` for all subtypes, and `text` for all textual types.
fn types(texts: &[Text<'_>]) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for Text { text, .. } in texts {
        let token = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
        };
        match text.split_once('/') {
            None if *text == "text" => found.append(&mut Codings::default().types),
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
        let all = &[ContentCoding::Zstd, ContentCoding::Brotli, ContentCoding::Gzip];
        let codings = |words: &[&str]| read(codings(all), words);
        assert_eq!(codings(&["off"]), Ok(vec![]));
        assert_eq!(codings(&["on"]), Ok(all.to_vec()));
        assert_eq!(codings(&["gzip", "br"]), Ok(vec![ContentCoding::Gzip, ContentCoding::Brotli]));
        for wrong in [&["on", "br"][..], &["deflate"], &["br", "br"], &[], &["identity"], &["BR"], &[""]] {
            assert!(codings(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_coding_that_is_not_built_is_named_with_its_feature() {
        let why = read(codings(&[ContentCoding::Gzip]), &["zstd", "gzip"]).expect_err("it is not built");
        assert!(why.contains("--features zstd"), "{why}");
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
