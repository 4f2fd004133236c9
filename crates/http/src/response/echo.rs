//! A response that is the request's own content, so that the framing of requests can be tested from outside.

use std::sync::Arc;

use super::writer::ResponseWriter;
use crate::message::field::{FieldName, FieldValue};
use crate::message::request::Method;
use crate::message::request::Request;
use crate::out::Part;

/// Bytes up to which content is copied behind its head; longer content is shared.
const JOINED_UP_TO: usize = 4096;

/// Answers any method with `body`, the content of the request, byte for byte; HEAD with its head alone. Returns how
/// many bytes of it follow the head.
///
/// The type is nothing that a browser would show or run.
pub fn echo(request: &Request<'_>, body: &[u8], response: &mut ResponseWriter<'_>) -> u64 {
    let mut head = response.head(200);
    head.content_type(FieldValue::constant("application/octet-stream"));
    head.content_length(body.len() as u64);
    head.field(FieldName::CACHE_CONTROL, FieldValue::constant("no-store"));
    head.field(FieldName::X_CONTENT_TYPE_OPTIONS, FieldValue::constant("nosniff"));
    head.end();
    if request.method == Method::Head {
        return 0;
    }
    if body.len() <= JOINED_UP_TO {
        response.body(body);
    } else {
        response.push(Part::Shared(Arc::from(body), 0..body.len()));
    }
    body.len() as u64
}
