//! Generations hand over: a worker that leaves passes idle connections to the worker of the next generation in its place.
//!
//! A pair of sockets leads from all former workers of a place to the present one. The supervisor keeps both ends and
//! shared memory beside them, so that neither a worker's end nor a new generation changes them.

mod departures;
mod heir;
mod message;
mod pair;
#[cfg(test)]
mod tests;

pub(crate) use departures::{Departing, Departures, Quiet};
pub(crate) use heir::{Heir, Inherited};
pub use pair::{GenerationName, Succession, Successions};
