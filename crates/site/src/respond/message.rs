//! Responses that are no file: refusals, redirects, what is allowed. Their body is a line of text.

use std::time::Duration;

use tenfold_http::response::{Decimal, FieldName, FieldValue, PLAIN_TEXT, ResponseHead, reason};
use tenfold_http::{Head, Method, Out};

use crate::Outcome;

pub(crate) const ALLOWED: FieldValue<'static> = FieldValue::constant("GET, HEAD, OPTIONS");
pub(crate) const NOSNIFF: FieldValue<'static> = FieldValue::constant("nosniff");

/// Answers with a status and a line that says it.
pub(crate) fn plain(request: &Head<'_>, status: u16, out: &mut Out) -> Outcome {
    with_fields(request, status, out, |_| {})
}

/// Answers with a status, a line that says it, and the fields that `more` adds.
pub(crate) fn with_fields(
    request: &Head<'_>,
    status: u16,
    out: &mut Out,
    more: impl FnOnce(&mut ResponseHead<'_>),
) -> Outcome {
    let code = Decimal::new(u64::from(status));
    let line = [code.as_bytes(), b" ", reason(status).as_bytes(), b"\n"];
    let length = line.iter().map(|piece| piece.len() as u64).sum();
    let mut head = ResponseHead::answering(request, status, out);
    head.content_type(PLAIN_TEXT);
    head.content_length(length);
    more(&mut head);
    head.field(FieldName::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    head.end();
    if request.method == Method::Head {
        return Outcome::of(status, 0);
    }
    line.iter().for_each(|piece| out.stage(piece));
    Outcome::of(status, length)
}

/// The answer to OPTIONS: what is allowed, of any path and of the server as a whole (RFC 9110 §9.3.7).
pub(crate) fn options(request: &Head<'_>, out: &mut Out) -> Outcome {
    let mut head = ResponseHead::answering(request, 204, out);
    head.field(FieldName::ALLOW, ALLOWED);
    head.end();
    Outcome::of(204, 0)
}

/// A redirect to this place, where it can stand in a field.
pub(crate) fn redirect(request: &Head<'_>, status: u16, place: &str, out: &mut Out) -> Outcome {
    match FieldValue::new(place.as_bytes()) {
        Some(place) => with_fields(request, status, out, |head| head.field(FieldName::LOCATION, place)),
        None => plain(request, 400, out),
    }
}

/// 301 from a directory's name to the directory: a path on this site, with the query that came.
///
/// `canonical` begins with one slash and never two, so that a browser can not take it for another host.
pub(crate) fn to_directory(request: &Head<'_>, canonical: &str, out: &mut Out) -> Outcome {
    let query = request.target.query;
    let mut location = String::with_capacity(canonical.len() + 2 + query.map_or(0, str::len));
    location.push_str(canonical);
    location.push('/');
    if let Some(query) = query {
        location.push('?');
        location.push_str(query);
    }
    redirect(request, 301, &location, out)
}

/// 503: there is too much to do; it is worth asking again soon.
pub(crate) fn unavailable(request: &Head<'_>, out: &mut Out) -> Outcome {
    with_fields(request, 503, out, |head| head.number(FieldName::RETRY_AFTER, 1))
}

/// 429: the peer asks more often than it may, and may ask again after `wait` (RFC 6585 §4).
pub fn too_many_requests(request: &Head<'_>, wait: Duration, out: &mut Out) -> Outcome {
    let seconds = wait.as_millis().div_ceil(1000).max(1);
    with_fields(request, 429, out, |head| {
        head.number(FieldName::RETRY_AFTER, u64::try_from(seconds).unwrap_or(u64::MAX));
    })
}
