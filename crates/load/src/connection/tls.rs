//! TLS of a connection: its handshake, and requests and responses through its session.

use std::io;

use super::{ClientConnection, ConnectionState, IoProgress, WorkerContext};
use crate::connection::judge::{ExchangeError, exchange_error};
use crate::connection::session::TlsSession;
use crate::measure::record::ErrorKind;
use crate::tls::TlsTarget;

/// The encrypted bytes above which requests wait for a send before their encryption.
const ENOUGH: usize = 64 << 10;

impl ClientConnection {
    /// Begins a handshake on an established connection.
    pub(crate) fn begin_handshake(&mut self, target: &TlsTarget, now: u64) -> Result<(), ExchangeError> {
        let rustls = target.connect().map_err(|error| {
            ExchangeError::new(ErrorKind::Tls, format!("cannot begin a TLS handshake: {error}"))
        })?;
        let mut tls = TlsSession::new(rustls);
        self.state = ConnectionState::Handshaking(now);
        if let Some(socket) = &self.socket {
            tls.send(socket).map_err(|error| exchange_error(&error))?;
        }
        self.tls = Some(Box::new(tls));
        Ok(())
    }

    /// Version and cipher suite, and whether a session was resumed, after the handshake.
    pub(crate) fn handshake_result(&self) -> Option<(String, bool)> {
        self.tls.as_ref().filter(|tls| !tls.is_handshaking()).map(|tls| tls.result())
    }

    /// Whether encrypted bytes wait for room in the socket.
    #[inline]
    pub(crate) fn has_output(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_output())
    }

    /// Sends waiting output, then encrypts and sends at most `most` queued bytes.
    pub(super) fn flush_tls(
        &mut self,
        context: &mut WorkerContext<'_>,
        now: u64,
        most: usize,
    ) -> io::Result<IoProgress> {
        let Some(mut tls) = self.tls.take() else { return Ok(IoProgress::Blocked) };
        let result = self.flush_through(&mut tls, context, now, most);
        self.tls = Some(tls);
        result
    }

    fn flush_through(
        &mut self,
        tls: &mut TlsSession,
        context: &mut WorkerContext<'_>,
        now: u64,
        most: usize,
    ) -> io::Result<IoProgress> {
        let mut left = most;
        loop {
            while self.state == ConnectionState::Open
                && self.has_unsent()
                && left > 0
                && tls.output() < ENOUGH
            {
                self.prepare(context, now);
                let count = tls.seal(self.waiting(context, left))?;
                left -= count;
                self.advance(count, context, now);
            }
            let Some(socket) = &self.socket else { return Ok(IoProgress::Blocked) };
            if !tls.send(socket)? || self.state != ConnectionState::Open {
                return Ok(IoProgress::Blocked);
            }
            if !self.has_unsent() {
                return Ok(IoProgress::All);
            }
            if left == 0 {
                return Ok(IoProgress::Limited);
            }
        }
    }

    /// Decrypts and parses received bytes.
    pub(super) fn arrived_sealed(
        &mut self,
        wire: &[u8],
        context: &mut WorkerContext<'_>,
        now: u64,
    ) -> Result<(), ExchangeError> {
        let Some(mut tls) = self.tls.take() else { return Ok(()) };
        let result = tls.open(wire, |plaintext| self.arrived(plaintext, context, now));
        // Sends a flight of the handshake, or an alert. The first request is sent together with the last flight.
        if let Some(socket) = self.socket.as_ref().filter(|_| result.is_err() || tls.is_handshaking()) {
            // A receive reports a broken connection.
            let _ = tls.send(socket);
        }
        self.tls = Some(tls);
        result
    }

    /// Ends the session, with close_notify if `orderly`.
    pub(crate) fn end_tls(&mut self, orderly: bool) {
        if let (Some(mut tls), Some(socket)) = (self.tls.take(), &self.socket)
            && orderly
        {
            tls.end(socket);
        }
    }
}
