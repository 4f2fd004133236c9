//! The users of the server's processes.

use tenfold_sys::lifecycle;
use tenfold_sys::process::{self, Pid};
use tenfold_sys::signal::Signal;
use tenfold_sys::user::{self, SystemUser};

use crate::config::values::Settings;
use crate::diagnostics::warning;
use crate::members::database::Users;

/// The default user of workers if the server is started as root.
const USUAL: &str = "nobody";

/// The user of the accounts process, if that user exists and no other is named.
const USUAL_ACCOUNTS: &str = "tenfold-accounts";

/// The user of the signing process, if that user exists.
const USUAL_SIGNING: &str = "tenfold-signing";

/// Checks that the requested users are possible.
pub(crate) fn allowed(settings: &Settings) -> Result<(), String> {
    let named = [("user", &settings.user), ("accounts-user", &settings.members.user)];
    match named.into_iter().find_map(|(key, name)| Some((key, name.as_ref()?))) {
        Some((key, name)) if !user::is_root() => {
            Err(format!("{key} is {name}, but only a server that is started as root can change its user"))
        }
        _ => Ok(()),
    }
}

/// The user of workers; `None`: unchanged.
pub(crate) fn worker_user(settings: &Settings) -> Result<Option<SystemUser>, String> {
    if !user::is_root() {
        return Ok(None);
    }
    let found = named(settings.user.as_deref().unwrap_or(USUAL), "user")?;
    if found.id == 0 {
        warning!("workers run as root, without its capabilities; name another user with --user");
    }
    Ok(Some(found))
}

/// Drops privileges in a child of the supervisor: the process becomes `user`, ends with the supervisor, and hides its
/// memory. Returns whether the supervisor still runs.
pub(crate) fn give_up(user: Option<&SystemUser>, supervisor: Pid) -> Result<bool, String> {
    if let Some(user) = user {
        user.switch_to().map_err(|error| format!("cannot become user {}: {error}", user.name))?;
    }
    user::drop_capabilities().map_err(|error| format!("cannot give up privileges: {error}"))?;
    // Both are set after the change of user, which resets them.
    let followed = process::end_with(supervisor, Signal::Interrupt);
    let there = followed.map_err(|error| format!("cannot follow the supervisor: {error}"))?;
    process::hide_memory().map_err(|error| format!("cannot hide the memory of the process: {error}"))?;
    lifecycle::reset();
    lifecycle::install_worker_signals().map_err(|error| format!("cannot receive signals: {error}"))?;
    Ok(there)
}

/// The user of the accounts process of a server that is started as root.
pub(crate) fn accounts_user(settings: &Settings, workers: &SystemUser) -> Result<SystemUser, String> {
    match &settings.members.user {
        Some(name) => match named(name, "accounts-user")? {
            user if user.id == 0 && workers.id != 0 => {
                Err(format!("accounts-user is {name}, which is root; name a user without privileges"))
            }
            user => Ok(user),
        },
        None => Ok(look_up(USUAL_ACCOUNTS)?.unwrap_or_else(|| workers.clone())),
    }
}

/// A warning if the accounts process has the user of the workers by default.
pub(crate) fn shared_user(settings: &Settings, users: Users<'_>) -> Option<String> {
    let shared = settings.members.user.is_none() && users.accounts.id == users.workers.id;
    shared.then(|| {
        format!(
            "there is no user {USUAL_ACCOUNTS}, so the accounts process runs as {}, like the workers: code that runs \
             in a worker can read the database; create that user (useradd --system {USUAL_ACCOUNTS}), or name another \
             with accounts-user",
            users.workers.name
        )
    })
}

/// The user of the signing process of a server that is started as root.
pub(crate) fn signing_user(workers: &SystemUser) -> Result<SystemUser, String> {
    Ok(look_up(USUAL_SIGNING)?.unwrap_or_else(|| workers.clone()))
}

/// A warning if the signing process has the user of the workers.
pub(crate) fn shared_signing_user(signing: &SystemUser, workers: &SystemUser) -> Option<String> {
    (signing.id == workers.id).then(|| {
        format!(
            "there is no user {USUAL_SIGNING}, so the signing process runs as {}, like the workers: code that runs in \
             a worker has the rights of its user; create that user (useradd --system {USUAL_SIGNING})",
            workers.name
        )
    })
}

fn named(name: &str, key: &str) -> Result<SystemUser, String> {
    look_up(name)?.ok_or_else(|| format!("there is no user {name}; name an existing user with --{key}"))
}

fn look_up(name: &str) -> Result<Option<SystemUser>, String> {
    SystemUser::find(name).map_err(|error| format!("cannot look up user {name}: {error}"))
}
