//! The steps from a request to its response, if the response is not ready in memory.
//!
//! The rules decide first. Then the response comes from the store, from a file that is loaded now, or from an
//! error; work that takes long is done on another thread, and the steps go on after it.

use std::sync::Arc;
use std::time::Duration;

use tenfold_http::response::{FieldName, Lines};
use tenfold_http::{Head, Instant, Method, Out, Version, clock};

use crate::files::absence::Absence;
use crate::files::try_paths::TryPaths;
use crate::representation::resource::{Loaded, Resource};
use crate::representation::status_text;
use crate::representation::summary::ResponseSummary;
use crate::respond::listing::Reading;
use crate::respond::store::{self, Store};
use crate::respond::work::{Answered, Work};
use crate::respond::{message, negotiate};
use crate::rules::access::{Access, Denied, STRANGER};
use crate::rules::policy::{Effective, Listing};
use crate::rules::precheck::{EarlyResponse, Precheck, Route};
use crate::rules::realm::Verdict;
use crate::rules::settings::TagFrom;
use crate::site::Site;

/// A request to a site, and the time at which it is answered.
#[derive(Clone, Copy)]
struct Asked<'a> {
    site: &'a Site,
    head: &'a Head<'a>,
    access: &'a Access,
    now: Instant,
}

/// Answers with a file that was found under `key`, in the encoding that suits.
fn answer(resource: &mut Resource, key: &str, asked: Asked<'_>, out: &mut Out) -> Answered {
    negotiate::respond(resource, key, asked.site, asked.head, out)
}

impl Store {
    /// Answers any GET or HEAD.
    pub(crate) fn respond(
        &mut self,
        site: &Site,
        access: &Access,
        head: &Head<'_>,
        out: &mut Out,
    ) -> Answered {
        let asked = Asked { site, head, access, now: clock::now() };
        match self.memory.fresh(head.target.path, asked.now) {
            Some(resource) if !resource.plain.is_guarded(access) => {
                answer(resource, head.target.path, asked, out)
            }
            _ => self.respond_without_memory(asked, out),
        }
    }

    /// Answers a GET or a HEAD of a client with these facts, from the first step.
    fn respond_to(&mut self, site: &Site, head: &Head<'_>, access: &Access, out: &mut Out) -> Answered {
        let asked = Asked { site, head, access, now: clock::now() };
        let Precheck { here, fields, route } = Precheck::of(&site.settings, head, access);
        out.add_fields(&fields);
        let answered = match route {
            Ok(route) => self.look(&route, &here, asked, out),
            Err(EarlyResponse::Denied(denied)) => self.deny(denied, &here, asked, out),
            Err(EarlyResponse::Error(status)) => self.error(status, &here, asked, out).into(),
            Err(EarlyResponse::Redirect(status, place)) => {
                out.add_fields(&here.of_errors);
                message::redirect(head, status, &place, out).into()
            }
        };
        answered.adding(out.take_fields())
    }

    fn respond_without_memory(&mut self, asked: Asked<'_>, out: &mut Out) -> Answered {
        // One policy for all paths and clients needs no parsing of the path.
        if let Some(here) = asked.site.settings.policies.alone()
            && let Some(answered) = self.recall(asked.head.target.path, here, asked, out)
        {
            return answered;
        }
        self.respond_to(asked.site, asked.head, asked.access, out)
    }

    /// Answers with the file on this route.
    fn look(&mut self, route: &Route, here: &Effective, asked: Asked<'_>, out: &mut Out) -> Answered {
        let (site, key) = (asked.site, route.path.canonical());
        let opened = route.rewritten.as_ref().unwrap_or(&route.path);
        let paths = TryPaths::of(opened, here, &site.settings);
        if let Some(watch) = &site.watch {
            paths.names().for_each(|name| watch.follow(&site.files.root, name, &mut self.listener));
        }
        self.check(key, &paths, site, asked.now);
        if let Some(resource) = self.memory.fresh(key, asked.now) {
            if let Err(denied) = asked.access.admit(resource.guard(), here, asked.head) {
                return self.deny(denied, here, asked, out);
            }
            hint(here, asked.head, out);
            return answer(resource, key, asked, out);
        }
        if let Some(answered) = self.recall(key, here, asked, out) {
            return answered;
        }
        let loaded = self.load(&paths, here, site).map_err(|absence| match absence {
            Absence::NotFound => {
                site.files.without_index(route, here.policy.listing.unwrap_or(site.settings.listing))
            }
            absence => absence,
        });
        match loaded {
            Ok(loaded) => {
                if let Err(denied) = asked.access.admit(loaded.resource.guard(), here, asked.head) {
                    return self.deny(denied, here, asked, out);
                }
                hint(here, asked.head, out);
                let settings = &site.settings;
                let size = loaded.resource.plain.facts().size;
                if settings.tags == TagFrom::Content && size <= settings.tags_up_to {
                    return tag(key, loaded, site);
                }
                self.take(key, loaded, asked, out)
            }
            Err(absence) => {
                if !matches!(absence, Absence::Exhausted(_) | Absence::Failed(_)) {
                    self.absent.insert(key, absence, 0, asked.now);
                }
                self.refuse(absence, key, here, asked, out)
            }
        }
    }

