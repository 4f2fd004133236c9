//! The configured certificates and their keys, read while the process may read keys.

use std::sync::Arc;

use tenfold_tls::certificates::files::{CertificateFiles, KeyFile, KeyHolder, LoadedCertificates};
use tenfold_tls::certificates::finding::{Finding, Severity};
use tenfold_tls::certificates::resolver::CertificateResolver;
use tenfold_tls::challenges::ChallengeBoard;
use tenfold_tls::config::SecurityPreset;
use tenfold_tls::shared::SharedBytes;
use tenfold_tls::signing::remote::SigningClient;
use tenfold_tls::tickets::ticketer::SharedTicketer;
use tenfold_tls::{ServerConfig, config, connection};

use super::apart::check_keys;
use super::names::{self, RunningTls};
use crate::settings::values::Settings;

/// The certificates, and the files of keys that another process is to have.
pub(crate) type LoadedTls = (Option<Arc<LoadedCertificates>>, Option<Arc<Vec<KeyFile>>>);

/// Reads and checks the certificates; `None` if there are none.
///
/// # Errors
/// Names every file that cannot be used, and why.
pub(crate) fn load(settings: &Settings, running: Option<&RunningTls>) -> Result<LoadedTls, String> {
    if !settings.uses_tls() {
        return Ok((None, None));
    }
    let pairs = settings.tls_certificate.iter().zip(&settings.tls_key);
    let mut files: Vec<_> = pairs
        .map(|(certificate, key)| CertificateFiles { certificate: certificate.clone(), key: key.clone() })
        .collect();
    let stored = names::files(settings)?;
    files.extend(stored.files().cloned());
    let names = settings.hosts.iter().flat_map(|host| &host.names);
    // Host writes an IPv6 address in brackets.
    let names = names.map(|name| name.as_str().trim_matches(['[', ']']).to_owned());
    let names: Vec<_> = names.filter(|name| !names::will_cover(settings, name)).collect();
    let holder = if settings.tls_key_isolation { KeyHolder::Other } else { KeyHolder::Own };
    let mut loaded = LoadedCertificates::load(&files, &names, names::unix_now(), holder);
    names::keep(settings, &stored, running, &mut loaded, holder)?;
    names::refuse_twice(settings, &loaded)?;
    let keys = std::mem::take(&mut loaded.key_files);
    let mut problems: Vec<String> = said(&loaded, Severity::Error).collect();
    problems.extend(
        check_keys(&keys, settings.sandbox).unwrap_or_else(|error| {
            vec![format!("cannot check the keys in a process of their own: {error}")]
        }),
    );
    // A certificate that is not there yet is waited for: handshakes end with an alert until then.
    match problems.is_empty() {
        true => Ok((Some(Arc::new(loaded)), (!keys.is_empty()).then(|| Arc::new(keys)))),
        false => Err(problems.join("; ")),
    }
}

/// Returns the findings of one severity as messages.
pub(super) fn said(loaded: &LoadedCertificates, severity: Severity) -> impl Iterator<Item = String> {
    let of_severity = move |finding: &&Finding| finding.severity() == severity;
    loaded.findings.iter().filter(of_severity).map(Finding::to_string)
}

/// Returns the settings of a worker that signs by itself or by `client`, with the keys of tickets in `tickets`, and
/// responses to an authority that validates names in `challenges`.
///
/// # Errors
/// The library cannot combine the settings.
pub(crate) fn server_config(
    loaded: &LoadedCertificates,
    preset: SecurityPreset,
    tickets: SharedBytes,
    challenges: Option<ChallengeBoard>,
    client: Option<&Arc<SigningClient>>,
) -> Result<Arc<ServerConfig>, String> {
    let with_challenges = challenges.is_some();
    let remote = |facts: &_| client.and_then(|client| client.key(facts));
    let resolver = Arc::new(CertificateResolver::new(loaded.table(remote), challenges));
    let config = config::server_config(preset, resolver, SharedTicketer::new(tickets), with_challenges);
    let mut config = config.map_err(|error| format!("cannot configure TLS: {error}"))?;
    connection::prepare(&mut config);
    Ok(Arc::new(config))
}
