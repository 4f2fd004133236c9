//! The facts that the start block shows.

use std::path::Path;

use tenfold_accounts::store::url::DatabaseUrl;
use tenfold_sys::socket::ListenAddress;
use tenfold_sys::user::SystemUser;

use crate::config::resolve::ResolvedConfig;
use crate::config::values::Settings;
use crate::worker::null::NullResponse;

/// The facts of the start block.
pub(crate) struct StartFacts<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) config: &'a ResolvedConfig,
    pub(crate) addresses: &'a [ListenAddress],
    /// The members' database, and the user of the accounts process if the server was started as root.
    pub(crate) accounts: Option<(&'a DatabaseUrl, Option<&'a SystemUser>)>,
    pub(crate) user: Option<&'a SystemUser>,
    /// The user of the signing process, if the server was started as root; outer `None`: workers have the keys.
    pub(crate) signing: Option<Option<&'a SystemUser>>,
    pub(crate) control: Option<&'a Path>,
    pub(crate) null: Option<NullResponse>,
    /// Whether `--qr` was given.
    pub(crate) qr: bool,
    /// Whether the kernel limits the files of processes.
    pub(crate) files_limited: bool,
}
