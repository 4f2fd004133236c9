//! The lines of one worker, collected.

use std::fs::File;
use std::path::PathBuf;

use tenfold_http::{Instant, Peer, clock};
use tenfold_sys::lifecycle;

use super::combined::{self, Date};
use super::sink::{LATEST, Sink};
use super::{Log, Open};
use crate::counters::{Counter, Tally};
use crate::diagnostics::{info, warning};

/// Bytes at which the lines are written. One line more fits behind them.
const FULL: usize = 64 * 1024;

/// Collects the lines of a worker and writes them when there are many, or the first has waited a second.
#[derive(Debug)]
pub(crate) struct Writer {
    sink: Sink,
    path: Option<PathBuf>,
    lines: Vec<u8>,
    date: Date,
    /// When the lines are written at the latest.
    due: Instant,
    /// The count of [`lifecycle::reopened`] that the sink belongs to.
    opened: u32,
    failing: bool,
    tally: Tally,
}

/// A line whose bytes are not known yet.
#[derive(Debug)]
pub(crate) struct Begun {
    begin: Vec<u8>,
    referer: Option<Box<[u8]>>,
    agent: Option<Box<[u8]>>,
}

/// What a line says of the client, beside the request.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fields<'a> {
    pub(crate) referer: Option<&'a [u8]>,
    pub(crate) agent: Option<&'a [u8]>,
}

impl Writer {
    /// A worker's own, that counts lost lines in `tally`. None where there is no log, or no descriptor left.
    pub(crate) fn new(log: &Log, tally: Tally) -> Option<Writer> {
        let Open { file, path } = log.0.as_ref()?;
        let file = file.try_clone().map_err(|error| warning!("a worker has no access log: {error}")).ok()?;
        Some(Writer {
            sink: Sink::new(file),
            path: path.clone(),
            lines: Vec::with_capacity(FULL + FULL / 2),
            date: Date::default(),
            due: Instant::NEVER,
            opened: lifecycle::reopened(),
            failing: false,
            tally,
        })
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, peer: &Peer, request: &[u8], status: u16, bytes: u64, fields: Fields<'_>) {
        combined::begin(&mut self.lines, &mut self.date, peer, request, status);
        combined::end(&mut self.lines, bytes, fields.referer, fields.agent);
        self.added();
    }

    /// Begins a line that is added by [`Writer::finish`] when its bytes are known.
    pub(crate) fn begin(&mut self, peer: &Peer, request: &[u8], status: u16, fields: Fields<'_>) -> Begun {
        let mut begin = Vec::with_capacity(request.len() + 64);
        combined::begin(&mut begin, &mut self.date, peer, request, status);
        Begun { begin, referer: fields.referer.map(Box::from), agent: fields.agent.map(Box::from) }
    }

    /// Adds a line that was begun.
    pub(crate) fn finish(&mut self, begun: &Begun, bytes: u64) {
        self.lines.extend_from_slice(&begun.begin);
        combined::end(&mut self.lines, bytes, begun.referer.as_deref(), begun.agent.as_deref());
        self.added();
    }

    fn added(&mut self) {
        if self.due == Instant::NEVER {
            self.due = clock::now() + LATEST;
        }
        if self.lines.len() >= FULL {
            self.write();
        }
    }

    /// Writes what is due, and opens the file anew where that was asked for. Says when it wants to be
    /// called again.
    #[inline]
    pub(crate) fn rest(&mut self) -> Instant {
        if self.opened != lifecycle::reopened() {
            self.reopen();
        }
        if self.due <= clock::now() {
            self.write();
        }
        self.due
    }

    /// Writes all there is.
    pub(crate) fn write(&mut self) {
        self.due = Instant::NEVER;
        if self.lines.is_empty() {
            return;
        }
        match self.sink.write(&self.lines) {
            Ok(()) if self.failing => {
                self.failing = false;
                info!("the access log can be written again");
            }
            Ok(()) => {}
            Err((lost, error)) => {
                self.tally.add(Counter::LinesLost, lost);
                if !self.failing {
                    self.failing = true;
                    warning!(
                        "can not write the access log: {error}; serving goes on, lost lines are counted"
                    );
                }
            }
        }
        self.lines.clear();
    }

    fn reopen(&mut self) {
        self.opened = lifecycle::reopened();
        self.write();
        let Some(path) = &self.path else { return };
        // The supervisor has made it, and given it to whom workers are.
        match File::options().append(true).open(path) {
            Ok(file) => self.sink = Sink::new(file),
            Err(error) => {
                let path = path.display();
                warning!("can not open the access log {path} again: {error}; the old file is written on");
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.write();
    }
}
