//! A worker's copy of the filter of session cookies.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tenfold_accounts::filter::Filter;
use tenfold_accounts::{Query, Reply};
use tenfold_sys::shared::SharedRows;

use crate::members::channel::AccountsClient;

/// The timeout of the reply: the accounts process has the filter in memory.
const PATIENCE: Duration = Duration::from_secs(1);

/// The number of starts of the accounts process, in memory that the supervisor and the workers share. A new process may
/// have a new key, if its database was replaced.
#[derive(Clone)]
pub(crate) struct Starts(Arc<SharedRows>);

impl Starts {
    /// A count of zero.
    pub(crate) fn new() -> io::Result<Starts> {
        SharedRows::new(1, 1).map(Arc::new).map(Starts)
    }

    /// Counts a start, before the process runs.
    pub(crate) fn count(&self) {
        self.0.row(0)[0].fetch_add(1, Ordering::Release);
    }

    fn number(&self) -> u64 {
        self.0.row(0)[0].load(Ordering::Acquire)
    }
}

/// The filter, after its first reply.
pub(super) struct WorkerFilter {
    starts: Starts,
    /// With the number of starts when it was requested.
    known: RwLock<Option<(u64, Filter)>>,
}

impl WorkerFilter {
    pub(super) fn new(starts: Starts) -> WorkerFilter {
        WorkerFilter { starts, known: RwLock::default() }
    }

    /// Whether one of these cookies of a request has a valid MAC; `None` while the filter is unknown.
    pub(super) fn accepts(&self, cookies: &[impl AsRef<str>]) -> Option<bool> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let (_, filter) = known.as_ref().filter(|(start, _)| *start == self.starts.number())?;
        Some(cookies.iter().any(|cookie| filter.accepts(cookie.as_ref())))
    }

    /// Requests the filter, and waits briefly for it.
    pub(super) fn learn(&self, client: &AccountsClient) -> &WorkerFilter {
        let start = self.starts.number();
        if let Some(filter) = ask(client) {
            *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some((start, filter));
        }
        self
    }
}

fn ask(client: &AccountsClient) -> Option<Filter> {
    let asked = client.begin(&Query::Filter).ok()?;
    match asked.answer_within(PATIENCE).ok()? {
        Reply::Filter(filter) => Some(filter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::members::channel::{self, tests::received};

    fn filter(key: &str) -> Filter {
        serde_json::from_str(&format!("\"{key}\"")).expect("a filter as the accounts send it")
    }

    #[test]
    fn h81_another_process_of_the_accounts_is_asked_for_its_filter() {
        let (client, server) = channel::open().expect("a pair of sockets");
        let starts = Starts::new().expect("memory");
        let worker = WorkerFilter::new(starts.clone());
        assert_eq!(worker.accepts(&["cookie"]), None, "nothing is known");
        for key in ["first", "second"] {
            starts.count();
            assert_eq!(worker.accepts(&["cookie"]), None, "the key of another process may be another");
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let (_, answer) = received(&server).expect("a question").apart();
                    answer.answer(&Reply::Filter(filter(key)));
                });
                worker.learn(&client);
            });
            assert_eq!(worker.accepts(&["cookie"]), Some(false), "{key}");
        }
    }

    #[test]
    fn h81_a_part_of_an_answer_is_waited_for_a_moment() {
        let (client, server) = channel::open().expect("a pair of sockets");
        let worker = WorkerFilter::new(Starts::new().expect("memory"));
        let begun = Instant::now();
        std::thread::scope(|scope| {
            let stalled = scope.spawn(|| {
                let (_, answer) = received(&server).expect("a question").apart();
                answer.send_part();
                answer
            });
            assert_eq!(worker.learn(&client).accepts(&["cookie"]), None);
            drop(stalled.join().expect("a part is sent"));
        });
        assert!(begun.elapsed() < 5 * PATIENCE, "{:?}", begun.elapsed());
    }

    #[test]
    fn h81_accounts_that_do_not_answer_are_waited_for_a_moment() {
        let (client, _server) = channel::open().expect("a pair of sockets");
        let worker = WorkerFilter::new(Starts::new().expect("memory"));
        assert_eq!(worker.learn(&client).accepts(&["cookie"]), None);
    }
}
