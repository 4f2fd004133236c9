//! The settings about members.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use tenfold_accounts::passwords::Cost;
use tenfold_accounts::store::url::DatabaseUrl;
use tenfold_accounts::web::protect::ProtectedFolder;
use tenfold_accounts::web::{Web, WebSettings, template_names};
use tenfold_accounts::{AccountPolicy, Lifetime, Registration};
use tenfold_sys::location;

/// The most bytes of a custom template.
const MOST_TEMPLATE: u64 = 1 << 20;

/// The settings about members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MembersSettings {
    pub(crate) accounts: Option<AccountsLocation>,
    /// The user of the accounts process, if the settings name one.
    pub(crate) user: Option<String>,
    pub(crate) protect: Vec<ProtectedFolder>,
    pub(crate) registration: Registration,
    pub(crate) templates: Option<PathBuf>,
    pub(crate) idle: Duration,
    pub(crate) absolute: Duration,
    pub(crate) least_password: usize,
    /// The memory of a password hash, in bytes.
    pub(crate) memory: u64,
    pub(crate) passes: u32,
    pub(crate) throttle: bool,
}

/// The location of the accounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccountsLocation {
    /// An SQLite database in the default folder of this system.
    Usual,
    At(DatabaseUrl),
}

impl AccountsLocation {
    /// The URL of the database. Fails if this system has no default folder.
    pub(crate) fn url(&self) -> Result<DatabaseUrl, String> {
        match self {
            AccountsLocation::At(url) => Ok(url.clone()),
            AccountsLocation::Usual => {
                let folder = usual_folder().ok_or(
                    "neither XDG_DATA_HOME nor HOME says where to keep the accounts; name a file: sqlite:PATH",
                )?;
                DatabaseUrl::sqlite(&folder.join("members.db"))
            }
        }
    }
}

/// Returns the folder for lasting state: the folder from systemd, the system's folder for root, or the user's own
/// folder; `None` if no variable names one.
pub(crate) fn usual_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = variable("STATE_DIRECTORY") {
        return Some(folder);
    }
    if tenfold_sys::user::is_root() {
        return Some(PathBuf::from("/var/lib/tenfold"));
    }
    let own = variable("XDG_DATA_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/share")));
    own.map(|own| own.join("tenfold"))
}

impl MembersSettings {
    /// The policy of accounts.
    pub(crate) fn policy(&self) -> AccountPolicy {
        AccountPolicy {
            registration: self.registration,
            least_password: self.least_password,
            cost: Cost { memory: (self.memory / 1024) as u32, passes: self.passes, lanes: 1 },
            lifetime: Lifetime { idle: self.idle, absolute: self.absolute },
            throttle: self.throttle,
        }
    }

    /// Returns the members' pages, with custom templates.
    pub(crate) fn web(&self, templates: &HashMap<&str, String>) -> Result<Web, String> {
        let settings = WebSettings {
            protect: self.protect.clone(),
            registration: self.registration,
            least_password: self.least_password,
            absolute: self.absolute,
        };
        Web::new(settings, |name| Ok(templates.get(name).cloned()))
    }

    /// Reads the custom templates. Their folder may belong to another user, and this process may be root.
    pub(crate) fn read_templates(&self) -> Result<HashMap<&'static str, String>, String> {
        let mut texts = HashMap::new();
        let Some(folder) = &self.templates else { return Ok(texts) };
        if !folder.is_dir() {
            return Err(format!(
                "there is no folder {} for templates; create it, or name another",
                folder.display()
            ));
        }
        for name in template_names() {
            let path = folder.join(name);
            match location::read_text(&path, MOST_TEMPLATE) {
                Ok(text) => drop(texts.insert(name, text)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(format!("cannot read the template {}: {error}", path.display())),
            }
        }
        Ok(texts)
    }
}
