//! A file as the bytes of responses.

pub(crate) mod compress;
pub(crate) mod description;
pub(crate) mod digest;
pub(crate) mod encodings;
pub(crate) mod tags;
pub(crate) mod template;
pub(crate) mod unmade;
pub(crate) mod variant;
