//! The trait of a layer, and the reads of files that it seals.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use super::kernel::KernelSealing;
use crate::io::IoError;
use crate::message::connection::Connection;
use crate::out::{OpenFile, Out};

/// A format of records, and the handshake in front of them.
pub trait Layer: Clone + Send + Sync + 'static {
    /// The state of a connection. It is boxed, and absent until the first record is complete.
    type State: Send;

    /// The most bytes of a record.
    const RECORD_BYTES: usize;

    /// Whether this connection has the layer.
    fn covers(&self, connection: &Connection) -> bool;

    /// Whether this connection may begin its handshake. It is asked once, when the first byte has come; a connection
    /// that may not is closed.
    fn admits(&self, connection: &Connection) -> bool;

    /// Whether another process, which the handshake needs, is late. A connection asks after [`LayerProgress::Late`], before
    /// another attempt.
    fn is_late(&self) -> bool {
        false
    }

    /// Whether [`Layer::advance`] would take a long step of the handshake. A loop takes few of them in a tick.
    fn is_long_step(state: Option<&Self::State>, input: &[u8]) -> bool;

    /// Processes the record at the front of `input`, in place. Records of the layer's own go to `out`.
    fn advance(&self, state: &mut Option<Box<Self::State>>, input: &mut [u8], out: &mut Out)
    -> LayerProgress;

    /// Stages the alert of a handshake whose first incomplete message fills the input. Nothing follows it.
    fn overflow(&self, state: Option<&mut Self::State>, out: &mut Out);

    /// Whether the handshake is over.
    fn is_established(state: &Self::State) -> bool;

    /// Adds the facts of an established connection.
    fn describe(state: &Self::State, connection: &mut Connection);

    /// Seals the start of `content`, which is not empty, as one record. Returns the number of bytes in it.
    ///
    /// # Errors
    /// Nothing more can be sealed.
    fn seal(state: &mut Self::State, content: &[u8], out: &mut Out) -> Result<usize, IoError>;

    /// Seals the closing record.
    fn close(state: &mut Self::State, out: &mut Out);

    /// The parameters with which the kernel would seal the plaintext that follows, if the layer passes sealing on here.
    fn kernel_parameters(&self, _state: &Self::State) -> Option<impl AsRef<[u8]>> {
        None::<[u8; 0]>
    }

    /// Has the kernel seal what follows. `None` if it has refused.
    ///
    /// # Errors
    /// The connection cannot go on without it.
    fn pass_to_kernel(
        &self,
        _state: &mut Self::State,
        _sealing: Option<KernelSealing>,
    ) -> Result<(), IoError> {
        Ok(())
    }

    /// The output that the kernel seals, if it does. Plaintext and records of the layer's own go there as they are.
    fn kernel_sealing(_state: &mut Self::State) -> Option<&mut KernelSealing> {
        None
    }

    /// Hears the number of the next record that the kernel seals. Records of the layer's own go to `out`.
    ///
    /// # Errors
    /// The key can seal no more.
    fn limit_kernel(_state: &mut Self::State, _record: u64, _out: &mut Out) -> Result<(), IoError> {
        Ok(())
    }

    /// Whether the connection ends behind the next response.
    fn is_ending(_state: &Self::State) -> bool {
        false
    }
}

/// A layer that may be absent: it then covers no connection.
impl<L: Layer> Layer for Option<L> {
    type State = L::State;

    const RECORD_BYTES: usize = L::RECORD_BYTES;

    fn covers(&self, connection: &Connection) -> bool {
        self.as_ref().is_some_and(|layer| layer.covers(connection))
    }

    fn admits(&self, connection: &Connection) -> bool {
        self.as_ref().is_none_or(|layer| layer.admits(connection))
    }

    fn is_late(&self) -> bool {
        self.as_ref().is_some_and(Layer::is_late)
    }

    fn is_long_step(state: Option<&L::State>, input: &[u8]) -> bool {
        L::is_long_step(state, input)
    }

    fn advance(&self, state: &mut Option<Box<L::State>>, input: &mut [u8], out: &mut Out) -> LayerProgress {
        self.as_ref().map_or(LayerProgress::Failed, |layer| layer.advance(state, input, out))
    }

    fn overflow(&self, state: Option<&mut L::State>, out: &mut Out) {
        if let Some(layer) = self {
            layer.overflow(state, out);
        }
    }

    fn is_established(state: &L::State) -> bool {
        L::is_established(state)
    }

    fn describe(state: &L::State, connection: &mut Connection) {
        L::describe(state, connection);
    }

    fn seal(state: &mut L::State, content: &[u8], out: &mut Out) -> Result<usize, IoError> {
        L::seal(state, content, out)
    }

    fn close(state: &mut L::State, out: &mut Out) {
        L::close(state, out);
    }

    fn kernel_parameters(&self, state: &L::State) -> Option<impl AsRef<[u8]>> {
        self.as_ref().and_then(|layer| layer.kernel_parameters(state))
    }

    fn pass_to_kernel(&self, state: &mut L::State, sealing: Option<KernelSealing>) -> Result<(), IoError> {
        self.as_ref().map_or(Ok(()), |layer| layer.pass_to_kernel(state, sealing))
    }

    fn kernel_sealing(state: &mut L::State) -> Option<&mut KernelSealing> {
        L::kernel_sealing(state)
    }

    fn limit_kernel(state: &mut L::State, record: u64, out: &mut Out) -> Result<(), IoError> {
        L::limit_kernel(state, record, out)
    }

    fn is_ending(state: &L::State) -> bool {
        L::is_ending(state)
    }
}

/// The result of [`Layer::advance`]. Lengths count from the front of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayerProgress {
    /// A part of the record is missing.
    Incomplete,
    /// So many bytes carried no plaintext.
    Processed(usize),
    /// A record was opened.
    Opened {
        /// The place of the plaintext.
        content: Range<usize>,
        /// The length of the record.
        length: usize,
    },
    /// The peer has sent its closing record, which ends here.
    Closed(usize),
    /// The first record of a handshake needs another process, which is late. Nothing was processed; another attempt may
    /// succeed.
    Late,
    /// The connection cannot continue. An alert is in the output if the peer expects one.
    Failed,
}

/// The bytes of a file: now or later.
#[derive(Debug)]
pub enum FileBytes<F> {
    /// So many bytes are at the front of the buffer; not 0.
    Now(usize),
    /// A thread reads them.
    Later(F),
}

/// Reads files for sealing, without blocking a loop.
pub trait FileReader {
    /// A read on a thread. `None` if it panicked; the bytes are not empty.
    type Later: Future<Output = Option<Result<Vec<u8>, IoError>>> + Unpin;

    /// Reads from the start of `range` into `buffer`, which grows as needed and never shrinks.
    ///
    /// # Errors
    /// The file cannot be read, or is shorter than `range`.
    fn read(
        &self,
        file: &Arc<OpenFile>,
        range: Range<u64>,
        buffer: &mut Vec<u8>,
    ) -> Result<FileBytes<Self::Later>, IoError>;
}
