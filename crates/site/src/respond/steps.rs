//! The steps from a request to its response, if the response is not ready in memory.
//!
//! The rules decide first. Then the response comes from the store, from a file that is loaded now, or from an
//! error; work that takes long is done on another thread, and the steps go on after it.

use std::sync::Arc;
use std::time::Duration;

use tenfold_http::{FieldName, HeaderLines, Instant, Method, Request, ResponseWriter, Version, clock};
use tenfold_sys::resolved_path::Identity;

use crate::files::absence::Absence;
use crate::files::try_paths::TryPaths;
use crate::representation::resource::{Loaded, Resource};
use crate::representation::status_text;
use crate::representation::summary::ResponseSummary;
use crate::respond::listing::Reading;
use crate::respond::store::{self, ResponseStore};
use crate::respond::work::{Answered, Work};
use crate::respond::{message, negotiate};
use crate::rules::access::{Access, Denied, STRANGER};
use crate::rules::policy::{Effective, Listing};
use crate::rules::precheck::{EarlyResponse, Precheck, Route};
use crate::rules::realm::PasswordVerdict;
use crate::rules::settings::TagFrom;
use crate::site::Site;

/// A request to a site, and the store and the time at which it is answered.
pub(crate) struct ResponseSteps<'a> {
    store: &'a mut ResponseStore,
    site: &'a Site,
    request: &'a Request<'a>,
    access: &'a Access,
    now: Instant,
}

