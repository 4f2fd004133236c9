//! The resources of the process that obtains certificates.

use std::os::unix::net::UnixStream;

use tenfold_sys::process::Pid;
use tenfold_sys::shared::SharedRows;
use tenfold_tls::certificates::facts::KeyId;
use tenfold_tls::challenges::ChallengeBoard;

use crate::config::resolve::certificates::AcmeTask;

/// The resources of the process.
#[cfg_attr(not(feature = "acme"), expect(dead_code, reason = "there is no client"))]
pub(super) struct ClientTask<'a> {
    pub(super) task: &'a AcmeTask,
    /// The place of responses to challenges.
    pub(super) board: ChallengeBoard,
    /// In which its sandbox reports.
    pub(super) reports: &'static SharedRows,
    /// The keys of the certificates that workers have.
    pub(super) known: Vec<KeyId>,
    /// It takes a byte for each new certificate.
    pub(super) news: UnixStream,
    pub(super) supervisor: Pid,
}
