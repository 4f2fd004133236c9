//! Every case on every configuration, as a test named `theme::configuration::case`.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;
use std::thread;

use libtest_mimic::{Arguments, Failed, Trial};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::budget::{Budget, Share};
use crate::config::Config;
use crate::lists::{self, List};
use crate::part::SuitePart;
use crate::server::Server;
use crate::{binary, databases, left, pool, seal, site};

/// The default number of concurrent cases. Most cases wait: with six cases, a third of two processors was idle.
const THREADS: usize = 10;

/// A statement about the server.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The statement.
    pub name: &'static str,
    /// The check.
    pub run: Run,
}

/// Cases that run on the same configurations.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// The lists of their configurations; empty for cases without a configuration.
    pub on: &'static [List],
    /// Their tier.
    pub tier: Tier,
    /// The cases.
    pub cases: &'static [Case],
}

/// The tier of a case of this suite. A third tier, `spec`, is the tests of the crates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tier {
    /// The whole server with real clients.
    System,
    /// Counts of system calls, memory, descriptors at their limits, thousands of peers. No other case runs at the same
    /// time. `--list` shows `[measure]` in front of the name.
    Measure,
}

/// The server of a case.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// A harmless case on a shared server.
    Shared(fn(&Server)),
    /// A case with a server of its own.
    Own(fn(&Config)),
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
    /// The cases, in groups that run on the same configurations.
    pub cases: &'static [Group],
}

/// Lists cases: `cases![Shared on SEMANTICS + ONE_TLS: first, second; Own on ENGINES, Measure: third; Once: fourth]`.
#[macro_export]
macro_rules! cases {
    (@tier) => { $crate::harness::Tier::System };
    (@tier $tier:ident) => { $crate::harness::Tier::$tier };
    ($($run:ident $(on $list:ident $(+ $more:ident)*)? $(, $tier:ident)?: $($name:ident),+ $(,)?);+ $(;)?) => {
        &[$($crate::harness::Group {
            on: &[$($crate::lists::$list $(, $crate::lists::$more)*)?],
            tier: $crate::cases!(@tier $($tier)?),
            cases: &[$($crate::harness::Case {
                name: stringify!($name),
                run: $crate::harness::Run::$run($name),
            }),+],
        }),+]
    };
}

/// Runs the tests of `themes` that the command line selects.
pub fn main(themes: &[Theme]) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let (part, turn) = match SuitePart::asked_for().and_then(|part| Ok((part, lists::turn()?))) {
        Ok(selection) => selection,
        Err(why) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
    };
    if let Some(turn) = turn {
        eprintln!("TENFOLD_TEST_TURN={turn} selects a fifth of the configurations of each case");
    }
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
    let mut trials = trials(themes, turn);
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

/// The tests, ordered by configuration, so that few servers run concurrently. The tests of [`Tier::Measure`] are last,
/// because each waits until no other test runs.
fn trials(themes: &[Theme], turn: Option<usize>) -> Vec<Trial> {
    let mut planned: Vec<(Tier, Option<Config>, Trial)> = Vec::new();
    for theme in themes {
        for group in theme.cases {
            let mut plan = |config, trial: Trial| planned.push((group.tier, config, trial));
            for case in group.cases {
                let statement = format!("{}::{}", theme.name, case.name);
                for config in configurations(group.on, &statement, turn) {
                    let name = format!("{}::{config}::{}", theme.name, case.name);
                    plan(Some(config), trial_on(config, name, case.run, group.tier));
                }
                match case.run {
                    Run::Many(all) => all().into_iter().for_each(|one| {
                        let name = format!("{statement}::{}", one.name);
                        plan(None, trial(name, group.tier, Share::USUAL, one.run));
                    }),
                    Run::Once(run) => plan(None, trial(statement, group.tier, Share::USUAL, run)),
                    Run::OnceAsRoot(run) => {
                        let trial = trial(statement, group.tier, Share::USUAL, run);
                        plan(None, trial.with_ignored_flag(!crate::tools::is_root()));
                    }
                    _ => {}
                }
            }
        }
    }
    let place = |config: Option<Config>| {
        let plain = config.map(|config| Config { tls: false, ..config });
        let at = Config::all().iter().position(|known| Some(*known) == plain);
        (at.is_none(), config.is_some_and(|config| config.tls), at)
    };
    planned.sort_by_key(|(tier, config, _)| (*tier == Tier::Measure, place(*config)));
    planned.into_iter().map(|(.., trial)| trial).collect()
}

/// The configurations of a case, each once. With a turn, a fifth of them.
fn configurations(lists: &[List], statement: &str, turn: Option<usize>) -> Vec<Config> {
    let mut all: Vec<Config> = Vec::new();
    for config in lists.iter().flat_map(|list| list.of(statement, turn)) {
        if !all.contains(&config) {
            all.push(config);
        }
    }
    match turn {
        Some(turn) => lists::fifth(&all, statement, turn),
        None => all,
    }
}

fn trial_on(config: Config, name: String, run: Run, tier: Tier) -> Trial {
    let own = |run: fn(&Config)| move || run(&config);
    let share = Share::of(&config);
    match run {
        Run::Shared(run) => {
            let share = Share::of_shared(&config);
            trial(name, tier, share, move || pool::with_server(&config, run))
        }
        Run::Own(run) => trial(name, tier, share, own(run)),
        Run::OwnAsRoot(run) => trial(name, tier, share, own(run)).with_ignored_flag(!crate::tools::is_root()),
        Run::OwnWithKernelTls(run) => {
            let has_it = crate::tools::sealed_by_kernel().is_some();
            trial(name, tier, share, own(run)).with_ignored_flag(!has_it)
        }
        Run::Many(_) | Run::Once(_) | Run::OnceAsRoot(_) => panic!("{name}: it has no configuration"),
    }
}

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

/// A test that waits for its share of the kernel's resources. A case that measures takes all.
fn trial(name: String, tier: Tier, share: Share, run: impl FnOnce() + Send + 'static) -> Trial {
    let share = if tier == Tier::Measure { Share::ALL } else { share };
    let trial = Trial::test(name, move || {
        let _share = Budget::of_machine().take(share);
        panic::catch_unwind(AssertUnwindSafe(run)).map_err(|_| {
            let said = SAID.take();
            Failed::from(if said.is_empty() { "a thread of the case panicked".to_owned() } else { said })
        })
    });
    match tier {
        Tier::System => trial,
        Tier::Measure => trial.with_kind("measure"),
    }
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
