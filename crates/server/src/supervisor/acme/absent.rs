//! In a build without the feature `acme`: no settings ask for its client.

use super::task::ClientTask;

/// Refuses.
///
/// # Errors
/// Always: this build has no client.
pub(super) fn obtain(_: ClientTask<'_>) -> Result<(), String> {
    Err("this build lacks the feature acme".into())
}
