//! The latest errors and warnings of all processes of the server, in shared memory, for the status.
//!
//! A message is kept without its further lines, which can quote the configuration, and up to [`LONGEST`] bytes.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{SystemTime, UNIX_EPOCH};

use tenfold_sys::shared::SharedRows;

/// The number of messages.
const KEPT: usize = 16;
/// The most bytes of a message.
const LONGEST: usize = 240;

/// The end of the year 9999.
const LAST_SECOND: u64 = 253_402_300_799;

/// The words of the row before the messages: the numbers of kept messages, of errors, of warnings, and of lost lines.
const NEXT: usize = 0;
const ERRORS: usize = 1;
const WARNINGS: usize = 2;
const LOST: usize = 3;

/// The words of a message: its number from 1, or 0 while a process writes it; its time, its level and length; its text.
const NUMBER: usize = 0;
const SECONDS: usize = 1;
const SHAPE: usize = 2;
const TEXT: usize = 3;
const WORDS: usize = TEXT + LONGEST / size_of::<u64>();

/// The messages. Every process of the server writes and reads them.
#[derive(Debug)]
pub(crate) struct LatestMessages(SharedRows);

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LatestMessage {
    pub(crate) unix_seconds: u64,
    pub(crate) is_error: bool,
    pub(crate) text: String,
}

impl LatestMessages {
    /// Reserves the memory.
    pub(crate) fn new() -> io::Result<LatestMessages> {
        SharedRows::new(1 + KEPT, WORDS).map(LatestMessages)
    }

    /// Counts an error or a warning, and keeps its text.
    pub(crate) fn note(&self, is_error: bool, text: Option<&str>) {
        let count = if is_error { ERRORS } else { WARNINGS };
        self.0.row(0)[count].fetch_add(1, Ordering::Relaxed);
        if let Some(line) = text.and_then(|text| text.lines().next()) {
            self.keep(is_error, &line[..line.floor_char_boundary(LONGEST)]);
        }
    }

    fn keep(&self, is_error: bool, text: &str) {
        let number = self.0.row(0)[NEXT].fetch_add(1, Ordering::Relaxed);
        let row = self.0.row(1 + number as usize % KEPT);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        row[NUMBER].store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        row[SECONDS].store(now.as_secs(), Ordering::Relaxed);
        row[SHAPE].store((text.len() as u64) << 1 | u64::from(is_error), Ordering::Relaxed);
        for (word, bytes) in row[TEXT..].iter().zip(text.as_bytes().chunks(size_of::<u64>())) {
            let mut whole = [0; size_of::<u64>()];
            whole[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
        }
        row[NUMBER].store(number.wrapping_add(1), Ordering::Release);
    }

    /// The number of lines that standard error did not take and that no report has counted.
    pub(crate) fn lost(&self) -> &AtomicU64 {
        &self.0.row(0)[LOST]
    }

    /// The numbers of errors and of warnings.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let of = |count: usize| self.0.row(0)[count].load(Ordering::Relaxed);
        (of(ERRORS), of(WARNINGS))
    }

    /// The messages, the newest first, without messages that a process is writing. An attacker's code in a worker can
    /// write any text.
    pub(crate) fn all(&self) -> Vec<LatestMessage> {
        let next = self.0.row(0)[NEXT].load(Ordering::Relaxed);
        let numbers = (next.saturating_sub(KEPT as u64)..next).rev();
        numbers.filter_map(|number| read(self.0.row(1 + number as usize % KEPT), number + 1)).collect()
    }
}

/// Reads a message; `None` if the row has no whole message of this number.
fn read(row: &[AtomicU64], number: u64) -> Option<LatestMessage> {
    let is_there = |order| row[NUMBER].load(order) == number;
    if !is_there(Ordering::Acquire) {
        return None;
    }
    let unix_seconds = row[SECONDS].load(Ordering::Relaxed).min(LAST_SECOND);
    let shape = row[SHAPE].load(Ordering::Relaxed);
    let words = row[TEXT..].iter().map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
    let mut bytes: Vec<u8> = words.flatten().collect();
    fence(Ordering::Acquire);
    bytes.truncate(usize::try_from(shape >> 1).unwrap_or(LONGEST));
    let text = String::from_utf8_lossy(&bytes).into_owned();
    is_there(Ordering::Relaxed).then_some(LatestMessage { unix_seconds, is_error: shape & 1 == 1, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(latest: &LatestMessages) -> Vec<String> {
        latest.all().into_iter().map(|message| message.text).collect()
    }

    #[test]
    fn the_newest_messages_are_kept_and_all_are_counted() {
        let latest = LatestMessages::new().expect("there is memory");
        assert_eq!(latest.all(), []);
        for number in 0..KEPT + 3 {
            latest.note(number % 2 == 0, Some(&format!("message {number}")));
        }
        latest.note(false, None);
        let expected: Vec<_> = (3..KEPT + 3).rev().map(|number| format!("message {number}")).collect();
        assert_eq!(texts(&latest), expected);
        assert_eq!(latest.counts(), (10, 10));
        let newest = &latest.all()[0];
        assert!(newest.is_error && newest.unix_seconds > 1_700_000_000, "{newest:?}");
    }

    #[test]
    fn a_message_has_one_line_and_a_bound() {
        let latest = LatestMessages::new().expect("there is memory");
        latest.note(true, Some("wrong value\n3 | password = \"x\""));
        latest.note(true, Some(&"é".repeat(LONGEST)));
        latest.note(true, Some(""));
        assert_eq!(texts(&latest), ["é".repeat(LONGEST / 2), "wrong value".to_owned()]);
    }

    #[test]
    fn unfinished_messages_and_wild_bytes_do_no_harm() {
        let latest = LatestMessages::new().expect("there is memory");
        latest.note(true, Some("first"));
        latest.note(true, Some("second"));
        let row = latest.0.row(1);
        row[NUMBER].store(0, Ordering::Relaxed);
        assert_eq!(texts(&latest), ["second"]);
        row.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
        row[NUMBER].store(1, Ordering::Relaxed);
        assert_eq!(texts(&latest)[1], "\u{fffd}".repeat(LONGEST));
        latest.0.row(0)[NEXT].store(u64::MAX, Ordering::Relaxed);
        assert!(latest.all().len() <= KEPT);
    }
}
