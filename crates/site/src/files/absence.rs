//! Why a path has no file.

use std::io;

use tenfold_sys::file::FileError;

use crate::rules::policy::Listing;

/// Why a path is answered without a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// 404.
    NotFound,
    /// 403: permission denied, or it is a device, a FIFO or a socket.
    Forbidden,
    /// 301: a directory was requested as a file.
    Directory,
    /// 404: a directory without an index that is not listed, if the response tells how to list it.
    Unlisted,
    /// A directory without an index, and how it is listed.
    Listed(Listing),
    /// 503, with the error number of the system.
    Exhausted(i32),
    /// 500, with the error number of the system.
    Failed(i32),
}

impl From<FileError> for Absence {
    fn from(error: FileError) -> Absence {
        match error {
            FileError::Absent => Absence::NotFound,
            FileError::Forbidden => Absence::Forbidden,
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
