//! The steps from a request to its response, if the store has no response for it.
//!
//! The rules decide first. Then the response comes from the store, from a file loaded now, or from an error.
//! Slow work runs on another thread, and the steps continue after it.

use std::sync::Arc;
use std::time::Duration;

use tenfold_http::{FieldName, HeaderLines, Instant, Method, Request, ResponseWriter, Version, clock};
use tenfold_sys::resolved_path::Identity;

use crate::files::absence::Absence;
use crate::files::try_paths::TryPaths;
use crate::reason::Reason;
use crate::representation::resource::{Loaded, Resource};
use crate::representation::status_text;
use crate::representation::summary::ResponseSummary;
use crate::respond::listing::archive::{Packing, Unpacked};
use crate::respond::listing::{Reading, archive};
use crate::respond::store::{self, ResponseStore};
use crate::respond::work::{Answered, Work};
use crate::respond::{message, negotiate};
use crate::rules::access::{Access, Denied, Guard, STRANGER};
use crate::rules::policy::{Effective, Listing};
use crate::rules::precheck::{EarlyResponse, Precheck, Route};
use crate::rules::realm::PasswordVerdict;
use crate::rules::settings::TagFrom;
use crate::site::Site;

/// A request to a site, with the worker's store and the present time.
pub(crate) struct ResponseSteps<'a> {
    store: &'a mut ResponseStore,
    site: &'a Site,
    request: &'a Request<'a>,
    access: &'a Access,
    now: Instant,
}

impl ResponseSteps<'_> {
    /// Runs `take` with the steps for a request of a client with this access.
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

    /// Answers a GET or HEAD.
    pub(crate) fn respond(&mut self, response: &mut ResponseWriter<'_>) -> Answered {
        let path = self.request.target.path;
        if let Some(resource) = self.store.memory.fresh(path, self.now)
            && !resource.plain.is_guarded(self.access)
        {
            return negotiate::respond(resource, path, self.site, self.request, response);
        }
        // If all paths and clients have the same policy, the path need not be parsed.
        if let Some(here) = self.site.settings.policies.only_policy()
            && let Some(answered) = self.recall(path, here, response)
        {
            return answered;
        }
        self.respond_by_rules(response)
    }

    /// Answers a GET or HEAD from the first step.
    fn respond_by_rules(&mut self, response: &mut ResponseWriter<'_>) -> Answered {
        let Precheck { here, fields, route } = Precheck::of(&self.site.settings, self.request, self.access);
        response.add_fields(&fields);
        let answered = match route {
            Ok(route) => self.look(&route, &here, response),
            Err(EarlyResponse::Denied(denied)) => self.deny(denied, &here, response),
            Err(EarlyResponse::Error(status, reason)) => {
                self.error(status, &here, response).with_reason(reason).into()
            }
            Err(EarlyResponse::Redirect(status, location)) => {
                response.add_fields(&here.of_errors);
                message::redirect(self.request, status, &location, response).into()
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
            Absence::NotFound(why) => {
                let listing = here.policy.listing.unwrap_or(site.settings.listing);
                site.files.without_index(route, why, listing, &site.settings)
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

    /// Answers with a file that was just loaded, and caches it.
    fn take(&mut self, canonical: &str, mut loaded: Loaded, response: &mut ResponseWriter<'_>) -> Answered {
        let answered = negotiate::respond(&mut loaded.resource, canonical, self.site, self.request, response);
        self.store.keep(canonical, loaded, self.now);
        answered
    }

    /// Answers with an open file or an absence that the store has cached.
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
        let (status, reason, failure) = match absence {
            Absence::NotFound(reason) => (404, reason, None),
            Absence::Unlisted => {
                let advice = format!(
                    "\nThis folder has no {}. To list its files, start the server with --listing html.\n",
                    self.site.settings.index.join(" or ")
                );
                let summary = self.error_with(404, &advice, here, response);
                return summary.with_reason(Reason::Unlisted).into();
            }
            Absence::Forbidden(reason) => (403, reason, None),
            Absence::Directory => {
                response.add_fields(&here.of_errors);
                return message::to_directory(self.request, canonical, response).into();
            }
            Absence::Listed(listing) => return self.list(canonical, listing, here, response),
            Absence::Exhausted(errno) => {
                let mut again = HeaderLines::default();
                again.number(FieldName::RETRY_AFTER, 1);
                response.add_fields(&again);
                (503, Reason::Exhausted, Some(errno))
            }
            Absence::Failed(errno) => (500, Reason::Failed, Some(errno)),
        };
        let summary = self.error(status, here, response).with_reason(reason);
        failure.map_or(summary, |errno| summary.because(errno)).into()
    }

    /// Answers with the entries of a folder, which has a guard like a file. Listings are not cached.
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
                Ok(()) if site.settings.archives && archive::is_wanted(self.request) => {
                    pack(reading.packing(site), folder, guard, here.clone())
                }
                Ok(()) => list(reading, folder, guard, here.clone()),
                Err(denied) => self.deny(denied, here, response),
            },
            Ok((None, _)) => self.refuse(Absence::NotFound(Reason::NoFile), canonical, here, response),
            Err(absence) => self.refuse(absence, canonical, here, response),
        }
    }

    /// Answers a client without the required credentials, or returns the work that checks them.
    fn deny(&mut self, denied: Denied, here: &Effective, response: &mut ResponseWriter<'_>) -> Answered {
        match denied {
            Denied::Unauthorized(realm) => {
                let mut challenge = HeaderLines::default();
                challenge.field(FieldName::constant("WWW-Authenticate"), realm.challenge());
                response.add_fields(&challenge);
                self.error(401, here, response).into()
            }
            // The steps start again after this work, and add their own fields.
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

    /// Answers a method that sites do not serve.
    pub(crate) fn method_not_allowed(&mut self, response: &mut ResponseWriter<'_>) -> ResponseSummary {
        let mut allowed = HeaderLines::default();
        allowed.field(FieldName::ALLOW, message::ALLOWED);
        response.add_fields(&allowed);
        self.error(405, self.site.settings.policies.unknown(), response)
    }

    /// Answers with an error: with the site's own page, if it has one.
    fn error(&mut self, status: u16, here: &Effective, response: &mut ResponseWriter<'_>) -> ResponseSummary {
        self.error_with(status, "", here, response)
    }

    /// The same, with this advice if the site has no page for the status.
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
            _ => status_text::with_fields(self.request, status, advice, response, |_| {}),
        }
    }
}

