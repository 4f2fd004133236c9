//! Sockets: listening, connecting, sending.

pub mod connect;
pub mod pipe;
pub mod socket;
pub mod zerocopy;
