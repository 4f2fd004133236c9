//! The half of a connection that sends: requests as they wait, in pieces as large as they lie in memory.

use std::collections::VecDeque;
use std::io;

use super::{Connection, Flight, Progress, Shared};
use crate::message::request::Image;

impl Connection {
    /// Sends what waits, at most `most` bytes of it.
    ///
    /// # Errors
    /// What `send(2)` says.
    #[inline]
    pub(crate) fn flush(&mut self, shared: &mut Shared<'_>, now: u64, most: usize) -> io::Result<Progress> {
        let mut left = most;
        while self.has_unsent() {
            let Some(socket) = &self.socket else { return Ok(Progress::Blocked) };
            let bytes = self.waiting(shared, left);
            if bytes.is_empty() {
                return Ok(Progress::Limited);
            }
            let asked = bytes.len();
            match socket.send(bytes, false) {
                Ok(count) => {
                    left -= count;
                    self.advance(count, shared, now);
                    if count < asked {
                        return Ok(Progress::Blocked);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Progress::Blocked),
                Err(error) => return Err(error),
            }
        }
        Ok(Progress::All)
    }

    /// The bytes to send next, at most `most` of them.
    pub(crate) fn waiting<'s>(&self, shared: &'s mut Shared<'_>, most: usize) -> &'s [u8] {
        let bytes = pieces(&self.flights, self.written, self.offset, shared.images, &mut shared.gathered);
        &bytes[..bytes.len().min(most)]
    }

    /// The next `count` bytes are on their way; how far they came is told to [`Connection::advance`], or they are
    /// taken back.
    pub(crate) fn hand_over(&mut self, count: usize, shared: &mut Shared<'_>, now: u64) {
        let mut rest = (self.offset + count) as u64;
        let mut begun = 0;
        for flight in self.flights.range_mut(self.written..) {
            if rest == 0 {
                break;
            }
            begun += u64::from(flight.sent == 0);
            flight.sent = if flight.sent == 0 { now } else { flight.sent };
            rest = rest.saturating_sub(shared.images[flight.target as usize].length() as u64);
        }
        if self.measured && begun > 0 {
            shared.recorder.sent(now, begun);
        }
    }

    /// What was handed over and not written did not go out: it counts as not sent.
    pub(crate) fn take_back(&mut self, shared: &mut Shared<'_>, now: u64) {
        let from = (self.written + usize::from(self.offset > 0)).min(self.flights.len());
        let mut taken = 0;
        for flight in self.flights.range_mut(from..) {
            taken += u64::from(std::mem::take(&mut flight.sent) > 0);
        }
        if self.measured {
            shared.recorder.landed(now, taken);
        }
    }

    /// `count` more bytes are written.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize, shared: &mut Shared<'_>, now: u64) {
        let (mut rest, mut begun) = (self.offset + count, 0);
        while let Some(flight) = self.flights.get_mut(self.written).filter(|_| rest > 0) {
            if flight.sent == 0 {
                flight.sent = now;
                begun += 1;
            }
            let length = shared.images[flight.target as usize].length();
            if rest < length {
                break;
            }
            rest -= length;
            self.written += 1;
        }
        self.offset = rest;
        if self.measured && begun > 0 {
            shared.recorder.sent(now, begun);
        }
    }
}

/// The bytes to send next: of the first request that waits, and of all behind it as far as they lie there in
/// one piece.
#[inline]
fn pieces<'a>(
    flights: &VecDeque<Flight>,
    written: usize,
    offset: usize,
    images: &'a [Image],
    gathered: &'a mut Vec<u8>,
) -> &'a [u8] {
    const ENOUGH: usize = 64 << 10;
    let waiting = flights.len() - written;
    let first = &images[flights[written].target as usize];
    if waiting == 1 || images.len() == 1 {
        return first.piece(offset, waiting.min(first.copies()));
    }
    gathered.clear();
    let mut skip = offset;
    for flight in flights.range(written..) {
        gathered.extend_from_slice(images[flight.target as usize].piece(skip, 1));
        skip = 0;
        if gathered.len() >= ENOUGH {
            break;
        }
    }
    gathered
}