    /// Answers with a file that was loaded, and caches it.
    fn take(&mut self, canonical: &str, mut loaded: Loaded, asked: Asked<'_>, out: &mut Out) -> Answered {
        let answered = answer(&mut loaded.resource, canonical, asked, out);
        self.keep(canonical, loaded, asked.now);
        answered
    }

    /// Answers with an open file, or with the absence of one, if the store has it.
    fn recall(
        &mut self,
        canonical: &str,
        here: &Effective,
        asked: Asked<'_>,
        out: &mut Out,
    ) -> Option<Answered> {
        if let Some(resource) = self.files.fresh(canonical, asked.now) {
            if let Err(denied) = asked.access.admit(resource.guard(), here, asked.head) {
                return Some(self.deny(denied, here, asked, out));
            }
            hint(here, asked.head, out);
            return Some(answer(resource, canonical, asked, out));
        }
        let absence = *self.absent.fresh(canonical, asked.now)?;
        Some(self.refuse(absence, canonical, here, asked, out))
    }

    fn refuse(
        &mut self,
        absence: Absence,
        canonical: &str,
        here: &Effective,
        asked: Asked<'_>,
        out: &mut Out,
    ) -> Answered {
        let (status, failure) = match absence {
            Absence::NotFound => (404, None),
            Absence::Forbidden => (403, None),
            Absence::Directory => {
                out.add_fields(&here.of_errors);
                return message::to_directory(asked.head, canonical, out).into();
            }
            Absence::Listed(listing) => return self.list(canonical, listing, here, asked, out),
            Absence::Exhausted(errno) => {
                let mut again = Lines::default();
                again.number(FieldName::RETRY_AFTER, 1);
                out.add_fields(&again);
                (503, Some(errno))
            }
            Absence::Failed(errno) => (500, Some(errno)),
        };
        let outcome = self.error(status, here, asked, out);
        failure.map_or(outcome, |errno| outcome.because(errno)).into()
    }

    /// Answers with the entries of a folder, which has a guard like a file. They are not cached.
    fn list(
        &mut self,
        canonical: &str,
        listing: Listing,
        here: &Effective,
        asked: Asked<'_>,
        out: &mut Out,
    ) -> Answered {
        let site = asked.site;
        let reading = Reading::of(canonical, listing, site, asked.head);
        let name = reading.path.relative();
        let found = site.files.root.look(name).map_err(Absence::from);
        match found.and_then(|facts| site.files.protection.guard(name, &facts)) {
            Ok(Some(guard)) => match asked.access.admit(&guard, here, asked.head) {
                Ok(()) => list(reading, here.clone()),
                Err(denied) => self.deny(denied, here, asked, out),
            },
            Ok(None) => self.refuse(Absence::NotFound, canonical, here, asked, out),
            Err(absence) => self.refuse(absence, canonical, here, asked, out),
        }
    }

