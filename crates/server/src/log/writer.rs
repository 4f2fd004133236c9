//! The lines of a thread before they reach the [`Outlet`].

use std::sync::Arc;
use std::time::Duration;

use tenfold_http::{Instant, Peer, RequestSummary, TlsFacts, clock};
use tenfold_sys::lifecycle;

use super::line::{Date, LineStart, LogFields, Times};
use super::outlet::Outlet;
use super::sink::Sink;
use super::{combined, json, template};
use crate::config::values::log::{LogFormat, Mode};
use crate::status::counters::{Counter, Tally};

/// The number of bytes at which the mode `buffered` writes. The buffer has room for one more line.
const FULL: usize = 64 * 1024;
/// The longest delay of lines.
const LATEST: Duration = Duration::from_secs(1);

/// Formats the lines of a thread, and writes due lines.
#[derive(Debug)]
pub(crate) struct Writer {
    outlet: Arc<Outlet>,
    format: LogFormat,
    sink: Arc<Sink>,
    /// The value of [`lifecycle::reopened`] when the sink was opened.
    opened: u32,
    lines: Vec<u8>,
    /// The request of the current line, as the log shows it.
    request: Vec<u8>,
    date: Date,
    /// The latest time of writing.
    due: Instant,
    tally: Tally,
}

/// An incomplete line.
#[derive(Debug)]
pub(crate) struct Begun {
    begin: Vec<u8>,
    referer: Option<Box<[u8]>>,
    agent: Option<Box<[u8]>>,
    tls: Option<Arc<TlsFacts>>,
}

impl Writer {
    /// The writer of a thread, which counts its lines in `tally`.
    pub(crate) fn new(outlet: &Arc<Outlet>, tally: Tally) -> Writer {
        let (opened, sink) = outlet.sink();
        Writer {
            outlet: outlet.clone(),
            format: outlet.manner.format.clone(),
            sink,
            opened,
            lines: Vec::new(),
            request: Vec::new(),
            date: Date::default(),
            due: Instant::NEVER,
            tally,
        }
    }

    /// Adds a line.
    pub(crate) fn add(
        &mut self,
        peer: &Peer,
        request: RequestSummary<'_>,
        status: u16,
        bytes: u64,
        fields: LogFields<'_>,
        times: Times,
    ) {
        self.show(request);
        let start = LineStart { peer, request: &self.request, summary: request, status, fields };
        begin(&self.format, &mut self.lines, &mut self.date, start, Some((bytes, times)));
        end(&self.format, &mut self.lines, bytes, fields, times);
        self.added();
    }

    /// Begins a line. [`Writer::finish`] completes it.
    pub(crate) fn begin(
        &mut self,
        peer: &Peer,
        request: RequestSummary<'_>,
        status: u16,
        fields: LogFields<'_>,
    ) -> Begun {
        self.show(request);
        let mut begin = Vec::with_capacity(self.request.len() + 96);
        let start = LineStart { peer, request: &self.request, summary: request, status, fields };
        self::begin(&self.format, &mut begin, &mut self.date, start, None);
        if let LogFormat::Own(_) = self.format {
            return Begun { begin, referer: None, agent: None, tls: None };
        }
        let (referer, agent) = (fields.referer.map(Box::from), fields.agent.map(Box::from));
        Begun { begin, referer, agent, tls: fields.tls.cloned() }
    }

    fn show(&mut self, request: RequestSummary<'_>) {
        self.request.clear();
        request.write(&mut self.request);
    }

    /// Completes and adds a line.
    pub(crate) fn finish(&mut self, begun: &Begun, bytes: u64, times: Times) {
        if let LogFormat::Own(own) = &self.format {
            template::finish(own, &mut self.lines, &begun.begin, bytes, times);
            return self.added();
        }
        self.lines.extend_from_slice(&begun.begin);
        let (referer, agent) = (begun.referer.as_deref(), begun.agent.as_deref());
        let fields = LogFields { referer, agent, tls: begun.tls.as_ref(), ..LogFields::default() };
        end(&self.format, &mut self.lines, bytes, fields, times);
        self.added();
    }

    fn added(&mut self) {
        match self.outlet.manner.mode {
            Mode::Buffered => {
                if self.due == Instant::NEVER {
                    self.due = clock::now() + LATEST;
                }
                if self.lines.len() >= FULL {
                    self.write();
                }
            }
            Mode::Sync => {
                self.reopen_where_asked();
                self.write();
            }
            Mode::Async => {
                let (queue, full) = (&self.outlet.queue, self.outlet.manner.full);
                let put = queue.as_ref().is_some_and(|queue| queue.put(&self.lines, full));
                self.tally.add(Counter::LinesDropped, u64::from(!put));
                self.lines.clear();
            }
        }
    }

    /// Writes due lines, and changes to the new file after a request to reopen. Returns the time of the next call.
    #[inline]
    pub(crate) fn before_wait(&mut self) -> Instant {
        self.reopen_where_asked();
        if self.due <= clock::now() {
            self.write();
        }
        self.due
    }

    /// Writes all lines.
    pub(crate) fn write(&mut self) {
        self.due = Instant::NEVER;
        if !self.lines.is_empty() {
            self.outlet.write(&self.sink, &self.lines, self.tally);
            self.lines.clear();
        }
    }

    #[inline]
    fn reopen_where_asked(&mut self) {
        if self.opened != lifecycle::reopened() {
            self.reopen();
        }
    }

    #[cold]
    fn reopen(&mut self) {
        // Buffered lines belong to the old file.
        if self.outlet.manner.mode == Mode::Buffered {
            self.write();
        }
        (self.opened, self.sink) = self.outlet.reopen();
    }
}

/// Writes the start of a line: the fields that are known before the length of the response. A format of the user's own
/// also writes its end if the length is known.
fn begin(
    format: &LogFormat,
    line: &mut Vec<u8>,
    date: &mut Date,
    start: LineStart<'_>,
    end: Option<(u64, Times)>,
) {
    match format {
        LogFormat::Common | LogFormat::Combined => {
            combined::begin(line, date.common(), start.peer, start.request, start.status)
        }
        LogFormat::Json => json::begin(line, date.rfc3339(), start),
        LogFormat::Own(own) => template::put(own, line, date, start, end),
    }
}

/// Writes the rest of a line.
fn end(format: &LogFormat, line: &mut Vec<u8>, bytes: u64, fields: LogFields<'_>, times: Times) {
    match format {
        LogFormat::Common => combined::end_common(line, bytes),
        LogFormat::Combined => combined::end(line, bytes, fields),
        LogFormat::Json => json::end(line, bytes, fields, times),
        LogFormat::Own(_) => {}
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.write();
    }
}
