//! The start: from the command line to a supervisor with everything open.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tenfold_engine::Dispatch;
use tenfold_sys::limits;
use tenfold_sys::process::{self, Pid};
use tenfold_sys::signal::Signals;
use tenfold_sys::socket::ListenAddress;

use super::children::Children;
use super::children::accounts::AccountsProcess;
use super::children::acme::AcmeProcess;
use super::children::admin::AdminProcess;
use super::children::child::LATEST_START;
use super::children::privileges;
use super::children::signing::SigningProcess;
use super::examine;
use super::generation::Generation;
use super::generation::all::AddressRows;
use super::generation::all::{Generations, Past, RootChecks};
use super::generation::tickets::TicketRotation;
use super::log::rotation::LogFiles;
use super::sockets::activation::{self, NamedSocket};
use super::sockets::control::ControlSocket;
use super::sockets::listeners::Sockets;
use super::sockets::notify::ServiceManager;
use super::state::{Serve, Supervisor};
use super::upgrade::Upgrades;
use super::upgrade::handover::{self, CAN_SERVE, Handover, Start};
use crate::config::check;
use crate::config::parse::given::warn_of_slips;
use crate::config::parse::problem::Problem;
use crate::config::parse::problem::refuse;
use crate::config::resolve::certificates;
use crate::config::resolve::{ResolvedConfig, warn};
use crate::config::values::Settings;
use crate::config::values::tls::has_ipv6;
use crate::diagnostics::{self, debug, error, warning};
use crate::sandbox;
use crate::status::report::ReloadCounts;

/// `tenfold serve`: from the command line to the end of the last worker.
pub(crate) fn serve(serve: Serve) -> ExitCode {
    // First, because it hides the memory of a successor.
    let start = handover::start();
    // Workers inherit both results, so their sandbox needs no calls for them.
    diagnostics::is_read_by_journal();
    diagnostics::never_wait();
    let resolved = serve.given.resolve();
    if let Ok(settings) = &resolved {
        diagnostics::set_level(settings.log_level);
    }
    warn_of_slips();
    serve.given.warn_of_unread_file();
    let start = match start {
        Ok(start) => start,
        Err(why) => return refuse(&[Problem::new(why)]),
    };
    let is_check = matches!(start, Start::Check);
    let mut handover = match start {
        Start::Successor(handover) => Some(handover),
        Start::Fresh | Start::Check => None,
    };
    let code = begin(serve, resolved, is_check, &mut handover);
    let Some(mut handover) = handover else { return code };
    error!("{}", handover.go_back("the new program could not start"));
    ExitCode::FAILURE
}

