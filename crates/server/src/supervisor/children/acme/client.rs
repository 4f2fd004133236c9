//! The life of the process that obtains and renews a certificate.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::thread;

use tenfold_sys::signal::Signal;
use tenfold_sys::{limits, process};
use tenfold_tls::acme::client::{AcmeClient, AcmeEvent, RefusedEvent};
use tenfold_tls::acme::settings::Validation;
use tenfold_tls::acme::stored;
use tenfold_tls::certificates::facts::KeyId;
use tenfold_tls::challenges::ChallengeBoard;
use tenfold_tls::state::StateFolder;

use crate::config::parse::units::shown_duration;
use crate::config::resolve::certificates::AcmeTask;
use crate::diagnostics::{debug, warning};
use crate::sandbox;
use crate::supervisor::children::child::Child;

/// The most bytes that the process allocates: an answer of the authority has at most 1 MiB.
const MOST_MEMORY: u64 = 256 << 20;

/// Opens the state folder with the rights of the supervisor, because it may be in a folder of another user.
pub(crate) fn prepare(task: &AcmeTask) -> Result<StateFolder, String> {
    let folder = StateFolder::open(&task.folder).map_err(|error| error.to_string())?;
    if is_confined(task) {
        sandbox::limit_files_of_acme(&task.folder)?;
    }
    Ok(folder)
}

/// Whether the process is confined. With `dns-01` it is not: the rights that the user's program needs are unknown.
fn is_confined(task: &AcmeTask) -> bool {
    sandbox::CONFINES && !matches!(task.settings.validation, Validation::Dns01 { .. })
}

/// Obtains and renews the certificate until the supervisor ends this process.
pub(crate) fn obtain(
    child: &Child,
    task: &AcmeTask,
    folder: StateFolder,
    board: ChallengeBoard,
    known: &[KeyId],
    mut news: UnixStream,
) -> Result<(), String> {
    // An attempt may wait for minutes. Nothing is lost if it is ended at any point.
    let followed = process::end_with(child.supervisor(), Signal::Kill);
    if !followed.map_err(|error| format!("cannot follow the supervisor: {error}"))? {
        return Ok(());
    }
    if let Some(process) = child.sandbox().filter(|_| is_confined(task)) {
        limits::limit_memory(MOST_MEMORY).map_err(|error| format!("cannot limit memory: {error}"))?;
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
