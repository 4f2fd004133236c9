//! Responses without a file: redirects, allowed methods, overload. Their body is at most a line of text.

use std::time::Duration;

use tenfold_http::{FieldName, FieldValue, Request, ResponseWriter};

use crate::representation::status_text::{plain, with_fields};
use crate::representation::summary::ResponseSummary;

pub(crate) const ALLOWED: FieldValue<'static> = FieldValue::constant("GET, HEAD, OPTIONS");

/// Answers OPTIONS for a path or for the whole server: the allowed methods (RFC 9110 §9.3.7).
pub(crate) fn options(response: &mut ResponseWriter<'_>) -> ResponseSummary {
    let mut head = response.head(204);
    head.field(FieldName::ALLOW, ALLOWED);
    head.end();
    ResponseSummary::of(204, 0)
}

/// Redirects to this location; answers 400 if the location cannot be a field value.
pub fn redirect(
    request: &Request<'_>,
    status: u16,
    location: &str,
    response: &mut ResponseWriter<'_>,
) -> ResponseSummary {
    match FieldValue::new(location.as_bytes()) {
        Some(location) => {
            with_fields(request, status, "", response, |head| head.field(FieldName::LOCATION, location))
        }
        None => plain(request, 400, response),
    }
}

/// Redirects from a folder's name to the folder, and keeps the query.
///
/// `canonical` begins with exactly one slash, so that a browser cannot take it for another host.
pub(crate) fn to_directory(
    request: &Request<'_>,
    canonical: &str,
    response: &mut ResponseWriter<'_>,
) -> ResponseSummary {
    let query = request.target.query;
    let mut location = String::with_capacity(canonical.len() + 2 + query.map_or(0, str::len));
    location.push_str(canonical);
    location.push('/');
    if let Some(query) = query {
        location.push('?');
        location.push_str(query);
    }
    redirect(request, 301, &location, response)
}

/// Answers 503: the server is overloaded, and the client may retry soon.
pub(crate) fn unavailable(request: &Request<'_>, response: &mut ResponseWriter<'_>) -> ResponseSummary {
    with_fields(request, 503, "", response, |head| head.number(FieldName::RETRY_AFTER, 1))
}

/// Answers 421: the request is for another host than the connection (RFC 9110 §15.5.20).
pub fn misdirected(request: &Request<'_>, response: &mut ResponseWriter<'_>) -> ResponseSummary {
    plain(request, 421, response)
}

/// Answers 429: the client exceeds its rate, and may retry after `wait` (RFC 6585 §4).
pub fn too_many_requests(
    request: &Request<'_>,
    wait: Duration,
    response: &mut ResponseWriter<'_>,
) -> ResponseSummary {
    let seconds = wait.as_millis().div_ceil(1000).max(1);
    with_fields(request, 429, "", response, |head| {
        head.number(FieldName::RETRY_AFTER, u64::try_from(seconds).unwrap_or(u64::MAX));
    })
}
