//! `select(2)`: sets of bits, one for each descriptor below 1024, that the kernel walks at every call.

use std::io;
use std::os::fd::RawFd;

use crate::readiness::Ready;

/// The first descriptor that does not fit: adding it to a set would write past its end.
pub const FD_SETSIZE: usize = libc::FD_SETSIZE;
const BITS: usize = u64::BITS as usize;

/// The bits of an `fd_set`, which is an array of longs (`man 3type fd_set`).
type Bits = [u64; FD_SETSIZE / BITS];
const _: () = assert!(size_of::<Bits>() == size_of::<libc::fd_set>());

/// Sets of descriptors, each with a word that is returned with its events.
pub struct SelectSets {
    read: Bits,
    write: Bits,
    words: Box<[u64; FD_SETSIZE]>,
    /// One more than the greatest descriptor in the sets, which bounds the kernel's walk.
    end: usize,
}

impl Default for SelectSets {
    fn default() -> SelectSets {
        let empty = [0; FD_SETSIZE / BITS];
        SelectSets { read: empty, write: empty, words: Box::new([0; FD_SETSIZE]), end: 0 }
    }
}

fn put(bits: &mut Bits, number: usize, on: bool) {
    let bit = 1 << (number % BITS);
    if on { bits[number / BITS] |= bit } else { bits[number / BITS] &= !bit }
}

fn has(bits: &Bits, number: usize) -> bool {
    bits[number / BITS] & 1 << (number % BITS) != 0
}

impl SelectSets {
    /// Sets without any descriptor.
    pub fn new() -> SelectSets {
        SelectSets::default()
    }

    /// Whether `number` fits.
    pub fn fits(number: RawFd) -> bool {
        usize::try_from(number).is_ok_and(|number| number < FD_SETSIZE)
    }

    /// Adds `number` to the sets under `word`, or changes its interest.
    pub fn set(&mut self, number: RawFd, word: u64, read: bool, write: bool) -> io::Result<()> {
        if !SelectSets::fits(number) {
            return Err(io::Error::other(format!(
                "descriptor {number} is not below FD_SETSIZE ({FD_SETSIZE}), the limit of select"
            )));
        }
        let number = number as usize;
        put(&mut self.read, number, read);
        put(&mut self.write, number, write);
        self.words[number] = word;
        self.end = self.end.max(number + 1);
        Ok(())
    }

    /// Removes `number`.
    pub fn remove(&mut self, number: RawFd) {
        if !SelectSets::fits(number) {
            return;
        }
        put(&mut self.read, number as usize, false);
        put(&mut self.write, number as usize, false);
        while self.end > 0 && !has(&self.read, self.end - 1) && !has(&self.write, self.end - 1) {
            self.end -= 1;
        }
    }

    /// Waits until a descriptor is ready, `milliseconds` have passed (`None`: no limit), or a signal arrives, and reports
    /// the ready descriptors. It cannot distinguish an end from bytes.
    pub fn wait(&mut self, milliseconds: Option<u32>, mut hear: impl FnMut(Ready)) -> io::Result<()> {
        let (mut read, mut write) = (self.read, self.write);
        let mut timeout = milliseconds.map(|count| libc::timeval {
            tv_sec: i64::from(count / 1000),
            tv_usec: i64::from(count % 1000) * 1000,
        });
        let until = timeout.as_mut().map_or(std::ptr::null_mut(), std::ptr::from_mut);
        // SAFETY: both sets are as large as an `fd_set`, `end` is at most FD_SETSIZE, and the timeout outlives the
        // call.
        let result = unsafe {
            libc::select(
                self.end as libc::c_int,
                (&raw mut read).cast(),
                (&raw mut write).cast(),
                std::ptr::null_mut(),
                until,
            )
        };
        if result <= 0 {
            return match io::Error::last_os_error() {
                _ if result == 0 => Ok(()),
                error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
                error => Err(error),
            };
        }
        for place in 0..self.end.div_ceil(BITS) {
            let mut either = read[place] | write[place];
            while either != 0 {
                let number = place * BITS + either.trailing_zeros() as usize;
                either &= either - 1;
                let (read, write) = (has(&read, number), has(&write, number));
                hear(Ready { key: self.words[number], read, write, ..Ready::default() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readiness::eventfd::EventFd;

    #[test]
    fn ready_descriptors_are_reported_and_large_ones_rejected() {
        let (first, second) = (EventFd::new().expect("an eventfd"), EventFd::new().expect("an eventfd"));
        let mut sets = SelectSets::new();
        sets.set(first.number(), 7, true, false).expect("it fits");
        sets.set(second.number(), 8, true, false).expect("it fits");
        second.signal();
        let mut heard = Vec::new();
        sets.wait(Some(1000), |ready| heard.push((ready.key, ready.read, ready.write))).expect("select");
        assert_eq!(heard, [(8, true, false)]);
        sets.remove(second.number());
        sets.wait(Some(0), |ready| panic!("{ready:?}")).expect("select");
        assert!(sets.set(FD_SETSIZE as RawFd, 9, true, true).is_err());
    }
}
