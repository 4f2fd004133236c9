//! Capacities derived from the descriptor limit and from memory: connections, open files and queues.

use std::sync::OnceLock;

use tenfold_engine::{Dispatch, Engine, Plan, Sender, Topology, UNREAD_BYTES};
use tenfold_sys::limits;
use tenfold_sys::select::FD_SETSIZE;

use crate::config::parse::tables::site::SiteTable;
use crate::config::values::bounds::WATCHED_FOLDERS;
use crate::config::values::{ListenEntry, Settings};

/// Descriptors of a process other than connections: standard streams, log, sockets, epoll and events.
const OWN_DESCRIPTORS: u64 = 32;
/// One in this many descriptors is reserved for files in addition to those kept open.
const RESERVE: u64 = 10;
/// The default number of processes or threads of a model that has one for each connection.
const CONNECTION_PROCESSES: u64 = 1024;
/// The memory of a TLS connection whose client sends requests and reads nothing: requests, responses, and the records
/// of both. With `uring`, more requests are added.
const STALLED_CONNECTION: u64 = 256 << 10;
/// The additional memory of an open request of an HTTP/2 connection.
const STREAM: u64 = 1 << 10;
/// The part of [`STALLED_CONNECTION`] for a request head.
const USUAL_HEAD: usize = 16 << 10;
/// The cache of a thread or process that serves only one connection.
const CONNECTION_CACHE: usize = 1 << 20;
/// The memory of a name while a listing is made.
const LISTED_NAME: u64 = 512;
/// The memory of an encoder, without its input and output.
const ENCODER: u64 = 16 << 20;
/// One in this many bytes of memory is for stalled connections.
const STALLED_SHARE: u64 = 2;
/// One in this many bytes of memory is for caches of files.
const CACHE_SHARE: u64 = 8;
/// The least size of a cache of files.
const LEAST_CACHE: usize = 1 << 20;

/// Workers that share the descriptors of a process.
fn workers_per_process(plan: &Plan) -> u64 {
    if plan.topology == Topology::ReuseportProcesses { 1 } else { plan.workers as u64 }
}

/// The threads of a process that cache files.
fn stores(plan: &Plan) -> u64 {
    let threads = plan.bounds.pool_threads as u64;
    match (plan.engine, plan.dispatch) {
        (Engine::Pool, _) => threads,
        (_, Dispatch::Inline) => workers_per_process(plan),
        (_, Dispatch::Reactor | Dispatch::Proactor) => workers_per_process(plan) * (threads + 1),
    }
}

/// Returns the bounds of a site's caches in a process with `descriptors`.
pub(super) fn site(settings: &Settings, plan: &Plan, descriptors: u64) -> tenfold_site::Settings {
    let mut site = tenfold_site::Settings {
        index: settings.index.clone(),
        policies: settings.site.policies(),
        routes: settings.site.routes(),
        codings: settings.codings.clone(),
        tags: settings.tags,
        listing: settings.listing(),
        explain_listing: settings.is_local(),
        archives: settings.archives(),
        root_name: root_name(settings).unwrap_or(tenfold_site::Settings::default().root_name),
        watched_folders: if settings.watch { WATCHED_FOLDERS } else { 0 },
        ..Default::default()
    };
    // An explicit sender sends every file by its mechanism; memory is for `auto` only.
    if plan.sender != Sender::Auto {
        site.memory_up_to = 0;
    }
    if has_connection_caches(plan) {
        (site.cache_bytes, site.cache_entries, site.open_files) = (CONNECTION_CACHE, 64, 1);
    }
    // Files that are kept open leave at least three quarters of the descriptors to connections.
    let stores = stores(plan);
    let share = descriptors / 4 / stores;
    site.open_files = site.open_files.min(usize::try_from(share).unwrap_or(usize::MAX)).max(1);
    // All caches of files together leave most of the memory. Each cache has one part for files in memory and one for
    // open files.
    let processes = plan.workers as u64 / workers_per_process(plan);
    let bounded = |bytes: usize, caches: u64| {
        let share = memory() / CACHE_SHARE / (2 * caches);
        bytes.min(usize::try_from(share).unwrap_or(usize::MAX)).max(LEAST_CACHE)
    };
    site.cache_bytes = bounded(site.cache_bytes, stores * processes);
    // A process of `fork` ends with its connection, so its results have no later use.
    let shared = if plan.engine == Engine::Fork { 0 } else { site.codings.cache_bytes };
    site.codings.cache_bytes = if shared == 0 { 0 } else { bounded(shared, processes) };
    site
}

