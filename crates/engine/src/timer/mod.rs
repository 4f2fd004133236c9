//! Timers: which connections have waited too long.
//!
//! A driver arms a timer only when a wait begins whose deadline is earlier than the one that is armed,
//! and looks at the deadline again when it fires. On a busy keep-alive connection that is no timer
//! operation at all per request.

mod wheel;

pub(crate) use wheel::Wheel;
