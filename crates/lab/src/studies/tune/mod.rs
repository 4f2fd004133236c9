//! The best settings for a folder of the user: candidates, their elimination, and fresh blocks that alone count.

pub mod candidates;
pub mod configuration;
pub mod goal;
mod halving;
mod plans;
pub mod requests;
pub mod result;
pub mod tuner;
