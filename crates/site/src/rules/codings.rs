//! The settings of a site's encodings.

use tenfold_http::semantics::negotiate::ContentCoding;

/// The encodings that a site offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Codings {
    /// Codings of siblings (`app.js.br` next to `app.js`), in order of preference. Each coding costs a lookup
    /// whenever a file is checked. Default: none.
    pub siblings: Vec<ContentCoding>,
    /// Codings that are made if no sibling has them, in order of preference. Default: none.
    pub made: Vec<ContentCoding>,
    /// The media types that are compressed; `text/*` means all types that begin with `text/`. The former
    /// types of scripts include `text/javascript`.
    pub types: Vec<String>,
    /// The smallest file that is compressed, in bytes: a smaller file fits a packet anyway. Default: 1 KiB.
    pub from: u64,
    /// The largest file that is compressed, in bytes. Default: 2 MiB.
    pub up_to: u64,
    /// Bytes of compressed content that a process caches for its threads, in addition to the cache of each
    /// worker. Default: 32 MiB.
    pub cache_bytes: usize,
}

/// Types of files that are not compressed in themselves.
const TYPES: &[&str] = &[
    "text/*",
    "application/atom+xml",
    "application/javascript",
    "application/json",
    "application/ld+json",
    "application/manifest+json",
    "application/rss+xml",
    "application/wasm",
    "application/xhtml+xml",
    "application/xml",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/svg+xml",
];

/// Former names of `text/javascript`.
const FORMER_SCRIPTS: [&str; 2] = ["application/javascript", "application/x-javascript"];

impl Default for Codings {
    fn default() -> Codings {
        Codings {
            siblings: Vec::new(),
            made: Vec::new(),
            types: TYPES.iter().map(|&name| name.to_owned()).collect(),
            from: 1024,
            up_to: 2 << 20,
            cache_bytes: 32 << 20,
        }
    }
}

impl Codings {
    /// Whether a file of this type and size is compressed on the fly.
    pub(crate) fn compresses(&self, media_type: &str, size: u64) -> bool {
        let essence = media_type.split(';').next().unwrap_or_default().trim_end();
        let named = |known: &String| match known.strip_suffix('*') {
            Some(begin) => essence.get(..begin.len()).is_some_and(|text| text.eq_ignore_ascii_case(begin)),
            // RFC 9239 §6: these types are aliases. Configurations of other servers contain the
            // former types.
            None if FORMER_SCRIPTS.contains(&known.as_str()) => {
                essence.eq_ignore_ascii_case(known) || essence.eq_ignore_ascii_case("text/javascript")
            }
            None => essence.eq_ignore_ascii_case(known),
        };
        !self.made.is_empty() && (self.from..=self.up_to).contains(&size) && self.types.iter().any(named)
    }
}

/// Returns the suffix of a sibling's name in this coding.
pub(crate) fn suffix(coding: ContentCoding) -> &'static str {
    match coding {
        ContentCoding::Zstd => ".zst",
        ContentCoding::Brotli => ".br",
        ContentCoding::Gzip => ".gz",
        ContentCoding::Identity => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_sizes_decide_about_compression() {
        let codings = Codings { made: vec![ContentCoding::Gzip], from: 10, up_to: 20, ..Codings::default() };
        for (media_type, size, expected) in [
            ("text/html; charset=utf-8", 10, true),
            ("TEXT/plain", 20, true),
            ("text/html", 9, false),
            ("text/html", 21, false),
            ("image/svg+xml; charset=utf-8", 15, true),
            ("image/png", 15, false),
            ("application/json ; charset=utf-8", 15, true),
            ("application/jsonx", 15, false),
            ("textual/html", 15, false),
            ("", 15, false),
        ] {
            assert_eq!(codings.compresses(media_type, size), expected, "{media_type} of {size} bytes");
        }
        for (known, media_type, expected) in [
            ("application/javascript", "text/javascript; charset=utf-8", true),
            ("application/x-javascript", "text/javascript", true),
            ("application/javascript", "application/javascript", true),
            ("application/javascript", "text/css", false),
            ("text/css", "text/javascript", false),
        ] {
            let codings = Codings { types: vec![known.to_owned()], ..codings.clone() };
            assert_eq!(codings.compresses(media_type, 15), expected, "{known}: {media_type}");
        }
        assert!(!Codings::default().compresses("text/html", 2000), "compression is off by default");
    }
}
