//! `asio`: readiness through Asio's reactor, by `async_wait`.
//!
//! Asio registers each descriptor with epoll once, edge-triggered, and a new wait calls `epoll_ctl(2)` to check the
//! state. A wait ends with its report. Handlers run one by one. There is no choice of triggers.
//!
//! System calls of a request on a keep-alive connection: epoll_wait, recv, write, epoll_ctl.
//!
//! Loop: `crates/engine/src/drivers/readiness/reactor.rs`. Page: `docs/explanation/models/asio.md`.

use std::io;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError};

use tenfold_sys::asio::{IoContext, StreamDescriptor};
use tenfold_sys::readiness::Ready;

use crate::drivers::readiness::selector::{Interest, Rearm, Reporting, Selector};
use crate::drivers::readiness::serve;
use crate::plan::Plan;
use crate::plan::mechanism::Facility;
use crate::protocol::Protocol;
use crate::worker::intake::Intake;

struct AsioSelector {
    context: IoContext,
    connections: Arc<AsioSockets>,
    sources: Vec<AsioSource>,
}

/// A listener or an eventfd. Its next wait begins when the report has been handled.
struct AsioSource {
    number: RawFd,
    word: u64,
    watched: StreamDescriptor,
    waits: bool,
}

/// Connections by descriptor. Any thread can begin a wait of Asio.
#[derive(Default)]
struct AsioSockets(Mutex<Vec<Option<StreamDescriptor>>>);

/// Serves until the server leaves.
pub(crate) fn run<P: Protocol>(plan: &Plan, intake: &Intake<'_>, protocol: &P) -> Result<(), String> {
    let context = IoContext::new().map_err(|error| format!("cannot make an io_context: {error}"))?;
    let selector = AsioSelector { context, connections: Arc::default(), sources: Vec::new() };
    serve(Box::new(selector), plan, intake, protocol)
}

/// Fails with the facility that this build or kernel lacks, and the error.
pub(crate) fn probe() -> Result<(), (Facility, String)> {
    IoContext::new().map(drop).map_err(|error| (Facility::Asio, error.to_string()))
}

impl AsioSockets {
    /// Calls `act` with the entry of descriptor `number`.
    fn at<T>(&self, number: RawFd, act: impl FnOnce(&mut Option<StreamDescriptor>) -> T) -> T {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = usize::try_from(number).expect("an open descriptor is not negative");
        if all.len() <= place {
            all.resize_with(place + 1, || None);
        }
        act(&mut all[place])
    }
}

impl Rearm for AsioSockets {
    fn rearm(&self, number: RawFd, word: u64, interest: Interest) -> io::Result<()> {
        let begin = |place: &mut Option<StreamDescriptor>| match place {
            Some(watched) => watched.wait(word, interest.read, interest.write),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        self.at(number, begin)
    }
}

impl Selector for AsioSelector {
    fn reporting(&self) -> Reporting {
        Reporting { one_shot: true, edge: false, errors: false, events: true }
    }

    fn rearm(&self) -> Option<Arc<dyn Rearm>> {
        Some(self.connections.clone())
    }

    fn watch_source(&mut self, number: RawFd, word: u64) -> io::Result<()> {
        let watched = self.context.watch(number, word)?;
        self.sources.push(AsioSource { number, word, watched, waits: false });
        Ok(())
    }

    fn watch(&mut self, number: RawFd, word: u64, interest: Interest) -> io::Result<()> {
        let watched = self.context.watch(number, word)?;
        self.connections.at(number, |place| *place = Some(watched));
        self.connections.rearm(number, word, interest)
    }

    fn change(&mut self, number: RawFd, word: u64, interest: Interest) -> io::Result<()> {
        self.connections.rearm(number, word, interest)
    }

    fn forget(&mut self, number: RawFd) {
        self.sources.retain(|source| source.number != number);
        self.connections.at(number, |place| *place = None);
    }

    fn closing(&mut self, number: RawFd) {
        self.connections.at(number, |place| *place = None);
    }

    fn wait(&mut self, milliseconds: Option<u32>, events: &mut Vec<Ready>) -> io::Result<()> {
        for source in self.sources.iter_mut().filter(|source| !source.waits) {
            source.watched.wait(source.word, true, false)?;
            source.waits = true;
        }
        self.context.run(milliseconds, |ready| events.push(ready))?;
        for event in events.iter() {
            for source in self.sources.iter_mut().filter(|source| source.word == event.key) {
                source.waits = false;
            }
        }
        Ok(())
    }
}
