//! The response to a request: from memory, or step by step.

pub(crate) mod listing;
pub(crate) mod message;
pub(crate) mod negotiate;
pub(crate) mod steps;
pub(crate) mod store;
pub(crate) mod work;
