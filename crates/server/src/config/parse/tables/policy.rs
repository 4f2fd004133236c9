//! The keys of paths: in `[site]`, in a `[[host]]`, and in each `[[site.path]]` and `[[host.path]]`.

use std::time::Duration;

use tenfold_http::{FieldName, FieldValue};
use tenfold_site::{CacheControl, FieldEdit, Policy, TryFile};

use super::access::{AUTH, CORS, read_auth, read_cors};
use super::reader::{BadValue, GivenValue, ReadResult, Shape, TableKey, TableKeys, TableReader, keys};
use crate::config::parse::units::{duration, listing};

/// Every key, in the order of the book.
pub(crate) static POLICY: &[TableKey<Policy>] = keys! {
    "cache" Shape::Either(&[Shape::Word(&["immutable", "hashed", "revalidate", "no-store"]), Shape::Text("1h")]);
    "caching: immutable, hashed (if the file's name contains a hash), revalidate, no-store, or a time";
    |policy, given, _| policy.cache = Some(given.parse(cache)?);
"listing" Shape::Word(&["html", "json", "off"]);
    "the response for a folder without an index; overrides the setting of this name";
    |policy, given, _| policy.listing = Some(given.parse(listing)?);
"headers" Shape::Table(&HEADERS);
    "changes to response header fields";
    |policy, given, reader| HEADERS.read(given.table()?, &mut policy.fields, reader);
"charset" Shape::Either(&[Shape::Text("utf-8"), Shape::Off]);
    "the charset parameter of text types, or false for none; default: utf-8";
    |policy, given, _| policy.charset = Some(unless_off(given, |given| given.parse(charset))?);
"types" Shape::Map(".md", &Shape::Text("text/markdown"));
    "media types of files, by the end of their name (with its dot), the whole name, a pattern such as README*, or \"\" for names without an extension";
    |policy, given, _| read_types(policy, given)?;
"early-hints" Shape::Many(&Shape::Text("</site.css>; rel=preload; as=style"));
    "values of Link to send in a 103 response, and again in the final response";
    |policy, given, _| policy.early_hints = Some(early_hints(given)?);
"try-files" Shape::Many(&Shape::Text("{path}.html"));
    "files to try for a path, in order: {path}, {path}.html, {path}/, /index.html";
    |policy, given, _| policy.try_files = Some(try_files(given)?);
"fallback" Shape::Either(&[Shape::Text("/index.html"), Shape::Off]);
    "the file for paths without a file whose last part has no dot, for single-page applications";
    |policy, given, _| policy.fallback = Some(unless_off(given, |given| given.parse(tenfold_site::page_name))?);
"cors" Shape::Either(&[Shape::Table(&CORS), Shape::Off]);
    "access to responses for pages of other origins";
    |policy, given, reader| policy.cors = Some(unless_off(given, |given| read_cors(given, reader))?);
"auth" Shape::Either(&[Shape::Table(&AUTH), Shape::Off]);
    "basic authentication; use it on encrypted connections only";
    |policy, given, reader| policy.auth = Some(unless_off(given, |given| read_auth(given, reader))?);
};

/// The most hints for one path, because each request sends all of them.
const MOST_HINTS: usize = 16;
/// The most files to try, because each missing one costs a lookup.
const MOST_TRIED: usize = 8;

fn read_types(policy: &mut Policy, given: &GivenValue<'_>) -> ReadResult {
    for (name, media_type) in given.entries()? {
        let media_type = media_type.parse(media_type_of)?;
        policy.types.insert(name.text(), &media_type).map_err(|mend| name.wrong(mend))?;
    }
    Ok(())
}

fn early_hints(given: &GivenValue<'_>) -> Result<Vec<String>, BadValue> {
    let links = given.parse_each(|link| FieldEdit::add("Link", link).map(|_| link.to_owned()))?;
    match links.len() > MOST_HINTS {
        true => Err(given.wrong(format!("at most {MOST_HINTS} early hints are allowed"))),
        false => Ok(links),
    }
}

fn try_files(given: &GivenValue<'_>) -> Result<Vec<TryFile>, BadValue> {
    let files = given.parse_each(TryFile::new)?;
    match files.is_empty() || files.len() > MOST_TRIED {
        true => Err(given.wrong(format!("1 to {MOST_TRIED} files are tried"))),
        false => Ok(files),
    }
}

/// The value that `read` returns; `None` for `false`.
fn unless_off<T>(
    given: &GivenValue<'_>,
    read: impl FnOnce(&GivenValue<'_>) -> Result<T, BadValue>,
) -> Result<Option<T>, BadValue> {
    if given.is_off() { Ok(None) } else { read(given).map(Some) }
}

fn charset(text: &str) -> Result<String, String> {
    let legal =
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte));
    if legal {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is not the name of a charset, such as utf-8"))
    }
}

fn media_type_of(text: &str) -> Result<String, String> {
    let essence = text.split(';').next().unwrap_or_default().trim_end();
    let legal = matches!(essence.split_once('/'), Some((kind, name)) if is_token(kind) && is_token(name));
    if legal && FieldValue::new(text.as_bytes()).is_some() {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is not a media type, such as text/markdown"))
    }
}

fn is_token(text: &str) -> bool {
    FieldName::new(text).is_some()
}

/// `headers`
static HEADERS: TableKeys<Vec<FieldEdit>> = TableKeys {
    of: "headers",
    own: keys! {
        "set" Shape::Map("X-Frame-Options", &Shape::Text("DENY"));
            "fields to send with this value only";
            |edits, given, reader| each_field(edits, given, reader, FieldEdit::set)?;
        "add" Shape::Map("Link", &Shape::Many(&Shape::Text("</site.css>; rel=preload; as=style")));
            "fields to send in addition to others of the same name";
            |edits, given, reader| each_field(edits, given, reader, FieldEdit::add)?;
        "remove" Shape::Many(&Shape::Text("ETag"));
            "fields to remove";
            |edits, given, _| edits.extend(given.parse_each(FieldEdit::remove)?);
    },
    policy: None,
};

fn each_field(
    edits: &mut Vec<FieldEdit>,
    given: &GivenValue<'_>,
    reader: &TableReader<'_>,
    edit: fn(&str, &str) -> Result<FieldEdit, String>,
) -> ReadResult {
    for (name, values) in given.entries()? {
        // In TOML, every key after the head of a table belongs to that table.
        if (reader.is_setting)(name.text()) {
            return Err(name.wrong(format!(
                "{} is a setting of the whole server: write it above all tables, or a header field of this name with a capital",
                name.text()
            )));
        }
        // The message for an invalid name omits the value, which may be secret.
        FieldEdit::add(name.text(), "x")
            .or_else(|_| edit(name.text(), "x"))
            .map_err(|mend| name.wrong(mend))?;
        edits.extend(values.parse_each(|value| edit(name.text(), value))?);
    }
    Ok(())
}

fn cache(text: &str) -> Result<CacheControl, String> {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    Ok(match text {
        "immutable" => CacheControl::Immutable,
        "hashed" => CacheControl::Hashed,
        "revalidate" => CacheControl::Revalidate,
        "no-store" => CacheControl::NoStore,
        time => match duration(time, Duration::from_secs(1)..=YEAR) {
            Ok(time) => CacheControl::MaxAge(u32::try_from(time.as_secs()).unwrap_or(u32::MAX)),
            Err(why) => {
                return Err(format!("{why}, and neither immutable, hashed, revalidate nor no-store"));
            }
        },
    })
}
