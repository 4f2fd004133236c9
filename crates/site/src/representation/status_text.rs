//! The status as a line of text: the body of responses without a file.

use tenfold_http::{
    Decimal, FieldName, FieldValue, Method, PLAIN_TEXT, Request, ResponseHead, ResponseWriter, reason,
};

use crate::representation::summary::ResponseSummary;

pub(crate) const NOSNIFF: FieldValue<'static> = FieldValue::constant("nosniff");

/// Answers with a status and its line of text.
pub(crate) fn plain(
    request: &Request<'_>,
    status: u16,
    response: &mut ResponseWriter<'_>,
) -> ResponseSummary {
    with_fields(request, status, "", response, |_| {})
}

/// Responds with the text of a status and an explanation, and with more fields.
pub(crate) fn with_fields(
    request: &Request<'_>,
    status: u16,
    why: &str,
    response: &mut ResponseWriter<'_>,
    more: impl FnOnce(&mut ResponseHead<'_>),
) -> ResponseSummary {
    let code = Decimal::new(u64::from(status));
    let line = [code.as_bytes(), b" ", reason(status).as_bytes(), b"\n", why.as_bytes()];
    let length = line.iter().map(|piece| piece.len() as u64).sum();
    let mut head = response.head(status);
    head.content_type(PLAIN_TEXT);
    head.content_length(length);
    more(&mut head);
    head.field(FieldName::X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    head.end();
    if request.method == Method::Head {
        return ResponseSummary::of(status, 0);
    }
    line.iter().for_each(|piece| response.body(piece));
    ResponseSummary::of(status, length)
}
