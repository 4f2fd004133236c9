//! The resolved configuration, from settings and the limits of this system, before anything is opened.
//!
//! [`config`] puts it together, [`refusals`] refuses combinations that make no sense, [`capacity`] divides the
//! descriptors, [`certificates`] reads those of TLS, [`names`] has those that the server makes or obtains by itself,
//! [`apart`] works with their keys in another process, [`kernel_tls`] asks whether the kernel encrypts, [`engines`]
//! asks it about engines, and [`outward`] asks it about this machine's address.

pub(crate) mod apart;
mod capacity;
pub(crate) mod certificates;
pub(crate) mod config;
pub(crate) mod engines;
pub(crate) mod kernel_tls;
pub(crate) mod names;
pub(crate) mod outward;
mod refusals;
