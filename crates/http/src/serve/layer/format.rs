//! The trait of a layer, and its reads of files.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use super::kernel::KernelSealing;
use crate::io::IoError;
use crate::message::connection::Connection;
use crate::out::{OpenFile, Out};

/// A record format with a handshake.
pub trait Layer: Clone + Send + Sync + 'static {
    /// The state of a connection. It is boxed, and absent until the first record is complete.
    type State: Send;

    /// The most bytes of a record.
    const RECORD_BYTES: usize;

    /// Whether this connection has the layer.
    fn covers(&self, connection: &Connection) -> bool;

    /// Whether this connection may begin its handshake; if not, it is closed. Called once, after the first
    /// byte has arrived.
    fn admits(&self, connection: &Connection) -> bool;

    /// Whether a process that the handshake needs is late. Called after [`LayerProgress::Late`], before
    /// another attempt.
    fn is_late(&self) -> bool;

    /// Whether [`Layer::advance`] would run a long step of the handshake. A loop runs few long steps in a
    /// tick.
    fn is_long_step(state: Option<&Self::State>, input: &[u8]) -> bool;

    /// Processes the record at the front of `input` in place. The layer's own records go to `out`.
    fn advance(&self, state: &mut Option<Box<Self::State>>, input: &mut [u8], out: &mut Out)
    -> LayerProgress;

    /// Stages the alert of a handshake whose first message is incomplete but fills the input. The connection
    /// then ends.
    fn overflow(&self, state: Option<&mut Self::State>, out: &mut Out);

    /// Whether the handshake is complete.
    fn is_established(state: &Self::State) -> bool;

    /// Adds the facts of an established connection.
    fn describe(state: &Self::State, connection: &mut Connection);

    /// Seals a record. `fill` appends its content, at least one byte, to a vector, and gets the most bytes of
    /// it: at most `most`, which is not 0. Returns the result of `fill`. Fails if the connection can seal no
    /// more.
    fn seal<T>(
        state: &mut Self::State,
        most: u64,
        out: &mut Out,
        fill: impl FnOnce(&mut Vec<u8>, usize) -> T,
    ) -> Result<T, IoError>;

    /// Seals the closing record.
    fn close(state: &mut Self::State, out: &mut Out);

    /// Returns the parameters for the kernel, if the layer lets the kernel seal from here on.
    fn kernel_parameters(&self, state: &Self::State) -> Option<impl AsRef<[u8]>>;

    /// Records that the kernel seals all further output; `None`: it refused. Fails if the connection requires
    /// the kernel.
    fn pass_to_kernel(&self, state: &mut Self::State, sealing: Option<KernelSealing>) -> Result<(), IoError>;

    /// Returns the state of sealing by the kernel, if it seals. Plaintext and the layer's own records then go
    /// to the output unsealed.
    fn kernel_sealing(state: &mut Self::State) -> Option<&mut KernelSealing>;

    /// Receives the number of the kernel's next record. The layer's own records go to `out`. Fails if the key
    /// can seal no more.
    fn limit_kernel(state: &mut Self::State, record: u64, out: &mut Out) -> Result<(), IoError>;

    /// Whether the connection ends after the next response.
    fn is_ending(state: &Self::State) -> bool;
}

/// The result of [`Layer::advance`]. Lengths count from the front of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayerProgress {
    /// The record is incomplete.
    Incomplete,
    /// This many bytes carried no plaintext.
    Processed(usize),
    /// A record was opened.
    Opened {
        /// The range of the plaintext.
        content: Range<usize>,
        /// The length of the record.
        length: usize,
    },
    /// The peer sent its closing record, which ends here.
    Closed(usize),
    /// The first record of a handshake needs another process, which is late. Nothing was processed, and a
    /// retry may succeed.
    Late,
    /// The connection cannot continue. The output has an alert if the peer expects one.
    Failed,
}

/// The bytes of a file, now or later.
#[derive(Debug)]
pub enum FileBytes<F> {
    /// The buffer begins with this many bytes, at least one.
    Now(usize),
    /// A thread reads them.
    Later(F),
}

/// Reads files for a layer without blocking a loop.
pub trait FileReader {
    /// A read on a thread: bytes, at least one; `None` if it panicked.
    type Later: Future<Output = Option<Result<Vec<u8>, IoError>>> + Unpin;

    /// Reads from the start of `range` into `buffer`, which grows as needed and never shrinks. Fails if the
    /// file cannot be read, or is shorter than `range`.
    fn read(
        &self,
        file: &Arc<OpenFile>,
        range: Range<u64>,
        buffer: &mut Vec<u8>,
    ) -> Result<FileBytes<Self::Later>, IoError>;
}

/// Seals the last bytes of an idle connection, which are staged bytes, and the closing record. Nothing is sealed
/// before the end of the handshake, or while the kernel lacks the next key.
pub fn farewell<L: Layer>(layer: &L, state: &mut L::State, plaintext: &Out, to: &mut Out) {
    if !L::is_established(state) {
        return;
    }
    let mut rest = plaintext.staged_alone().unwrap_or_default();
    if L::kernel_sealing(state).is_some() && layer.kernel_parameters(state).is_some() {
        return;
    }
    if let Some(sealing) = L::kernel_sealing(state) {
        sealing.count(rest.len() as u64);
        to.stage(std::mem::take(&mut rest));
    }
    while !rest.is_empty() {
        let sealed = L::seal(state, rest.len() as u64, to, |content, most| {
            let (piece, left) = rest.split_at(rest.len().min(most));
            content.extend_from_slice(piece);
            left
        });
        let Ok(left) = sealed else { return };
        rest = left;
    }
    L::close(state, to);
}
