//! `poll(2)`: a list of descriptors that the kernel walks at every call.

use std::io;
use std::os::fd::RawFd;

use crate::readiness::Ready;

const NOWHERE: u32 = u32::MAX;

/// A list of descriptors, each with a word that is returned with its events.
#[derive(Debug, Default)]
pub struct PollList {
    entries: Vec<libc::pollfd>,
    words: Vec<u64>,
    /// The place in the list, by descriptor.
    places: Vec<u32>,
}

impl PollList {
    /// Creates an empty list.
    pub fn new() -> PollList {
        PollList::default()
    }

    /// Adds `number` to the list under `word`, or changes its interest.
    pub fn set(&mut self, number: RawFd, word: u64, read: bool, write: bool) {
        let index = usize::try_from(number).expect("a descriptor is not negative");
        if self.places.len() <= index {
            self.places.resize(index + 1, NOWHERE);
        }
        let mut events = 0;
        if read {
            events |= libc::POLLIN | libc::POLLRDHUP;
        }
        if write {
            events |= libc::POLLOUT;
        }
        let entry = libc::pollfd { fd: number, events, revents: 0 };
        match self.places[index] {
            NOWHERE => {
                self.places[index] = self.entries.len() as u32;
                self.entries.push(entry);
                self.words.push(word);
            }
            place => {
                self.entries[place as usize] = entry;
                self.words[place as usize] = word;
            }
        }
    }

    /// Removes `number` from the list.
    pub fn remove(&mut self, number: RawFd) {
        let Some(place) = usize::try_from(number).ok().and_then(|index| self.places.get_mut(index)) else {
            return;
        };
        let place = std::mem::replace(place, NOWHERE) as usize;
        if place == NOWHERE as usize {
            return;
        }
        self.entries.swap_remove(place);
        self.words.swap_remove(place);
        if let Some(moved) = self.entries.get(place) {
            self.places[moved.fd as usize] = place as u32;
        }
    }

    /// Waits until a descriptor is ready, `milliseconds` have passed (`None`: no limit), or a signal arrives, and reports
    /// the ready descriptors.
    pub fn wait(&mut self, milliseconds: Option<u32>, mut hear: impl FnMut(Ready)) -> io::Result<()> {
        let timeout = milliseconds.map_or(-1, |count| i32::try_from(count).unwrap_or(i32::MAX));
        // SAFETY: the pointer and the length are those of a live vector of `pollfd`s.
        let result =
            unsafe { libc::poll(self.entries.as_mut_ptr(), self.entries.len() as libc::nfds_t, timeout) };
        let mut left = match result {
            0.. => result,
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => 0,
                error => return Err(error),
            },
        };
        for (entry, &key) in self.entries.iter().zip(&self.words) {
            if left == 0 {
                break;
            }
            if entry.revents == 0 {
                continue;
            }
            left -= 1;
            let either = entry.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0;
            hear(Ready {
                key,
                read: either || entry.revents & (libc::POLLIN | libc::POLLRDHUP) != 0,
                write: either || entry.revents & libc::POLLOUT != 0,
                ended: entry.revents & libc::POLLRDHUP != 0,
                gone: entry.revents & (libc::POLLHUP | libc::POLLNVAL) != 0,
                error: entry.revents & libc::POLLERR != 0,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readiness::eventfd::EventFd;

    #[test]
    fn removing_a_descriptor_keeps_the_others() {
        let events: Vec<_> = (0..5).map(|_| EventFd::new().expect("descriptors")).collect();
        let mut list = PollList::new();
        for (event, word) in events.iter().zip(0..) {
            event.signal();
            list.set(event.number(), word, true, false);
        }
        let heard = |list: &mut PollList| {
            let mut words = Vec::new();
            list.wait(Some(0), |ready| words.push(ready.key)).expect("the list can be waited for");
            words.sort_unstable();
            words
        };
        assert_eq!(heard(&mut list), [0, 1, 2, 3, 4]);
        list.remove(events[1].number());
        list.remove(events[1].number());
        assert_eq!(heard(&mut list), [0, 2, 3, 4]);
        list.remove(events[4].number());
        list.set(events[1].number(), 9, true, false);
        list.set(events[2].number(), 2, false, false);
        assert_eq!(heard(&mut list), [0, 3, 9]);
    }
}
