//! A page for a folder that has none: what is in it, for people and for programs.
//!
//! It is off by default. A folder is read beside the loop, and nothing of it is remembered: what is shown is
//! what is there.

mod page;

use std::cmp::Ordering;

use tenfold_http::condition::{self, Validators, Verdict};
use tenfold_http::negotiate;
use tenfold_http::response::{FieldName, FieldValue, ResponseHead};
use tenfold_http::{Head, Method, Out};
use tenfold_sys::directory::Entry;
use tenfold_sys::file::{FileError, Kind};

use crate::representation::digest;
use crate::respond::message;
use crate::respond::message::NOSNIFF;
use crate::respond::store;
use crate::respond::work::{Answered, Work};
use crate::rules::fields::Fields;
use crate::rules::path::{self, SitePath};
use crate::rules::policy::Effective;
use crate::{Outcome, Site};

const HTML: FieldValue<'static> = FieldValue::constant("text/html; charset=utf-8");
const JSON: FieldValue<'static> = FieldValue::constant("application/json");
/// The page has a style of its own and loads nothing: whatever a name might smuggle in, it does not run.
const POLICY: FieldValue<'static> = FieldValue::constant("default-src 'none'; style-src 'unsafe-inline'");
const VARY: FieldValue<'static> = FieldValue::constant("Accept");
/// Kept, and asked for again each time.
const REVALIDATE: FieldValue<'static> = FieldValue::constant("no-cache");

/// What is shown of a folder without an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listing {
    /// Nothing: 404.
    #[default]
    Off,
    /// A page; JSON for who prefers it by `Accept`.
    Html,
    /// JSON for everybody.
    Json,
}

/// By what a listing is sorted, as its query says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Order {
    by: By,
    descending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Name,
    Size,
    Date,
}

/// What is in a folder, in the order in which it is shown.
struct Folder {
    path: SitePath,
    order: Order,
    entries: Vec<Shown>,
    /// Names that were read at most, where there are more.
    cut: Option<usize>,
}

/// Something that can be asked for.
struct Shown {
    entry: Entry,
    /// Its address, relative to the folder.
    link: String,
}

impl Shown {
    fn is_folder(&self) -> bool {
        self.entry.facts.kind == Kind::Directory
    }
}

/// The path of a folder that was found at `canonical`.
pub(crate) fn path_of(canonical: &str, site: &Site) -> SitePath {
    match SitePath::parse_showing(canonical, &site.settings.routes.shown) {
        Ok(path) => path,
        Err(_) => unreachable!("what was found has a path"),
    }
}

/// Answers with what is in the folder with this path, when it has been read.
pub(crate) fn list(
    path: SitePath,
    listing: Listing,
    here: &Effective,
    site: &Site,
    request: &Head<'_>,
) -> Answered {
    let visible = site.settings.routes.shown.clone();
    let json = match listing {
        Listing::Json => true,
        Listing::Html | Listing::Off => prefers_json(request),
    };
    let order = Order::of(request.target.query.unwrap_or_default());
    let (root, most, here) = (site.root.clone(), site.settings.listing_entries, here.clone());
    let work = Work::new(
        move || {
            let found = root.entries(path.relative(), most, |name| path.child(name, &visible).is_some())?;
            let folder = Folder::new(path, &visible, order, found.entries, found.more.then_some(most));
            Ok(if json { page::json(&folder) } else { page::html(&folder) })
        },
        move |done: Result<String, FileError>, site, head, out| match done {
            Ok(body) => respond(&body, json, listing == Listing::Html, &here.fields, head, out).into(),
            Err(error) => {
                store::with(site, |store| store.refuse_unread(site, error.into(), &here, head, out))
            }
        },
    );
    Answered::Work(work)
}

/// Whether `Accept` gives JSON more weight than a page.
fn prefers_json(request: &Head<'_>) -> bool {
    let weight = |kind, subtype| negotiate::accepted(request.values("accept"), kind, subtype);
    weight("application", "json") > weight("text", "html")
}

