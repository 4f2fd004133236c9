//! The hello exchange.

use std::hash::{BuildHasher, RandomState};

use tenfold_http::Out;

use super::record::{self, Alert, RecordKey, RecordKind};
use super::session::FramedSession;

/// Answers the hello at the front of `input` in `out`. Returns the session and the length of the hello, or `None`
/// while a part of it is missing.
pub(super) fn answer(input: &mut [u8], out: &mut Out) -> Result<Option<(FramedSession, usize)>, Alert> {
    let Some(length) = record::length(input)? else { return Ok(None) };
    let (kind, content) = RecordKey::PUBLIC.clone().open(&mut input[..length])?;
    if kind != RecordKind::Hello {
        return Err(Alert::Unexpected);
    }
    let client = record::random_of(&input[content]).ok_or(Alert::BadHello)?;
    let server = RandomState::new().hash_one(client);
    let mut session = FramedSession::new(client, server);
    let mut reply = Vec::new();
    RecordKey::PUBLIC.clone().seal(RecordKind::Hello, &record::hello(server), &mut reply);
    // As a ticket of TLS 1.3, a record that every client has to pass over.
    session.sending.seal(RecordKind::Note, b"ticket", &mut reply);
    out.stage(&reply);
    Ok(Some((session, length)))
}
