//! A file as the bytes of responses.
//!
//! A `resource` is a file in its encodings; a `variant` is one encoding with its template, ready to be sent.

pub(crate) mod compress;
pub(crate) mod description;
pub(crate) mod encodings;
pub(crate) mod resource;
pub(crate) mod status_text;
pub(crate) mod summary;
pub(crate) mod tags;
pub(crate) mod unmade;
pub(crate) mod variant;