/// The name of a folder that a user shares from the command line. A configured site keeps the name of its root private.
fn root_name(settings: &Settings) -> Option<String> {
    let root = settings.root.canonicalize().ok().filter(|_| !settings.configured)?;
    Some(root.file_name()?.to_str()?.to_owned())
}

/// The site of a host: the first site with the settings of the host.
pub(super) fn host_site(
    settings: &Settings,
    host: &SiteTable,
    first: &tenfold_site::Settings,
) -> tenfold_site::Settings {
    let host = settings.site.above(host);
    tenfold_site::Settings {
        policies: host.policies(),
        routes: host.routes(),
        index: host.index.unwrap_or_else(|| settings.index.clone()),
        ..first.clone()
    }
}

/// Open files of a process beyond which an HTTP/2 connection opens one file at a time: the files that are kept open, and
/// half of the other descriptors that connections leave.
pub(super) fn open_files(plan: &Plan, site: &tenfold_site::Settings, descriptors: u64) -> usize {
    let connections = match plan.engine {
        Engine::Fork => 1,
        _ => plan.bounds.connections as u64 * workers_per_process(plan),
    };
    let left = descriptors.saturating_sub(OWN_DESCRIPTORS + of_pipes(plan) + connections);
    let caches = if has_connection_caches(plan) { connections } else { stores(plan) };
    let kept = (site.open_files as u64 * caches).min(left);
    usize::try_from(kept + (left - kept) / 2).unwrap_or(usize::MAX)
}

/// Descriptors for the pipes of a process.
fn of_pipes(plan: &Plan) -> u64 {
    if plan.sender == Sender::Splice { 2 * plan.bounds.pipes as u64 } else { 0 }
}

/// Concurrent connections of each worker.
pub(super) fn connections(
    settings: &Settings,
    plan: &Plan,
    site: &tenfold_site::Settings,
    descriptors: u64,
) -> Result<usize, String> {
    let workers = workers_per_process(plan);
    let possible = descriptors.saturating_sub(OWN_DESCRIPTORS + of_pipes(plan)) / workers;
    if possible == 0 {
        return Err(format!(
            "the descriptor limit of {descriptors} leaves none for connections; raise it (ulimit -n) above {}",
            OWN_DESCRIPTORS + of_pipes(plan) + workers
        ));
    }
    let watched = (FD_SETSIZE as u64).saturating_sub(OWN_DESCRIPTORS) / workers;
    let waits_in_select = plan.waits_in_select();
    let select = if plan.engine == Engine::Select { "engine select" } else { "libevent-method select" };
    if waits_in_select && watched == 0 {
        return Err(format!(
            "{select} watches descriptors below {FD_SETSIZE}: too few for {workers} workers in one process; set \
             fewer workers, or choose another engine"
        ));
    }
    if plan.engine == Engine::Pool {
        return Ok(plan.bounds.pool_threads + plan.bounds.pool_queue);
    }
    if let Some(asked) = settings.max_connections {
        return match asked as u64 {
            asked if waits_in_select && asked > watched => Err(format!(
                "max-connections is {asked}, but {select} watches descriptors below {FD_SETSIZE}: enough for \
                 {watched} in each worker; ask for less, or choose another engine"
            )),
            // Each process of `fork` has a descriptor limit of its own.
            asked if asked > possible && plan.engine != Engine::Fork => Err(format!(
                "max-connections is {asked}, but the descriptor limit of {descriptors} is enough for {possible} \
                 in each worker; raise it (ulimit -n), or ask for less"
            )),
            _ => Ok(asked),
        };
    }
    // Every thread keeps some files open for all hosts together.
    let kept = site.open_files as u64;
    let left = possible.saturating_sub(kept * stores(plan) / workers).max(possible / 4);
    let with_files = beside_files(left, plan.sender);
    let tasks = (limits::processes().unwrap_or(u64::MAX) / 2).min(CONNECTION_PROCESSES);
    let most = match plan.engine {
        Engine::Fork => possible.min(tasks),
        // Each thread has the file that it sends, in addition to the files that it keeps open.
        Engine::Thread => (possible / (2 + kept)).min(tasks),
        _ if waits_in_select => with_files.min(watched),
        _ => with_files,
    };
    // Without open listeners, all clients are programs of this machine, which are trusted.
    let in_memory = match settings.listen.iter().any(ListenEntry::is_open) {
        true => memory() / STALLED_SHARE / of_stalled(settings, plan) / plan.workers as u64,
        false => u64::MAX,
    };
    Ok(usize::try_from(most.min(in_memory).max(1)).unwrap_or(usize::MAX))
}

