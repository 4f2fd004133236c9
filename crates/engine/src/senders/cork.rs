//! `tcp-cork`: the kernel holds partial segments of a response back until its last byte.
//!
//! The option is set on connections and not on the listener: connections would inherit it, and the end of each response
//! would be delayed by 200 ms (`man 7 tcp`).

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
    /// Begins with a new connection.
    #[inline]
    pub(crate) fn begin(&mut self, peer: &Peer) {
        self.fits = *peer != Peer::Unix;
        self.put = false;
    }

    /// Holds partial segments back.
    #[inline]
    pub(crate) fn put(&mut self, socket: &Socket) {
        if self.fits && !self.put {
            // If it fails, the peer is gone and the next send reports it.
            self.put = socket.set_cork(true).is_ok();
        }
    }

    /// Releases held segments.
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
