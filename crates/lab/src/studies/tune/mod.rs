//! The best settings for a user's folder: candidates, their elimination, and the confirmation in fresh blocks.

pub mod candidates;
pub mod configuration;
pub mod goal;
mod halving;
mod plans;
pub mod requests;
pub mod result;
pub mod tuner;
