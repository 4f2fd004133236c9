//! The settings about certificates that the server makes or obtains by itself.

use std::path::PathBuf;

use super::members::usual_folder;

/// The settings about certificates that the server makes or obtains by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamesSettings {
    pub(crate) tls: TlsNames,
    /// The URL of the authority's directory.
    pub(crate) directory: String,
    /// The roots that the authority's HTTPS is checked with; the system's if absent.
    pub(crate) directory_root: Option<PathBuf>,
    /// The address that the authority may write to.
    pub(crate) contact: Option<String>,
    pub(crate) challenge: Challenge,
    /// The program that sets DNS records.
    pub(crate) dns_command: Option<PathBuf>,
    /// The folder for keys and certificates; the usual one if absent.
    pub(crate) state: Option<PathBuf>,
}

/// The source of certificates besides files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum TlsNames {
    #[default]
    Off,
    /// An authority of this machine's own.
    Internal,
    /// A certificate for these names, in lower case, from an authority on the network.
    Acme(Vec<String>),
}

/// The proof of names without a program for DNS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Challenge {
    #[default]
    TlsAlpn01,
    Http01,
}

impl TlsNames {
    /// The addresses to listen on if none is given.
    pub(crate) fn addresses(&self) -> &'static [&'static str] {
        match self {
            TlsNames::Off => &[],
            TlsNames::Internal => &["127.0.0.1:8443"],
            TlsNames::Acme(_) if has_ipv6() => {
                &["0.0.0.0:443", "[::]:443", "http:0.0.0.0:80", "http:[::]:80"]
            }
            TlsNames::Acme(_) => &["0.0.0.0:443", "http:0.0.0.0:80"],
        }
    }
}

/// Whether this machine has any IPv6 address: otherwise `[::]` cannot be listened on (`man 7 ipv6`).
pub(crate) fn has_ipv6() -> bool {
    std::fs::read("/proc/net/if_inet6").is_ok_and(|addresses| !addresses.is_empty())
}

impl NamesSettings {
    /// Returns the folder above those of all authorities.
    ///
    /// # Errors
    /// No folder for lasting state of this user is known.
    pub(crate) fn state_folder(&self) -> Result<PathBuf, String> {
        match &self.state {
            Some(folder) => Ok(folder.clone()),
            // The folder of root's server belongs to the user of the accounts process.
            None => usual_folder()
                .map(|folder| match tenfold_sys::user::is_root() {
                    true => folder.with_file_name("tenfold-tls"),
                    false => folder.join("tls"),
                })
                .ok_or_else(|| "neither XDG_DATA_HOME nor HOME says where to keep certificates; name a folder with tls-state".into()),
        }
    }
}
