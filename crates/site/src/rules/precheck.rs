//! What is settled about a request before a file is looked for: where its path leads, what holds there, and
//! who asks.

use tenfold_http::Head;
use tenfold_http::response::Lines;

use crate::Site;
use crate::rules::access::{Access, Denied};
use crate::rules::cors;
use crate::rules::path::{PathError, SitePath};
use crate::rules::policy::Effective;

/// What was settled.
pub(crate) struct Front {
    /// What holds for the answer.
    pub(crate) here: Effective,
    /// Fields that the answer gets because of who asks.
    pub(crate) fields: Lines,
    pub(crate) way: Result<Way, Stop>,
}

/// Where a path leads.
pub(crate) struct Way {
    /// The path that was asked for: what is found is remembered under its one spelling.
    pub(crate) path: SitePath,
    /// The path that is looked at instead, where that is another one.
    pub(crate) rewritten: Option<SitePath>,
}

/// Why no file is looked for.
pub(crate) enum Stop {
    /// This error is the answer.
    Error(u16),
    /// The client is sent elsewhere.
    Redirect(u16, String),
    /// The client is not let in, or not yet.
    Denied(Denied),
}

impl Front {
    /// Settles it for a GET or a HEAD of a client of which this is known.
    pub(crate) fn of(site: &Site, head: &Head<'_>, access: &Access) -> Front {
        let (policies, routes) = (&site.settings.policies, &site.settings.routes);
        let stop = |here, stop| Front { here, fields: Lines::default(), way: Err(stop) };
        let path = match SitePath::parse_showing(head.target.path, &routes.shown) {
            Ok(path) => path,
            Err(PathError::Malformed) => return stop(policies.everywhere().clone(), Stop::Error(400)),
            Err(PathError::Hidden) => return stop(policies.everywhere().clone(), Stop::Error(404)),
        };
        let rewritten = routes.rewrite(&path);
        let here = policies.at(&path, rewritten.as_ref());
        if let Some((status, place)) = routes.redirect(&path, head.target.query) {
            return stop(here, Stop::Redirect(status, place));
        }
        let mut fields = Lines::default();
        if let Some(cors) = here.cors() {
            cors.describe(head, &mut fields);
        }
        let way = match here.realm().map_or(Ok(()), |realm| access.enter(realm, head)) {
            Ok(()) => Ok(Way { path, rewritten }),
            Err(denied) => Err(Stop::Denied(denied)),
        };
        Front { here, fields, way }
    }

    /// The fields of the answer to an OPTIONS of a path: those that are set there, and what pages of other origins
    /// may do.
    pub(crate) fn of_options(site: &Site, head: &Head<'_>) -> Option<Lines> {
        let Site { settings, .. } = site;
        let path = SitePath::parse_showing(head.target.path, &settings.routes.shown).ok()?;
        let here = settings.policies.at(&path, settings.routes.rewrite(&path).as_ref());
        let mut fields = Lines::clone(&here.of_errors);
        match here.cors() {
            Some(cors) if cors::is_preflight(head) => cors.describe_preflight(head, &mut fields),
            Some(cors) => cors.describe(head, &mut fields),
            None => {}
        }
        Some(fields)
    }
}
