//! The files beneath a root: which files a path means, how they are opened, and how they are protected.

pub(crate) mod absence;
pub(crate) mod media_type;
pub(crate) mod open;
pub(crate) mod protection;
pub(crate) mod roots;
pub(crate) mod siblings;
pub(crate) mod try_paths;
pub(crate) mod watch;
