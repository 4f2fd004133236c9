//! The configured certificates and their keys, read while the process may read keys.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tenfold_tls::certificates::files::{CertificateFiles, LoadedCertificates};
use tenfold_tls::certificates::finding::{Finding, Severity};
use tenfold_tls::certificates::resolver::CertificateResolver;
use tenfold_tls::config::SecurityPreset;
use tenfold_tls::shared::SharedBytes;
use tenfold_tls::tickets::ticketer::SharedTicketer;
use tenfold_tls::{ServerConfig, config, connection};

use crate::settings::values::Settings;

/// Reads and checks the certificates; `None` if there are none.
///
/// # Errors
/// Names every file that cannot be used, and why.
pub(super) fn load(settings: &Settings) -> Result<Option<Arc<LoadedCertificates>>, String> {
    if settings.tls_certificate.is_empty() {
        return Ok(None);
    }
    let pairs = settings.tls_certificate.iter().zip(&settings.tls_key);
    let files: Vec<_> = pairs
        .map(|(certificate, key)| CertificateFiles { certificate: certificate.clone(), key: key.clone() })
        .collect();
    let names = settings.hosts.iter().flat_map(|host| &host.names);
    // Host writes an IPv6 address in brackets.
    let names: Vec<_> = names.map(|name| name.as_str().trim_matches(['[', ']']).to_owned()).collect();
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX);
    let loaded = LoadedCertificates::load(&files, &names, now);
    match loaded.is_usable() {
        true => Ok(Some(Arc::new(loaded))),
        false => Err(said(&loaded, Severity::Error).collect::<Vec<_>>().join("; ")),
    }
}

/// Returns the findings of one severity as messages.
pub(super) fn said(loaded: &LoadedCertificates, severity: Severity) -> impl Iterator<Item = String> {
    let of_severity = move |finding: &&Finding| finding.severity() == severity;
    loaded.findings.iter().filter(of_severity).map(Finding::to_string)
}

/// Returns the settings of a worker that signs by itself, with the keys of tickets in `tickets`.
///
/// # Errors
/// The library cannot combine the settings.
pub(crate) fn server_config(
    loaded: &LoadedCertificates,
    preset: SecurityPreset,
    tickets: SharedBytes,
) -> Result<Arc<ServerConfig>, String> {
    let table = loaded.table().ok_or("there is no certificate")?;
    let resolver = Arc::new(CertificateResolver::new(Some(table), None));
    let config = config::server_config(preset, resolver, SharedTicketer::new(tickets), false);
    let mut config = config.map_err(|error| format!("cannot configure TLS: {error}"))?;
    connection::prepare(&mut config);
    Ok(Arc::new(config))
}
