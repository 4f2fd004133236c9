//! An event base and its registrations.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_short, c_void};
use std::io;
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::Once;

use super::declared::{self as c, Event, EventBase, EventConfig};
use crate::readiness::Ready;
use crate::readiness::libevent::interest::LibeventInterest;

/// The methods of libevent on Linux, in its order of preference.
pub const METHODS: &[&str] = &["epoll", "poll", "select"];

/// An event base, with at most one registration per descriptor.
pub struct LibeventBase {
    base: NonNull<EventBase>,
    /// Bounds a wait.
    timer: NonNull<Event>,
    /// By descriptor.
    registrations: Vec<Option<Rc<EventRegistration>>>,
    ready: Rc<Cell<Vec<Ready>>>,
}

/// The argument of an event's callback.
struct EventRegistration {
    key: Cell<u64>,
    ready: Rc<Cell<Vec<Ready>>>,
    event: Cell<*mut Event>,
}

/// Stores a ready descriptor. A panic here ends the process, because nothing may unwind into the library.
extern "C" fn put_aside(_number: c_int, what: c_short, registration: *mut c_void) {
    // SAFETY: the argument of an event is its registration, which outlives it and is on this thread.
    let registration = unsafe { &*registration.cast::<EventRegistration>() };
    let mut all = registration.ready.take();
    all.push(Ready {
        key: registration.key.get(),
        read: what & (c::EV_READ | c::EV_CLOSED) != 0,
        write: what & c::EV_WRITE != 0,
        ended: what & c::EV_CLOSED != 0,
        ..Ready::default()
    });
    registration.ready.set(all);
}

/// Discards the library's message, because the returned error reports the failure.
extern "C" fn keep_quiet(_severity: c_int, _message: *const c_char) {}

/// Does nothing: the end of the wait shows that the time has passed.
extern "C" fn time_has_come(_number: c_int, _what: c_short, _nothing: *mut c_void) {}

impl LibeventBase {
    /// Creates a base that uses `method`, or the one that the library prefers here.
    pub fn new(method: Option<&str>) -> io::Result<LibeventBase> {
        static QUIET: Once = Once::new();
        // SAFETY: the callback accesses nothing; it is set once, before any base exists.
        QUIET.call_once(|| unsafe { c::event_set_log_callback(keep_quiet) });
        let config = ConfigHandle::new()?;
        for other in METHODS.iter().filter(|other| method.is_some_and(|method| method != **other)) {
            config.avoid(other)?;
        }
        // SAFETY: the configuration is live.
        let base = NonNull::new(unsafe { c::event_base_new_with_config(config.0.as_ptr()) });
        let base = base.ok_or_else(|| io::Error::other("event_base_new_with_config failed"))?;
        // SAFETY: the base is live; a timer has no descriptor, and its callback accesses nothing.
        let timer = unsafe { c::event_new(base.as_ptr(), -1, 0, time_has_come, ptr::null_mut()) };
        let Some(timer) = NonNull::new(timer) else {
            // SAFETY: it was made above, and has no events.
            unsafe { c::event_base_free(base.as_ptr()) };
            return Err(io::ErrorKind::OutOfMemory.into());
        };
        Ok(LibeventBase { base, timer, registrations: Vec::new(), ready: Rc::default() })
    }

