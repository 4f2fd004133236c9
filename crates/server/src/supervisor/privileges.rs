//! Whom workers become.

use tenfold_sys::user::{self, User};

use crate::diagnostics::warning;
use crate::settings::Settings;

/// The user of workers where the server is started as root and nobody says whom.
const USUAL: &str = "nobody";

/// Whether what was asked for can be done at all.
///
/// # Errors
/// In words, where somebody else than root asks for another user.
pub(super) fn allowed(settings: &Settings) -> Result<(), String> {
    match &settings.user {
        Some(name) if !user::is_root() => {
            Err(format!("user is {name}, but only a server that is started as root can become somebody else"))
        }
        _ => Ok(()),
    }
}

/// Whom workers become; none where they stay who started the server.
///
/// # Errors
/// In words, where there is no such user.
pub(super) fn worker_user(settings: &Settings) -> Result<Option<User>, String> {
    if !user::is_root() {
        return Ok(None);
    }
    let name = settings.user.as_deref().unwrap_or(USUAL);
    let found = User::find(name).map_err(|error| format!("can not look up user {name}: {error}"))?;
    let found =
        found.ok_or_else(|| format!("there is no user {name}; name one that there is with --user"))?;
    if found.id == 0 {
        warning!("workers are root, without its capabilities; better name somebody else with --user");
    }
    Ok(Some(found))
}
