//! A context and its watched descriptors.

use std::ffi::c_long;
use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::Arc;

use super::declared::{self as c, RawContext, RawWatched};
use crate::process::Unforkable;
use crate::readiness::Ready;

/// The most results that one run returns; others wait for the next run.
const BATCH: usize = 64;

/// The version of the library.
pub fn version() -> Option<String> {
    let number = c::tenfold_asio_version();
    Some(format!("{}.{}.{}", number / 100_000, number / 100 % 1000, number % 100))
}

/// An `io_context`, run by one thread.
pub struct IoContext {
    raw: Arc<Raw>,
    results: [c::Result; BATCH],
}

/// The context itself, which lives as long as any registration.
struct Raw {
    context: NonNull<RawContext>,
    _unforkable: Unforkable,
}

// SAFETY: several threads may use an `io_context` at once (its documentation, "Thread Safety"). Only one thread runs
// it, because a run borrows `IoContext` exclusively.
unsafe impl Send for Raw {}
// SAFETY: as above.
unsafe impl Sync for Raw {}

/// A watched descriptor. Dropping this ends the watch and leaves the descriptor open.
pub struct StreamDescriptor {
    raw: NonNull<RawWatched>,
    _context: Arc<Raw>,
}

// SAFETY: any thread may use it, one at a time, beside the thread that runs the context.
unsafe impl Send for StreamDescriptor {}

impl IoContext {
    /// Creates a context.
    pub fn new() -> io::Result<IoContext> {
        // SAFETY: the function has no preconditions.
        let raw = NonNull::new(unsafe { c::tenfold_asio_new() });
        let context = raw.ok_or_else(|| {
            io::Error::other("cannot create an io_context: no memory or descriptors are left")
        })?;
        let raw = Raw { context, _unforkable: Unforkable::new("Asio") };
        Ok(IoContext { raw: Arc::new(raw), results: [c::Result::default(); BATCH] })
    }

    /// Registers `number` under `key`, without waiting for anything yet.
    pub fn watch(&self, number: RawFd, key: u64) -> io::Result<StreamDescriptor> {
        let mut error = 0;
        // SAFETY: the context is live, and outlives the returned pointer.
        let raw = unsafe { c::tenfold_asio_watch(self.raw.context.as_ptr(), number, key, &raw mut error) };
        match NonNull::new(raw) {
            Some(raw) => Ok(StreamDescriptor { raw, _context: self.raw.clone() }),
            None => Err(io::Error::from_raw_os_error(-error)),
        }
    }

    /// Waits until a wait is over or `milliseconds` have passed (`None`: no limit), and reports the ready descriptors of
    /// one handler. Each report ends its wait. A run may report nothing before the time has passed, because the library
    /// also wakes for descriptors without a wait.
    /// A signal does not end the run; its descriptor must be waited for.
    pub fn run(&mut self, milliseconds: Option<u32>, mut report: impl FnMut(Ready)) -> io::Result<()> {
        let count = self.complete(milliseconds)?;
        for result in &self.results[..count] {
            let is = |kind: u8| result.value == i64::from(kind);
            let (read, write) = (is(c::READ), is(c::WRITE));
            report(Ready { key: result.key, read, write, ..Ready::default() });
        }
        Ok(())
    }

    /// See [`IoContext::run`]; returns the number of results.
    pub(super) fn complete(&mut self, milliseconds: Option<u32>) -> io::Result<usize> {
        let milliseconds = milliseconds.map_or(-1, c_long::from);
        let (into, room) = (self.results.as_mut_ptr(), BATCH as c_long);
        // SAFETY: the context is live and exclusively borrowed; the buffer has `room` entries.
        let count = unsafe { c::tenfold_asio_run(self.raw.context.as_ptr(), milliseconds, into, room) };
        usize::try_from(count).map_err(|_| io::Error::from_raw_os_error(-count as i32))
    }

    /// Result number `place` of the last run: the key of the operation and its value.
    pub(super) fn result(&self, place: usize) -> (u64, i64) {
        (self.results[place].key, self.results[place].value)
    }

    /// Its address on the C++ side, valid as long as this value lives.
    pub(super) fn address(&self) -> *mut RawContext {
        self.raw.context.as_ptr()
    }
}

