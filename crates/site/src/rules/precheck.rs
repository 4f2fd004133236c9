//! The decision of the rules about a request, before a file is opened.

use tenfold_http::{HeaderLines, Request};

use crate::reason::Reason;
use crate::rules::access::{Access, Denied};
use crate::rules::cors;
use crate::rules::path::{PathError, SitePath};
use crate::rules::policy::Effective;
use crate::rules::settings::Settings;

/// The decision about a request.
pub(crate) struct Precheck {
    /// The policy of the path.
    pub(crate) here: Effective,
    /// Fields of the response that depend on the client.
    pub(crate) fields: HeaderLines,
    pub(crate) route: Result<Route, EarlyResponse>,
}

/// The target of a requested path.
pub(crate) struct Route {
    /// The requested path. A file is cached under its canonical spelling.
    pub(crate) path: SitePath,
    /// The path that a rewrite leads to.
    pub(crate) rewritten: Option<SitePath>,
}

/// A response without a file.
pub(crate) enum EarlyResponse {
    /// An error with this status, for this reason.
    Error(u16, Reason),
    /// A redirect with this status to this location.
    Redirect(u16, String),
    /// The client lacks verified credentials.
    Denied(Denied),
}

impl Precheck {
    /// Decides about a GET or HEAD of a client with this access.
    pub(crate) fn of(settings: &Settings, request: &Request<'_>, access: &Access) -> Precheck {
        let Settings { policies, routes, .. } = settings;
        let early = |here, early| Precheck { here, fields: HeaderLines::default(), route: Err(early) };
        let path = match SitePath::parse_showing(request.target.path, &routes.shown) {
            Ok(path) => path,
            Err(error) => {
                let (status, reason) = match error {
                    PathError::Malformed => (400, Reason::Malformed),
                    PathError::Hidden => (404, Reason::Hidden),
                    PathError::Impossible => (404, Reason::Impossible),
                };
                return early(policies.unknown().clone(), EarlyResponse::Error(status, reason));
            }
        };
        let rewritten = routes.rewrite(&path);
        let here = policies.at(&path, rewritten.as_ref());
        if let Some((status, location)) = routes.redirect(&path, request.target.query) {
            return early(here, EarlyResponse::Redirect(status, location));
        }
        let mut fields = HeaderLines::default();
        if let Some(cors) = here.cors() {
            cors.describe(request, &mut fields);
        }
        let route = match here.realm().map_or(Ok(()), |realm| access.enter(realm, request)) {
            Ok(()) => Ok(Route { path, rewritten }),
            Err(denied) => Err(EarlyResponse::Denied(denied)),
        };
        Precheck { here, fields, route }
    }
}

/// Returns the fields of the response to OPTIONS: the fields configured for the path, and the permissions for
/// pages of other origins.
pub(crate) fn options_fields(settings: &Settings, request: &Request<'_>) -> Option<HeaderLines> {
    let path = SitePath::parse_showing(request.target.path, &settings.routes.shown).ok()?;
    let here = settings.policies.at(&path, settings.routes.rewrite(&path).as_ref());
    let mut fields = HeaderLines::clone(&here.of_errors);
    match here.cors() {
        Some(cors) if cors::is_preflight(request) => cors.describe_preflight(request, &mut fields),
        Some(cors) => cors.describe(request, &mut fields),
        None => {}
    }
    Some(fields)
}
