//! Members of a site: registration, login, sessions, and the databases that keep them.
//!
//! Two halves that may run in different processes. [`Accounts`] answers a [`Query`] with a [`Reply`]: it owns the
//! database, hashes passwords, and throttles. [`web::Web`] turns browser requests into queries, and replies into pages:
//! it has no state and never blocks.

#![forbid(unsafe_code)]

mod accounts;
pub mod ask;
mod clock;
pub mod filter;
pub mod names;
pub mod passwords;
mod sessions;
pub mod store;
mod throttle;
pub mod token;
pub mod web;

pub use accounts::{AccountPolicy, Accounts, Registration};
pub use ask::{Query, Reply};
pub use sessions::Lifetime;
pub use throttle::{AdmittedAttempt, Throttle};
