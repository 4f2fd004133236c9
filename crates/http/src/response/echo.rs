//! A response with the request's own content, for external tests of request framing.

use std::sync::Arc;

use super::writer::ResponseWriter;
use crate::message::field::{FieldName, FieldValue};
use crate::message::request::Method;
use crate::message::request::Request;
use crate::out::Part;

/// The longest content that is copied after its head; longer content is shared.
const JOINED_UP_TO: usize = 4096;

/// Answers any method with `body`, the unchanged content of the request; HEAD gets only the head. Returns the
/// length of the body sent.
///
/// Browsers neither display nor run the media type.
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
