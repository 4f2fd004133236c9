//! `epoll` (`man 7 epoll`): interest is registered once, events arrive in batches.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::readiness::Ready;

/// The events that a registration reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpollInterest {
    /// Input, or the end of the peer's output.
    pub read: bool,
    /// Room to write.
    pub write: bool,
    /// Report only changes (`EPOLLET`).
    pub edge: bool,
    /// Wake one of several waiting instances (`EPOLLEXCLUSIVE`); only for a first registration.
    pub exclusive: bool,
    /// Report once, until the next registration (`EPOLLONESHOT`).
    pub once: bool,
}

impl EpollInterest {
    fn flags(self) -> EventFlags {
        let mut flags = EventFlags::empty();
        flags.set(EventFlags::IN, self.read);
        flags.set(EventFlags::RDHUP, self.read && !self.exclusive);
        flags.set(EventFlags::OUT, self.write);
        flags.set(EventFlags::ET, self.edge);
        flags.set(EventFlags::EXCLUSIVE, self.exclusive);
        flags.set(EventFlags::ONESHOT, self.once);
        flags
    }
}

/// An epoll instance with room for a batch of events.
pub struct Epoll {
    instance: OwnedFd,
    batch: Vec<epoll::Event>,
}

impl Epoll {
    /// Creates an instance that reports at most `batch` events a wait.
    pub fn new(batch: usize) -> io::Result<Epoll> {
        Ok(Epoll { instance: epoll::create(CreateFlags::CLOEXEC)?, batch: Vec::with_capacity(batch) })
    }

    /// Registers `number` under `key`.
    pub fn add(&self, number: RawFd, key: u64, interest: EpollInterest) -> io::Result<()> {
        Ok(epoll::add(&self.instance, borrow(number), EventData::new_u64(key), interest.flags())?)
    }

    /// Changes the events that a registration reports.
    pub fn modify(&self, number: RawFd, key: u64, interest: EpollInterest) -> io::Result<()> {
        Ok(epoll::modify(&self.instance, borrow(number), EventData::new_u64(key), interest.flags())?)
    }

    /// Ends a registration. Closing the last descriptor of a socket does the same.
    pub fn delete(&self, number: RawFd) -> io::Result<()> {
        Ok(epoll::delete(&self.instance, borrow(number))?)
    }

    /// A second handle to the same instance, for changing registrations from another thread.
    pub fn registry(&self) -> io::Result<Registry> {
        Ok(Registry(self.instance.try_clone()?))
    }

    /// Waits until a descriptor is ready, `milliseconds` have passed (`None`: no limit), or a signal arrives, and returns
    /// the ready descriptors.
    ///
    /// # Errors
    /// The error of `epoll_wait(2)`; EINTR is no error but an empty batch.
    #[inline]
    pub fn wait(&mut self, milliseconds: Option<u32>) -> io::Result<impl Iterator<Item = Ready> + '_> {
        let timeout = milliseconds.map(|count| Timespec {
            tv_sec: i64::from(count / 1000),
            tv_nsec: i64::from(count % 1000) * 1_000_000,
        });
        self.batch.clear();
        match epoll::wait(&self.instance, rustix::buffer::spare_capacity(&mut self.batch), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.batch.iter().map(ready))
    }

    /// See [`Epoll::wait`], with a bound in nanoseconds (`epoll_pwait2(2)`, since Linux 5.11). It appends the ready
    /// descriptors to `into`.
    ///
    /// # Errors
    /// The error of `epoll_pwait2(2)`; EINTR is no error but an empty batch.
    pub fn wait_precisely(&mut self, nanoseconds: u64, into: &mut Vec<Ready>) -> io::Result<()> {
        const SECOND: u64 = 1_000_000_000;
        let timeout = libc::timespec {
            tv_sec: (nanoseconds / SECOND) as libc::time_t,
            tv_nsec: (nanoseconds % SECOND) as libc::c_long,
        };
        self.batch.clear();
        let most = libc::c_int::try_from(self.batch.capacity()).unwrap_or(libc::c_int::MAX);
        const _: () = assert!(size_of::<epoll::Event>() == size_of::<libc::epoll_event>());
        // SAFETY: rustix's event is the kernel's `epoll_event`; the call writes at most `most` of them, for which the
        // vector has room. The timeout outlives the call.
        let count = unsafe {
            libc::epoll_pwait2(
                self.instance.as_raw_fd(),
                self.batch.as_mut_ptr().cast(),
                most,
                &raw const timeout,
                std::ptr::null(),
            )
        };
        let Ok(count) = usize::try_from(count) else {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        };
        // SAFETY: the kernel has written the first `count` events.
        unsafe { self.batch.set_len(count) };
        into.extend(self.batch.iter().map(ready));
        Ok(())
    }
}

