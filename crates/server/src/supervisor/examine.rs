//! `tenfold check`: the checks of a start without a start. Each check has the rights of the later user and changes
//! nothing.

use std::io::{self, ErrorKind};

use tenfold_sys::file::Root;
use tenfold_sys::folder::OpenFolder;
use tenfold_sys::socket::{self, ListenAddress, Listener};
use tenfold_sys::user::SystemUser;

use super::children::{admin, privileges, worker};
use super::generation::open_roots;
use super::generation::pages;
use super::sockets::listeners;
use crate::config::check;
use crate::config::resolve::ResolvedConfig;
use crate::config::resolve::certificates;
use crate::config::values::Settings;
use crate::diagnostics::warning;
use crate::log::open;
use crate::members::database::{self, Users};
use crate::members::process::most_memory;
use crate::sandbox;
use crate::sandbox::apart::problems_in_child;

/// The most stale compressed files that a check names.
const MOST_SHOWN: usize = 20;

/// Returns the reasons why a server with this configuration could not serve. `running` has the addresses of the server of
/// this configuration, if it runs. Another address in use is a warning, because a server that cannot be asked may have it.
pub(crate) fn examine(settings: &Settings, config: &ResolvedConfig, running: &[String]) -> Vec<String> {
    let mut problems = startable(settings, config);
    let others = settings.addresses().filter(|address| !running.contains(&address.to_string()));
    problems.extend(others.filter_map(|address| listening(address, config, listeners::explain).err()));
    // The running server of this configuration has its admin listener.
    let admin = settings.admin.iter().filter(|_| running.is_empty());
    problems.extend(admin.filter_map(|address| listening(address, config, admin::explain).err()));
    missing_files(settings).iter().for_each(|warning| warning!("{warning}"));
    stale_files(settings, config).iter().for_each(|warning| warning!("{warning}"));
    problems
}

/// Lists files that the configuration names for responses and that workers do not find.
fn missing_files(settings: &Settings) -> Vec<String> {
    let (Ok(workers), Ok(roots)) = (privileges::worker_user(settings), open_roots(settings)) else {
        return Vec::new();
    };
    as_user(workers.as_ref(), || {
        let sites = std::iter::once(&settings.site).chain(&settings.hosts);
        let named =
            roots.iter().zip(sites).flat_map(|(root, site)| site.named_files().map(move |name| (root, name)));
        let missing = named.filter(|(root, name)| root.look(name).is_err());
        missing
            .map(|(root, name)| {
                format!(
                    "there is no file {}, which an error page or a fallback names; responses will do without it",
                    root.path().join(name).display()
                )
            })
            .collect()
    })
}

/// Lists compressed files that are not served because they are older than their originals.
fn stale_files(settings: &Settings, config: &ResolvedConfig) -> Vec<String> {
    let (Ok(workers), Ok(roots)) = (privileges::worker_user(settings), open_roots(settings)) else {
        return Vec::new();
    };
    as_user(workers.as_ref(), || {
        let sites = std::iter::once(&config.site).chain(&config.hosts);
        let mut all: Vec<_> = roots
            .iter()
            .zip(sites)
            .flat_map(|(root, site)| tenfold_site::stale_files(root, &site.codings))
            .collect();
        // Hosts may have the same root.
        all.sort();
        all.dedup();
        let more = all.len().saturating_sub(MOST_SHOWN);
        all.truncate(MOST_SHOWN);
        all.extend(
            (more > 0).then(|| format!("{more} more compressed files are older than their originals")),
        );
        all
    })
}

/// Returns the problems with everything that a start needs besides free addresses.
pub(crate) fn startable(settings: &Settings, config: &ResolvedConfig) -> Vec<String> {
    let mut problems: Vec<String> = check::require(config.plan.engine).err().into_iter().collect();
    problems.extend(sandbox::require().err());
    problems.extend(resources(settings));
    problems
}

fn resources(settings: &Settings) -> Vec<String> {
    let workers = privileges::worker_user(settings);
    let owner = workers.as_ref().ok().and_then(Option::as_ref);
    let mut problems: Vec<String> = open::check(settings, owner).err().into_iter().collect();
    problems.extend(certificates::check_folder(settings).err());
    let workers = match workers {
        Ok(workers) => workers,
        Err(why) => {
            problems.push(why);
            return problems;
        }
    };
    match open_roots(settings) {
        Ok(roots) => problems.extend(as_user(workers.as_ref(), || unreadable(&roots, workers.as_ref()))),
        Err(why) => problems.push(why),
    }
    problems.extend(accounts(settings, workers.as_ref()).unwrap_or_else(|why| vec![why]));
    problems
}

fn unreadable(roots: &[Root], user: Option<&SystemUser>) -> Vec<String> {
    roots.iter().filter_map(|root| worker::readable(root, user).err()).collect()
}

/// Lists the problems of the members' pages and database.
fn accounts(settings: &Settings, workers: Option<&SystemUser>) -> Result<Vec<String>, String> {
    let Some(place) = &settings.members.accounts else { return Ok(Vec::new()) };
    pages::load(settings)?;
    let keeper = workers.map(|workers| privileges::accounts_user(settings, workers)).transpose()?;
    let users = keeper.as_ref().zip(workers).map(|(accounts, workers)| Users { accounts, workers });
    let check = || database::check(place, users).err().into_iter().collect();
    // The file of the database may be malformed on purpose.
    Ok(problems_in_child(
        "the members' database",
        keeper.as_ref(),
        Some(most_memory(&settings.members)),
        check,
    ))
}

/// Checks that the server can listen on the address. An address in use is only a warning.
fn listening(
    address: &ListenAddress,
    config: &ResolvedConfig,
    explain: fn(&ListenAddress, &io::Error) -> String,
) -> Result<(), String> {
    let result = match address {
        ListenAddress::Internet(at) => Listener::expect_free(at, &config.options),
        ListenAddress::Unix(path) => socket::is_in_use(path).and_then(|is_in_use| match is_in_use {
            true => Err(ErrorKind::AddrInUse.into()),
            false => OpenFolder::around(path).and_then(|(folder, _)| folder.allows_new_files()),
        }),
    };
    let Err(error) = result else { return Ok(()) };
    let why = explain(address, &error);
    if error.kind() != ErrorKind::AddrInUse {
        return Err(why);
    }
    warning!("{why}");
    Ok(())
}

/// The problems that `look` finds with the rights of `user`, in a child process; in this process if there is no user.
fn as_user(user: Option<&SystemUser>, look: impl FnOnce() -> Vec<String>) -> Vec<String> {
    let Some(user) = user else { return look() };
    problems_in_child("files", Some(user), None, look)
}
