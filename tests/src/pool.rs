//! Servers shared by the cases of one configuration. They start on first use, and stop at the end or after many other
//! servers have started.

use std::sync::{Arc, Mutex, OnceLock};

use crate::config::Config;
use crate::launch::Launch;
use crate::server::{Server, lock};
use crate::site;

/// The most unused servers that keep running.
const KEPT: usize = 6;

#[derive(Default)]
struct ServerPool {
    /// The least recently used server is the first.
    shared: Vec<Arc<SharedServer>>,
    complaints: Vec<String>,
}

struct SharedServer {
    config: Config,
    server: OnceLock<Server>,
    /// Locked while a case uses a server that serves one connection at a time.
    turn: Mutex<()>,
}

static POOL: Mutex<Option<ServerPool>> = Mutex::new(None);

/// Runs `case` on a shared server of this configuration.
pub fn with_server(config: &Config, case: impl FnOnce(&Server)) {
    let shared = take(config);
    let _turn = config.serial().then(|| lock(&shared.turn));
    let server = shared.server.get_or_init(|| Launch::new(config, site::shared()).start());
    let before = server.errors().len();
    case(server);
    let said = &server.errors()[before..];
    assert!(server.ended().is_none(), "the server ended; it said:\n{said}");
    assert!(!said.contains("panicked"), "something panicked in the server:\n{said}");
    assert!(!server.was_refused(), "its sandbox refused a call; it said:\n{said}");
}

/// Stops all servers, and returns their errors.
pub fn close() -> Vec<String> {
    let pool = lock(&POOL).take().unwrap_or_default();
    let mut complaints = pool.complaints;
    complaints.extend(pool.shared.into_iter().filter_map(stop));
    complaints
}

fn take(config: &Config) -> Arc<SharedServer> {
    let mut pool = lock(&POOL);
    let pool = pool.get_or_insert_default();
    let at = pool.shared.iter().position(|shared| shared.config == *config);
    let known = at.map(|at| pool.shared.remove(at));
    // A server that ended fails the present case, but no later case.
    let ended =
        |shared: &Arc<SharedServer>| shared.server.get().is_some_and(|server| server.ended().is_some());
    let shared = known.filter(|shared| !ended(shared)).unwrap_or_else(|| {
        Arc::new(SharedServer { config: *config, server: OnceLock::new(), turn: Mutex::new(()) })
    });
    pool.shared.push(shared.clone());
    let mut at = 0;
    while pool.shared.len() > KEPT && at < pool.shared.len() {
        if Arc::strong_count(&pool.shared[at]) == 1 {
            let idle = pool.shared.remove(at);
            pool.complaints.extend(stop(idle));
        } else {
            at += 1;
        }
    }
    shared
}

fn stop(shared: Arc<SharedServer>) -> Option<String> {
    Arc::into_inner(shared)?.server.into_inner()?.stop().err()
}
