//! A pool of connections: bounded, and opened on demand.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connection::{DatabaseConnection, StoreError};
use super::url::DatabaseUrl;

/// The longest wait for a connection while all are in use.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) struct ConnectionPool {
    url: DatabaseUrl,
    most: usize,
    state: Mutex<PoolState>,
    returned: Condvar,
}

#[derive(Default)]
struct PoolState {
    idle: Vec<Box<dyn DatabaseConnection>>,
    /// The number of connections in use.
    lent: usize,
}

impl fmt::Debug for ConnectionPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("url", &self.url).field("most", &self.most).finish_non_exhaustive()
    }
}

impl ConnectionPool {
    pub(super) fn new(url: DatabaseUrl, most: usize) -> ConnectionPool {
        ConnectionPool { url, most: most.max(1), state: Mutex::default(), returned: Condvar::new() }
    }

    /// Lends a connection. After an error it is dropped. If it was lost, the idle connections are dropped too.
    pub(super) fn with<T>(
        &self,
        use_it: impl FnOnce(&mut dyn DatabaseConnection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.lend(use_it).0
    }

    /// Lends a connection for statements that only read. Retries once if a connection that was used before was lost.
    pub(super) fn read<T>(
        &self,
        use_it: impl Fn(&mut dyn DatabaseConnection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self.lend(&use_it) {
            (Err(StoreError::Lost(_)), true) => self.lend(use_it).0,
            (result, _) => result,
        }
    }

    /// Lends a connection; also returns whether it was used before.
    fn lend<T>(
        &self,
        use_it: impl FnOnce(&mut dyn DatabaseConnection) -> Result<T, StoreError>,
    ) -> (Result<T, StoreError>, bool) {
        let idle = match self.take() {
            Ok(idle) => idle,
            Err(fault) => return (Err(fault), false),
        };
        // Counts the connection as returned even if `use_it` panics.
        let place = LentConnection(self);
        let used = idle.is_some();
        let mut connection = match idle.map_or_else(|| self.url.connect(), Ok) {
            Ok(connection) => connection,
            Err(fault) => return (Err(fault), false),
        };
        let result = use_it(&mut *connection);
        let mut state = self.lock();
        match &result {
            Ok(_) | Err(StoreError::Taken) => state.idle.push(connection),
            Err(StoreError::Lost(_)) => state.idle.clear(),
            Err(StoreError::Failed(_)) => {}
        }
        // Under the same lock: otherwise the connection would count as idle and as in use.
        std::mem::forget(place);
        self.give_back(state);
        (result, used)
    }

    /// Counts a connection as returned.
    fn give_back(&self, mut state: MutexGuard<'_, PoolState>) {
        state.lent -= 1;
        drop(state);
        self.returned.notify_one();
    }

    fn take(&self) -> Result<Option<Box<dyn DatabaseConnection>>, StoreError> {
        let by = Instant::now() + PATIENCE;
        let mut state = self.lock();
        while state.lent >= self.most {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(StoreError::Failed(format!("all {} connections are busy", self.most)));
            }
            let waited = self.returned.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.lent += 1;
        let idle = state.idle.pop();
        if idle.as_ref().is_some_and(|connection| !connection.is_current()) {
            // The other idle connections use the same file.
            state.idle.clear();
            return Ok(None);
        }
        Ok(idle)
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct LentConnection<'p>(&'p ConnectionPool);

impl Drop for LentConnection<'_> {
    fn drop(&mut self) {
        self.0.give_back(self.0.lock());
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    fn pool(most: usize) -> ConnectionPool {
        ConnectionPool::new("sqlite::memory:".parse().expect("a legal URL"), most)
    }

    #[test]
    fn the_number_of_connections_is_bounded() {
        let pool = pool(2);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        pool.with(|_| {
                            let state = pool.lock();
                            assert!(state.lent <= 2 && state.lent + state.idle.len() <= 2);
                            Ok(())
                        })
                        .expect("others return theirs");
                    }
                });
            }
        });
        let state = pool.lock();
        assert!(state.lent == 0 && (1..=2).contains(&state.idle.len()));
    }

    #[test]
    fn h69_a_file_that_is_moved_away_is_not_written_to() {
        let folder = std::env::temp_dir().join(format!("tenfold-moved-{}", std::process::id()));
        let (path, aside) = (folder.join("members.db"), folder.join("aside.db"));
        std::fs::create_dir_all(&folder).expect("a new folder");
        std::fs::write(&path, "").expect("our own folder");
        let pool = ConnectionPool::new(DatabaseUrl::sqlite(&path).expect("this build has SQLite"), 2);
        let write =
            || pool.with(|connection| connection.execute("INSERT INTO a (b) VALUES (?)", &[1_i64.into()]));
        pool.with(|connection| connection.execute("CREATE TABLE a (b BIGINT)", &[])).expect("it is writable");
        assert_eq!(write(), Ok(1));
        std::fs::rename(&path, &aside).expect("our own file");
        assert!(matches!(write(), Err(StoreError::Failed(_))) && !path.exists(), "nor is an empty one made");
        std::fs::rename(&aside, &path).expect("our own file");
        assert_eq!(write(), Ok(1), "it is back");
        let count = pool.read(|connection| connection.query("SELECT COUNT(*) FROM a", &[]));
        assert_eq!(count, Ok(vec![vec![2_i64.into()]]));
        std::fs::remove_dir_all(&folder).expect("our own folder");
    }

    #[test]
    fn lost_connections_are_dropped_and_reads_retried_once() {
        let pool = pool(1);
        pool.with(|_| Ok(())).expect("it opens");
        let tries = std::cell::Cell::new(0);
        let lost = || Err::<(), _>(StoreError::Lost("gone".into()));
        let read = pool.read(|_| {
            tries.set(tries.get() + 1);
            if tries.get() == 1 { lost() } else { Ok(()) }
        });
        assert_eq!((read, tries.get()), (Ok(()), 2));
        assert_eq!(pool.with(|_| lost()), lost());
        assert!(pool.lock().idle.is_empty());
    }
}
