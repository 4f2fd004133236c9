//! Values of other servers as values of Tenfold.

const YEAR: u64 = 365 * 24 * 60 * 60;

/// Returns the seconds of a time of nginx or Caddy, such as `30s`, `1h30m`, `1d` or `1y`; a bare number has the unit
/// `s`.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let mut all = 0u64;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = rest.get(..digits)?.parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let scale = match &rest[..letters] {
            "" | "s" => 1,
            "ms" => return (all == 0 && rest.len() == 2).then_some(number.div_ceil(1000)),
            "m" => 60,
            "h" => 60 * 60,
            "d" => 24 * 60 * 60,
            "w" => 7 * 24 * 60 * 60,
            "M" => 30 * 24 * 60 * 60,
            "y" => YEAR,
            _ => return None,
        };
        rest = rest[letters..].trim_start();
        all = all.checked_add(number.checked_mul(scale)?)?;
    }
    (!text.is_empty()).then_some(all)
}

/// Returns the bytes of a size such as `8k`, `1m` or `10MB`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text.get(..digits)?.parse().ok()?;
    let (thousand, binary) = (1000u64, 1024u64);
    let scale = match &*text[digits..].trim().to_ascii_lowercase() {
        "" | "b" => 1,
        "k" | "kib" => binary,
        "m" | "mib" => binary * binary,
        "g" | "gib" => binary * binary * binary,
        "kb" => thousand,
        "mb" => thousand * thousand,
        "gb" => thousand * thousand * thousand,
        _ => return None,
    };
    number.checked_mul(scale)
}

/// Returns a size as Tenfold writes it.
pub(crate) fn size(bytes: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, scale)| bytes != 0 && bytes.is_multiple_of(*scale)) {
        Some((unit, scale)) => format!("{} {unit}", bytes / scale),
        None => bytes.to_string(),
    }
}

/// Returns a time as Tenfold writes it.
pub(crate) fn time(seconds: u64) -> String {
    let units = [("h", 60 * 60), ("m", 60)];
    match units.iter().find(|(_, scale)| seconds != 0 && seconds.is_multiple_of(*scale)) {
        Some((unit, scale)) => format!("{}{unit}", seconds / scale),
        None => format!("{seconds}s"),
    }
}

/// Returns the value of `cache` for a lifetime. Caches ignore times above a year.
pub(crate) fn lifetime(seconds: u64) -> String {
    match seconds {
        0 => "revalidate".into(),
        _ => time(seconds.min(YEAR)),
    }
}

/// Returns the value of `cache` with the effect of a `Cache-Control`; `None` if only the field itself has it.
pub(crate) fn cache_control(value: &str) -> Option<String> {
    let lower = value.to_ascii_lowercase();
    let mut words: Vec<&str> = lower.split([',', ' ']).filter(|word| !word.is_empty()).collect();
    words.sort_unstable();
    let age = |word: &str| word.strip_prefix("max-age=")?.parse::<u64>().ok();
    match words.as_slice() {
        ["no-cache"] => Some("revalidate".into()),
        ["no-store"] => Some("no-store".into()),
        ["immutable", one, "public"] if age(one) == Some(YEAR) => Some("immutable".into()),
        [one] | [one, "public"] => age(one).map(lifetime),
        _ => None,
    }
}

/// Returns the value of `hsts` that sends exactly this field.
pub(crate) fn hsts(value: &str) -> Option<String> {
    let words: Vec<String> = value
        .split(';')
        .map(|word| word.trim().to_ascii_lowercase())
        .filter(|word| !word.is_empty())
        .collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["max-age=63072000", "includesubdomains", "preload"] => Some("preload".into()),
        ["max-age=31536000"] => Some("on".into()),
        [only] => Some(time(only.strip_prefix("max-age=")?.trim_matches('"').parse().ok()?)),
        _ => None,
    }
}

/// Returns the time of `access plus 1 month` or `A2592000` of Apache, or of `access 1 months` of lighttpd. A time after
/// the modification of a file has no equivalent.
pub(crate) fn expiry(text: &str) -> Option<u64> {
    if let Some(seconds) = text.strip_prefix(['A', 'a']).and_then(|digits| digits.parse().ok()) {
        return Some(seconds);
    }
    let mut words = text.split_whitespace().filter(|word| *word != "plus");
    if !matches!(words.next()?, "access" | "now") {
        return None;
    }
    let mut all = 0u64;
    while let Some(number) = words.next() {
        let unit = words.next()?;
        let scale = match unit.strip_suffix('s').unwrap_or(unit) {
            "second" => 1,
            "minute" => 60,
            "hour" => 60 * 60,
            "day" => 24 * 60 * 60,
            "week" => 7 * 24 * 60 * 60,
            "month" => 30 * 24 * 60 * 60,
            "year" => YEAR,
            _ => return None,
        };
        all = all.checked_add(number.parse::<u64>().ok()?.checked_mul(scale)?)?;
    }
    Some(all)
}

