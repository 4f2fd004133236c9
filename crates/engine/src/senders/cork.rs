//! `tcp-cork`: small segments wait while an answer is sent, and leave when its last byte has been given to the
//! kernel.
//!
//! The option is of the connection and not of the listener: set there, every connection would inherit it,
//! and the end of each answer would wait 200 ms (`man 7 tcp`).

use tenfold_http::Peer;
use tenfold_sys::socket::Socket;

/// TCP_CORK on one connection.
#[derive(Default)]
pub(crate) struct Cork {
    /// Whether this connection has segments.
    fits: bool,
    put: bool,
}

impl Cork {
    /// Begins with a connection that is not held back.
    #[inline]
    pub(crate) fn begin(&mut self, peer: &Peer) {
        self.fits = *peer != Peer::Unix;
        self.put = false;
    }

    /// Holds segments that are not full back.
    #[inline]
    pub(crate) fn put(&mut self, socket: &Socket) {
        if self.fits && !self.put {
            // If it fails, the peer is gone and the next send reports it.
            self.put = socket.set_cork(true).is_ok();
        }
    }

    /// Lets them go.
    #[inline]
    pub(crate) fn pop(&mut self, socket: &Socket) {
        if self.put {
            self.put = socket.set_cork(false).is_err();
        }
    }

    /// Whether output is held back.
    pub(crate) fn is_put(&self) -> bool {
        self.put
    }
}
