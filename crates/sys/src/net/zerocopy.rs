//! Zero-copy sends: the kernel holds the bytes and reports when it no longer does (`MSG_ZEROCOPY`, the kernel's
//! `Documentation/networking/msg_zerocopy.rst`).
//!
//! Only mapped files are sent this way: their pages are the kernel's own and keep their content while it holds them,
//! whatever happens to the mapping.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::memory::mapping::Mapped;
use crate::net::socket::stream::Socket;

/// Sends that the kernel has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released {
    /// The number of the first send. A connection counts its sends from 0 and wraps after 2^32 - 1.
    pub first: u32,
    /// The number of the last send.
    pub last: u32,
    /// Whether the kernel copied their bytes after all, as it always does on the loopback interface.
    pub copied: bool,
}

impl Socket {
    /// Sends a mapped file as far as it fits without copying (`MSG_ZEROCOPY`). Its listener must permit that:
    /// [`crate::net::socket::ListenOptions::zerocopy`]. Each successful send has the next number, which
    /// [`Socket::released`] returns.
    ///
    /// # Errors
    /// The error of `send(2)`. ENOBUFS: too many sends (`net.core.optmem_max`) or too much memory (RLIMIT_MEMLOCK) is
    /// held. EFAULT: the file has become shorter.
    pub fn send_held(&self, mapped: &Mapped, more: bool) -> io::Result<usize> {
        let (start, length) = mapped.mapping.address(&mapped.range);
        let mut flags = libc::MSG_ZEROCOPY | libc::MSG_NOSIGNAL;
        if more {
            flags |= libc::MSG_MORE;
        }
        // SAFETY: the kernel reads at most `length` bytes from `start`, which stay mapped during the call. It takes
        // references to the pages, so the mapping may end earlier.
        let result = unsafe { libc::send(self.number(), start.cast(), length, flags) };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }

    /// The next notification about finished sends from the socket's error queue; `None` if there is none.
    pub fn released(&self) -> io::Result<Option<Released>> {
        // Room for the header, `struct sock_extended_err` and an address; aligned as the header is.
        let mut control = [0u64; 16];
        // SAFETY: zeros are a `msghdr` without name, data and control.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: the kernel writes at most `msg_controllen` bytes of control, which outlive the call.
        let result = unsafe { libc::recvmsg(self.number(), &raw mut message, flags) };
        if result < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        Ok(parse(&message))
    }

    /// Waits at most `limit` until the socket has an error or an entry in its error queue. It uses `ppoll(2)`, because
    /// `poll(2)` is the wait of a model. The socket must be blocking.
    pub fn wait_for_error(&self, limit: Duration) {
        let limit = Timespec::try_from(limit).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        // A signal also ends the wait; the caller checks again.
        let _ = poll(&mut [PollFd::new(self, PollFlags::empty())], Some(&limit));
    }
}

/// `SO_EE_ORIGIN_ZEROCOPY` and `SO_EE_CODE_ZEROCOPY_COPIED` of linux/errqueue.h.
const ORIGIN: u8 = 5;
const COPIED: u8 = 1;
/// The level and type of a control message with a `sock_extended_err`.
const OF_ERRORS: [(libc::c_int, libc::c_int); 2] =
    [(libc::SOL_IP, libc::IP_RECVERR), (libc::SOL_IPV6, libc::IPV6_RECVERR)];

/// Reads the kernel's message; `None` if it has another subject.
fn parse(message: &libc::msghdr) -> Option<Released> {
    // SAFETY: the header's control pointer and length are those that the kernel filled.
    let header = unsafe { libc::CMSG_FIRSTHDR(message) };
    if header.is_null() {
        return None;
    }
    // SAFETY: the first header lies within the control bytes, and is aligned as they are.
    let libc::cmsghdr { cmsg_level, cmsg_type, .. } = unsafe { *header };
    if !OF_ERRORS.contains(&(cmsg_level, cmsg_type)) {
        return None;
    }
    // SAFETY: the header is one that the kernel wrote.
    let data = unsafe { libc::CMSG_DATA(header) }.cast::<libc::sock_extended_err>();
    // SAFETY: a whole `sock_extended_err` follows such a header.
    let error = unsafe { data.read_unaligned() };
    let ours = error.ee_errno == 0 && error.ee_origin == ORIGIN;
    ours.then_some(Released { first: error.ee_info, last: error.ee_data, copied: error.ee_code == COPIED })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::net::TcpStream;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;

    use super::*;
    use crate::memory::mapping::Mapping;
    use crate::net::socket::option::permit_zerocopy;
    use crate::net::socket::{ListenAddress, ListenOptions, Listener};

    #[test]
    fn every_send_is_released_once_and_on_loopback_it_was_copied() {
        let content: Vec<u8> = (0..300_000).map(|at| (at % 251) as u8).collect();
        let path = std::env::temp_dir().join(format!("tenfold-held-{}", std::process::id()));
        std::fs::write(&path, &content).expect("a folder for temporary files");
        let file = File::open(&path).expect("it was just written");
        std::fs::remove_file(&path).expect("it is ours");
        let mapping = Arc::new(Mapping::new(&file, 0..300_000).expect("a file of ours can be mapped"));
        let options = ListenOptions { zerocopy: true, ..ListenOptions::default() };
        let listener = Listener::bind(&"127.0.0.1:0".parse().expect("an address"), &options);
        let listener = listener.expect("loopback has a free port");
        assert!(listener.permits_zerocopy());
        let ListenAddress::Internet(at) = *listener.address() else { panic!("it is bound to a port") };
        let mut peer = TcpStream::connect(at).expect("it listens");
        let (socket, _) = listener.accept(false).expect("somebody connects");
        assert_eq!(socket.released().expect("a socket has a queue"), None);
        let (mut sent, mut sends) = (0, 0);
        while sent < 300_000 {
            let until = (sent + 100_000).min(300_000);
            sent += socket
                .send_held(&Mapped { mapping: mapping.clone(), range: sent..until }, false)
                .expect("there is room") as u64;
            sends += 1;
        }
        let mut got = vec![0; 300_000];
        peer.read_exact(&mut got).expect("it was sent");
        assert!(got == content);
        let mut next = 0;
        while next < sends {
            match socket.released().expect("a socket has a queue") {
                Some(Released { first, last, copied }) => {
                    assert_eq!(first, next);
                    assert!(copied, "loopback has no card that could take pages");
                    next = last + 1;
                }
                None => socket.wait_for_error(Duration::from_secs(20)),
            }
        }
        assert_eq!(next, sends);
    }

    #[test]
    fn a_listener_permits_zero_copy_only_if_configured_and_a_unix_socket_never() {
        let listener = Listener::bind(&"127.0.0.1:0".parse().expect("an address"), &ListenOptions::default());
        assert!(!listener.expect("loopback has a free port").permits_zerocopy());
        let (ours, _peer) = UnixStream::pair().expect("descriptors");
        let error = permit_zerocopy(ours.as_fd()).expect_err("it is no TCP");
        assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
