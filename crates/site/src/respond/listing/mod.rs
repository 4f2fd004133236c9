//! A listing for a folder without an index: an HTML page, or JSON for programs.
//!
//! Listings are off by default. A folder is read outside the loop and never cached, so a listing is always
//! current.

pub(crate) mod archive;
mod folder;
mod links;
mod natural;
pub(crate) mod page;
mod readme;
mod view;

use std::sync::{Arc, LazyLock};

use tenfold_http::semantics::condition::{self, ConditionResult, Validators};
use tenfold_http::semantics::negotiate;
use tenfold_http::{FieldName, FieldValue, Method, Part, Request, ResponseHead, ResponseWriter};
use tenfold_sys::file::{FileError, Root};
use tenfold_sys::resolved_path::Identity;

use crate::cache::unsent;
use crate::files::protection::Protection;
use crate::representation::status_text::{self, NOSNIFF};
use crate::representation::summary::ResponseSummary;
use crate::representation::tags::digest;
use crate::representation::variant::JOINED_UP_TO;
use crate::respond::message;
use crate::rules::access::Guard;
use crate::rules::fields::ResponseFields;
use crate::rules::path::{SitePath, is_hidden, url_name};
use crate::rules::policy::Listing;
use crate::rules::routes::Routes;
use crate::site::Site;
use archive::{Packing, REVALIDATE};
use folder::FolderEntries;
use links::FolderLinks;
use view::View;

const HTML: FieldValue<'static> = FieldValue::constant("text/html; charset=utf-8");
const JSON: FieldValue<'static> = FieldValue::constant("application/json");
/// The policy of the page. Only its own style and script apply, so a script injected by a file name does not run.
static POLICY: LazyLock<String> = LazyLock::new(page::policy);
const VARY: FieldValue<'static> = FieldValue::constant("Accept");

/// A folder to read.
pub(crate) struct Reading {
    links: FolderLinks,
    root: Arc<Root>,
    view: View,
    /// Whether the page has a link to an archive.
    archives: bool,
    /// The name of the root on the page.
    root_name: String,
    /// The most names to read.
    most: usize,
    json: bool,
    /// Whether `Accept` chose the format.
    chosen: bool,
    /// For the text below the list.
    protection: Protection,
    routes: Routes,
}

/// A listing, ready to be sent.
pub(crate) struct ListingBody {
    body: String,
    /// The entity tag, quoted.
    tag: String,
    json: bool,
    chosen: bool,
}

impl Reading {
    /// Returns the folder found at `canonical`, in the format and view of the request.
    pub(crate) fn of(canonical: &str, listing: Listing, site: &Site, request: &Request<'_>) -> Reading {
        let routes = &site.settings.routes;
        let links = match SitePath::parse_showing(canonical, &routes.shown) {
            Ok(requested) => FolderLinks::new(requested, routes),
            Err(_) => unreachable!("a path that was found is valid"),
        };
        let json = match listing {
            Listing::Json => true,
            Listing::Html | Listing::Off => prefers_json(request),
        };
        let view = View::of(request.target.query.unwrap_or_default());
        let root = Arc::clone(site.files.roots.of(links.folder.relative()));
        let most = site.settings.listing_entries;
        let (chosen, protection) = (listing == Listing::Html, site.files.protection.clone());
        let (archives, root_name) = (site.settings.archives, site.settings.root_name.clone());
        Reading {
            links,
            root,
            view,
            archives,
            root_name,
            most,
            json,
            chosen,
            protection,
            routes: routes.clone(),
        }
    }

    /// Returns the packing of the folder.
    pub(crate) fn packing(&self, site: &Site) -> Packing {
        Packing::of(&self.links.folder, site)
    }

    /// Returns the path of the folder beneath the root.
    pub(crate) fn folder(&self) -> &str {
        self.links.folder.relative()
    }

    /// Reads the folder. It must still be `folder`, whose guard admitted the client: another folder may have
    /// its name by now.
    pub(crate) fn read(self, folder: Identity, guard: &Guard) -> Result<ListingBody, FileError> {
        let Reading { links, root, view, archives, root_name, most, json, chosen, protection, routes } = self;
        let mut nameless = 0;
        let found = root.entries(links.folder.relative(), most, |name| match url_name(name) {
            Some(name) => links.to(name, false).is_some(),
            None => {
                nameless += usize::from(!is_hidden(name));
                false
            }
        })?;
        if found.identity != folder {
            return Err(FileError::Absent);
        }
        let readme = match json {
            true => None,
            false => readme::of(&found.entries, &links.folder, &root, &protection, &routes, guard),
        };
        let cut = found.more.then_some(most);
        let folder = FolderEntries::new(links, view, found.entries, cut, nameless, readme);
        let body = if json { page::json(&folder) } else { page::html(&folder, archives, &root_name) };
        let tag = format!("\"{}\"", digest(body.as_bytes()));
        Ok(ListingBody { body, tag, json, chosen })
    }
}

/// Whether `Accept` gives JSON more weight than a page.
fn prefers_json(request: &Request<'_>) -> bool {
    let weight = |kind, subtype| negotiate::accepted(request.values("accept"), kind, subtype);
    weight("application", "json") > weight("text", "html")
}

impl ListingBody {
    /// Answers with the page and these fields.
    pub(crate) fn respond(
        &self,
        fields: &ResponseFields,
        request: &Request<'_>,
        response: &mut ResponseWriter<'_>,
    ) -> ResponseSummary {
        let choice = |head: &mut ResponseHead<'_>| {
            if self.chosen {
                head.field(FieldName::VARY, VARY);
            }
        };
        let etag = self.tag.as_bytes();
        let tag = FieldValue::new(etag).expect("a quoted run of digits is a field value");
        let verdict = condition::evaluate(request, Validators { etag, modified: None });
        let status = match verdict {
            ConditionResult::Proceed => 200,
            ConditionResult::NotModified => 304,
            ConditionResult::PreconditionFailed => {
                return status_text::with_fields(request, 412, "", response, |head| {
                    choice(head);
                    fields.write(head);
                });
            }
        };
        let is_sent = status == 200 && request.method != Method::Head;
        let mut shared = None;
        if is_sent && self.body.len() > JOINED_UP_TO {
            shared = unsent::PAGES.share(self.tag.clone(), self.body.len(), || self.body.as_bytes().into());
            if shared.is_none() && self.body.len() >= unsent::LONG {
                return message::unavailable(request, response);
            }
        }
        let mut head = response.head(status);
        if status == 200 {
            head.content_type(if self.json { JSON } else { HTML });
            head.content_length(self.body.len() as u64);
        }
        choice(&mut head);
        fields.own(&mut head, FieldName::ETAG, tag);
        fields.own(&mut head, FieldName::CACHE_CONTROL, REVALIDATE);
        if status == 200 {
            fields.own(&mut head, FieldName::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
            let policy = FieldValue::new(POLICY.as_bytes()).expect("words and digests are a field value");
            fields.own(&mut head, FieldName::constant("Content-Security-Policy"), policy);
        }
        fields.write(&mut head);
        head.end();
        if !is_sent {
            return ResponseSummary::of(status, 0);
        }
        match shared {
            Some(page) => {
                response.push(Part::Shared(Arc::clone(&page.content), 0..page.content.len()));
                response.observe(Box::new(|_| drop(page)));
            }
            None => response.body(self.body.as_bytes()),
        }
        ResponseSummary::of(200, self.body.len() as u64)
    }
}
