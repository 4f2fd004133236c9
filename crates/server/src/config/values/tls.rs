//! Settings of certificates that the server makes or obtains.

use std::net::Ipv6Addr;
use std::path::PathBuf;

use tenfold_sys::socket::{ListenOptions, Listener};

use super::members::usual_folder;

/// The settings of certificates that the server makes or obtains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamesSettings {
    pub(crate) tls: TlsNames,
    /// The URL of the authority's directory.
    pub(crate) directory: String,
    /// The root certificates for HTTPS to the authority; `None`: those of the system.
    pub(crate) directory_root: Option<PathBuf>,
    /// The address at which the authority can contact the owner.
    pub(crate) contact: Option<String>,
    /// The file with the key of an external account.
    pub(crate) external_account: Option<PathBuf>,
    pub(crate) challenge: Challenge,
    /// The program that sets DNS records.
    pub(crate) dns_command: Option<PathBuf>,
    /// The folder for keys and certificates; `None`: the default folder.
    pub(crate) state: Option<PathBuf>,
}

/// The source of certificates besides files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum TlsNames {
    #[default]
    Off,
    /// The server's own authority on this machine.
    Internal,
    /// A certificate for these names, in lower case, from an authority on the network.
    Acme(Vec<String>),
}

/// The proof of names if no program sets DNS records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Challenge {
    #[default]
    TlsAlpn01,
    Http01,
}

impl TlsNames {
    /// The default addresses to listen on.
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

/// Whether a server can listen on `[::]`. The kernel may lack IPv6, no interface may have an address, or a filter of
/// system calls may refuse the family.
pub(crate) fn has_ipv6() -> bool {
    let any = (Ipv6Addr::UNSPECIFIED, 0).into();
    let addresses = std::fs::read("/proc/net/if_inet6");
    addresses.is_ok_and(|addresses| !addresses.is_empty())
        && Listener::expect_free(&any, &ListenOptions::default()).is_ok()
}

impl NamesSettings {
    /// Returns the folder that contains the folders of all authorities.
    pub(crate) fn state_folder(&self) -> Result<PathBuf, String> {
        match &self.state {
            Some(folder) => Ok(folder.clone()),
            // A server of root cannot use the default folder, which belongs to the user of the accounts process.
            None => usual_folder()
                .map(|folder| match tenfold_sys::user::is_root() {
                    true => folder.with_file_name("tenfold-tls"),
                    false => folder.join("tls"),
                })
                .ok_or_else(|| "neither XDG_DATA_HOME nor HOME says where to keep certificates; name a folder with tls-state".into()),
        }
    }
}
