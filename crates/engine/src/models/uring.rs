//! `uring`
