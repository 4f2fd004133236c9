//! The state of the threads of a worker process: the row that each counts in, and its part of the access log.
//!
//! Each thread keeps its own part in thread-local storage, so the request path takes no lock.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;
use std::{io, thread};

use tenfold_engine::Event;
use tenfold_http::{Instant, clock};
use tenfold_sys::lifecycle::{self, Phase};
use tenfold_sys::shared::SharedRows;

use crate::diagnostics::warning;
use crate::log::open::Log;
use crate::log::outlet::Outlet;
use crate::log::writer::Writer;
use crate::sandbox;
use crate::status::counters::{Counter, Tally};
use crate::status::turns;

/// The state that the threads of a worker process share.
#[derive(Debug)]
pub(crate) struct WorkerShared {
    /// Rows live as long as the process, so threads hold them without counting references.
    rows: &'static SharedRows,
    /// The rows of this process, one per thread in order of arrival; threads beyond the last row share it.
    own: Range<usize>,
    /// The number of threads that have asked for a row.
    come: AtomicUsize,
    gate: Gate,
    /// Whether several processes or threads count in a row (`fork`, a pool).
    shared: bool,
    outlet: Option<Arc<Outlet>>,
    number: u32,
    /// Whether refused connections were reported.
    said_full: AtomicBool,
    /// Whether evicted connections were reported.
    said_evicted: AtomicBool,
}

/// The methods of a [`tenfold_engine::Protocol`] that its field with [`WorkerShared`] has.
macro_rules! worker_hooks {
    ($($worker:ident).+) => {
        #[inline]
        fn observe(&self, event: tenfold_engine::Event) {
            self.$($worker).+.observe(event);
        }

        fn join(&self) {
            self.$($worker).+.join();
        }

        fn begin(&self) {
            self.$($worker).+.begin();
        }

        #[inline]
        fn before_wait(&self, is_loop: bool) -> tenfold_http::Instant {
            self.$($worker).+.before_wait(is_loop)
        }

        fn drain(&self) {
            self.$($worker).+.drain();
        }
    };
}
pub(super) use worker_hooks;

/// The state of one thread.
pub(crate) struct WorkerLocal {
    pub(crate) tally: Tally,
    pub(crate) writer: Option<Writer>,
    /// The number of its row.
    pub(crate) place: usize,
    worker: u32,
}

thread_local! {
    static LOCAL: RefCell<Option<WorkerLocal>> = const { RefCell::new(None) };
}

static WORKERS: AtomicU32 = AtomicU32::new(0);

impl WorkerShared {
    /// Threads that count in these rows and write to `log`. There is at least one row.
    ///
    /// # Errors
    /// A message: the thread of the log cannot be started. Without it, the worker must not serve.
    pub(crate) fn new(
        rows: &'static SharedRows,
        own: Range<usize>,
        gate: Gate,
        shared: bool,
        log: Log,
    ) -> Result<Arc<WorkerShared>, String> {
        let outlet = Outlet::open(log, Tally::new(rows.row(own.start), shared));
        let outlet = outlet.map_err(|error| format!("cannot start the thread of the access log: {error}"))?;
        let number = WORKERS.fetch_add(1, Ordering::Relaxed);
        let (come, said_full, said_evicted) = Default::default();
        Ok(Arc::new(WorkerShared { rows, own, come, gate, shared, outlet, number, said_full, said_evicted }))
    }

    /// Calls `use_it` with the state of this thread. Does nothing if the thread is about to end.
    #[inline]
    pub(crate) fn with<T>(&self, use_it: impl FnOnce(&mut WorkerLocal) -> T) -> Option<T> {
        LOCAL
            .try_with(|local| {
                let mut local = local.borrow_mut();
                match local.as_mut() {
                    Some(local) if local.worker == self.number => use_it(local),
                    _ => use_it(local.insert(self.arrive())),
                }
            })
            .ok()
    }

    /// See [`tenfold_engine::Protocol::join`].
    pub(crate) fn join(&self) {
        self.with(|_| ());
    }

    /// See [`tenfold_engine::Protocol::begin`].
    pub(crate) fn begin(&self) {
        self.with(|local| local.tally.ready());
        self.gate.pass();
    }

