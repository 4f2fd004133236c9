//! The half of a connection that sends: requests as they wait, in pieces as large as they lie in memory.

use std::collections::VecDeque;
use std::io;

use super::{Connection, Flight, Progress, Shared};
use crate::request::Image;

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
            let bytes = pieces(&self.flights, self.written, self.offset, shared.images, &mut shared.gathered);
            let bytes = &bytes[..bytes.len().min(left)];
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

    #[inline]
    fn advance(&mut self, count: usize, shared: &mut Shared<'_>, now: u64) {
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
