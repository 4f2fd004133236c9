//! Lines of an access log.

use std::hint::black_box;
use std::time::Instant;

use crate::Round;

/// Lines of a round. The queue of a log has room for them.
const LINES: u32 = 500;
const LINE: &[u8] =
    b"127.0.0.1 - - [23/Nov/2026:05:40:00 +0000] \"GET /index.html HTTP/1.1\" 200 1067 \"-\" \"curl/8.5.0\"\n";

/// An access log in process.
pub trait LineLog: Send {
    /// Adds a whole line, as the path of a request does.
    fn add(&mut self, line: &[u8]);
    /// Waits until every line is written.
    fn settle(&mut self);
}

/// A round adds lines and waits until they are written.
pub fn round(mut log: Box<dyn LineLog>) -> Box<Round> {
    Box::new(move |_| {
        let clock = Instant::now();
        for _ in 0..LINES {
            log.add(black_box(LINE));
        }
        let nanoseconds = clock.elapsed().as_nanos() as f64 / f64::from(LINES);
        log.settle();
        (nanoseconds, None)
    })
}