/// The memory of a stalled connection.
pub(super) fn of_stalled(settings: &Settings, plan: &Plan) -> u64 {
    let cache = if has_connection_caches(plan) { CONNECTION_CACHE } else { 0 };
    // The echo keeps a body whole until it sends the body back.
    let body = if settings.echo.is_some() { 2 * settings.limits.max_body } else { 0 };
    let work = if plan.engine == Engine::Fork { of_work(settings) } else { 0 };
    let streams = if settings.http2() { STREAM * settings.limits.max_streams as u64 } else { 0 };
    let unread = if plan.engine == Engine::Uring { UNREAD_BYTES } else { 0 };
    let head = settings.limits.max_head.saturating_sub(USUAL_HEAD);
    STALLED_CONNECTION + streams + unread + (head + cache) as u64 + body + work
}

/// The memory of listing a folder and of compressing a file. The processes of `fork` do not share the results of this
/// work.
fn of_work(settings: &Settings) -> u64 {
    let lists = settings.lists_folders();
    let listing =
        if lists { LISTED_NAME * tenfold_site::Settings::default().listing_entries as u64 } else { 0 };
    let compressing = match settings.codings.made.is_empty() {
        true => 0,
        false => ENCODER + 2 * settings.codings.up_to,
    };
    listing.max(compressing)
}

fn has_connection_caches(plan: &Plan) -> bool {
    matches!(plan.engine, Engine::Fork | Engine::Thread)
}

/// The memory of this system, read at the start: later, the sandbox may hide the limit of the control group.
fn memory() -> u64 {
    static AT_START: OnceLock<u64> = OnceLock::new();
    *AT_START.get_or_init(limits::memory)
}

/// The connections for which `left` descriptors suffice, if each may also send a file that is not kept open.
fn beside_files(left: u64, sender: Sender) -> u64 {
    match sender {
        // Small files come from memory, and large files are mostly open already, so a reserve suffices. If the reserve
        // is empty, opening fails with 503, and accepting pauses.
        Sender::Auto => left - left / RESERVE,
        // Every response opens a file.
        _ => left / 2,
    }
}

/// The number of connections that may wait for a thread of `pool`. The default is at most the number of free
/// descriptors.
pub(super) fn pool_queue(settings: &Settings, plan: &Plan, descriptors: u64) -> Result<usize, String> {
    let (threads, queue) = (settings.pool_threads, settings.pool_queue);
    let possible = descriptors.saturating_sub(OWN_DESCRIPTORS + of_pipes(plan));
    // A thread has a connection, the file that it sends, and a file that it keeps open.
    let left = usize::try_from(possible).unwrap_or(usize::MAX).saturating_sub(3 * threads);
    match settings.is_explicit("pool-queue") || settings.is_explicit("pool-threads") {
        _ if plan.engine != Engine::Pool => Ok(queue),
        false => Ok(queue.min(left).max(1)),
        true if left >= queue => Ok(queue),
        true => Err(format!(
            "pool-threads {threads} and pool-queue {queue} need {} descriptors, but the limit of {descriptors} \
             leaves {possible}; raise it (ulimit -n), or ask for less",
            3 * threads + queue
        )),
    }
}
