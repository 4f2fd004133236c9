//! The reasons for a response without a file.

use std::io;

use tenfold_sys::file::FileError;

use crate::reason::Reason;
use crate::rules::policy::Listing;

/// The reason for a response without a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// 404.
    NotFound(Reason),
    /// 403.
    Forbidden(Reason),
    /// 301: the path of a directory lacks its slash.
    Directory,
    /// 404: a directory without an index; the response explains how to enable listings.
    Unlisted,
    /// A directory without an index, and the format of its listing.
    Listed(Listing),
    /// 503, with the error number of the system.
    Exhausted(i32),
    /// 500, with the error number of the system.
    Failed(i32),
}

impl From<FileError> for Absence {
    fn from(error: FileError) -> Absence {
        match error {
            FileError::Absent => Absence::NotFound(Reason::NoFile),
            FileError::Link => Absence::NotFound(Reason::Link),
            FileError::Forbidden => Absence::Forbidden(Reason::Permission),
            FileError::Exhausted(errno) => Absence::Exhausted(errno),
            FileError::System(errno) => Absence::Failed(errno),
        }
    }
}

impl From<io::Error> for Absence {
    fn from(error: io::Error) -> Absence {
        Absence::Failed(error.raw_os_error().unwrap_or_default())
    }
}
