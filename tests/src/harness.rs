//! Every case on every configuration, as a test named `theme::configuration::case`.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tenfold_engine::Engine;

use crate::config::{Breadth, Config};
use crate::part::SuitePart;
use crate::server::{Server, lock};
use crate::{binary, databases, left, pool, seal, site};

/// The default number of concurrent cases. Most cases wait: with six cases, a third of two processors was idle.
const THREADS: usize = 10;

/// A statement about the server.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The statement.
    pub name: &'static str,
    /// The configurations.
    pub on: Breadth,
    /// The check.
    pub run: Run,
}

/// The server of a case.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// A harmless case on a shared server. It also runs through TLS.
    Shared(fn(&Server)),
    /// A case with a server of its own.
    Own(fn(&Config)),
    /// A case with a server of its own that also runs through TLS.
    OwnLayered(fn(&Config)),
    /// A case with a server of its own, for root only.
    OwnAsRoot(fn(&Config)),
    /// A case with a server of its own, for kernels with TLS.
    OwnWithKernelTls(fn(&Config)),
    /// Many cases, each with its configuration and its name.
    Many(fn() -> Vec<Named>),
    /// A case without a configuration.
    Once(fn()),
    /// A case without a configuration, for root only.
    OnceAsRoot(fn()),
}

/// A test of [`Run::Many`].
pub struct Named {
    /// The last part of its name.
    pub name: String,
    /// The check.
    pub run: Box<dyn FnOnce() + Send>,
}

/// Cases about one topic.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    /// The first part of their names.
    pub name: &'static str,
    /// The cases.
    pub cases: &'static [Case],
}

/// Lists cases: `cases![Every Shared: first, second; Engines Own: third]`.
#[macro_export]
macro_rules! cases {
    ($($on:ident $run:ident: $($name:ident),+ $(,)?);+ $(;)?) => {
        &[$($($crate::harness::Case {
            name: stringify!($name),
            on: $crate::config::Breadth::$on,
            run: $crate::harness::Run::$run($name),
        }),+),+]
    };
}

/// Runs the tests of `themes` that the command line selects.
pub fn main(themes: &[Theme]) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let part = match SuitePart::asked_for() {
        Ok(part) => part,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    };
    // Listing requires no server.
    if !arguments.list {
        if let Err(why) = binary::server() {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
        left::remove(&std::env::temp_dir());
    }
    remember_panics();
    raise_descriptors();
    let mut trials = trials(themes);
    trials.retain(|trial| part.is_none_or(|part| part.has(trial.name())));
    let conclusion = libtest_mimic::run(&arguments, trials);
    databases::close();
    let complaints = pool::close();
    for complaint in &complaints {
        eprintln!("a shared server did not end well: {complaint}");
    }
    site::remove_shared();
    seal::remove_certificate();
    if conclusion.has_failed() || !complaints.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The tests, ordered by configuration, so that few servers run concurrently.
fn trials(themes: &[Theme]) -> Vec<Trial> {
    let mut trials = Vec::new();
    let all = |f: &mut dyn FnMut(&Theme, &Case)| {
        themes.iter().for_each(|theme| theme.cases.iter().for_each(|case| f(theme, case)));
    };
    let plain = Config::all();
    let encrypted = plain.iter().map(|config| config.over_tls());
    for config in plain.iter().copied().chain(encrypted) {
        let mut covered = 0;
        all(&mut |theme, case| {
            let name = format!("{}::{config}::{}", theme.name, case.name);
            if !case.on.covers(&config) {
                return;
            }
            covered += 1;
            match case.run {
                _ if !config.samples(covered) => {}
                Run::Shared(run) => {
                    trials.push(trial(name, move || pool::with_server(&config, run)));
                }
                Run::OwnLayered(run) => trials.push(trial(name, move || with_own(&config, run))),
                _ if config.tls => {}
                Run::Own(run) => trials.push(trial(name, move || with_own(&config, run))),
                Run::OwnAsRoot(run) => {
                    let trial = trial(name, move || with_own(&config, run));
                    trials.push(trial.with_ignored_flag(!crate::tools::is_root()));
                }
                Run::OwnWithKernelTls(run) => {
                    let trial = trial(name, move || with_own(&config, run));
                    let has_it = crate::tools::sealed_by_kernel().is_some();
                    trials.push(trial.with_ignored_flag(!has_it));
                }
                Run::Many(_) | Run::Once(_) | Run::OnceAsRoot(_) => {}
            }
        });
    }
    all(&mut |theme, case| {
        let name = format!("{}::{}", theme.name, case.name);
        match case.run {
            Run::Many(all) => {
                trials.extend(all().into_iter().map(|one| trial(format!("{name}::{}", one.name), one.run)));
            }
            Run::Once(run) => trials.push(trial(name, run)),
            Run::OnceAsRoot(run) => {
                trials.push(trial(name, run).with_ignored_flag(!crate::tools::is_root()));
            }
            _ => {}
        }
    });
    trials
}

/// Runs a case with its own server. Cases take turns if their servers together would exceed a limit of the system.
fn with_own(config: &Config, run: fn(&Config)) {
    let _turn = config.locks_memory().then(lock_memory);
    let has_rings = config.engine == Engine::Uring && !config.locks_memory();
    let _rings = has_rings.then(|| RingWorkers::begin(config.workers()));
    run(config);
}

/// Waits until no other case locks much memory. A case whose configuration locks memory already has this turn.
pub fn lock_memory() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    lock(&TURN)
}

/// Workers with rings, which are locked memory of one user. The common limit of 8 MiB has room for about sixty rings:
/// of these workers, of former workers during a reload, and of ended workers until the system frees them.
struct RingWorkers(usize);

impl RingWorkers {
    const MOST: usize = 12;

    /// Waits until `count` more workers fit.
    fn begin(count: usize) -> RingWorkers {
        let has_no_room = |running: &mut usize| *running + count > RingWorkers::MOST;
        let mut running =
            ENDED.wait_while(lock(&RUNNING), has_no_room).unwrap_or_else(PoisonError::into_inner);
        *running += count;
        RingWorkers(count)
    }
}

impl Drop for RingWorkers {
    fn drop(&mut self) {
        *lock(&RUNNING) -= self.0;
        ENDED.notify_all();
    }
}

/// The number of running workers with rings, and the notification of their end.
static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// Runs `part` for each item on a separate thread. Fails with the first failure.
pub fn each_at_once<T: Send>(items: impl IntoIterator<Item = T>, part: impl Fn(T) + Sync) {
    let part = &part;
    let failed: Vec<String> = thread::scope(|scope| {
        let run =
            |item| move || panic::catch_unwind(AssertUnwindSafe(|| part(item))).err().map(|_| SAID.take());
        let parts: Vec<_> = items.into_iter().map(|item| scope.spawn(run(item))).collect();
        parts.into_iter().filter_map(|part| part.join().expect("its panics are caught")).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn trial(name: String, run: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        panic::catch_unwind(AssertUnwindSafe(run)).map_err(|_| {
            let said = SAID.take();
            Failed::from(if said.is_empty() { "a thread of the case panicked".to_owned() } else { said })
        })
    })
}

/// A thousand connections have two ends, and cases run concurrently.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    // If the limit cannot be raised, the case that needs more reports it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

thread_local! {
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Stores panic messages for the final report, instead of printing them between the results.
fn remember_panics() {
    panic::set_hook(Box::new(|info| {
        let what = info.payload_as_str().unwrap_or("a panic without words");
        let place = info.location().map_or_else(String::new, |at| format!("{}:{}: ", at.file(), at.line()));
        SAID.set(format!("{place}{what}"));
    }));
}