impl ResponseSteps<'_> {
    /// Takes the steps for a request of a client with these facts.
    pub(crate) fn with<T>(
        site: &Site,
        request: &Request<'_>,
        access: &Access,
        take: impl FnOnce(&mut ResponseSteps<'_>) -> T,
    ) -> T {
        store::with_growth(site, |store| {
            take(&mut ResponseSteps { store, site, request, access, now: clock::now() })
        })
    }

    /// Answers any GET or HEAD.
    pub(crate) fn respond(&mut self, response: &mut ResponseWriter<'_>) -> Answered {
        let path = self.request.target.path;
        if let Some(resource) = self.store.memory.fresh(path, self.now)
            && !resource.plain.is_guarded(self.access)
        {
            return negotiate::respond(resource, path, self.site, self.request, response);
        }
        // One policy for all paths and clients needs no parsing of the path.
        if let Some(here) = self.site.settings.policies.alone()
            && let Some(answered) = self.recall(path, here, response)
        {
            return answered;
        }
        self.respond_by_rules(response)
    }

    /// Answers a GET or a HEAD from the first step.
    fn respond_by_rules(&mut self, response: &mut ResponseWriter<'_>) -> Answered {
        let Precheck { here, fields, route } = Precheck::of(&self.site.settings, self.request, self.access);
        response.add_fields(&fields);
        let answered = match route {
            Ok(route) => self.look(&route, &here, response),
            Err(EarlyResponse::Denied(denied)) => self.deny(denied, &here, response),
            Err(EarlyResponse::Error(status)) => self.error(status, &here, response).into(),
            Err(EarlyResponse::Redirect(status, place)) => {
                response.add_fields(&here.of_errors);
                message::redirect(self.request, status, &place, response).into()
            }
        };
        answered.adding(response.take_fields())
    }

    /// Answers with the file on this route.
    fn look(&mut self, route: &Route, here: &Effective, response: &mut ResponseWriter<'_>) -> Answered {
        let (site, key) = (self.site, route.path.canonical());
        let opened = route.rewritten.as_ref().unwrap_or(&route.path);
        let paths = TryPaths::of(opened, here, &site.settings);
        if let Some(watch) = &site.watch {
            paths.names().for_each(|name| watch.follow(&site.files.roots, name, &mut self.store.listener));
        }
        self.store.check(key, &paths, site, self.now);
        if let Some(resource) = self.store.memory.fresh(key, self.now) {
            if let Err(denied) = self.access.admit(resource.guard(), here, self.request) {
                return self.deny(denied, here, response);
            }
            hint(here, self.request, response);
            return negotiate::respond(resource, key, site, self.request, response);
        }
        if let Some(answered) = self.recall(key, here, response) {
            return answered;
        }
        let loaded = self.store.load(&paths, here, site).map_err(|absence| match absence {
            Absence::NotFound => {
                let listing = here.policy.listing.unwrap_or(site.settings.listing);
                site.files.without_index(route, listing, &site.settings)
            }
            absence => absence,
        });
        match loaded {
            Ok(loaded) => {
                if let Err(denied) = self.access.admit(loaded.resource.guard(), here, self.request) {
                    return self.deny(denied, here, response);
                }
                hint(here, self.request, response);
                let settings = &site.settings;
                let size = loaded.resource.plain.facts().size;
                if settings.tags == TagFrom::Content && size <= settings.tags_up_to {
                    return tag(key, loaded, site);
                }
                self.take(key, loaded, response)
            }
            Err(absence) => {
                if !matches!(absence, Absence::Exhausted(_) | Absence::Failed(_)) {
                    self.store.absent.insert(key, absence, 0, self.now);
                }
                self.refuse(absence, key, here, response)
            }
        }
    }

    /// Answers with a file that was loaded, and caches it.
    fn take(&mut self, canonical: &str, mut loaded: Loaded, response: &mut ResponseWriter<'_>) -> Answered {
        let answered = negotiate::respond(&mut loaded.resource, canonical, self.site, self.request, response);
        self.store.keep(canonical, loaded, self.now);
        answered
    }

    /// Answers with an open file, or with the absence of one, if the store has it.
    fn recall(
        &mut self,
        canonical: &str,
        here: &Effective,
        response: &mut ResponseWriter<'_>,
    ) -> Option<Answered> {
        if let Some(resource) = self.store.files.fresh(canonical, self.now) {
            if let Err(denied) = self.access.admit(resource.guard(), here, self.request) {
                return Some(self.deny(denied, here, response));
            }
            hint(here, self.request, response);
            return Some(negotiate::respond(resource, canonical, self.site, self.request, response));
        }
        let absence = *self.store.absent.fresh(canonical, self.now)?;
        Some(self.refuse(absence, canonical, here, response))
    }

    fn refuse(
        &mut self,
        absence: Absence,
        canonical: &str,
        here: &Effective,
        response: &mut ResponseWriter<'_>,
    ) -> Answered {
        let (status, failure) = match absence {
            Absence::NotFound => (404, None),
            Absence::Unlisted => {
                let advice = format!(
                    "\nThis folder has no {}. To list its files, start the server with --listing html.\n",
                    self.site.settings.index.join(" or ")
                );
                return self.error_with(404, &advice, here, response).into();
            }
            Absence::Forbidden => (403, None),
            Absence::Directory => {
                response.add_fields(&here.of_errors);
                return message::to_directory(self.request, canonical, response).into();
            }
            Absence::Listed(listing) => return self.list(canonical, listing, here, response),
            Absence::Exhausted(errno) => {
                let mut again = HeaderLines::default();
                again.number(FieldName::RETRY_AFTER, 1);
                response.add_fields(&again);
                (503, Some(errno))
            }
            Absence::Failed(errno) => (500, Some(errno)),
        };
        let summary = self.error(status, here, response);
        failure.map_or(summary, |errno| summary.because(errno)).into()
    }

    /// Answers with the entries of a folder, which has a guard like a file. They are not cached.
    fn list(
        &mut self,
        canonical: &str,
        listing: Listing,
        here: &Effective,
        response: &mut ResponseWriter<'_>,
    ) -> Answered {
        let site = self.site;
        let reading = Reading::of(canonical, listing, site, self.request);
        let name = reading.folder();
        let found = site.files.roots.of(name).look(name).map_err(Absence::from);
        let guarded = found.and_then(|facts| {
            let guard = site.files.protection.guard(name, &facts)?;
            Ok((guard, facts.identity()))
        });
        match guarded {
            Ok((Some(guard), folder)) => match self.access.admit(&guard, here, self.request) {
                Ok(()) => list(reading, folder, here.clone()),
                Err(denied) => self.deny(denied, here, response),
            },
            Ok((None, _)) => self.refuse(Absence::NotFound, canonical, here, response),
            Err(absence) => self.refuse(absence, canonical, here, response),
        }
    }

    /// Answers a client that is not let in, or asks for the work that decides it.
    fn deny(&mut self, denied: Denied, here: &Effective, response: &mut ResponseWriter<'_>) -> Answered {
        match denied {
            Denied::Unauthorized(realm) => {
                let mut challenge = HeaderLines::default();
                challenge.field(FieldName::constant("WWW-Authenticate"), realm.challenge());
                response.add_fields(&challenge);
                self.error(401, here, response).into()
            }
            // The steps after this work start anew, and add their own fields.
            Denied::MembersOnly => {
                response.take_fields();
                Answered::Work(Work::membership())
            }
            Denied::Unverified(realm, credentials) => {
                response.take_fields();
                let (access, verifier) = (self.access.clone(), Arc::clone(&realm));
                Answered::Work(Work::verifying(
                    move |attempts| verifier.verify(&credentials, attempts),
                    move |verdict, site, request, response| match verdict {
                        PasswordVerdict::Throttled(seconds) => {
                            message::too_many_requests(request, Duration::from_secs(seconds), response).into()
                        }
                        PasswordVerdict::Right | PasswordVerdict::Wrong => {
                            let access = access.with(realm, verdict == PasswordVerdict::Right);
                            ResponseSteps::with(site, request, &access, |steps| {
                                steps.respond_by_rules(response)
                            })
                        }
                    },
                ))
            }
        }
    }

    /// Answers a method that a site does not serve.
    pub(crate) fn method_not_allowed(&mut self, response: &mut ResponseWriter<'_>) -> ResponseSummary {
        let mut allowed = HeaderLines::default();
        allowed.field(FieldName::ALLOW, message::ALLOWED);
        response.add_fields(&allowed);
        self.error(405, self.site.settings.policies.everywhere(), response)
    }

    /// Answers with an error: with the site's own page if it has one.
    fn error(&mut self, status: u16, here: &Effective, response: &mut ResponseWriter<'_>) -> ResponseSummary {
        self.error_with(status, "", here, response)
    }

    /// The same, with this advice if the site has no page.
    fn error_with(
        &mut self,
        status: u16,
        advice: &str,
        here: &Effective,
        response: &mut ResponseWriter<'_>,
    ) -> ResponseSummary {
        response.add_fields(&here.of_errors);
        match self.store.pages.of(status, self.site, self.now) {
            Some(page) if self.access.permits(page.guard(), self.request) => {
                page.whole(self.request, response)
            }
            _ => status_text::explained(self.request, status, advice, response),
        }
    }
}

