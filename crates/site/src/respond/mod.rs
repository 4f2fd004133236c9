//! The response to a request: from memory if it is there, or else step by step.

pub(crate) mod listing;
pub(crate) mod message;
pub(crate) mod negotiate;
pub(crate) mod steps;
pub(crate) mod store;
pub(crate) mod work;