impl StreamDescriptor {
    /// Waits for readiness once, in addition to the waits that exist. The report carries `key`.
    pub fn wait(&mut self, key: u64, read: bool, write: bool) -> io::Result<()> {
        let kinds = if read { c::READ } else { 0 } | if write { c::WRITE } else { 0 };
        // SAFETY: it is live, and exclusively borrowed.
        match unsafe { c::tenfold_asio_wait(self.raw.as_ptr(), key, kinds) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}

impl Drop for StreamDescriptor {
    fn drop(&mut self) {
        // SAFETY: it is live and not used again.
        unsafe { c::tenfold_asio_forget(self.raw.as_ptr()) };
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: no registration is left, because each holds a reference; the pointer is not used again.
        unsafe { c::tenfold_asio_free(self.context.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::readiness::eventfd::EventFd;

    fn heard(context: &mut IoContext, milliseconds: u32) -> Vec<(u64, bool, bool)> {
        let (mut all, begun) = (Vec::new(), std::time::Instant::now());
        loop {
            let report = |ready: Ready| all.push((ready.key, ready.read, ready.write));
            context.run(Some(milliseconds), report).expect("a context can be run");
            if !all.is_empty() || begun.elapsed().as_millis() >= u128::from(milliseconds) {
                return all;
            }
        }
    }

    #[test]
    fn a_wait_is_reported_once_even_if_the_event_came_before() {
        let (mut context, event) = (IoContext::new().expect("Asio"), EventFd::new().expect("descriptors"));
        let mut watched = context.watch(event.number(), 7).expect("it can be watched");
        event.signal();
        assert_eq!(heard(&mut context, 0), [], "nobody waits for it");
        for key in [7, 8] {
            watched.wait(key, true, false).expect("memory");
            assert_eq!(heard(&mut context, 1000), [(key, true, false)]);
            assert_eq!(heard(&mut context, 0), []);
        }
        event.clear();
        watched.wait(9, true, false).expect("memory");
        assert_eq!(heard(&mut context, 0), []);
    }

    #[test]
    fn waits_for_room_and_for_bytes_are_separate_and_a_released_descriptor_stays_open() {
        let mut context = IoContext::new().expect("Asio");
        let (ours, mut peer) = UnixStream::pair().expect("descriptors");
        let mut watched = context.watch(ours.as_raw_fd(), 7).expect("it can be watched");
        watched.wait(7, true, true).expect("memory");
        assert_eq!(heard(&mut context, 1000), [(7, false, true)]);
        peer.write_all(b"x").expect("a peer may send");
        assert_eq!(heard(&mut context, 1000), [(7, true, false)]);
        watched.wait(7, true, true).expect("memory");
        drop(watched);
        (&ours).write_all(b"y").expect("it is open");
        // A wait that had already ended may still be reported, and nothing else.
        let late = heard(&mut context, 0).len() + heard(&mut context, 0).len() + heard(&mut context, 0).len();
        assert!(late <= 2, "{late}");
        assert_eq!(heard(&mut context, 0), []);
        let mut again = context.watch(ours.as_raw_fd(), 8).expect("it can be watched again");
        again.wait(8, true, false).expect("memory");
        assert_eq!(heard(&mut context, 1000), [(8, true, false)]);
    }

    #[test]
    fn waits_are_begun_by_other_threads_while_the_context_runs() {
        let (mut context, event) = (IoContext::new().expect("Asio"), EventFd::new().expect("descriptors"));
        let mut watched = context.watch(event.number(), 7).expect("it can be watched");
        event.signal();
        let other = std::thread::spawn(move || {
            // Usually the context waits by now; otherwise it begins with this wait.
            std::thread::sleep(std::time::Duration::from_millis(20));
            watched.wait(7, true, false).expect("memory");
            watched
        });
        assert_eq!(heard(&mut context, 20_000), [(7, true, false)]);
        drop(other.join().expect("it does not panic"));
    }

    #[test]
    fn dropping_a_context_ends_its_waits() {
        let (context, event) = (IoContext::new().expect("Asio"), EventFd::new().expect("descriptors"));
        let mut watched = context.watch(event.number(), 7).expect("it can be watched");
        watched.wait(7, true, false).expect("memory");
        drop(context);
        drop(watched);
        event.signal();
    }

    #[test]
    fn h88_a_number_that_is_no_descriptor_is_an_error() {
        let context = IoContext::new().expect("Asio");
        for number in [-1, RawFd::MAX] {
            assert!(context.watch(number, 7).is_err(), "{number}");
        }
    }
}
