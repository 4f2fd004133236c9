//! The access log for measurements of the laboratory: lines without requests.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tenfold_rounds::log::LineLog;

use super::queue::LogQueue;
use super::sink::Sink;
use crate::config::values::log::Full;
use crate::diagnostics::pieces::count as count_lines;

/// Room for all lines of a round.
const ROOM: usize = 1 << 20;
/// The bytes at which a buffer is written, as in the mode `buffered`.
const BUFFER: usize = 64 * 1024;

/// Opens a log in the mode `sync`, `buffered` or `async` on a new file.
pub(crate) fn open(mode: &str, path: &Path) -> Result<Box<dyn LineLog>, String> {
    let file = File::create(path).map_err(|error| format!("cannot create {}: {error}", path.display()))?;
    let sink = Sink::new(file, true);
    match mode {
        "sync" => Ok(Box::new(BufferedLines { sink, lines: Vec::new(), most: 0 })),
        "buffered" => Ok(Box::new(BufferedLines { sink, lines: Vec::new(), most: BUFFER })),
        "async" => QueuedLines::new(sink).map(|log| Box::new(log) as Box<dyn LineLog>),
        _ => Err(format!("there is no log mode `{mode}` to measure; use sync, buffered or async")),
    }
}

/// Lines in a buffer, which is written at more than `most` bytes.
struct BufferedLines {
    sink: Sink,
    lines: Vec<u8>,
    most: usize,
}

impl BufferedLines {
    fn write(&mut self) {
        // A full disk also fails other numbers of the trial. Lost lines are not measured here.
        let _ = self.sink.write(&self.lines);
        self.lines.clear();
    }
}

impl LineLog for BufferedLines {
    fn add(&mut self, line: &[u8]) {
        self.lines.extend_from_slice(line);
        if self.lines.len() > self.most {
            self.write();
        }
    }

    fn settle(&mut self) {
        self.write();
    }
}

/// Lines in the queue of a separate thread.
struct QueuedLines {
    queue: Arc<LogQueue>,
    added: u64,
    written: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl QueuedLines {
    fn new(sink: Sink) -> Result<QueuedLines, String> {
        let (queue, written) = (Arc::new(LogQueue::new(ROOM)), Arc::new(AtomicU64::new(0)));
        let (taken, count) = (queue.clone(), written.clone());
        let work = move || {
            let mut lines = Vec::new();
            while taken.take(&mut lines) {
                let _ = sink.write(&lines);
                count.fetch_add(count_lines(&lines), Ordering::Release);
                lines.clear();
            }
        };
        let thread = thread::Builder::new().name("access-log".into()).spawn(work);
        let thread = thread.map_err(|error| format!("cannot start the thread of the log: {error}"))?;
        Ok(QueuedLines { queue, added: 0, written, thread: Some(thread) })
    }
}

impl LineLog for QueuedLines {
    fn add(&mut self, line: &[u8]) {
        self.added += u64::from(self.queue.put(line, Full::Block));
    }

    fn settle(&mut self) {
        while self.written.load(Ordering::Acquire) < self.added {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for QueuedLines {
    fn drop(&mut self) {
        self.queue.end(Full::Block);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_writes_every_line_in_order() {
        let path = std::env::temp_dir().join(format!("tenfold-log-measured-{}", std::process::id()));
        for mode in ["sync", "buffered", "async"] {
            let mut log = open(mode, &path).unwrap_or_else(|why| panic!("{why}"));
            let mut expected = String::new();
            for round in 0..3 {
                for number in 0..2000 {
                    let line = format!("{mode} {round} {number} with some bytes to fill a buffer\n");
                    log.add(line.as_bytes());
                    expected.push_str(&line);
                }
                log.settle();
                assert_eq!(std::fs::read_to_string(&path).expect("it is there"), expected, "{mode}");
            }
        }
        assert!(open("never", &path).err().expect("no such mode").contains("use sync, buffered or async"));
        std::fs::remove_file(&path).expect("it is removed");
    }
}
