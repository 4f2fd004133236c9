//! A worker's share of a plan: its connections, its share of the schedules, and its times.

use tenfold_sys::connect::Remote;
use tenfold_wire::hpack::FieldList;

use crate::connection::WorkerContext;
use crate::measure::recorder::Recorder;
use crate::message::http2::{LIST_LIMITS, PreparedRequest, RequestsToSend};
use crate::message::request::{self, EncodedRequest};
use crate::message::response::HeadCache;
use crate::plan::pacer::{Pacer, ScheduleShare};
use crate::plan::{LoadPlan, MachinePart, RequestVersion, UrlOrder, nanoseconds};
use crate::tls::TlsTarget;

/// The number of failed connects without a success that ends a run with a schedule of connections.
const MOST_FAILED_CONNECTS: u64 = 10;
/// The slices of a run with a duration.
const SLICES: u64 = 100;
/// The length of a slice in nanoseconds for a run with a number of requests.
const SLICE: u64 = 20_000_000;

/// The steps per second of a slow connection.
pub(crate) const SLOW_STEPS: u64 = 10;

/// The purpose of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// Makes the requests of the plan.
    #[default]
    Active,
    /// Opens by a schedule, makes requests during its lifetime, and closes.
    Held,
    /// Stays open without a request.
    Idle,
    /// Makes requests and reads responses slowly.
    SlowReader,
    /// Writes requests slowly.
    SlowWriter,
}

/// Encoded requests and server addresses, prepared before a run.
#[derive(Clone, Debug)]
pub(crate) struct Targets {
    pub(crate) encoded: Vec<EncodedRequest>,
    /// Requests of HTTP/2, instead of `encoded`.
    pub(crate) prepared: Vec<PreparedRequest>,
    pub(crate) remotes: Vec<Remote>,
    /// TLS of each server; `None` for plain HTTP.
    pub(crate) tls: Vec<Option<TlsTarget>>,
    /// The indexes of each server's requests in `encoded` or `prepared`.
    pub(crate) lists: Vec<Vec<u32>>,
}

/// A worker's share of a plan. Times are nanoseconds of the monotonic clock.
pub(crate) struct Share<'a> {
    pub(crate) plan: &'a LoadPlan,
    pub(crate) targets: &'a Targets,
    pub(crate) remotes: &'a [Remote],
    /// TLS of each server, with the sessions of this worker.
    pub(crate) tls: Vec<Option<TlsTarget>>,
    pub(crate) index: u32,
    pub(crate) workers: u32,
    pub(crate) begin: u64,
    /// The time after which no request begins; `None` without a duration.
    pub(crate) end: Option<u64>,
    /// Nanoseconds after the end in which responses to a schedule still count.
    pub(crate) grace: u64,
    pub(crate) timeout: u64,
    pub(crate) hold: u64,
    /// Whether connections make more than one request, or use HTTP/2, whose frames are sent without delay.
    pub(crate) persistent: bool,
    pub(crate) per_connection: u64,
    /// Bytes of each step of a slow connection.
    pub(crate) slow_step: usize,
    /// The failed connects before the first success that end the run.
    pub(crate) first_wave: u64,
}