/// Starts a server, or checks whether it could start if `is_check`. Takes `handover` if it succeeds.
fn begin(
    serve: Serve,
    resolved: Result<Settings, Vec<Problem>>,
    is_check: bool,
    handover: &mut Option<Box<Handover>>,
) -> ExitCode {
    let mut settings = match resolved {
        Ok(settings) => settings,
        Err(problems) => return refuse(&problems),
    };
    let taken = match handover {
        None => {
            activation::take().and_then(|passed| activation::fit(&passed, &mut settings).map(|()| passed))
        }
        Some(handover) if handover.state.passed => Sockets::fit(handover, &mut settings).map(|()| Vec::new()),
        Some(_) => Ok(Vec::new()),
    };
    let passed = match taken {
        Ok(passed) => passed,
        Err(why) => return refuse(&[Problem::new(why)]),
    };
    let descriptors = limits::raise_descriptors().unwrap_or_else(|error| {
        warning!("cannot raise the descriptor limit: {error}; counting with 1024");
        1024
    });
    let config = null_is_alone(&serve, &settings)
        .and_then(|()| privileges::allowed(&settings))
        .and_then(|()| if is_check { Ok(()) } else { certificates::prepare(&settings, None) })
        .and_then(|()| ResolvedConfig::resolve(&settings, descriptors));
    let mut config = match config {
        Ok(config) => config,
        Err(why) => return refuse(&[Problem::new(why)]),
    };
    warn(&settings, &config);
    serve.given.warn_of_readable_password(&settings);
    if settings.addresses().any(is_everywhere) && !has_ipv6() {
        debug!("this machine has no IPv6, so :PORT and the usual addresses of tls mean IPv4 only");
    }
    if is_check {
        // The keys were checked, and the child that checks the database must not have them.
        (config.certificates, config.keys) = (None, None);
        let problems = match serve.null {
            None => examine::startable(&settings, &config),
            Some(_) => Vec::new(),
        };
        if problems.is_empty() {
            return ExitCode::from(CAN_SERVE);
        }
        return refuse(&problems.into_iter().map(Problem::new).collect::<Vec<_>>());
    }
    // Processes that are forked later inherit the setting.
    diagnostics::show_times(true);
    match Supervisor::open(serve, settings, config, (descriptors, passed), handover) {
        Ok(supervisor) => supervisor.run(),
        Err(why) => {
            diagnostics::show_times(false);
            ServiceManager::from_environment().cannot_start(&why);
            error!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Whether an address means all addresses of IPv4.
fn is_everywhere(address: &ListenAddress) -> bool {
    matches!(address, ListenAddress::Internet(at) if at.is_ipv4() && at.ip().is_unspecified())
}

/// Refuses flags about reading requests with `--null`, which reads none.
fn null_is_alone(serve: &Serve, settings: &Settings) -> Result<(), String> {
    if serve.null.is_some() && settings.dispatch == Some(Dispatch::Proactor) {
        return Err("--null does not process requests, so dispatch proactor has no work for its pool; use dispatch inline or reactor".into());
    }
    match settings.ignored_by_null() {
        Some(name) if serve.null.is_some() => {
            Err(format!("--null reads no request, so --{name} has no effect; leave it out"))
        }
        _ => Ok(()),
    }
}

impl Supervisor {
    /// Opens everything. If that fails, kills the processes that it has started: the former program starts its own.
    fn open(
        serve: Serve,
        settings: Settings,
        config: ResolvedConfig,
        inherited: (u64, Vec<NamedSocket>),
        handover: &mut Option<Box<Handover>>,
    ) -> Result<Supervisor, String> {
        let mut started = Vec::new();
        let opened = Supervisor::open_all(serve, settings, config, inherited, handover, &mut started);
        opened.inspect_err(|_| process::end_children(started))
    }

    /// Opens everything, in the order in which privileges are needed. Adds the processes that it starts to `started`.
    fn open_all(
        serve: Serve,
        settings: Settings,
        mut config: ResolvedConfig,
        (descriptors, mut passed): (u64, Vec<NamedSocket>),
        handover: &mut Option<Box<Handover>>,
        started: &mut Vec<Pid>,
    ) -> Result<Supervisor, String> {
        check::require(config.plan.engine)?;
        sandbox::require()?;
        // A worker with the same user must not read the memory of the supervisor.
        process::hide_memory().map_err(|error| format!("cannot hide the memory of the process: {error}"))?;
        let user = privileges::worker_user(&settings)?;
        // Both helpers start before the supervisor opens files and sockets that they do not need.
        let (mut accounts, mut signing, by) = (None, None, Instant::now() + LATEST_START);
        if serve.null.is_none() {
            // The accounts process must not have the keys of certificates, or sockets.
            let forget = || {
                (config.certificates, config.keys) = (None, None);
                *handover = None;
                passed.clear();
            };
            accounts = AccountsProcess::begin(&settings, user.as_ref(), by, forget)?;
            started.extend(accounts.as_ref().and_then(|accounts| accounts.child.pid()));
            let forget = || {
                accounts = None;
                *handover = None;
                passed.clear();
            };
            signing = SigningProcess::begin(&settings, &mut config, user.as_ref(), by, forget)?;
            started.extend(signing.as_ref().and_then(|signing| signing.child.pid()));
        }
        if let Some((signing, workers)) =
            signing.as_ref().and_then(|signing| signing.child.user()).zip(user.as_ref())
        {
            privileges::shared_signing_user(signing, workers)
                .iter()
                .for_each(|warning| warning!("{warning}"));
        }
        let count = handover.as_ref().map_or(1, |handover| handover.state.generations + 1);
        let mut first = Generation::open(count, settings, config, user.as_ref(), serve.null.is_some(), None)?;
        first.signing = signing;
        let mut lanes = AddressRows::default();
        lanes.give(&mut first, &[])?;
        let sockets = match (&*handover, passed.is_empty()) {
            (Some(handover), _) => Sockets::inherit(handover, &first.config)?,
            (None, true) => Sockets::bind(first.settings.addresses(), &first.config)?,
            (None, false) => Sockets::adopt(passed, first.settings.addresses(), &first.config)?,
        };
        if let Some(rate) = first.settings.max_rate {
            sockets.pace(Some(rate))?;
        }
        let addresses = sockets.addresses();
        let control = match &*handover {
            Some(handover) => ControlSocket::inherit(handover)?,
            None => ControlSocket::open(&first.settings.control, &addresses)?,
        };
        let admin = AdminProcess::open(&first.settings, user.as_ref(), handover.as_deref())?;
        let tickets = match &*handover {
            Some(handover) => TicketRotation::from_file(handover.tickets())?,
            None => TicketRotation::new()?,
        };
        // From here on, signals stay pending until they are read, also in forked workers.
        let signals = Signals::new().map_err(|error| format!("cannot receive signals: {error}"))?;
        let children = Children { accounts, acme: Some(AcmeProcess::new()?), admin };
        let generations = Generations {
            all: vec![first],
            count,
            lanes,
            past: Past::default(),
            reloads: ReloadCounts::default(),
            reload_asked: false,
            roots: RootChecks::default(),
        };
        let mut supervisor = Supervisor {
            serve,
            user,
            descriptors,
            began: Instant::now(),
            signals: Some(signals),
            sockets,
            control,
            manager: ServiceManager::from_environment(),
            children,
            generations,
            upgrades: Upgrades::new(handover.take()),
            log: LogFiles::default(),
            tickets: Some(tickets),
            leaving: None,
            failed: false,
        };
        if let Some(handover) = &supervisor.upgrades.handover {
            let uptime = Duration::from_secs(handover.state.uptime_seconds);
            supervisor.began = supervisor.began.checked_sub(uptime).unwrap_or(supervisor.began);
            supervisor.generations.reloads = handover.state.reloads.clone();
            supervisor.manager.is_reloading();
        }
        Ok(supervisor)
    }
}
