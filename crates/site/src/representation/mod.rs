//! A file as the bytes of responses.
//!
//! A `resource` is a file in its encodings; a `variant` is one of them, ready to be sent by its template.

pub(crate) mod compress;
pub(crate) mod description;
pub(crate) mod encodings;
pub(crate) mod resource;
pub(crate) mod status_text;
pub(crate) mod summary;
pub(crate) mod tags;
pub(crate) mod unmade;
pub(crate) mod variant;