    /// The method that the library uses.
    pub fn method(&self) -> &'static str {
        // SAFETY: the base is live.
        let name = unsafe { c::event_base_get_method(self.base.as_ptr()) };
        // SAFETY: the name is a string with the lifetime of the library.
        let name = unsafe { CStr::from_ptr(name) };
        METHODS.iter().find(|method| method.as_bytes() == name.to_bytes()).copied().unwrap_or("another")
    }

    /// Registers `number` under `key`, or changes its interest, which may be empty.
    pub fn set(&mut self, number: RawFd, key: u64, interest: LibeventInterest) -> io::Result<()> {
        let place = usize::try_from(number).map_err(io::Error::other)?;
        if self.registrations.len() <= place {
            self.registrations.resize_with(place + 1, || None);
        }
        let what = events(interest);
        let registration = match &self.registrations[place] {
            Some(registration) => {
                registration.key.set(key);
                // SAFETY: the event is live: it is freed with its registration.
                unsafe { c::event_del(registration.event.get()) };
                let (event, base) = (registration.event.get(), self.base.as_ptr());
                // SAFETY: the event is live and not pending; its argument outlives it.
                unsafe { c::event_assign(event, base, number, what, put_aside, argument(registration)) };
                registration
            }
            None => {
                let registration = self.make(number, key, what)?;
                self.registrations[place].insert(registration)
            }
        };
        if !interest.read && !interest.write {
            return Ok(());
        }
        // SAFETY: the event is live and was assigned; without a time it waits for ever.
        match unsafe { c::event_add(registration.event.get(), ptr::null()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn make(&self, number: RawFd, key: u64, what: c_short) -> io::Result<Rc<EventRegistration>> {
        let (key, event) = (Cell::new(key), Cell::new(ptr::null_mut()));
        let made = Rc::new(EventRegistration { key, ready: self.ready.clone(), event });
        // SAFETY: the base is live, and the argument outlives the event: see `LibeventBase::remove`.
        let event = unsafe { c::event_new(self.base.as_ptr(), number, what, put_aside, argument(&made)) };
        if event.is_null() {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        made.event.set(event);
        Ok(made)
    }

    /// Ends a registration.
    pub fn remove(&mut self, number: RawFd) {
        let place = usize::try_from(number).ok().and_then(|place| self.registrations.get_mut(place));
        if let Some(registration) = place.and_then(Option::take) {
            // SAFETY: the event is live; it is not used again, and its argument is dropped after it.
            unsafe { c::event_free(registration.event.get()) };
        }
    }

    /// Waits until a descriptor is ready or `milliseconds` have passed (`None`: no limit), and reports the ready
    /// descriptors. A signal does not end the wait; its descriptor must be registered.
    pub fn wait(&mut self, milliseconds: Option<u32>, report: impl FnMut(Ready)) -> io::Result<()> {
        let mut flags = c::EVLOOP_ONCE;
        match milliseconds {
            Some(0) => flags |= c::EVLOOP_NONBLOCK,
            Some(count) => self.arm(count)?,
            // SAFETY: the timer is live; it need not be pending.
            None => _ = unsafe { c::event_del(self.timer.as_ptr()) },
        }
        // SAFETY: the base is live, and so are the arguments of its callbacks.
        if unsafe { c::event_base_loop(self.base.as_ptr(), flags) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut ready = self.ready.take();
        ready.drain(..).for_each(report);
        self.ready.set(ready);
        Ok(())
    }

    fn arm(&self, milliseconds: u32) -> io::Result<()> {
        let after = libc::timeval {
            tv_sec: libc::time_t::from(milliseconds / 1000),
            tv_usec: libc::suseconds_t::from(milliseconds % 1000) * 1000,
        };
        // SAFETY: the timer is live; the time is read during the call only.
        match unsafe { c::event_add(self.timer.as_ptr(), &raw const after) } {
            0 => Ok(()),
            _ => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }
}

/// The argument of the callback of a registration's event.
fn argument(registration: &Rc<EventRegistration>) -> *mut c_void {
    Rc::as_ptr(registration).cast_mut().cast()
}

/// The library's bits for an interest. The end of input is requested only with edge triggering: as a level it would
/// persist.
fn events(interest: LibeventInterest) -> c_short {
    let flag = |on: bool, flag: c_short| if on { flag } else { 0 };
    flag(interest.read, c::EV_READ)
        | flag(interest.write, c::EV_WRITE)
        | flag(interest.edge, c::EV_ET)
        | flag(interest.edge && interest.read, c::EV_CLOSED)
        | flag(!interest.once, c::EV_PERSIST)
}

impl Drop for LibeventBase {
    fn drop(&mut self) {
        for number in 0..self.registrations.len() {
            self.remove(number as RawFd);
        }
        // SAFETY: the timer is live and not used again.
        unsafe { c::event_free(self.timer.as_ptr()) };
        // SAFETY: the base is live, has no events any more, and is not used again.
        unsafe { c::event_base_free(self.base.as_ptr()) };
    }
}

struct ConfigHandle(NonNull<EventConfig>);

impl ConfigHandle {
    fn new() -> io::Result<ConfigHandle> {
        // SAFETY: the function has no preconditions.
        let config = NonNull::new(unsafe { c::event_config_new() }).ok_or(io::ErrorKind::OutOfMemory)?;
        // libevent's own environment variables would override the configuration; one thread uses a base.
        let flags = c::EVENT_BASE_FLAG_NOLOCK | c::EVENT_BASE_FLAG_IGNORE_ENV;
        // SAFETY: the configuration is live.
        unsafe { c::event_config_set_flag(config.as_ptr(), flags) };
        Ok(ConfigHandle(config))
    }

    fn avoid(&self, method: &str) -> io::Result<()> {
        let method = CString::new(method).map_err(io::Error::other)?;
        // SAFETY: the configuration is live; the name is copied.
        match unsafe { c::event_config_avoid_method(self.0.as_ptr(), method.as_ptr()) } {
            0 => Ok(()),
            _ => Err(io::ErrorKind::OutOfMemory.into()),
        }
    }
}

impl Drop for ConfigHandle {
    fn drop(&mut self) {
        // SAFETY: it is live and not used again.
        unsafe { c::event_config_free(self.0.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::readiness::eventfd::EventFd;

    fn heard(base: &mut LibeventBase, milliseconds: u32) -> Vec<Ready> {
        let mut all = Vec::new();
        base.wait(Some(milliseconds), |ready| all.push(ready)).expect("a base can be waited for");
        all
    }

    const READING: LibeventInterest = LibeventInterest { read: true, write: false, edge: false, once: false };

    #[test]
    fn the_method_is_the_configured_method_or_else_the_first() {
        assert_eq!(LibeventBase::new(None).expect("libevent").method(), "epoll");
        for method in METHODS {
            assert_eq!(LibeventBase::new(Some(method)).expect(method).method(), *method);
        }
        assert!(LibeventBase::new(Some("kqueue")).is_err());
    }

    #[test]
    fn levels_repeat_edges_report_once_and_one_shots_until_set_again() {
        for (interest, again) in [
            (READING, true),
            (LibeventInterest { edge: true, ..READING }, false),
            (LibeventInterest { once: true, ..READING }, false),
        ] {
            let (mut base, event) =
                (LibeventBase::new(None).expect("libevent"), EventFd::new().expect("descriptors"));
            base.set(event.number(), 7, interest).expect("it can be watched");
            assert_eq!(heard(&mut base, 0), []);
            event.signal();
            assert_eq!(heard(&mut base, 1000).len(), 1);
            assert_eq!(heard(&mut base, 0).len(), usize::from(again));
            base.set(event.number(), 8, interest).expect("it is watched");
            let ready: Vec<_> = heard(&mut base, 1000).iter().map(|ready| (ready.key, ready.read)).collect();
            assert_eq!(ready, [(8, true)]);
            base.remove(event.number());
            assert_eq!(heard(&mut base, 0), []);
        }
    }

    #[test]
    fn every_method_distinguishes_bytes_from_room_and_reports_only_interest() {
        for method in METHODS {
            let mut base = LibeventBase::new(Some(method)).expect(method);
            let (ours, mut peer) = UnixStream::pair().expect("descriptors");
            let both = LibeventInterest { write: true, ..READING };
            base.set(ours.as_raw_fd(), 7, both).expect("it can be watched");
            let heard_of = |base: &mut LibeventBase| {
                let all = heard(base, 0);
                (all.iter().any(|ready| ready.read), all.iter().any(|ready| ready.write))
            };
            assert_eq!(heard_of(&mut base), (false, true), "{method}");
            peer.write_all(b"x").expect("a peer may send");
            assert_eq!(heard_of(&mut base), (true, true), "{method}");
            base.set(ours.as_raw_fd(), 7, LibeventInterest::default()).expect("it is watched");
            assert_eq!(heard_of(&mut base), (false, false), "{method}");
        }
    }

    #[test]
    fn an_end_after_bytes_is_reported_with_them_if_an_edge_would_hide_it() {
        let mut base = LibeventBase::new(None).expect("libevent");
        let (ours, mut peer) = UnixStream::pair().expect("descriptors");
        base.set(ours.as_raw_fd(), 7, LibeventInterest { edge: true, ..READING }).expect("it can be watched");
        peer.write_all(b"x").expect("a peer may send");
        drop(peer);
        assert!(heard(&mut base, 1000).iter().any(|ready| ready.ended));
    }

    #[test]
    fn a_wait_ends_in_time() {
        let (mut base, begun) = (LibeventBase::new(None).expect("libevent"), std::time::Instant::now());
        let event = EventFd::new().expect("descriptors");
        base.set(event.number(), 7, READING).expect("it can be watched");
        assert_eq!(heard(&mut base, 30), []);
        // Its clock moves with the kernel's ticks, of 10 ms at most.
        assert!(begun.elapsed().as_millis() >= 20);
    }

    #[test]
    fn h88_a_number_that_is_no_descriptor_is_an_error() {
        for method in ["epoll", "poll"] {
            let mut base = LibeventBase::new(Some(method)).expect(method);
            assert!(base.set(-1, 7, READING).is_err(), "{method}");
            base.remove(-1);
            base.remove(RawFd::MAX);
        }
    }
}
