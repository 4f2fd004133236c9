//! Reading the body of a request: for a service, or to reach the next head.

use std::future::{Future, poll_fn};
use std::task::{Poll, ready};

use crate::h1::chunked::{DecodedPiece, Decoder};
use crate::io::{Io, IoError, Patience, Received};
use crate::limits::Limits;
use crate::message::refusal::Refusal;
use crate::message::request::Body;
use crate::serve::session::Pace;

/// The reason for an incomplete body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The peer is lost, or ended its output.
    Lost,
    /// The server refuses the bytes.
    Refused(Refusal),
}

/// The rest of a body.
enum Rest {
    Length(u64),
    Chunks(Decoder),
}

impl Rest {
    /// The whole of `body`, with at most `most` bytes of content.
    fn of(body: Body, most: u64, limits: &Limits) -> Result<Rest, Refusal> {
        match body {
            Body::Length(length) if length > most => Err(Refusal::BodyTooLarge),
            Body::Length(length) => Ok(Rest::Length(length)),
            Body::Empty => Ok(Rest::Length(0)),
            Body::Streamed => Ok(Rest::Chunks(Decoder::new(most, limits.max_head))),
        }
    }

    fn decode(&mut self, input: &[u8]) -> Result<DecodedPiece, Refusal> {
        match self {
            Rest::Chunks(decoder) => decoder.decode(input),
            Rest::Length(left) => {
                let count = input.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= count as u64;
                Ok(DecodedPiece { consumed: count, content: 0..count, done: *left == 0 })
            }
        }
    }
}

/// Reads `body` into memory, while it arrives at the minimum rate. It may have at most `most` bytes of
/// content.
pub(crate) async fn collect<I: Io>(
    io: &mut I,
    limits: &Limits,
    body: Body,
    most: u64,
) -> Result<Vec<u8>, Broken> {
    let mut content = Vec::new();
    let rest = Rest::of(body, most, limits).map_err(Broken::Refused)?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    read(io, limits, rest, |piece, _| {
        grow(&mut content, piece.len(), most);
        content.extend_from_slice(piece);
        Ok(())
    })
    .await?;
    Ok(content)
}

/// Makes room for `more` bytes: at least doubles the capacity, so that the total work is linear, up to
/// `most`. Memory follows the received bytes, not the declared length.
fn grow(content: &mut Vec<u8>, more: usize, most: usize) {
    let needed = content.len() + more;
    if needed > content.capacity() {
        let wanted = content.capacity().saturating_mul(2).min(most).max(needed);
        content.reserve_exact(wanted - content.len());
    }
}

/// Discards a body of at most [`Limits::max_discard`] bytes, including framing.
pub(crate) async fn discard<I: Io>(io: &mut I, limits: &Limits, body: Body) -> Result<(), Broken> {
    let rest = Rest::of(body, limits.max_discard, limits).map_err(Broken::Refused)?;
    read(
        io,
        limits,
        rest,
        |_, taken| {
            if taken > limits.max_discard { Err(Refusal::BodyTooLarge) } else { Ok(()) }
        },
    )
    .await
}

/// Reads to the end of a body. Passes each piece of content to `keep`, with the number of bytes consumed so
/// far.
fn read<I: Io>(
    io: &mut I,
    limits: &Limits,
    mut rest: Rest,
    mut keep: impl FnMut(&[u8], u64) -> Result<(), Refusal>,
) -> impl Future<Output = Result<(), Broken>> {
    let mut pace = Pace::begin(limits.body_timeout, limits.min_rate, Some(0));
    let (room, mut taken) = (limits.max_head, 0);
    poll_fn(move |cx| {
        loop {
            let input = &*io.split().0;
            let piece = rest.decode(input).map_err(Broken::Refused)?;
            taken += piece.consumed as u64;
            keep(&input[piece.content], taken).map_err(Broken::Refused)?;
            let left = input.len() - piece.consumed;
            io.consume(piece.consumed);
            if piece.done {
                return Poll::Ready(Ok(()));
            }
            if left > 0 {
                continue;
            }
            match ready!(io.poll_receive(cx, room, Patience::Wait, pace.by())) {
                Ok(Received::Bytes | Received::Full) => {}
                Err(IoError::TimedOut) if pace.renew(taken).is_ok() => {}
                Err(IoError::TimedOut) => return Poll::Ready(Err(Broken::Refused(Refusal::TimedOut))),
                Ok(Received::End | Received::Idle) | Err(_) => return Poll::Ready(Err(Broken::Lost)),
            }
        }
    })
}
