//! The reasons for errors, as the access log names them.

/// Defines the reasons, with their words.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $words:literal,)*) => {
        /// The reason for an error. Several reasons have the same status.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Reason {
            $($(#[$doc])* $name,)*
        }

        const WORDS: &[&str] = &[$($words,)*];
    };
}

reasons! {
    /// 404: also a file below a file, or a name of another case.
    NoFile = "no such file",
    /// 404.
    Link = "a link leaves the root, or is not followed",
    /// 404 for a path with a slash at its end. Only more system calls could tell both apart.
    NoIndex = "no such folder, or a folder without an index; listings are off",
    /// 404.
    Unlisted = "a folder without an index; listings are off",
    /// 404: the name begins with a dot, or ends with `~`.
    Hidden = "a hidden name",
    /// 404: `..`, an encoded slash, or more bytes than a name can have.
    Impossible = "a name that no file can have",
    /// 400.
    Malformed = "the path has a bad %, a control character or a backslash, or is not UTF-8",
    /// 403.
    Permission = "permission denied",
    /// 403.
    Special = "a device, a FIFO or a socket",
    /// 403: see [`crate::files::protection`].
    Protected = "a protected folder cannot be read, and the file may be in it",
    /// 403.
    LargeFolder = "the folder is too large for an archive",
    /// 503.
    Exhausted = "no descriptor or memory is left",
    /// 500.
    Failed = "the system failed to read the file",
}

impl Reason {
    /// Returns a number other than 0, of six bits.
    pub(crate) fn number(self) -> u32 {
        const { assert!(WORDS.len() < 1 << 6) };
        self as u32 + 1
    }
}

/// Returns the words of the reason that has a number. Without a number, they follow from the status.
pub(crate) fn words(number: u32, status: u16) -> &'static str {
    let of_number = number.checked_sub(1).and_then(|index| WORDS.get(index as usize));
    of_number.copied().unwrap_or(match status {
        401 => "no valid password or login",
        405 => "the method is not allowed",
        406 => "the client accepts no encoding of the file",
        412 => "a precondition failed",
        416 => "no part of the range is in the file",
        421 => "the request is for another host than the connection",
        429 => "too many requests or attempts",
        503 => "the server is busy",
        status => tenfold_http::reason(status),
    })
}
