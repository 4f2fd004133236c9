//! Passing sealing to the kernel, and waiting for its sealed output.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::format::Layer;
use super::kernel::KernelSealing;
use crate::clock::{self, Instant};
use crate::io::{Io, IoError, SealedOutput};

/// The pause between checks whether all sealed output is in the socket's queue. It doubles while the queue
/// does not move.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Passes the sealing of a connection to the kernel, and waits for sealed output.
#[derive(Default)]
pub(super) struct KernelQueue {
    /// The last state of the kernel's output while it is not queued, the pause after it, and the end of that
    /// pause.
    last: Option<(SealedOutput, Duration, Instant)>,
}

impl KernelQueue {
    /// Lets the kernel seal from here on, if the layer demands it. Earlier output precedes it in the socket.
    pub(super) fn poll_pass<I: Io, L: Layer>(
        &mut self,
        below: &mut I,
        layer: &L,
        state: &mut L::State,
        cx: &mut Context<'_>,
        by: Instant,
    ) -> Poll<Result<(), IoError>> {
        if L::kernel_sealing(state).is_some_and(KernelSealing::has_to_ask)
            && let Some(now) = below.sealed_output()
        {
            L::limit_kernel(state, now.record, below.split().1)?;
        }
        if layer.kernel_parameters(state).is_none() {
            return Poll::Ready(Ok(()));
        }
        ready!(below.poll_flush(cx, by))?;
        ready!(below.poll_submitted(cx, by))?;
        ready!(self.poll_queued::<I, L>(below, state, cx, by))?;
        let parameters = layer.kernel_parameters(state);
        let sealed = parameters.and_then(|parameters| below.seal_in_kernel(parameters.as_ref()));
        Poll::Ready(layer.pass_to_kernel(state, sealed.map(KernelSealing::new)))
    }

    /// Waits until all flushed output is in the socket's queue, if the kernel seals it.
    pub(super) fn poll_queued<I: Io, L: Layer>(
        &mut self,
        below: &mut I,
        state: &mut L::State,
        cx: &mut Context<'_>,
        by: Instant,
    ) -> Poll<Result<(), IoError>> {
        let Some(sealing) = L::kernel_sealing(state) else { return Poll::Ready(Ok(())) };
        ready!(below.poll_submitted(cx, by))?;
        loop {
            let asks_at = match self.last {
                Some((_, _, asks_at)) if clock::now() < asks_at => asks_at,
                last => {
                    self.last = None;
                    let Some(output) = below.sealed_output().filter(|now| !sealing.is_queued(*now)) else {
                        return Poll::Ready(Ok(()));
                    };
                    let pause = match last {
                        Some((before, pause, _)) if before == output => (2 * pause).min(LONGEST_PAUSE),
                        _ => FIRST_PAUSE,
                    };
                    let asks_at = clock::now() + pause;
                    self.last = Some((output, pause, asks_at));
                    asks_at
                }
            };
            match ready!(below.poll_lost(cx, asks_at.min(by))) {
                IoError::TimedOut if clock::now() < by => {}
                error => return Poll::Ready(Err(error)),
            }
        }
    }
}
