//! An answer that is the request's own body, so that the framing of requests can be tested from outside.

use std::sync::Arc;

use crate::head::{Head, Method};
use crate::out::{Out, Part};
use crate::response::{FieldName, FieldValue, ResponseHead};

/// Bytes up to which a body is copied behind its head; a longer one is shared.
const JOINED_UP_TO: usize = 4096;

/// Answers any method with `body`, the body of the request, byte for byte; HEAD with its head alone. Says
/// how many bytes of it follow the head.
///
/// The type says that it is nothing a browser would show or run.
pub fn echo(request: &Head<'_>, body: &[u8], out: &mut Out) -> u64 {
    let mut head = ResponseHead::answering(request, 200, out);
    head.content_type(FieldValue::constant("application/octet-stream"));
    head.content_length(body.len() as u64);
    head.field(FieldName::CACHE_CONTROL, FieldValue::constant("no-store"));
    head.field(FieldName::X_CONTENT_TYPE_OPTIONS, FieldValue::constant("nosniff"));
    head.end();
    if request.method == Method::Head {
        return 0;
    }
    if body.len() <= JOINED_UP_TO {
        out.stage(body);
    } else {
        out.push(Part::Shared(Arc::from(body), 0..body.len()));
    }
    body.len() as u64
}
