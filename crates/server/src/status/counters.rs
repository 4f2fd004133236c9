//! The counters of workers, in memory that the supervisor reads.
//!
//! Only its worker writes a row, so counting is a load and a store in a cached line. The processes of `fork` share the
//! row of their parent, with atomic additions.

use std::sync::atomic::{AtomicU64, Ordering};

use tenfold_engine::Event;
use tenfold_http::{GoAwayClass, Http2Counts, Method, Refusal, Version};

use super::latency::{self, Observed, Until};

/// Defines the counters, and the reasons of refusals: counters with a name in `tenfold status`.
macro_rules! counters {
    ($($(#[$doc:meta])* $counter:ident $(= $reason:literal)?,)*) => {
        /// A counter. The reasons of refusals begin at [`Counter::Malformed`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub(crate) enum Counter {
            $($(#[$doc])* $counter,)*
        }

        /// The reasons of refusals, with their names in `tenfold status`.
        pub(crate) const REFUSALS: &[(Counter, &str)] = &[$($((Counter::$counter, $reason),)?)*];
    };
}

counters! {
    /// 1 if the worker can serve.
    Ready,
    /// The time of the last turn of the worker's loop; 0 without a loop, and while no turns are expected.
    LastTurn,
    Accepted,
    Closed,
    /// Answered requests of HTTP/1.0. This counter and the next two are all requests.
    Http10,
    Http11,
    Http2,
    /// Bytes given to the kernel.
    Sent,
    /// Written lines of the access log.
    Lines,
    /// Lines lost by failed writes.
    LinesLost,
    /// Lines dropped because the queue had no room.
    LinesDropped,
    Panicked,
    /// System calls that the sandbox answered with EPERM.
    RefusedCalls,
    /// Pieces of files that were copied because the sender's resources were unavailable.
    Substituted,
    /// Idle connections that were closed for new ones.
    Evicted,
    /// Full TLS handshakes.
    TlsFull,
    /// Resumed TLS handshakes.
    TlsResumed,
    /// Failed TLS handshakes.
    TlsFailed,
    /// RST_STREAM frames of clients, and of the server with an error.
    ClientResets,
    ServerResets,
    /// GOAWAY frames by their code.
    GoAwayNoError,
    GoAwayCalm,
    GoAwayError,
    /// Responses from the memory of a worker. This counter and the next three count only if there is an admin listener.
    CacheHits,
    /// Jobs given to other threads.
    WorkBegun,
    /// Jobs that ended: with a result, or because the client left.
    WorkEnded,
    /// Jobs for which the queue had no room.
    WorkRejected,
    /// Zero-copy sends whose memory the kernel has released.
    HeldSends,
    /// Zero-copy sends that the kernel copied.
    HeldCopied,
    Malformed = "malformed",
    TimedOut = "timed-out",
    TargetTooLong = "target-too-long",
    HeadTooLarge = "head-too-large",
    BodyTooLarge = "body-too-large",
    UnknownMethod = "unknown-method",
    UnknownTransferCoding = "unknown-transfer-coding",
    UnknownVersion = "unknown-version",
    UnknownExpectation = "unknown-expectation",
    OtherScheme = "other-scheme",
    Overdue = "overdue",
    Busy = "busy",
    /// Connections past the bound.
    TooMany = "too-many-connections",
    /// Connections past the bound of one address.
    TooManyOfAddress = "too-many-of-address",
    /// Requests past the rate of one address.
    Throttled = "throttled",
    /// TLS handshakes past the bound of a process.
    TooManyHandshakes = "too-many-handshakes",
    /// TLS handshakes past the rate of one address.
    HandshakesOfAddress = "handshakes-of-address",
    /// Connections without the PROXY header that their listener requires.
    ProxyHeader = "proxy-header",
    /// Connections that were not accepted because descriptors or memory ran out.
    Exhausted = "exhausted",
    /// Connections that sent no data in time.
    Expired = "expired",
}

const NUMBERS: usize = Counter::Expired as usize + 1;
const FIRST_STATUS: u16 = 100;
const LAST_STATUS: u16 = 599;

/// Words of a row: the counters, then a word for each status code.
pub(crate) const WORDS: usize = NUMBERS + (LAST_STATUS - FIRST_STATUS + 1) as usize;

/// Words of an observed row: [`WORDS`], then the words for an admin listener.
pub(crate) const OBSERVED_WORDS: usize = WORDS + latency::WORDS;

/// Writes the row of a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    words: &'static [AtomicU64],
    shared: bool,
}

impl Tally {
    /// A tally of `words`, a row of [`WORDS`] or [`OBSERVED_WORDS`]; `shared` if other processes write the same row.
    pub(crate) fn new(words: &'static [AtomicU64], shared: bool) -> Tally {
        assert!([WORDS, OBSERVED_WORDS].contains(&words.len()), "a row has a word for each counter");
        Tally { words, shared }
    }

    /// Whether the row has words for an admin listener.
    pub(crate) fn is_observed(&self) -> bool {
        self.words.len() == OBSERVED_WORDS
    }

    /// Counts an answered request. The row must be observed.
    #[inline]
    pub(crate) fn request(&self, method: Method, status: u16) {
        self.add_at(WORDS + latency::place_of_request(method, status), 1);
    }

    /// Counts a latency. The row must be observed.
    #[inline]
    pub(crate) fn time(&self, until: Until, nanoseconds: u64) {
        let (bucket, sum) = latency::places_of_time(until, nanoseconds);
        self.add_at(WORDS + bucket, 1);
        self.add_at(WORDS + sum, nanoseconds);
    }

    /// A tally for one of several threads that write this row.
    pub(crate) fn among_others(self) -> Tally {
        Tally { shared: true, ..self }
    }

    /// Adds `by` to a counter.
    #[inline]
    pub(crate) fn add(&self, counter: Counter, by: u64) {
        self.add_at(counter as usize, by);
    }

    #[inline]
    fn add_at(&self, place: usize, by: u64) {
        let word = &self.words[place];
        if self.shared {
            word.fetch_add(by, Ordering::Relaxed);
        } else {
            word.store(word.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
        }
    }

    /// Counts an answered request by its version.
    #[inline]
    pub(crate) fn answer(&self, version: Version) {
        let counter = match version {
            Version::Http10 => Counter::Http10,
            Version::Http11 => Counter::Http11,
            Version::Http2 => Counter::Http2,
        };
        self.add(counter, 1);
    }

    /// Counts the ends of HTTP/2 streams and connections.
    pub(crate) fn count_http2(&self, counts: Http2Counts) {
        self.add(Counter::ClientResets, u64::from(counts.client_resets));
        self.add(Counter::ServerResets, u64::from(counts.server_resets));
        match counts.goaway {
            None => {}
            Some(GoAwayClass::NoError) => self.add(Counter::GoAwayNoError, 1),
            Some(GoAwayClass::EnhanceYourCalm) => self.add(Counter::GoAwayCalm, 1),
            Some(GoAwayClass::Error) => self.add(Counter::GoAwayError, 1),
        }
    }

    #[inline]
    pub(crate) fn respond(&self, status: u16) {
        if (FIRST_STATUS..=LAST_STATUS).contains(&status) {
            self.add_at(NUMBERS + usize::from(status - FIRST_STATUS), 1);
        }
    }

    /// Counts a refusal by its reason, and its response by the status.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        self.add(reason(refusal), 1);
        self.respond(refusal.status());
    }

    #[inline]
    pub(crate) fn observe(&self, event: Event) {
        match event {
            Event::Accepted => self.add(Counter::Accepted, 1),
            Event::Closed => self.add(Counter::Closed, 1),
            Event::TooMany => self.add(Counter::TooMany, 1),
            Event::Evicted => self.add(Counter::Evicted, 1),
            Event::Exhausted => self.add(Counter::Exhausted, 1),
            Event::Expired => self.add(Counter::Expired, 1),
            Event::Panicked => self.add(Counter::Panicked, 1),
            // The sandbox counts and reports refused calls.
            Event::Trapped => {}
            Event::Sent(bytes) => self.add(Counter::Sent, bytes),
            Event::Substituted(pieces) => self.add(Counter::Substituted, u64::from(pieces)),
            Event::Released { sends, copied } => {
                self.add(Counter::HeldSends, u64::from(sends));
                self.add(Counter::HeldCopied, u64::from(copied));
            }
        }
    }

    /// The word of a counter, for a signal handler.
    pub(crate) fn word(&self, counter: Counter) -> &'static AtomicU64 {
        &self.words[counter as usize]
    }

    /// Marks the worker as able to serve.
    pub(crate) fn ready(&self) {
        self.words[Counter::Ready as usize].store(1, Ordering::Relaxed);
    }
}

fn reason(refusal: Refusal) -> Counter {
    match refusal {
        Refusal::Malformed(_) => Counter::Malformed,
        Refusal::TimedOut => Counter::TimedOut,
        Refusal::TargetTooLong => Counter::TargetTooLong,
        Refusal::HeadTooLarge => Counter::HeadTooLarge,
        Refusal::BodyTooLarge => Counter::BodyTooLarge,
        Refusal::UnknownMethod => Counter::UnknownMethod,
        Refusal::UnknownTransferCoding => Counter::UnknownTransferCoding,
        Refusal::UnknownVersion => Counter::UnknownVersion,
        Refusal::UnknownExpectation => Counter::UnknownExpectation,
        Refusal::Misdirected => Counter::OtherScheme,
        Refusal::Overdue => Counter::Overdue,
        Refusal::Busy => Counter::Busy,
    }
}

/// Whether the worker of a row can serve.
pub(crate) fn is_ready(row: &[AtomicU64]) -> bool {
    row[Counter::Ready as usize].load(Ordering::Relaxed) != 0
}

/// Prepares the row of an ended worker for its replacement. The connections and jobs of the worker ended with it.
pub(crate) fn settle(row: &[AtomicU64]) {
    let of = |counter: Counter| row[counter as usize].load(Ordering::Relaxed);
    row[Counter::Closed as usize].store(of(Counter::Accepted), Ordering::Relaxed);
    row[Counter::WorkEnded as usize].store(of(Counter::WorkBegun), Ordering::Relaxed);
    row[Counter::Ready as usize].store(0, Ordering::Relaxed);
    row[Counter::LastTurn as usize].store(0, Ordering::Relaxed);
}

/// The time of the last turn in a row.
pub(crate) fn last_turn(row: &[AtomicU64]) -> u64 {
    row[Counter::LastTurn as usize].load(Ordering::Relaxed)
}

/// The numbers of a row at one time, or the sums of several rows.
#[derive(Clone, Debug)]
pub(crate) struct Sums(Vec<u64>);

impl Default for Sums {
    fn default() -> Sums {
        Sums(vec![0; OBSERVED_WORDS])
    }
}

impl Sums {
    /// Adds the current numbers of a row.
    pub(crate) fn add(&mut self, row: &[AtomicU64]) {
        self.0
            .iter_mut()
            .zip(row)
            .for_each(|(sum, word)| *sum = sum.saturating_add(word.load(Ordering::Relaxed)));
    }

    pub(crate) fn add_sums(&mut self, other: &Sums) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
    }

    pub(crate) fn of(&self, counter: Counter) -> u64 {
        self.0[counter as usize]
    }

    /// Answered requests of all versions.
    pub(crate) fn requests(&self) -> u64 {
        [Counter::Http10, Counter::Http11, Counter::Http2]
            .into_iter()
            .fold(0, |sum, version| sum.saturating_add(self.of(version)))
    }

    /// Open connections. Workers change both counters between the two reads, so the difference may be slightly wrong;
    /// it is never negative.
    pub(crate) fn open(&self) -> u64 {
        self.of(Counter::Accepted).saturating_sub(self.of(Counter::Closed))
    }

    /// The counts for an admin listener.
    pub(crate) fn observed(&self) -> Observed {
        Observed::of(&self.0[WORDS..])
    }

    /// The status codes that occurred, with their counts.
    pub(crate) fn responses(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let all = (FIRST_STATUS..=LAST_STATUS).zip(self.0[NUMBERS..WORDS].iter().copied());
        all.filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> &'static [AtomicU64] {
        (0..WORDS).map(|_| AtomicU64::new(0)).collect::<Vec<_>>().leak()
    }

    #[test]
    fn counters_of_workers_are_summed() {
        let rows = [row(), row()];
        let (alone, shared) = (Tally::new(rows[0], false), Tally::new(rows[1], true));
        for tally in [alone, shared] {
            tally.observe(Event::Accepted);
            tally.observe(Event::Accepted);
            tally.observe(Event::Closed);
            tally.observe(Event::Sent(100));
            tally.respond(200);
            tally.respond(599);
            tally.refuse(Refusal::Malformed("of a test"));
            tally.answer(Version::Http11);
            tally.answer(Version::Http2);
            tally.count_http2(Http2Counts {
                client_resets: 3,
                server_resets: 0,
                goaway: Some(GoAwayClass::EnhanceYourCalm),
            });
        }
        let mut sums = Sums::default();
        rows.iter().for_each(|row| sums.add(row));
        assert_eq!(sums.open(), 2);
        assert_eq!(sums.of(Counter::Sent), 200);
        assert_eq!(sums.of(Counter::Malformed), 2);
        assert_eq!((sums.requests(), sums.of(Counter::Http2)), (4, 2));
        assert_eq!((sums.of(Counter::ClientResets), sums.of(Counter::GoAwayCalm)), (6, 2));
        assert_eq!(sums.responses().collect::<Vec<_>>(), [(200, 2), (400, 2), (599, 2)]);
    }

    #[test]
    fn a_row_of_any_numbers_is_summed() {
        let wild = row();
        wild.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
        let mut sums = Sums::default();
        sums.add(wild);
        sums.add(wild);
        sums.add_sums(&sums.clone());
        assert_eq!((sums.of(Counter::Http2), sums.open()), (u64::MAX, 0));
    }

    #[test]
    fn a_worker_that_is_gone_takes_its_connections_with_it() {
        let row = row();
        let tally = Tally::new(row, false);
        tally.ready();
        tally.observe(Event::Accepted);
        assert!(is_ready(row));
        settle(row);
        let mut sums = Sums::default();
        sums.add(row);
        assert_eq!((sums.open(), sums.of(Counter::Accepted), sums.of(Counter::Closed)), (0, 1, 1));
        assert!(!is_ready(row));
    }

    #[test]
    fn every_refusal_has_a_name_and_every_name_a_counter_of_its_own() {
        let mut places: Vec<_> = REFUSALS.iter().map(|(counter, _)| *counter as usize).collect();
        places.dedup();
        let first = Counter::Malformed as usize;
        assert_eq!(places, (first..NUMBERS).collect::<Vec<_>>());
    }
}
