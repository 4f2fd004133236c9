//! The life of the process that obtains and renews a certificate.

use std::io::Write;
use std::thread;

use tenfold_sys::signal::Signal;
use tenfold_sys::{limits, process};
use tenfold_tls::acme::client::{AcmeClient, AcmeEvent, RefusedEvent};
use tenfold_tls::acme::settings::Validation;
use tenfold_tls::acme::stored;
use tenfold_tls::state::StateFolder;

use super::task::ClientTask;
use crate::config::parse::units::shown_duration;
use crate::diagnostics::{debug, warning};
use crate::sandbox;
use crate::supervisor::privileges;

/// The most bytes that the process allocates: an answer of the authority has at most 1 MiB.
const MOST_MEMORY: u64 = 256 << 20;

/// Obtains and renews the certificate until the supervisor ends this process.
///
/// # Errors
/// In words: the folder cannot be used, or the process cannot be confined.
pub(super) fn obtain(work: ClientTask<'_>) -> Result<(), String> {
    let ClientTask { task, board, reports, known, mut news, supervisor } = work;
    // Both need the rights of the supervisor: the folder may be in one of another user.
    let folder = StateFolder::open(&task.folder).map_err(|error| error.to_string())?;
    // A program of the user needs whatever it needs.
    let confined = task.sandbox && !matches!(task.settings.validation, Validation::Dns01 { .. });
    if confined {
        sandbox::limit_files_of_acme(&task.folder)?;
    }
    if !privileges::give_up(None, supervisor)? {
        return Ok(());
    }
    // An attempt may wait for minutes, and goes on where it was: nothing is lost by ending it at once.
    let followed = process::end_with(supervisor, Signal::Kill);
    if !followed.map_err(|error| format!("cannot follow the supervisor: {error}"))? {
        return Ok(());
    }
    if confined {
        limits::limit_memory(MOST_MEMORY).map_err(|error| format!("cannot limit memory: {error}"))?;
        let refused = &reports.row(1)[0];
        let process = sandbox::Process { name: "certificates".into(), row: reports.row(0), refused };
        sandbox::confine_acme(process)?;
    }
    let stored = stored::load(&folder).ok().flatten();
    let stored = stored.filter(|stored| known.contains(&stored.chain.facts().key_id()));
    let client = AcmeClient::new(task.settings.clone(), folder, board.clone(), stored.as_ref());
    let mut client = client.map_err(|error| format!("cannot begin: {error}"))?;
    #[cfg(feature = "test-hooks")]
    plant(&board);
    loop {
        let step = client.step();
        for refused in step.refused {
            let RefusedEvent { name, error, retry } = refused;
            warning!("{error}; the next attempt for {name} is in {}", shown_duration(retry));
        }
        match step.event {
            Some(AcmeEvent::Changed(_)) => {
                news.write_all(b"!").map_err(|error| format!("cannot tell the supervisor: {error}"))?;
            }
            Some(AcmeEvent::Failed { error, retry }) => {
                let (names, retry) = (task.settings.names.join(", "), shown_duration(retry));
                warning!("no new certificate for {names}: {error}; the next attempt is in {retry}");
            }
            None => debug!("the next look at certificates is in {}", shown_duration(step.wait)),
        }
        thread::sleep(step.wait);
    }
}

/// Publishes the responses that a test asks for: a token with its response, and a name.
#[cfg(feature = "test-hooks")]
fn plant(board: &tenfold_tls::challenges::ChallengeBoard) {
    let Ok(wanted) = std::env::var("TENFOLD_TEST_CHALLENGE") else { return };
    let [token, response, name] = wanted.split(' ').collect::<Vec<_>>()[..] else { return };
    let mut pending = tenfold_tls::challenges::PendingChallenges::default();
    pending.add_http(token, response);
    pending.add_tls(name, &[7; 32]).expect("a test gives a name");
    assert!(board.publish(&pending), "there is room for two");
}
