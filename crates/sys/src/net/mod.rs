//! Sockets: listening, connecting, sending.

pub mod connect;
pub mod kernel_tls;
pub mod messages;
pub mod pipe;
pub mod socket;
pub mod zerocopy;
