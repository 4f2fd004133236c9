//! Members of a site: registration, login, sessions, and the databases that keep them.
//!
//! Two halves that need not be in one process. [`Accounts`] answers a [`Query`] with a [`Reply`]: it has the
//! database, hashes passwords, throttles. [`web::Web`] makes requests of what browsers send, and pages of what
//! comes back: it has no state and waits for nothing.

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

pub use accounts::{Accounts, Answered, Policy, Registration};
pub use ask::{Query, Reply};
pub use sessions::Lifetime;
pub use throttle::{Admitted, Throttle};
