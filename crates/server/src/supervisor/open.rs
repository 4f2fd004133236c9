//! The start: from the command line to a supervisor with everything open.

use std::process::ExitCode;
use std::time::Instant;

use tenfold_engine::Dispatch;
use tenfold_sys::limits;
use tenfold_sys::process;
use tenfold_sys::signal::Signals;

use super::accounts::AccountsProcess;
use super::acme::AcmeProcess;
use super::activation::{self, NamedSocket};
use super::admin::AdminProcess;
use super::archive::job::Archive;
use super::control::ControlSocket;
use super::generation::{AddressRows, Generation};
use super::notify::ServiceManager;
use super::privileges;
use super::revival::Revival;
use super::rotate::Rotation;
use super::signing::SigningProcess;
use super::sockets::Sockets;
use super::state::{Serve, Supervisor};
use super::tickets::TicketRotation;
use crate::diagnostics::{self, error, warning};
use crate::resolved::config::{ResolvedConfig, warn};
use crate::resolved::{engines, names};
use crate::sandbox;
use crate::settings::given::warn_of_slips;
use crate::settings::problem::Problem;
use crate::settings::problem::{complain, refuse};
use crate::settings::values::Settings;
use crate::status::counters::Sums;
use crate::status::report::ReloadCounts;

/// `tenfold serve`: from the command line to the end of the last worker.
pub(crate) fn serve(serve: Serve) -> ExitCode {
    // Workers inherit the answer, and need no call for it in their sandbox.
    diagnostics::is_read_by_journal();
    let resolved = serve.given.resolve();
    if let Ok(settings) = &resolved {
        diagnostics::set_level(settings.log_level);
    }
    warn_of_slips();
    let mut settings = match resolved {
        Ok(settings) => settings,
        Err(problems) if problems.iter().any(Problem::is_failure) => {
            complain(&problems);
            return ExitCode::FAILURE;
        }
        Err(problems) => return refuse(&problems),
    };
    let taken =
        activation::take().and_then(|passed| activation::fit(&passed, &mut settings).map(|()| passed));
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
        .and_then(|()| names::prepare(&settings))
        .and_then(|()| ResolvedConfig::resolve(&settings, descriptors));
    let config = match config {
        Ok(config) => config,
        Err(why) => return refuse(&[Problem::new(why)]),
    };
    warn(&settings, &config);
    // Every process is forked after this.
    diagnostics::show_times(true);
    match Supervisor::open(serve, settings, config, descriptors, passed) {
        Ok(supervisor) => supervisor.run(),
        Err(why) => {
            diagnostics::show_times(false);
            ServiceManager::from_environment().cannot_start(&why);
            error!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// `--null` reads no request: a flag about reading them would be accepted and ignored.
fn null_is_alone(serve: &Serve, settings: &Settings) -> Result<(), String> {
    if serve.null.is_some() && settings.dispatch == Some(Dispatch::Proactor) {
        return Err("--null does not process requests, so dispatch proactor has no work for its pool; use dispatch inline or reactor".into());
    }
    match settings.ignored_by_null() {
        Some(name) if serve.null.is_some() => {
            Err(format!("--null looks at no request, so --{name} would mean nothing"))
        }
        _ => Ok(()),
    }
}

impl Supervisor {
    /// Opens everything, in the order in which privileges are needed.
    fn open(
        serve: Serve,
        settings: Settings,
        mut config: ResolvedConfig,
        descriptors: u64,
        passed: Vec<NamedSocket>,
    ) -> Result<Supervisor, String> {
        engines::require(config.plan.engine)?;
        if settings.sandbox {
            sandbox::require()?;
        }
        // A worker with the same user must not interfere with the supervisor.
        process::hide_memory().map_err(|error| format!("cannot hide the memory of the process: {error}"))?;
        let user = privileges::worker_user(&settings)?;
        // Before anything is open that it does not need.
        let (mut accounts, mut signing) = (None, None);
        if serve.null.is_none() {
            // It must not have the keys of certificates.
            let forget = || (config.certificates, config.keys) = (None, None);
            accounts = AccountsProcess::begin(&settings, user.as_ref(), forget)?;
            signing = SigningProcess::begin(&settings, &mut config, user.as_ref(), || accounts = None)?;
        }
        if let Some((signing, workers)) = signing.as_ref().and_then(SigningProcess::user).zip(user.as_ref()) {
            privileges::shared_signing_user(signing, workers)
                .iter()
                .for_each(|warning| warning!("{warning}"));
        }
        let mut first = Generation::open(1, settings, config, user.as_ref(), serve.null.is_some(), None)?;
        first.signing = signing;
        let mut address_rows = AddressRows::default();
        address_rows.give(&mut first, &[])?;
        let sockets = match passed.is_empty() {
            true => Sockets::bind(first.settings.addresses(), &first.config)?,
            false => Sockets::adopt(passed, first.settings.addresses(), &first.config)?,
        };
        if let Some(rate) = first.settings.max_rate {
            sockets.pace(Some(rate))?;
        }
        let addresses = sockets.addresses();
        let control = ControlSocket::open(&first.settings.control, &addresses)?;
        let admin = AdminProcess::open(&first.settings, user.as_ref())?;
        // From now on signals stay pending until they are read, also in forked workers.
        let signals = Signals::new().map_err(|error| format!("cannot receive signals: {error}"))?;
        Ok(Supervisor {
            serve,
            accounts,
            acme: AcmeProcess::new()?,
            sockets,
            addresses,
            user,
            descriptors,
            signals: Some(signals),
            control,
            admin,
            began: Instant::now(),
            generations: vec![first],
            count: 1,
            address_rows,
            past: Sums::default(),
            past_restarts: 0,
            reloads: ReloadCounts::default(),
            leaving: None,
            sockets_end: None,
            reload_asked: false,
            rotation: Rotation::default(),
            archive: Archive::default(),
            revival: Revival::default(),
            tickets: Some(TicketRotation::new()?),
            failed: false,
            manager: ServiceManager::from_environment(),
        })
    }
}
