//! The tables of I/O models and senders, and the plans that they make legal.

mod calls;
mod legal;
mod model;
mod models;
mod senders;
mod waits;

pub use self::calls::{Step, Steps};
pub use self::model::{Model, Rearms};
pub use self::models::MODELS;
pub(crate) use self::models::run_model;
pub use self::senders::{SENDERS, SenderRow};