/// Sends early hints to clients that understand interim responses (RFC 8297 §2).
fn hint(here: &Effective, request: &Request<'_>, response: &mut ResponseWriter<'_>) {
    if let Some(hints) = &here.hints
        && request.version >= Version::Http11
        && request.method == Method::Get
    {
        response.early_hints(hints);
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
        move |digests, site, request, response| {
            let Loaded { resource, keep } = &*loaded;
            let loaded = match digests {
                Some(digests) => Loaded { resource: resource.tagged(&digests), keep: *keep },
                None => Loaded { resource: resource.clone(), keep: false },
            };
            ResponseSteps::with(site, request, &STRANGER, |steps| steps.take(&key, loaded, response))
        },
    );
    Answered::Work(work.or_else(move |site, request, response| {
        let Resource { plain, encodings, .. } = &otherwise.resource;
        match encodings {
            None => plain.clone().respond(request, &site.settings, response),
            Some(_) => negotiate::plain_or_unavailable(plain, site, request, response),
        }
    }))
}

/// Answers with the entries of a folder, after it has been read.
fn list(reading: Reading, folder: Identity, here: Effective) -> Answered {
    let work = Work::new(
        move || reading.read(folder),
        move |page, site, request, response| match page {
            Ok(page) => page.respond(&here.fields, request, response).into(),
            Err(error) => {
                let path = request.target.path;
                ResponseSteps::with(site, request, &STRANGER, |steps| {
                    steps.refuse(error.into(), path, &here, response)
                })
            }
        },
    );
    Answered::Work(work)
}
