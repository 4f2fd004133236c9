//! `thread`: a thread per connection, which ends with its connection.
//!
//! The accepting thread hands every connection to a thread of its own, which serves it as `naive` does.
//!
//! System calls of a connection: accept4, then clone3 and what a thread's stack needs (mmap, mprotect),
//! recv, send (or sendfile), …, close, exit, and munmap or madvise.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tenfold_sys::socket::Listener;

use crate::driver::accepting::accept_each;
use crate::driver::{blocking, of_accepted};
use crate::plan::Plan;
use crate::protocol::{Event, Protocol};

/// Bytes of a thread's stack. A request's deepest path needs a tenth of it; only pages that are touched
/// are memory.
pub(super) const STACK_BYTES: usize = 256 * 1024;

/// Starts a thread for each connection until the server leaves, and waits for all of them.
pub(crate) fn run<P: Protocol>(plan: &Plan, listeners: &[Listener], protocol: &P) -> Result<(), String> {
    let running = AtomicUsize::new(0);
    thread::scope(|scope| {
        accept_each(
            listeners,
            false,
            protocol,
            || (),
            |socket, peer, listener| {
                if running.load(Ordering::Relaxed) >= plan.bounds.connections {
                    return protocol.observe(Event::TooMany);
                }
                if !protocol.admit(&of_accepted(peer)) {
                    return;
                }
                running.fetch_add(1, Ordering::Relaxed);
                let (protocol_of_thread, running_too) = (protocol.clone(), &running);
                let serve = move || {
                    let protocol = protocol_of_thread;
                    protocol.observe(Event::Accepted);
                    blocking::serve(socket, peer, listener, plan, &protocol);
                    protocol.dismiss(|| of_accepted(peer));
                    protocol.observe(Event::Closed);
                    protocol.leave();
                    running_too.fetch_sub(1, Ordering::Relaxed);
                };
                let thread = thread::Builder::new().name("connection".into()).stack_size(STACK_BYTES);
                if thread.spawn_scoped(scope, serve).is_err() {
                    // The socket went with what could not be started.
                    running.fetch_sub(1, Ordering::Relaxed);
                    protocol.dismiss(|| of_accepted(peer));
                    protocol.observe(Event::Exhausted);
                }
            },
        )
    })
}