    #[cold]
    fn arrive(&self) -> WorkerLocal {
        let place = self.own.start + self.come.fetch_add(1, Ordering::Relaxed);
        let place = place.min(self.own.end - 1);
        let tally = Tally::new(self.rows.row(place), self.shared);
        WorkerLocal {
            tally,
            writer: self.outlet.as_ref().map(|outlet| Writer::new(outlet, tally)),
            place,
            worker: self.number,
        }
    }

    /// Writes buffered lines before a wait, and notes a turn of a loop: see [`tenfold_engine::Protocol::before_wait`].
    #[inline]
    pub(crate) fn before_wait(&self, is_loop: bool) -> Instant {
        let due = self.with(|local| {
            let due = local.writer.as_mut().map_or(Instant::NEVER, Writer::before_wait);
            if !is_loop {
                return due;
            }
            let now = clock::now();
            turns::turn(local.tally.word(Counter::LastTurn), now);
            due.min(now + turns::LONGEST_WAIT)
        });
        due.unwrap_or(Instant::NEVER)
    }

    /// Counts the events of an engine.
    #[inline]
    pub(crate) fn observe(&self, event: Event) {
        match event {
            Event::TooMany => self.say_full(),
            Event::Evicted => self.say_evicted(),
            Event::Trapped => sandbox::report_connection(),
            _ => {}
        }
        self.with(|local| local.tally.observe(event));
    }

    /// Reports once that connections are refused.
    #[cold]
    fn say_full(&self) {
        if !self.said_full.swap(true, Ordering::Relaxed) {
            warning!(
                "there are as many connections as the bounds allow (`tenfold serve -v` prints them): new ones are \
                 closed and counted (`tenfold status`; logged once)"
            );
        }
    }

    /// Reports once that idle connections are closed for new ones, because the limit is low for the load.
    #[cold]
    fn say_evicted(&self) {
        if !self.said_evicted.swap(true, Ordering::Relaxed) {
            warning!(
                "the bound on connections is reached: idle connections are closed for new ones and counted (`tenfold \
                 status`; logged once); raise max-connections, shorten idle-timeout, or take an engine for more connections"
            );
        }
    }

    /// Whether the log shows the times of responses.
    pub(crate) fn measures(&self) -> bool {
        self.outlet.as_ref().is_some_and(|outlet| outlet.measures())
    }

    /// Whether the log shows the user of a request.
    pub(crate) fn shows_user(&self) -> bool {
        self.outlet.as_ref().is_some_and(|outlet| outlet.shows_user())
    }

    /// Whether there is an access log.
    #[inline]
    pub(crate) fn has_log(&self) -> bool {
        self.outlet.is_some()
    }

    /// Whether there is an admin listener, which needs more counts.
    pub(crate) fn is_observed(&self) -> bool {
        Tally::new(self.rows.row(self.own.start), self.shared).is_observed()
    }

    /// Waits until every line is written, before the process ends.
    pub(crate) fn end(&self) {
        if let Some(outlet) = &self.outlet {
            outlet.end(Tally::new(self.rows.row(self.own.start), self.shared));
        }
    }

    /// Writes buffered lines before the worker ends: see [`tenfold_engine::Protocol::drain`].
    pub(crate) fn drain(&self) {
        turns::pause();
        self.with(|local| local.writer.as_mut().map(Writer::write));
    }
}

/// The interval of checks of a closed gate.
const TICK: Duration = Duration::from_millis(1);

/// Keeps the workers of a generation from accepting connections until all of them can serve: if one cannot start, the
/// others end, and their connections would end with them.
#[derive(Clone, Debug)]
pub(crate) struct Gate(Arc<SharedRows>);

impl Gate {
    /// A closed gate, for this process and its children.
    pub(crate) fn new() -> io::Result<Gate> {
        Ok(Gate(Arc::new(SharedRows::new(1, 1)?)))
    }

    /// Opens the gate.
    pub(crate) fn open(&self) {
        self.0.row(0)[0].store(1, Ordering::Release);
    }

    /// Waits until the gate is open or the process is asked to end.
    pub(crate) fn pass(&self) {
        while self.0.row(0)[0].load(Ordering::Acquire) == 0 && lifecycle::phase() == Phase::Serving {
            thread::sleep(TICK);
        }
    }
}
