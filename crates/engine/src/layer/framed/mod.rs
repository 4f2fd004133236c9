//! A layer for tests that frames and seals its bytes as TLS does: a hello exchange before any plaintext, records with
//! an integrity tag, records without plaintext, alerts, and a closing record. It keeps nothing secret.

mod client;
mod hello;
pub mod record;
mod session;
#[cfg(test)]
mod tests;

use tenfold_http::layer::{Layer, LayerProgress};
use tenfold_http::{Connection, IoError, Out, Scheme};

pub use client::{FramedClient, ReceivedRecords};
use record::{Alert, CONTENT_BYTES, NOTE_ANSWERS, NOTE_ASKS, RecordKey, RecordKind};
pub use session::FramedSession;

/// The layer of the tests, on every connection.
#[derive(Clone, Copy, Debug)]
pub struct Framed;

impl Layer for Framed {
    type State = FramedSession;

    const RECORD_BYTES: usize = record::RECORD_BYTES;

    fn covers(&self, _: &Connection) -> bool {
        true
    }

    fn admits(&self, _: &Connection) -> bool {
        true
    }

    fn is_long_step(state: Option<&FramedSession>, input: &[u8]) -> bool {
        state.is_none() && !input.is_empty()
    }

    fn advance(
        &self,
        state: &mut Option<Box<FramedSession>>,
        input: &mut [u8],
        out: &mut Out,
    ) -> LayerProgress {
        let progress = match state {
            Some(session) => open(session, input, out),
            None => hello::answer(input, out).map(|answered| match answered {
                Some((session, length)) => {
                    *state = Some(Box::new(session));
                    LayerProgress::Processed(length)
                }
                None => LayerProgress::Incomplete,
            }),
        };
        progress.unwrap_or_else(|alert| {
            let mut record = Vec::new();
            match state {
                Some(session) => session.sending.seal(RecordKind::Alert, &alert.content(), &mut record),
                None => RecordKey::PUBLIC.clone().seal(RecordKind::Alert, &alert.content(), &mut record),
            }
            out.stage(&record);
            LayerProgress::Failed
        })
    }

    fn overflow(&self, _: Option<&mut FramedSession>, out: &mut Out) {
        let mut record = Vec::new();
        RecordKey::PUBLIC.clone().seal(RecordKind::Alert, &Alert::TooLarge.content(), &mut record);
        out.stage(&record);
    }

    fn is_established(_: &FramedSession) -> bool {
        true
    }

    fn describe(session: &FramedSession, connection: &mut Connection) {
        connection.scheme = Scheme::Https;
        connection.tls = Some(session.facts.clone());
    }

    fn seal(session: &mut FramedSession, content: &[u8], out: &mut Out) -> Result<usize, IoError> {
        let content = &content[..content.len().min(CONTENT_BYTES)];
        stage(session, RecordKind::Data, content, out);
        Ok(content.len())
    }

    fn close(session: &mut FramedSession, out: &mut Out) {
        stage(session, RecordKind::Close, &[], out);
    }
}

fn stage(session: &mut FramedSession, kind: RecordKind, content: &[u8], out: &mut Out) {
    let mut record = Vec::new();
    session.sending.seal(kind, content, &mut record);
    out.stage(&record);
}

/// Opens the record at the front of `input`.
fn open(session: &mut FramedSession, input: &mut [u8], out: &mut Out) -> Result<LayerProgress, Alert> {
    let Some(length) = record::length(input)? else { return Ok(LayerProgress::Incomplete) };
    let (kind, content) = session.receiving.open(&mut input[..length])?;
    session.count(if kind == RecordKind::Data { content.len() } else { 0 })?;
    match kind {
        RecordKind::Data => return Ok(LayerProgress::Opened { content, length }),
        RecordKind::Note if input[content] == *NOTE_ASKS => {
            stage(session, RecordKind::Note, NOTE_ANSWERS, out)
        }
        RecordKind::Note => {}
        RecordKind::Close => return Ok(LayerProgress::Closed(length)),
        // The peer wants no answer.
        RecordKind::Alert => return Ok(LayerProgress::Failed),
        RecordKind::Hello => return Err(Alert::Unexpected),
    }
    Ok(LayerProgress::Processed(length))
}