impl<'a> Share<'a> {
    pub(crate) fn new(plan: &'a LoadPlan, targets: &'a Targets, index: u32, begin: u64) -> Share<'a> {
        let length = plan.duration.map(nanoseconds);
        let timeout = nanoseconds(plan.timeout);
        let workers = plan.workers();
        let per_connection = plan.per_connection();
        let mut share = Share {
            plan,
            targets,
            remotes: &targets.remotes,
            tls: targets.tls.clone(),
            index,
            workers,
            begin,
            end: length.map(|length| begin + length),
            grace: timeout.min((length.unwrap_or(0) / 10).max(2_000_000_000)),
            timeout,
            hold: plan.hold.map_or(0, nanoseconds),
            persistent: per_connection > 1 || plan.version == RequestVersion::Http2,
            per_connection,
            slow_step: usize::try_from(plan.slow_rate / SLOW_STEPS).unwrap_or(usize::MAX).max(1),
            first_wave: MOST_FAILED_CONNECTS,
        };
        if plan.hold.is_none() {
            let attempts = plan.requests.map_or(u64::MAX, |all| share.part_of(all).max(1));
            share.first_wave = attempts.min(u64::from(share.slot_count()));
        }
        if plan.tls.resume {
            // Servers send about two tickets for each connection.
            let most = 2 * share.slot_count() as usize + 2;
            share.tls.iter_mut().flatten().for_each(|target| *target = target.resuming(most));
        }
        share
    }

    /// The number of slots.
    pub(crate) fn slot_count(&self) -> u32 {
        [Role::Active, Role::Idle, Role::SlowReader, Role::SlowWriter]
            .into_iter()
            .map(|role| self.count(role))
            .sum()
    }

    /// The state that the connections share.
    pub(crate) fn context(&self, buffer: usize) -> WorkerContext<'a> {
        WorkerContext {
            encoded: &self.targets.encoded,
            http2: RequestsToSend {
                prepared: &self.targets.prepared,
                body: &self.plan.body,
                hash: self.plan.expect.hash.is_some(),
            },
            fields: FieldList::new(LIST_LIMITS),
            traits: request::traits(self.plan),
            expect: &self.plan.expect,
            known: vec![HeadCache::default(); self.targets.encoded.len()],
            buffer: vec![0; buffer].into(),
            gathered: Vec::new(),
            recorder: Recorder::new(self.begin, slice_length(self.plan)),
            pending: 0,
        }
    }

    /// The arrivals of requests.
    pub(crate) fn requests(&self) -> Pacer {
        let limit = self.plan.requests.map_or(u64::MAX, |all| self.part_of(all));
        match self.plan.rate {
            None => Pacer::free(self.begin, self.end.unwrap_or(u64::MAX), limit),
            Some(rate) => {
                let part = ScheduleShare { index: self.index, of: self.workers };
                Pacer::scheduled(rate, self.plan.arrivals, part, self.plan.seed, self.span(), limit)
            }
        }
    }

    /// The arrivals of connections.
    pub(crate) fn connections(&self) -> Pacer {
        match self.plan.connection_rate {
            None => Pacer::free(self.begin, u64::MAX, u64::MAX),
            Some(rate) => {
                let part = ScheduleShare { index: self.index, of: self.workers };
                // The seed differs from that of requests, so the two are independent.
                Pacer::scheduled(rate, self.plan.arrivals, part, !self.plan.seed, self.span(), u64::MAX)
            }
        }
    }

    fn span(&self) -> (u64, u64, u64) {
        let end = self.end.unwrap_or(u64::MAX);
        (self.begin, end, end - self.begin)
    }

    /// The number of slots with this role.
    pub(super) fn count(&self, role: Role) -> u32 {
        let all = match role {
            Role::Active | Role::Held => self.plan.active(),
            Role::Idle => self.plan.idle,
            Role::SlowReader => self.plan.slow_readers,
            Role::SlowWriter => self.plan.slow_writers,
        };
        self.part_of(u64::from(all)) as u32
    }

    fn part_of(&self, all: u64) -> u64 {
        let (each, over) = (all / u64::from(self.workers), all % u64::from(self.workers));
        each + u64::from(u64::from(self.index) < over)
    }
}

/// Returns the length of the first slices of a plan in nanoseconds. A long run joins slices.
pub(crate) fn slice_length(plan: &LoadPlan) -> u64 {
    let length = plan.duration.map(nanoseconds).filter(|_| plan.requests.is_none());
    length.map_or(SLICE, |length| (length / SLICES).max(10_000_000))
}

/// The choice of the next request among those of a server.
pub(crate) struct TargetPicker<'a> {
    lists: &'a [Vec<u32>],
    cursors: Vec<usize>,
    random: Option<fastrand::Rng>,
}

impl<'a> TargetPicker<'a> {
    pub(crate) fn new(share: &Share<'a>) -> TargetPicker<'a> {
        let lists = &share.targets.lists;
        let seed = share.plan.seed.wrapping_add(u64::from(share.index));
        let random = (share.plan.order == UrlOrder::Random).then(|| fastrand::Rng::with_seed(seed));
        // The machines begin at different URLs.
        let part = share.plan.part.unwrap_or(MachinePart { machines: 1, ..MachinePart::default() });
        let begin = |list: &Vec<u32>| list.len() * part.machine as usize / part.machines.max(1) as usize;
        TargetPicker { lists, cursors: lists.iter().map(begin).collect(), random }
    }

    #[inline]
    pub(crate) fn next(&mut self, remote: u32) -> u32 {
        let list = &self.lists[remote as usize];
        if list.len() == 1 {
            return list[0];
        }
        if let Some(random) = &mut self.random {
            return list[random.usize(..list.len())];
        }
        let cursor = &mut self.cursors[remote as usize];
        let at = *cursor;
        *cursor = (at + 1) % list.len();
        list[at]
    }
}
