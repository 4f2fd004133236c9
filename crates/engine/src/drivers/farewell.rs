//! The last bytes of an idle connection that the engine closes.

use std::io::IoSlice;

use tenfold_http::Out;
use tenfold_sys::socket::Socket;

use crate::protocol::{Event, Protocol};

/// Sends the last bytes of the protocol as far as `socket` has room. The caller closes the connection.
pub(crate) fn send_farewell<P: Protocol>(protocol: &P, state: &mut P::State, socket: &Socket) {
    let mut out = Out::new();
    protocol.farewell(state, &mut out);
    let mut sent = 0;
    while !out.is_empty() {
        let mut slices = [IoSlice::new(&[])];
        let result = match out.record() {
            Some((kind, content)) => socket.send_record(kind, content, false),
            None if out.memory(&mut slices).0 == 1 => socket.try_send(&slices[0]),
            None => return debug_assert!(false, "a farewell is staged bytes"),
        };
        match result {
            Ok(count @ 1..) => {
                out.advance(count as u64);
                sent += count as u64;
            }
            Ok(0) | Err(_) => break,
        }
    }
    if sent > 0 {
        protocol.observe(Event::Sent(sent));
    }
}
