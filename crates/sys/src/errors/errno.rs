//! Error numbers by their names (`man 3 errno`), for results that come as bare numbers. What a failed call says
//! about the next one is told in [`crate::errors::failure`].

pub use libc::{
    EAGAIN, EALREADY, ECANCELED, ECONNRESET, EFAULT, EINTR, ELOOP, EMFILE, ENFILE, ENOBUFS, ENODEV, ENOENT,
    ENOMEM, ENXIO, EOPNOTSUPP, EPIPE,
};
