//! The file of a listening Unix socket.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags};
use rustix::process::Pid;

use super::option::{new_socket, refuse_descriptors};
use crate::files::identity::Identity;
use crate::files::location::Location;

/// Binds a Unix socket. Its file has the mode 777 minus the umask.
pub(super) fn bind(path: &Path) -> io::Result<(OwnedFd, Identity)> {
    let at = SocketAddrUnix::new(path)?;
    let location = Location::find(path)?;
    if location.socket()?.is_some() && is_stale(&at)? {
        location.remove()?;
    }
    let socket = new_socket(AddressFamily::UNIX, SocketFlags::empty())?;
    // Its connections inherit the option.
    refuse_descriptors(&socket);
    rustix::net::bind(&socket, &at)?;
    let file = location.socket()?;
    let exchanged = || io::Error::other("its folder was replaced during the bind");
    Ok((socket, file.ok_or_else(exchanged)?))
}

/// The process that listens at the other end of a connection, and the number of its user (`man 7 unix`, SO_PEERCRED).
pub fn listening_process(stream: &UnixStream) -> io::Result<(Pid, u32)> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    Ok((peer.pid, peer.uid.as_raw()))
}

/// Whether a server listens at `path`. Does not wait if its queue is full.
///
/// # Errors
/// Those of `Location::find`, and that the path is too long for a socket.
pub fn is_in_use(path: &Path) -> io::Result<bool> {
    let at = SocketAddrUnix::new(path)?;
    Ok(Location::find(path)?.socket()?.is_some() && !is_stale(&at)?)
}

/// Removes the file of a socket, unless its path now leads to something else.
pub(super) fn remove(path: &Path, file: Identity) {
    // The folder's owner may have removed it.
    let _ = Location::find(path).and_then(|location| match location.socket()? {
        Some(found) if found == file => location.remove(),
        _ => Ok(()),
    });
}

/// Whether a socket file is left over from a server that has ended.
fn is_stale(at: &SocketAddrUnix) -> io::Result<bool> {
    // A blocking connect would wait for a full queue.
    let probe = new_socket(AddressFamily::UNIX, SocketFlags::NONBLOCK)?;
    Ok(rustix::net::connect(&probe, at) == Err(rustix::io::Errno::CONNREFUSED))
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::mem::MaybeUninit;
    use std::os::fd::AsFd;
    use std::path::PathBuf;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use super::*;
    use crate::net::socket::option::{SO_PASSRIGHTS, set_option};
    use crate::net::socket::{ListenAddress, ListenOptions, Listener};

    #[test]
    fn an_abandoned_unix_socket_is_replaced_and_a_socket_in_use_is_not() {
        let path = std::env::temp_dir().join(format!("tenfold-socket-{}", std::process::id()));
        let address = ListenAddress::Unix(path.clone());
        let first = Listener::bind(&address, &ListenOptions::default()).expect("the name is free");
        let error = Listener::bind(&address, &ListenOptions::default()).expect_err("somebody listens");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        drop(first);
        let second = Listener::bind(&address, &ListenOptions::default()).expect("nobody listens any more");
        second.remove_file();
        assert!(!path.exists(), "it was made here");
    }

    #[test]
    fn h75_only_the_socket_that_was_bound_is_removed() {
        let path = std::env::temp_dir().join(format!("tenfold-other-{}", std::process::id()));
        let address = ListenAddress::Unix(path.clone());
        let first = Listener::bind(&address, &ListenOptions::default()).expect("the name is free");
        std::fs::remove_file(&path).expect("our own file");
        std::fs::write(&path, "a file").expect("our own file");
        first.remove_file();
        assert!(path.is_file(), "another's file was removed");
        std::fs::remove_file(&path).expect("our own file");
        let second = Listener::bind(&address, &ListenOptions::default()).expect("the name is free");
        first.remove_file();
        assert!(path.exists(), "another server's socket was removed");
        second.remove_file();
    }

    #[test]
    fn h76_a_client_cannot_attach_descriptors() {
        let path = std::env::temp_dir().join(format!("tenfold-rights-{}", std::process::id()));
        let address = ListenAddress::Unix(path.clone());
        let listener = Listener::bind(&address, &ListenOptions::default()).expect("the name is free");
        let client = std::os::unix::net::UnixStream::connect(&path).expect("it listens");
        let (_accepted, _) = listener.accept(false).expect("a connection waits");
        listener.remove_file();
        // Kernels before 6.16 lack this option.
        let (probe, _) = std::os::unix::net::UnixStream::pair().expect("descriptors");
        if set_option(probe.as_fd(), libc::SOL_SOCKET, SO_PASSRIGHTS, 0).is_ok() {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let rights = [client.as_fd()];
            control.push(SendAncillaryMessage::ScmRights(&rights));
            let sent = sendmsg(&client, &[IoSlice::new(b"x")], &mut control, SendFlags::NOSIGNAL);
            assert_eq!(sent, Err(rustix::io::Errno::PERM));
        }
    }

    #[test]
    fn h75_a_link_is_not_bound_through() {
        let folder = std::env::temp_dir().join(format!("tenfold-bind-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("real")).expect("a temporary folder");
        let bind = |path: PathBuf| Listener::bind(&ListenAddress::Unix(path), &ListenOptions::default());
        std::os::unix::fs::symlink("absent", folder.join("link")).expect("our own folder");
        assert_eq!(bind(folder.join("link")).expect_err("it is a link").kind(), io::ErrorKind::AddrInUse);
        assert!(!folder.join("absent").exists());
        std::os::unix::fs::symlink("real", folder.join("theirs")).expect("our own folder");
        // Only root can change the owner of a link.
        if std::os::unix::fs::lchown(folder.join("theirs"), Some(12_345), None).is_ok() {
            let error = bind(folder.join("theirs/socket")).expect_err("it may lead anywhere");
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            assert!(!folder.join("real/socket").exists());
        }
        std::fs::remove_dir_all(&folder).expect("our own folder");
    }
}
