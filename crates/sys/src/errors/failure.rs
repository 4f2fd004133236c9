//! Reactions to failed calls, according to the manual pages of the calls.

use std::io;

use rustix::io::Errno;

/// The reaction to a failed accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterAccept {
    /// Accept again immediately: only that connection failed, or a signal arrived.
    Again,
    /// Accept when the next connection has arrived.
    Wait,
    /// Accept after a pause: no descriptor or memory is left, the system refused, or a server that leaves has shut the
    /// listener down.
    Pause,
    /// The listener is unusable.
    GiveUp,
}

/// Classifies an error of accept (`man 2 accept`, "Errors" and "Error handling").
pub fn after_accept(error: &io::Error) -> AfterAccept {
    match Errno::from_io_error(error) {
        Some(Errno::AGAIN) => AfterAccept::Wait,
        // Errors of a connection that was still queued.
        Some(
            Errno::INTR
            | Errno::CONNABORTED
            | Errno::PROTO
            | Errno::NETDOWN
            | Errno::NOPROTOOPT
            | Errno::HOSTDOWN
            | Errno::NONET
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH,
        ) => AfterAccept::Again,
        Some(Errno::BADF | Errno::FAULT | Errno::NOTSOCK) => AfterAccept::GiveUp,
        _ => AfterAccept::Pause,
    }
}

/// Whether a wait or a registration failed because of a temporary shortage: memory, places in the kernel's tables, or
/// watches (`man 2 poll`, `man 2 epoll_ctl`, `man 2 io_uring_enter`).
pub fn is_shortage(error: &io::Error) -> bool {
    const SHORTAGES: [Errno; 4] = [Errno::AGAIN, Errno::NOMEM, Errno::NOBUFS, Errno::NOSPC];
    Errno::from_io_error(error).is_some_and(|number| SHORTAGES.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(number: Errno) -> io::Error {
        number.into()
    }

    #[test]
    fn only_an_unusable_listener_ends_accepting() {
        for number in [Errno::BADF, Errno::FAULT, Errno::NOTSOCK] {
            assert_eq!(after_accept(&error(number)), AfterAccept::GiveUp, "{number}");
        }
        let for_a_while = [
            Errno::MFILE,
            Errno::NFILE,
            Errno::NOBUFS,
            Errno::NOMEM,
            Errno::PERM,
            Errno::NOSPC,
            Errno::INVAL,
        ];
        for number in for_a_while {
            assert_eq!(after_accept(&error(number)), AfterAccept::Pause, "{number}");
        }
        assert_eq!(after_accept(&error(Errno::CONNABORTED)), AfterAccept::Again);
        assert_eq!(after_accept(&error(Errno::INTR)), AfterAccept::Again);
        assert_eq!(after_accept(&error(Errno::AGAIN)), AfterAccept::Wait);
        assert_eq!(after_accept(&io::Error::other("of our own")), AfterAccept::Pause);
    }

    #[test]
    fn a_shortage_is_no_mistake() {
        assert!(is_shortage(&error(Errno::NOMEM)) && is_shortage(&error(Errno::NOSPC)));
        assert!(!is_shortage(&error(Errno::BADF)) && !is_shortage(&error(Errno::INVAL)));
    }
}
