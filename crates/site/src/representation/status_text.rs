//! A status as a line of text: the body of responses without a file.

use tenfold_http::response::{Decimal, FieldName, FieldValue, PLAIN_TEXT, ResponseHead, reason};
use tenfold_http::{Head, Method, Out};

use crate::representation::summary::ResponseSummary;

pub(crate) const NOSNIFF: FieldValue<'static> = FieldValue::constant("nosniff");

/// Answers with a status and its line of text.
pub(crate) fn plain(request: &Head<'_>, status: u16, out: &mut Out) -> ResponseSummary {
    with_fields(request, status, out, |_| {})
}

/// Answers with a status, its line of text, and the fields that `more` adds.
pub(crate) fn with_fields(
    request: &Head<'_>,
    status: u16,
    out: &mut Out,
    more: impl FnOnce(&mut ResponseHead<'_>),
) -> ResponseSummary {
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
        return ResponseSummary::of(status, 0);
    }
    line.iter().for_each(|piece| out.stage(piece));
    ResponseSummary::of(status, length)
}
