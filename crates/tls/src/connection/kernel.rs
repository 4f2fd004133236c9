//! Sealing by the kernel: it has the key for sending, and records of another type than data are marked for it.

use tenfold_http::layer::KernelSealing;

/// How connections use TLS in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelUse {
    /// Whether a connection ends if the kernel refuses its key.
    pub required: bool,
    /// Whether the kernel can change keys (Linux 6.14).
    pub rekeys: bool,
}

/// The side that seals the records of a connection.
#[derive(Debug)]
pub(super) enum Sealer {
    /// This process, and the kernel has not been asked.
    Undecided,
    /// This process: the kernel has refused.
    Process,
    Kernel(KernelSealer),
}

/// The state of sending while the kernel seals.
#[derive(Debug)]
pub(super) struct KernelSealer {
    pub(super) sealing: KernelSealing,
    pub(super) rekeys: bool,
    /// Whether a KeyUpdate has been staged and the kernel does not have the new key yet.
    pub(super) rekeying: bool,
    /// Whether the connection ends behind the next response.
    pub(super) ending: bool,
}
