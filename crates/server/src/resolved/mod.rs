//! What will run, worked out from settings and from what this system allows, before anything is opened.
//!
//! [`config`] puts it together, [`refusals`] refuses combinations that make no sense, [`capacity`] divides the
//! descriptors, and [`engines`] asks the kernel.

mod capacity;
pub(crate) mod config;
pub(crate) mod engines;
mod refusals;