    /// Answers a client that is not let in, or asks for the work that decides it.
    fn deny(&mut self, denied: Denied, here: &Effective, asked: Asked<'_>, out: &mut Out) -> Answered {
        match denied {
            Denied::Unauthorized(realm) => {
                let mut challenge = Lines::default();
                challenge.field(FieldName::constant("WWW-Authenticate"), realm.challenge());
                out.add_fields(&challenge);
                self.error(401, here, asked, out).into()
            }
            // The steps after this work start anew, and add their own fields.
            Denied::MembersOnly => {
                out.take_fields();
                Answered::Work(Work::membership())
            }
            Denied::Unverified(realm, credentials) => {
                out.take_fields();
                let (access, verifier) = (asked.access.clone(), Arc::clone(&realm));
                Answered::Work(Work::verifying(
                    move |attempts| verifier.verify(&credentials, attempts),
                    move |verdict, site, head, out| match verdict {
                        Verdict::Throttled(seconds) => {
                            message::too_many_requests(head, Duration::from_secs(seconds), out).into()
                        }
                        Verdict::Right | Verdict::Wrong => {
                            let access = access.with(realm, verdict == Verdict::Right);
                            store::with(site, |store| store.respond_to(site, head, &access, out))
                        }
                    },
                ))
            }
        }
    }

    /// Answers a method that a site does not serve.
    pub(crate) fn method_not_allowed(
        &mut self,
        site: &Site,
        head: &Head<'_>,
        out: &mut Out,
    ) -> ResponseSummary {
        let mut allowed = Lines::default();
        allowed.field(FieldName::ALLOW, message::ALLOWED);
        out.add_fields(&allowed);
        let asked = Asked { site, head, access: &STRANGER, now: clock::now() };
        self.error(405, site.settings.policies.everywhere(), asked, out)
    }

    /// Answers with an error: with the site's own page if it has one.
    fn error(&mut self, status: u16, here: &Effective, asked: Asked<'_>, out: &mut Out) -> ResponseSummary {
        out.add_fields(&here.of_errors);
        match self.pages.of(status, asked.site, asked.now) {
            Some(page) if asked.access.permits(page.guard(), asked.head) => page.whole(asked.head, out),
            _ => status_text::plain(asked.head, status, out),
        }
    }

    /// Answers a malformed request with the site's own page for it, if it has one. The connection ends after it.
    /// Returns the length of the body.
    pub(crate) fn refuse_with_page(&mut self, site: &Site, status: u16, out: &mut Out) -> Option<u64> {
        let page = self.pages.of(status, site, clock::now()).filter(|page| page.guard().is_open());
        page.map(|page| page.last(out))
    }
}

/// Sends early hints to clients that understand interim responses (RFC 8297 §2).
fn hint(here: &Effective, request: &Head<'_>, out: &mut Out) {
    if let Some(hints) = &here.hints
        && (request.version, request.method) == (Version::Http11, Method::Get)
    {
        out.stage(hints);
    }
}

/// Answers with a file that was just loaded, after its content has been read for its tag. A file that changed
/// meanwhile is sent with the tag that it has, and loaded anew for the next request; so is a file if the queue
/// of work is full.
fn tag(key: &str, loaded: Loaded, site: &Site) -> Answered {
    let (key, cache) = (key.to_owned(), Arc::clone(&site.digests));
    let untagged = loaded.resource.untagged();
    let loaded = Arc::new(loaded);
    let otherwise = Arc::clone(&loaded);
    let work = Work::new(
        move || untagged.iter().map(|content| content.read(&cache)).collect::<Option<Vec<_>>>(),
        move |digests, site, head, out| {
            let Loaded { resource, keep } = &*loaded;
            let loaded = match digests {
                Some(digests) => Loaded { resource: resource.tagged(&digests), keep: *keep },
                None => Loaded { resource: resource.clone(), keep: false },
            };
            let asked = Asked { site, head, access: &STRANGER, now: clock::now() };
            store::with(site, |store| store.take(&key, loaded, asked, out))
        },
    );
    Answered::Work(work.or_else(move |site, head, out| {
        let Resource { plain, encodings, .. } = &otherwise.resource;
        match encodings {
            None => plain.clone().respond(head, &site.settings, out),
            Some(_) => negotiate::plain_or_unavailable(plain, site, head, out),
        }
    }))
}

/// Answers with the entries of a folder, after it has been read.
fn list(reading: Reading, here: Effective) -> Answered {
    let work = Work::new(
        move || reading.read(),
        move |page, site, head, out| match page {
            Ok(page) => page.respond(&here.fields, head, out).into(),
            Err(error) => {
                let asked = Asked { site, head, access: &STRANGER, now: clock::now() };
                store::with(site, |store| store.refuse(error.into(), head.target.path, &here, asked, out))
            }
        },
    );
    Answered::Work(work)
}
