//! Error numbers by their names (`man 3 errno`), for results that come as bare numbers. [`crate::errors::failure`]
//! classifies failed calls.

pub use libc::{
    EAGAIN, EALREADY, ECANCELED, ECONNRESET, EFAULT, EINTR, ELOOP, EMFILE, ENFILE, ENOBUFS, ENODEV, ENOENT,
    ENOMEM, ENXIO, EOPNOTSUPP, EPIPE,
};
