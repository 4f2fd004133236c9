//! Threads whose start needs no memory besides their stack.
//!
//! A thread of the standard library maps a stack for its signal handler after its start, and aborts the process if the
//! kernel refuses. These threads have no such stack (`man 3 pthread_create`, `man 2 sigaltstack`): an overflow of their
//! stack ends the process by SIGSEGV, without a message.

use std::ffi::{CStr, c_void};
use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Starts threads that end before [`scope`] returns.
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    running: Arc<Running>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// The threads of a scope that have not ended.
#[derive(Debug, Default)]
struct Running {
    counts: Mutex<Counts>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Counts {
    running: usize,
    panicked: usize,
    /// Whether the scope waits: a notification costs a system call.
    is_awaited: bool,
}

/// The work of a thread that is being started.
struct Start {
    name: &'static CStr,
    work: Box<dyn FnOnce() + Send>,
    running: Arc<Running>,
}

/// Runs `run` and waits for the threads that it started.
///
/// # Panics
/// One of the threads has panicked.
pub fn scope<'env, T>(run: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
    let running = Arc::new(Running::default());
    let scope = Scope { running: Arc::clone(&running), scope: PhantomData, env: PhantomData };
    let wait = WaitOnDrop(&running);
    let result = run(&scope);
    drop(wait);
    assert_eq!(running.lock().panicked, 0, "a thread panicked");
    result
}

/// Waits for all threads, also if the function that started them panics.
struct WaitOnDrop<'a>(&'a Running);

impl Drop for WaitOnDrop<'_> {
    fn drop(&mut self) {
        let mut counts = self.0.lock();
        counts.is_awaited = true;
        while counts.running > 0 {
            counts = self.0.ended.wait(counts).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, panicked: bool) {
        let mut counts = self.lock();
        counts.running -= 1;
        counts.panicked += usize::from(panicked);
        if counts.running == 0 && counts.is_awaited {
            self.ended.notify_all();
        }
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread with this name, of at most 15 bytes, and a stack of `stack` bytes. `work` is dropped if the thread
    /// does not start.
    ///
    /// # Errors
    /// The error of `pthread_create(3)`: the threads or the memory of the process are exhausted.
    pub fn spawn(
        &'scope self,
        name: &'static CStr,
        stack: usize,
        work: impl FnOnce() + Send + 'scope,
    ) -> io::Result<()> {
        let work: Box<dyn FnOnce() + Send + 'scope> = Box::new(work);
        // SAFETY: only the lifetime changes. The thread calls or drops `work` before it counts as ended, and the scope,
        // which everything in `work` outlives, waits for all threads.
        let work: Box<dyn FnOnce() + Send> = unsafe { std::mem::transmute(work) };
        let start = Box::new(Start { name, work, running: Arc::clone(&self.running) });
        self.running.lock().running += 1;
        create(stack, start).inspect_err(|_| self.running.end(false))
    }
}

/// Creates a detached thread.
fn create(stack: usize, start: Box<Start>) -> io::Result<()> {
    let error = |number| if number == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(number)) };
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: the function initialises the attributes.
    error(unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) })?;
    // SAFETY: the call before has succeeded.
    let mut attributes = unsafe { attributes.assume_init() };
    let mut thread = MaybeUninit::uninit();
    // SAFETY: the attributes are initialised, and the state is valid, so the call does not fail.
    unsafe { libc::pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED) };
    // SAFETY: the attributes are initialised.
    let mut result = error(unsafe { libc::pthread_attr_setstacksize(&raw mut attributes, stack) });
    if result.is_ok() {
        let data = Box::into_raw(start);
        // SAFETY: the attributes are initialised, and `begin` owns `data`.
        result = error(unsafe {
            libc::pthread_create(thread.as_mut_ptr(), &raw const attributes, begin, data.cast())
        });
        if result.is_err() {
            // SAFETY: `data` is the box above, which no thread owns.
            drop(unsafe { Box::from_raw(data) });
        }
    }
    // SAFETY: the attributes are initialised and used no more.
    unsafe { libc::pthread_attr_destroy(&raw mut attributes) };
    result
}

extern "C" fn begin(data: *mut c_void) -> *mut c_void {
    // SAFETY: `create` passes a box to each thread.
    let Start { name, work, running } = *unsafe { Box::from_raw(data.cast::<Start>()) };
    let _ = rustix::thread::set_name(name);
    let panicked = catch_unwind(AssertUnwindSafe(work)).is_err();
    running.end(panicked);
    ptr::null_mut()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const STACK: usize = 64 * 1024;

    #[test]
    fn a_scope_ends_after_its_threads() {
        let sum = AtomicUsize::new(0);
        scope(|scope| {
            for number in 1..=10 {
                let sum = &sum;
                let work = move || {
                    std::thread::yield_now();
                    sum.fetch_add(number, Ordering::Relaxed);
                };
                scope.spawn(c"adds", STACK, work).expect("there are threads");
            }
        });
        assert_eq!(sum.into_inner(), 55);
    }

    #[test]
    fn work_of_a_thread_that_does_not_start_is_dropped() {
        let kept = Arc::new(());
        scope(|scope| {
            let held = Arc::clone(&kept);
            // The smallest stack has 16 KiB.
            let refused = scope.spawn(c"none", 1, move || drop(held));
            assert_eq!(refused.expect_err("the stack is too small").raw_os_error(), Some(libc::EINVAL));
        });
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[test]
    #[should_panic(expected = "a thread panicked")]
    fn a_panic_of_a_thread_is_one_of_its_scope() {
        scope(|scope| scope.spawn(c"panics", STACK, || panic!("on purpose")).expect("there are threads"));
    }
}