fn respond(
    body: &str,
    json: bool,
    chosen: bool,
    fields: &Fields,
    request: &Head<'_>,
    out: &mut Out,
) -> Outcome {
    let choice = |head: &mut ResponseHead<'_>| {
        if chosen {
            head.field(FieldName::VARY, VARY);
        }
    };
    let etag = format!("\"{}\"", digest::of(body.as_bytes()));
    let tag = FieldValue::new(etag.as_bytes()).expect("a quoted run of digits is a field value");
    let verdict = condition::evaluate(request, Validators { etag: etag.as_bytes(), modified: None });
    let status = match verdict {
        Verdict::Proceed => 200,
        Verdict::NotModified => 304,
        Verdict::PreconditionFailed => {
            return message::with_fields(request, 412, out, |head| {
                choice(head);
                fields.write(head);
            });
        }
    };
    let mut head = ResponseHead::answering(request, status, out);
    if status == 200 {
        head.content_type(if json { JSON } else { HTML });
        head.content_length(body.len() as u64);
    }
    choice(&mut head);
    fields.own(&mut head, FieldName::ETAG, tag);
    fields.own(&mut head, FieldName::CACHE_CONTROL, REVALIDATE);
    if status == 200 {
        fields.own(&mut head, FieldName::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
        fields.own(&mut head, FieldName::constant("Content-Security-Policy"), POLICY);
    }
    fields.write(&mut head);
    head.end();
    if status != 200 || request.method == Method::Head {
        return Outcome::of(status, 0);
    }
    out.stage(body.as_bytes());
    Outcome::of(200, body.len() as u64)
}

impl Folder {
    fn new(
        path: SitePath,
        visible: &path::Shown,
        order: Order,
        entries: Vec<Entry>,
        cut: Option<usize>,
    ) -> Folder {
        let shown = |entry: Entry| {
            let folder = match entry.facts.kind {
                Kind::Special => return None,
                kind => kind == Kind::Directory,
            };
            let link = format!("./{}{}", path.child(&entry.name, visible)?, if folder { "/" } else { "" });
            Some(Shown { entry, link })
        };
        let mut entries: Vec<_> = entries.into_iter().filter_map(shown).collect();
        entries.sort_by_cached_key(|shown| (shown.entry.name.to_lowercase(), shown.entry.name.clone()));
        // Stable: what is equal stays in the order of names.
        entries.sort_by(|one, other| order.compare(one, other));
        Folder { path, order, entries, cut }
    }
}

impl Order {
    /// What a query such as `sort=size&order=desc` says; names from the first to the last where it says
    /// nothing that is understood.
    fn of(query: &str) -> Order {
        let mut order = Order { by: By::Name, descending: false };
        for pair in query.split('&') {
            match pair {
                "sort=name" => order.by = By::Name,
                "sort=size" => order.by = By::Size,
                "sort=date" => order.by = By::Date,
                "order=asc" => order.descending = false,
                "order=desc" => order.descending = true,
                _ => {}
            }
        }
        order
    }

    /// Folders stand before files, whatever the order.
    fn compare(self, one: &Shown, other: &Shown) -> Ordering {
        let (a, b) = (&one.entry.facts, &other.entry.facts);
        let by = match self.by {
            // They are sorted by name already; reversing is all that is left to do.
            By::Name if self.descending => {
                let key = |shown: &Shown| (shown.entry.name.to_lowercase(), shown.entry.name.clone());
                key(one).cmp(&key(other))
            }
            By::Name => Ordering::Equal,
            By::Size if one.is_folder() => Ordering::Equal,
            By::Size => a.size.cmp(&b.size),
            By::Date => a.modified.cmp(&b.modified),
        };
        let folders = other.is_folder().cmp(&one.is_folder());
        folders.then(if self.descending { by.reverse() } else { by })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_says_the_order_and_nonsense_says_nothing() {
        for (query, by, descending) in [
            ("", By::Name, false),
            ("sort=size", By::Size, false),
            ("sort=date&order=desc", By::Date, true),
            ("order=desc&x=y", By::Name, true),
            ("sort=colour&order=up&sort", By::Name, false),
        ] {
            assert_eq!(Order::of(query), Order { by, descending }, "{query}");
        }
    }
}
