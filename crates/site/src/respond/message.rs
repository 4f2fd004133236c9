//! Responses without a file: redirects, allowed methods, overload. Their body is a line of text.

use std::time::Duration;

use tenfold_http::{FieldName, FieldValue, Request, ResponseWriter};

use crate::representation::status_text::{plain, with_fields};
use crate::representation::summary::ResponseSummary;

pub(crate) const ALLOWED: FieldValue<'static> = FieldValue::constant("GET, HEAD, OPTIONS");

/// The response to OPTIONS of any path and of the server as a whole: the allowed methods (RFC 9110 §9.3.7).
pub(crate) fn options(response: &mut ResponseWriter<'_>) -> ResponseSummary {
    let mut head = response.head(204);
    head.field(FieldName::ALLOW, ALLOWED);
    head.end();
    ResponseSummary::of(204, 0)
}

/// A redirect to this location; 400 if it cannot be a field value.
pub fn redirect(
    request: &Request<'_>,
    status: u16,
    place: &str,
    response: &mut ResponseWriter<'_>,
) -> ResponseSummary {
    match FieldValue::new(place.as_bytes()) {
        Some(place) => with_fields(request, status, response, |head| head.field(FieldName::LOCATION, place)),
        None => plain(request, 400, response),
    }
}

/// 301 from a directory's name to the directory: a path on this site, with the query that came.
///
/// `canonical` begins with one slash and never two, so that a browser cannot take it for another host.
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

/// 503: the server is overloaded, and a retry soon makes sense.
pub(crate) fn unavailable(request: &Request<'_>, response: &mut ResponseWriter<'_>) -> ResponseSummary {
    with_fields(request, 503, response, |head| head.number(FieldName::RETRY_AFTER, 1))
}

/// 421: the request came on a connection for another host (RFC 9110 §15.5.20).
pub fn misdirected(request: &Request<'_>, response: &mut ResponseWriter<'_>) -> ResponseSummary {
    plain(request, 421, response)
}

/// 429: the client exceeds its rate, and may retry after `wait` (RFC 6585 §4).
pub fn too_many_requests(
    request: &Request<'_>,
    wait: Duration,
    response: &mut ResponseWriter<'_>,
) -> ResponseSummary {
    let seconds = wait.as_millis().div_ceil(1000).max(1);
    with_fields(request, 429, response, |head| {
        head.number(FieldName::RETRY_AFTER, u64::try_from(seconds).unwrap_or(u64::MAX));
    })
}
