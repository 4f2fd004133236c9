//! The file for the lines of all threads of a process. One thread reopens the file for all of them.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use tenfold_sys::lifecycle;
use tenfold_sys::shared::SharedRows;

use super::file;
use super::open::{Log, Open};
use super::queue::LogQueue;
use super::sink::Sink;
use crate::config::values::bounds::LOG_QUEUE;
use crate::config::values::log::{Manner, Mode};
use crate::diagnostics::pieces::count;
use crate::diagnostics::{error, info, warning};
use crate::sandbox;
use crate::status::counters::{Counter, Tally};

/// The access log of a process.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(super) manner: Manner,
    path: Option<PathBuf>,
    /// The sink, and the value of [`lifecycle::reopened`] when it was opened.
    current: Mutex<(u32, Arc<Sink>)>,
    /// Whether a failure was reported: a word that the processes of `fork` share.
    failing: SharedRows,
    /// The queue of the mode `async`.
    pub(super) queue: Option<LogQueue>,
}

impl Outlet {
    /// Opens the outlet of this process, which must not fork afterwards; `None` without a log. The thread of the mode
    /// `async` counts in `tally`.
    pub(crate) fn open(log: Log, tally: Tally) -> io::Result<Option<Arc<Outlet>>> {
        let Some(Open { file, path, manner }) = log.0 else { return Ok(None) };
        let sink = Arc::new(Sink::new(file, path.is_some()));
        let outlet = Arc::new(Outlet {
            queue: (manner.mode == Mode::Async).then(|| LogQueue::new(LOG_QUEUE)),
            manner,
            path,
            current: Mutex::new((lifecycle::reopened(), sink)),
            failing: SharedRows::new(1, 1)?,
        });
        if outlet.queue.is_some() {
            let (writing, tally) = (outlet.clone(), tally.among_others());
            std::thread::Builder::new().name("access-log".into()).spawn(move || {
                if let Err(error) = sandbox::confine_helper() {
                    error!("cannot confine the thread of the access log: {error}");
                    std::process::exit(1);
                }
                writing.empty_queue(tally);
            })?;
        }
        Ok(Some(outlet))
    }

    /// Whether lines show the times of responses.
    pub(crate) fn measures(&self) -> bool {
        self.manner.format.shows_times()
    }

    /// Whether lines show the user of a request.
    pub(crate) fn shows_user(&self) -> bool {
        self.manner.format.shows_user()
    }

    /// The current sink, and the value of [`lifecycle::reopened`] when it was opened.
    pub(super) fn sink(&self) -> (u32, Arc<Sink>) {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The sink for the file that is now at the path. The first thread that calls this opens the file for all threads.
    pub(super) fn reopen(&self) -> (u32, Arc<Sink>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = lifecycle::reopened();
        if current.0 != asked {
            current.0 = asked;
            match self.path.as_ref().map(|path| (path, file::open(path))) {
                None => {}
                Some((_, Ok(file))) => current.1 = Arc::new(Sink::new(file, true)),
                Some((path, Err(why))) => {
                    let path = path.display();
                    warning!(
                        "cannot open the access log {path} again: {why}; lines still go to the old file"
                    );
                }
            }
        }
        current.clone()
    }

    /// Writes whole lines, and counts written and lost lines.
    pub(super) fn write(&self, sink: &Sink, lines: &[u8], tally: Tally) {
        let all = count(lines);
        let failing = &self.failing.row(0)[0];
        let lost = match sink.write(lines) {
            Ok(()) => {
                if failing.swap(0, Ordering::Relaxed) != 0 {
                    info!("the access log can be written again");
                }
                0
            }
            Err((lost, error)) => {
                tally.add(Counter::LinesLost, lost);
                if failing.swap(1, Ordering::Relaxed) == 0 {
                    warning!("cannot write the access log: {error}; serving goes on, lost lines are counted");
                }
                lost
            }
        };
        tally.add(Counter::Lines, all - lost);
    }

    /// Runs the thread of the mode `async` until the queue has ended.
    fn empty_queue(&self, tally: Tally) {
        let Some(queue) = &self.queue else { return };
        let (mut opened, mut sink) = self.sink();
        let mut lines = Vec::new();
        while queue.take(&mut lines) {
            if opened != lifecycle::reopened() {
                (opened, sink) = self.reopen();
            }
            if !lines.is_empty() {
                self.write(&sink, &lines, tally);
                lines.clear();
            }
        }
    }

    /// Waits until the queue is written. The process calls this before it ends.
    pub(crate) fn end(&self, tally: Tally) {
        if let Some(queue) = &self.queue {
            let left = queue.end(self.manner.full);
            tally.among_others().add(Counter::LinesLost, left);
        }
    }
}