/// Sends early hints to clients that support interim responses (RFC 8297 §2).
fn hint(here: &Effective, request: &Request<'_>, response: &mut ResponseWriter<'_>) {
    if let Some(hints) = &here.hints
        && request.version >= Version::Http11
        && request.method == Method::Get
    {
        response.early_hints(hints);
    }
}

/// Reads the content of a file that was just loaded, for its tag, and answers with the file. If the file
/// changes meanwhile, or the queue of work is full, the response has the former tag, and the next request
/// loads the file again.
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

/// Reads a folder, and answers with its entries.
fn list(reading: Reading, folder: Identity, guard: Guard, here: Effective) -> Answered {
    let work = Work::new(
        move || reading.read(folder, &guard),
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

/// Collects the files of a folder, and answers with them as an archive.
fn pack(packing: Packing, folder: Identity, guard: Guard, here: Effective) -> Answered {
    let work = Work::new(
        move || packing.pack(folder, &guard),
        move |archive, site, request, response| match archive {
            Ok(archive) => archive.respond(&here.fields, site, request, response).into(),
            Err(Unpacked::Busy) => message::unavailable(request, response).into(),
            Err(Unpacked::TooLarge) => {
                archive::too_large(site.settings.listing_entries, request, response).into()
            }
            Err(Unpacked::Failed(error)) => {
                let path = request.target.path;
                ResponseSteps::with(site, request, &STRANGER, |steps| {
                    steps.refuse(error.into(), path, &here, response)
                })
            }
        },
    );
    Answered::Work(work)
}