/// Returns the endings of names of a media type, for rules that other servers write by type.
pub(crate) fn endings(media_type: &str) -> Option<&'static [&'static str]> {
    const TABLE: &[(&[&str], &[&str])] = &[
        (&["text/css"], &["css"]),
        (&["text/javascript", "application/javascript", "application/x-javascript"], &["js", "mjs"]),
        (&["text/plain"], &["txt"]),
        (&["text/xml", "application/xml"], &["xml"]),
        (&["text/x-component"], &["htc"]),
        (&["text/x-cross-domain-policy"], &["crossdomain.xml"]),
        (&["text/markdown"], &["md"]),
        (&["text/vtt"], &["vtt"]),
        (&["text/vcard", "text/x-vcard"], &["vcf", "vcard"]),
        (&["text/calendar"], &["ics"]),
        (&["text/csv"], &["csv"]),
        (&["application/json"], &["json"]),
        (&["application/ld+json"], &["jsonld"]),
        (&["application/schema+json"], &["schema.json"]),
        (&["application/vnd.geo+json", "application/geo+json"], &["geojson"]),
        (&["application/manifest+json"], &["webmanifest"]),
        (&["text/cache-manifest"], &["appcache"]),
        (&["application/x-web-app-manifest+json"], &["webapp"]),
        (&["application/rss+xml"], &["rss"]),
        (&["application/atom+xml"], &["atom"]),
        (&["application/rdf+xml"], &["rdf"]),
        (&["application/xhtml+xml"], &["xhtml"]),
        (&["application/pdf"], &["pdf"]),
        (&["application/wasm"], &["wasm"]),
        (&["application/zip"], &["zip"]),
        (&["application/x-bb-appworld"], &["bbaw"]),
        (&["application/x-shockwave-flash"], &["swf"]),
        (&["image/jpeg", "image/jpg"], &["jpg", "jpeg"]),
        (&["image/png"], &["png"]),
        (&["image/apng"], &["apng"]),
        (&["image/gif"], &["gif"]),
        (&["image/webp"], &["webp"]),
        (&["image/avif"], &["avif"]),
        (&["image/avif-sequence"], &["avifs"]),
        (&["image/jxl"], &["jxl"]),
        (&["image/svg+xml"], &["svg", "svgz"]),
        (&["image/x-icon", "image/vnd.microsoft.icon", "image/ico"], &["ico", "cur"]),
        (&["image/bmp"], &["bmp"]),
        (&["image/tiff"], &["tif", "tiff"]),
        (&["audio/ogg"], &["ogg", "oga", "opus"]),
        (&["audio/mpeg"], &["mp3"]),
        (&["audio/wav", "audio/x-wav"], &["wav"]),
        (&["audio/mp4"], &["m4a"]),
        (&["video/mp4"], &["mp4", "m4v"]),
        (&["video/ogg"], &["ogv"]),
        (&["video/webm"], &["webm"]),
        (&["video/mpeg"], &["mpeg", "mpg"]),
        (&["video/quicktime"], &["mov"]),
        (&["font/woff", "application/font-woff", "application/x-font-woff"], &["woff"]),
        (&["font/woff2", "application/font-woff2"], &["woff2"]),
        (&["font/ttf", "font/truetype", "application/x-font-ttf"], &["ttf"]),
        (&["font/otf", "font/opentype", "application/x-font-otf"], &["otf"]),
        (&["font/eot", "application/vnd.ms-fontobject"], &["eot"]),
        (&["font/collection"], &["ttc"]),
    ];
    TABLE.iter().find(|(types, _)| types.contains(&media_type)).map(|(_, endings)| *endings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(
            (seconds("30"), seconds("1h30m"), seconds("1d"), seconds("1M")),
            (Some(30), Some(5400), Some(86_400), Some(2_592_000))
        );
        assert_eq!(
            (seconds("1500ms"), seconds(""), seconds("x"), seconds("1x")),
            (Some(2), None, None, None)
        );
        assert_eq!((seconds("99999999999999999999"), seconds("999999999999999y")), (None, None));
        assert_eq!(
            (bytes("8k"), bytes("1m"), bytes("10MB"), bytes("é")),
            (Some(8192), Some(1 << 20), Some(10_000_000), None)
        );
        assert_eq!(
            (time(5400), time(0), size(8192), size(1000)),
            ("90m".into(), "0s".into(), "8 KiB".into(), "1000".into())
        );
    }

    #[test]
    fn cache_control_is_a_word_or_a_time() {
        let read = |value| cache_control(value);
        assert_eq!(read("public, max-age=31536000, immutable"), Some("immutable".into()));
        assert_eq!(read("max-age=3600, public"), Some("1h".into()));
        assert_eq!(
            (read("no-cache"), read("no-store")),
            (Some("revalidate".into()), Some("no-store".into()))
        );
        assert_eq!((read("private, max-age=5"), read("no-cache, no-store")), (None, None));
        assert_eq!(hsts("max-age=63072000; includeSubDomains; preload"), Some("preload".into()));
        assert_eq!(
            (hsts("max-age=31536000"), hsts("max-age=300"), hsts("max-age=1; includeSubDomains")),
            (Some("on".into()), Some("5m".into()), None)
        );
        assert_eq!(
            (expiry("access plus 1 month"), expiry("A60"), expiry("modification plus 1 day")),
            (Some(2_592_000), Some(60), None)
        );
    }
}
