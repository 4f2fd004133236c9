//! Sealing by the kernel: it gets the sending key, and records other than data are marked with their type.

use tenfold_http::layer::KernelSealing;

/// The use of TLS in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelUse {
    /// Whether a connection ends if the kernel refuses its key.
    pub required: bool,
    /// Whether the kernel can change keys (Linux 6.14).
    pub rekeys: bool,
}

/// The side that seals records.
#[derive(Debug)]
pub(super) enum Sealer {
    /// This process; the kernel has not been tried.
    Undecided,
    /// This process, because the kernel refused.
    Process,
    Kernel(KernelSealer),
}

/// The sending state while the kernel seals.
#[derive(Debug)]
pub(super) struct KernelSealer {
    pub(super) sealing: KernelSealing,
    pub(super) rekeys: bool,
    /// Whether a KeyUpdate is staged, but the kernel does not have the new key yet.
    pub(super) rekeying: bool,
    /// Whether the connection ends after the next response.
    pub(super) ending: bool,
}
