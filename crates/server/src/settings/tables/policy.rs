//! The keys that hold for paths: in `[site]`, in a `[[host]]`, and in each `[[...path]]` of theirs.

use std::time::Duration;

use tenfold_site::{CacheControl, FieldEdit, Policy};

use super::{Given, Key, Keys, Shape, Wrong};
use crate::settings::units::duration;

/// Every key, in the order of the book.
pub(crate) static POLICY: &[Key<Policy>] = &[
    Key {
        name: "cache",
        shape: Shape::Either(&[
            Shape::Word(&["immutable", "hashed", "revalidate", "no-store"]),
            Shape::Text("1h"),
        ]),
        about: "what caches may do: immutable, hashed (by the file's name), revalidate, no-store, or a time",
        set: |policy, given, _| {
            policy.cache = Some(given.parse(cache)?);
            Ok(())
        },
    },
    Key {
        name: "headers",
        shape: Shape::Table(&HEADERS),
        about: "what is done to the fields of answers",
        set: |policy, given, reader| {
            HEADERS.read(given.table()?, &mut policy.fields, reader);
            Ok(())
        },
    },
];

/// `headers`
static HEADERS: Keys<Vec<FieldEdit>> = Keys {
    of: "headers",
    own: &[
        Key {
            name: "set",
            shape: Shape::Map("X-Frame-Options", &Shape::Text("DENY")),
            about: "fields that are sent with this value, and with no other",
            set: |edits, given, _| each_field(edits, given, FieldEdit::set),
        },
        Key {
            name: "add",
            shape: Shape::Map("Link", &Shape::Many(&Shape::Text("</site.css>; rel=preload; as=style"))),
            about: "fields that are sent beside others of their name",
            set: |edits, given, _| each_field(edits, given, FieldEdit::add),
        },
        Key {
            name: "remove",
            shape: Shape::Many(&Shape::Text("ETag")),
            about: "fields that are not sent",
            set: |edits, given, _| {
                edits.extend(given.parse_each(FieldEdit::remove)?);
                Ok(())
            },
        },
    ],
    policy: None,
};

fn each_field(
    edits: &mut Vec<FieldEdit>,
    given: &Given<'_>,
    edit: fn(&str, &str) -> Result<FieldEdit, String>,
) -> Result<(), Wrong> {
    for (name, values) in given.entries()? {
        // A name that is none is shown, and not its value.
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