/// A handle to an instance for registrations only, without waiting.
pub struct Registry(OwnedFd);

impl Registry {
    /// See [`Epoll::modify`].
    pub fn modify(&self, number: RawFd, key: u64, interest: EpollInterest) -> io::Result<()> {
        Ok(epoll::modify(&self.0, borrow(number), EventData::new_u64(key), interest.flags())?)
    }
}

fn ready(event: &epoll::Event) -> Ready {
    let flags = event.flags;
    let either = flags.intersects(EventFlags::HUP | EventFlags::ERR);
    Ready {
        key: event.data.u64(),
        read: either || flags.intersects(EventFlags::IN | EventFlags::RDHUP),
        write: either || flags.contains(EventFlags::OUT),
        ended: flags.contains(EventFlags::RDHUP),
        gone: flags.contains(EventFlags::HUP),
        error: flags.contains(EventFlags::ERR),
    }
}

/// Borrows a descriptor by its number, because the connection's task owns the socket.
fn borrow<'a>(number: RawFd) -> BorrowedFd<'a> {
    assert!(number >= 0, "a descriptor is not negative");
    // SAFETY: the number is not -1. It is used for one `epoll_ctl(2)`, which accesses no memory through it. If it were
    // closed or reused, the call would fail or change another registration.
    unsafe { BorrowedFd::borrow_raw(number) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::readiness::eventfd::EventFd;

    fn heard(epoll: &mut Epoll, milliseconds: u32) -> Vec<Ready> {
        epoll.wait(Some(milliseconds)).expect("an instance can be waited for").collect()
    }

    fn reading(edge: bool) -> EpollInterest {
        EpollInterest { read: true, edge, ..EpollInterest::default() }
    }

    #[test]
    fn a_level_is_reported_again_and_an_edge_once() {
        for edge in [false, true] {
            let (mut epoll, event) =
                (Epoll::new(8).expect("descriptors"), EventFd::new().expect("descriptors"));
            epoll.add(event.number(), 7, reading(edge)).expect("it can be watched");
            assert_eq!(heard(&mut epoll, 0), []);
            event.signal();
            assert_eq!(heard(&mut epoll, 1000).len(), 1);
            assert_eq!(heard(&mut epoll, 0).len(), usize::from(!edge));
            // A change of interest reports an edge that still holds.
            epoll.modify(event.number(), 8, reading(edge)).expect("it is watched");
            let again = heard(&mut epoll, 0);
            assert_eq!(again.iter().map(|ready| (ready.key, ready.read)).collect::<Vec<_>>(), [(8, true)]);
            epoll.delete(event.number()).expect("it is watched");
            assert_eq!(heard(&mut epoll, 0), []);
        }
    }

    #[test]
    fn bytes_room_an_end_and_a_loss_are_distinguished() {
        let mut epoll = Epoll::new(8).expect("descriptors");
        let (ours, mut peer) = UnixStream::pair().expect("descriptors");
        let number = std::os::fd::AsRawFd::as_raw_fd(&ours);
        let both = EpollInterest { read: true, write: true, ..EpollInterest::default() };
        epoll.add(number, 7, both).expect("it can be watched");
        let nothing = Ready { key: 7, read: false, write: false, ended: false, gone: false, error: false };
        assert_eq!(heard(&mut epoll, 0), [Ready { write: true, ..nothing }]);
        peer.write_all(b"x").expect("a peer may send");
        assert_eq!(heard(&mut epoll, 0), [Ready { write: true, read: true, ..nothing }]);
        peer.shutdown(std::net::Shutdown::Write).expect("it is open");
        assert_eq!(heard(&mut epoll, 0), [Ready { write: true, read: true, ended: true, ..nothing }]);
        drop(peer);
        let all = Ready { write: true, read: true, ended: true, gone: true, ..nothing };
        assert_eq!(heard(&mut epoll, 0), [all]);
        // A lost connection is reported without any interest.
        epoll.modify(number, 7, EpollInterest::default()).expect("it is watched");
        assert!(heard(&mut epoll, 0)[0].gone);
    }

    #[test]
    fn a_batch_has_its_bound_and_the_rest_comes_next() {
        let mut epoll = Epoll::new(4).expect("descriptors");
        let events: Vec<_> = (0..10).map(|_| EventFd::new().expect("descriptors")).collect();
        for (event, key) in events.iter().zip(0..) {
            epoll.add(event.number(), key, reading(true)).expect("it can be watched");
            event.signal();
        }
        let counts = [heard(&mut epoll, 0).len(), heard(&mut epoll, 0).len(), heard(&mut epoll, 0).len()];
        assert_eq!(counts, [4, 4, 2]);
    }
}
