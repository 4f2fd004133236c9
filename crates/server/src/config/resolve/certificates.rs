//! The certificates: from files, made by the server, or obtained by it.

use std::fs;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tenfold_sys::folder::OpenFolder;
use tenfold_sys::socket::ListenAddress;
use tenfold_sys::user;
use tenfold_tls::acme::external::ExternalAccount;
use tenfold_tls::acme::settings::{AcmeSettings, Validation};
use tenfold_tls::acme::stored;
use tenfold_tls::certificates::chain::Chain;
use tenfold_tls::certificates::files::{CertificateFiles, KeyFile, KeyHolder, LoadedCertificates};
use tenfold_tls::certificates::resolver::CertificateResolver;
use tenfold_tls::certificates::roots::trusted;
use tenfold_tls::challenges::ChallengeBoard;
use tenfold_tls::config::SecurityPreset;
use tenfold_tls::internal::{self, RootOrigin};
use tenfold_tls::shared::SharedBytes;
use tenfold_tls::signing::remote::SigningClient;
use tenfold_tls::state::StateFolder;
use tenfold_tls::tickets::ticketer::SharedTicketer;
use tenfold_tls::{ServerConfig, config, connection};

use crate::config::values::Settings;
use crate::config::values::tls::{Challenge, TlsNames};
use crate::diagnostics::{info, warning};
use crate::sandbox;
use crate::sandbox::apart::{LATEST, apart};

/// The certificates, and the files of keys for the signing process.
pub(crate) type LoadedTls = (Option<Arc<LoadedCertificates>>, Option<Arc<Vec<KeyFile>>>);

/// The certificates of the running workers. A certificate that the server made or obtained stays in use until the state
/// folder has a valid one.
#[derive(Debug)]
pub(crate) struct RunningTls {
    pub(crate) certificates: Arc<LoadedCertificates>,
    /// The files of the keys, if the signing process has the keys.
    pub(crate) keys: Vec<KeyFile>,
}

/// Reads and checks the certificates; `None` without certificates. An error names every unusable file.
pub(crate) fn load(settings: &Settings, running: Option<&RunningTls>) -> Result<LoadedTls, String> {
    if !settings.uses_tls() {
        return Ok((None, None));
    }
    let pairs = settings.tls_certificate.iter().zip(&settings.tls_key);
    let mut files: Vec<_> = pairs
        .map(|(certificate, key)| CertificateFiles { certificate: certificate.clone(), key: key.clone() })
        .collect();
    let stored = stored_files(settings)?;
    files.extend(stored.files().cloned());
    let names = settings.hosts.iter().flat_map(|host| &host.names);
    // Host writes an IPv6 address in brackets.
    let names = names.map(|name| name.as_str().trim_matches(['[', ']']).to_owned());
    let names: Vec<_> = names.filter(|name| !will_cover(settings, name)).collect();
    let holder = if settings.tls_key_isolation { KeyHolder::Other } else { KeyHolder::Own };
    let mut loaded = LoadedCertificates::load(&files, &names, unix_now(), holder);
    keep(settings, &stored, running, &mut loaded, holder)?;
    refuse_twice(settings, &loaded)?;
    let keys = std::mem::take(&mut loaded.key_files);
    let mut problems = loaded.errors.clone();
    problems.extend(
        check_keys(&keys).unwrap_or_else(|error| {
            vec![format!("cannot check the keys in a process of their own: {error}")]
        }),
    );
    // A missing certificate of an authority is no problem: handshakes end with an alert until it exists.
    match problems.is_empty() {
        true => Ok((Some(Arc::new(loaded)), (!keys.is_empty()).then(|| Arc::new(keys)))),
        false => Err(problems.join("; ")),
    }
}

/// Returns the TLS settings of a worker. It signs by itself or by `client`, has ticket keys in `tickets`, and answers
/// an authority that validates names by `challenges`.
pub(crate) fn server_config(
    loaded: &LoadedCertificates,
    preset: SecurityPreset,
    tickets: SharedBytes,
    challenges: Option<ChallengeBoard>,
    client: Option<&Arc<SigningClient>>,
    with_http2: bool,
) -> Result<Arc<ServerConfig>, String> {
    let with_challenges = challenges.is_some();
    let remote = |facts: &_| client.and_then(|client| client.key(facts));
    let resolver = Arc::new(CertificateResolver::new(loaded.table(remote), challenges));
    let config =
        config::server_config(preset, resolver, SharedTicketer::new(tickets), with_challenges, with_http2);
    let mut config = config.map_err(|error| format!("cannot configure TLS: {error}"))?;
    connection::prepare(&mut config);
    Ok(Arc::new(config))
}

/// Returns the problems of keys. A short-lived process without privileges reads the keys, so this process never has
/// them in its memory.
fn check_keys(keys: &[KeyFile]) -> io::Result<Vec<String>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    apart(None, LATEST, || {
        give_up()
            .map(|()| keys.iter().filter_map(|key| key.read().err()).collect())
            .unwrap_or_else(|why| vec![why])
    })
}

/// Drops the privileges of the process that checks keys.
fn give_up() -> Result<(), String> {
    user::drop_capabilities().map_err(|error| format!("cannot give up privileges: {error}"))?;
    if sandbox::CONFINES { sandbox::confine_check() } else { Ok(()) }
}

/// A certificate that the ACME process obtains and renews.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AcmeTask {
    pub(crate) settings: AcmeSettings,
    /// The folder of the authority's files.
    pub(crate) folder: PathBuf,
}

impl AcmeTask {
    /// Whether `loaded` has the certificate.
    pub(crate) fn has_certificate(&self, loaded: &LoadedCertificates) -> bool {
        has_pair_in(loaded, &self.folder)
    }
}

/// Settings for an authority on the network.
const OF_ACME: [&str; 6] = [
    "tls-directory",
    "tls-directory-root",
    "tls-contact",
    "tls-external-account",
    "tls-challenge",
    "tls-dns-command",
];

/// Refuses settings without effect for this source of certificates, and names that no authority issues a certificate
/// for.
pub(in crate::config) fn refuse(settings: &Settings) -> Result<(), String> {
    let names = &settings.names;
    let unused = OF_ACME.into_iter().find(|name| settings.is_explicit(name));
    match (&names.tls, unused) {
        (TlsNames::Off, None) if settings.is_explicit("tls-state") => {
            Err("tls-state has no effect while tls is off; name a domain with tls, or remove tls-state".into())
        }
        (TlsNames::Off | TlsNames::Internal, Some(name)) => {
            Err(format!("{name} has no effect without a domain to certify; name one with tls, or remove {name}"))
        }
        (TlsNames::Internal, None) if !settings.tls_certificate.is_empty() => {
            Err("tls internal excludes tls-certificate; remove one of them".into())
        }
        (TlsNames::Off | TlsNames::Internal, None) => Ok(()),
        (TlsNames::Acme(_), _) if !cfg!(feature = "acme") => Err(
            "this build cannot obtain certificates: it lacks the feature acme; build with it, or name files with \
             tls-certificate"
                .into(),
        ),
        (TlsNames::Acme(wanted), _) => {
            acme(settings, wanted).check()?;
            refuse_challenge(settings)?;
            refuse_files(settings)
        }
    }
}

fn refuse_challenge(settings: &Settings) -> Result<(), String> {
    let is_plain = |address: &ListenAddress| matches!(address, ListenAddress::Internet(_));
    let plain = settings.listen.iter().any(|entry| entry.plaintext && is_plain(&entry.address));
    match (settings.names.challenge, &settings.names.dns_command) {
        (_, Some(_)) if settings.is_explicit("tls-challenge") => {
            Err("tls-challenge has no effect with tls-dns-command, which checks names by dns-01; remove one".into())
        }
        (Challenge::Http01, None) if !plain => Err(
            "tls-challenge http-01 requires an address without TLS, which the authority reaches as port 80; add one \
             to listen, such as http:0.0.0.0:80"
                .into(),
        ),
        _ => Ok(()),
    }
}

/// Checks the files that the ACME process needs.
fn refuse_files(settings: &Settings) -> Result<(), String> {
    if let Some(path) = &settings.names.directory_root {
        trusted(Some(path)).map_err(|why| {
            format!("cannot read tls-directory-root {why}; name a PEM file with certificates")
        })?;
    }
    if let Some(path) = &settings.names.external_account {
        ExternalAccount::read(path).map_err(|why| format!("cannot read tls-external-account {why}"))?;
    }
    if let Some(path) = &settings.names.dns_command {
        let failed = |why: String| {
            format!("cannot run tls-dns-command {}: {why}; name an executable file", path.display())
        };
        let facts = fs::metadata(path).map_err(|error| failed(error.to_string()))?;
        if !facts.is_file() || facts.permissions().mode() & 0o111 == 0 {
            return Err(failed("it is not executable".into()));
        }
    }
    Ok(())
}

fn acme(settings: &Settings, wanted: &[String]) -> AcmeSettings {
    let names = &settings.names;
    let validation = match (&names.dns_command, names.challenge) {
        (Some(command), _) => Validation::Dns01 { command: command.clone() },
        (None, Challenge::TlsAlpn01) => Validation::TlsAlpn01,
        (None, Challenge::Http01) => Validation::Http01,
    };
    AcmeSettings {
        names: wanted.to_vec(),
        directory: names.directory.clone(),
        authority_roots: names.directory_root.clone(),
        contact: names.contact.clone(),
        external_account: names.external_account.clone(),
        validation,
    }
}

/// Returns the task of the ACME process, if the configuration has one.
pub(super) fn task(settings: &Settings) -> Result<Option<AcmeTask>, String> {
    let TlsNames::Acme(wanted) = &settings.names.tls else { return Ok(None) };
    let Some(folder) = folder(settings)? else { return Ok(None) };
    Ok(Some(AcmeTask { settings: acme(settings, wanted), folder }))
}

/// Returns the folder of the authority, if the settings name one. Each authority has a folder of its own, so
/// certificates of a trial are not used later.
fn folder(settings: &Settings) -> Result<Option<PathBuf>, String> {
    let name = match &settings.names.tls {
        TlsNames::Off => return Ok(None),
        TlsNames::Internal => "internal".to_owned(),
        TlsNames::Acme(_) => {
            let place = settings.names.directory.trim_start_matches("https://");
            let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
            format!("acme-{}", place.chars().take(200).map(plain).collect::<String>())
        }
    };
    // The working folder of the process may change later.
    let folder = settings.names.state_folder()?.join(name);
    std::path::absolute(&folder).map(Some).map_err(|error| error.to_string())
}

/// Opens the folder of the authority if it exists.
fn existing(settings: &Settings) -> Result<Option<StateFolder>, String> {
    match folder(settings)?.filter(|folder| fs::symlink_metadata(folder).is_ok()) {
        Some(folder) => StateFolder::open(&folder).map(Some).map_err(|error| error.to_string()),
        None => Ok(None),
    }
}

/// Makes the folder of the authority, and the certificate of an internal authority. The certificate of the `running`
/// workers stays in use if no other can be made. `tenfold check` does not call this function.
pub(crate) fn prepare(settings: &Settings, running: Option<&RunningTls>) -> Result<(), String> {
    refuse(settings)?;
    let Some(path) = folder(settings)? else { return Ok(()) };
    let folder = StateFolder::open(&path).map_err(|error| error.to_string())?;
    if settings.names.tls != TlsNames::Internal {
        return Ok(());
    }
    let runs = running.is_some_and(|running| has_pair_in(&running.certificates, &path));
    let names = internal_names(settings);
    let made = apart(None, LATEST, || {
        let made = internal::certificate(&folder, &names, unix_now(), !runs);
        made.map(|origin| (origin != RootOrigin::Kept, origin == RootOrigin::Replaced))
    });
    let made = made
        .unwrap_or_else(|error| Err(format!("cannot create a certificate in a separate process: {error}")));
    let (is_new, replaces) = match made {
        Ok(root) => root,
        Err(why) if runs => {
            warning!("{why}; the running certificate stays in use");
            return Ok(());
        }
        Err(why) => return Err(why),
    };
    if let Some(why) = internal::omitted(&folder, &names) {
        warning!("{why}");
    }
    if replaces {
        warning!("the root certificate expires in less than 90 days; clients must trust its successor");
    }
    if is_new {
        let tls = settings.listen.iter().find(|entry| settings.has_tls(entry));
        let port = match tls.map(|entry| &entry.address) {
            // The system chooses it later.
            Some(ListenAddress::Internet(at)) if at.port() == 0 => "PORT".to_owned(),
            Some(ListenAddress::Internet(at)) => at.port().to_string(),
            _ => "8443".to_owned(),
        };
        info!(
            "made a certificate authority for this machine\n{}",
            internal::how_to_trust(&internal::root(&folder), &port)
        );
    }
    Ok(())
}

/// The names of this machine and of the hosts, and the addresses of the links that the start prints.
fn internal_names(settings: &Settings) -> Vec<String> {
    let mut names = internal::machine_names();
    let hosts = settings.hosts.iter().flat_map(|host| &host.names);
    let hosts = hosts.map(|name| name.as_str().trim_matches(['[', ']']).to_owned());
    let addresses = settings.addresses().filter_map(|address| match address {
        ListenAddress::Internet(at) if at.ip().is_unspecified() => outward(at.is_ipv4()),
        ListenAddress::Internet(at) => Some(at.ip()),
        ListenAddress::Unix(_) => None,
    });
    for name in hosts.chain(addresses.map(|address| address.to_string())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The files of a certificate that the server makes or obtains.
pub(super) enum StoredFiles {
    /// The files do not exist, or not yet.
    Absent,
    /// The files are damaged, or one of them is missing.
    Unusable(String),
    Usable(CertificateFiles),
}

impl StoredFiles {
    /// Returns the usable files.
    pub(super) fn files(&self) -> Option<&CertificateFiles> {
        match self {
            StoredFiles::Usable(files) => Some(files),
            StoredFiles::Absent | StoredFiles::Unusable(_) => None,
        }
    }
}

/// Returns the files of the certificate.
fn stored_files(settings: &Settings) -> Result<StoredFiles, String> {
    let Some(folder) = existing(settings)? else { return Ok(StoredFiles::Absent) };
    let found = match settings.names.tls {
        TlsNames::Internal => {
            let files = internal::files(&folder);
            Ok(files.certificate.exists().then_some(files))
        }
        _ => stored::find(&folder)
            .map(|stored| stored.map(|it| CertificateFiles { certificate: it.chain.path, key: it.key }))
            .map_err(|error| error.to_string()),
    };
    let usable = found.and_then(|found| {
        let Some(files) = found else { return Ok(StoredFiles::Absent) };
        let chain = Chain::read(&files.certificate)?;
        let key = KeyFile::open(&chain, &files.key)?;
        let problems = check_keys(&[key])
            .map_err(|error| format!("cannot check the key of the stored certificate: {error}"))?;
        if problems.is_empty() { Ok(StoredFiles::Usable(files)) } else { Err(problems.join("; ")) }
    });
    Ok(usable.unwrap_or_else(StoredFiles::Unusable))
}

fn has_pair_in(loaded: &LoadedCertificates, folder: &Path) -> bool {
    loaded.pairs.iter().any(|pair| pair.chain.path.starts_with(folder))
}

/// Adds the certificate of the running workers to `loaded` if the files have no valid certificate, and logs that.
pub(super) fn keep(
    settings: &Settings,
    stored: &StoredFiles,
    running: Option<&RunningTls>,
    loaded: &mut LoadedCertificates,
    holder: KeyHolder,
) -> Result<(), String> {
    let Some(folder) = folder(settings)? else { return Ok(()) };
    let why = match stored {
        StoredFiles::Usable(_) => return Ok(()),
        StoredFiles::Absent => format!("there is no certificate in {}", folder.display()),
        StoredFiles::Unusable(why) => why.clone(),
    };
    match running.filter(|running| has_pair_in(&running.certificates, &folder)) {
        Some(running) if loaded.keep(&running.certificates, &running.keys, &folder, holder) => {
            warning!("{why}; the running certificate stays in use until another one replaces it");
        }
        // The new holder of the keys does not have the key of the running certificate.
        Some(_) => return Err(format!("{why}; restore it before tls-key-isolation changes")),
        None if matches!(stored, StoredFiles::Unusable(_)) => {
            warning!("{why}; another certificate will replace it")
        }
        None => {}
    }
    Ok(())
}

/// Whether a certificate for this name, in lower case, will be made or obtained.
pub(super) fn will_cover(settings: &Settings, name: &str) -> bool {
    match &settings.names.tls {
        TlsNames::Off => false,
        TlsNames::Internal => true,
        TlsNames::Acme(wanted) => wanted.iter().any(|wanted| match wanted.strip_prefix("*.") {
            Some(parent) => name.split_once('.').is_some_and(|(_, above)| above == parent),
            None => wanted == name,
        }),
    }
}

/// Refuses a name in `tls` that a certificate file covers: clients could get either certificate.
pub(super) fn refuse_twice(settings: &Settings, loaded: &LoadedCertificates) -> Result<(), String> {
    let TlsNames::Acme(wanted) = &settings.names.tls else { return Ok(()) };
    let files = loaded.pairs.iter().filter(|pair| settings.tls_certificate.contains(&pair.chain.path));
    for pair in files {
        if let Some(name) = wanted.iter().find(|name| pair.chain.facts().covers(name)) {
            return Err(format!(
                "tls names {name}, which the certificate {} covers; remove the name from tls, or the file from \
                 tls-certificate",
                pair.chain.path.display()
            ));
        }
    }
    Ok(())
}

/// Returns the source of a certificate for the start block.
pub(crate) fn source(settings: &Settings, path: &Path) -> String {
    match &settings.names.tls {
        _ if settings.tls_certificate.iter().any(|file| file == path) => path.display().to_string(),
        TlsNames::Acme(_) => settings.names.directory.clone(),
        TlsNames::Internal | TlsNames::Off => match existing(settings) {
            Ok(Some(folder)) => format!("internal, root certificate {}", internal::root(&folder).display()),
            _ => "internal".into(),
        },
    }
}

/// Returns the seconds since 1970.
pub(super) fn unix_now() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX)
}

/// Checks that the folder can be used or made. Makes nothing.
pub(crate) fn check_folder(settings: &Settings) -> Result<(), String> {
    let Some(path) = folder(settings)? else { return Ok(()) };
    if existing(settings)?.is_some() {
        return Ok(());
    }
    let missing = path.ancestors().take_while(|above| fs::symlink_metadata(above).is_err()).last();
    let Some(missing) = missing else { return Ok(()) };
    let allows = OpenFolder::around(missing).and_then(|(above, _)| above.allows_new_files());
    allows.map_err(|error| {
        format!("cannot create the folder {}: {error}; name another one with tls-state", path.display())
    })
}

/// The address of this machine toward other networks: the source address of a packet that is never sent.
pub(crate) fn outward(ipv4: bool) -> Option<IpAddr> {
    // Documentation addresses (RFC 5737 and RFC 3849), which have the default route.
    let (own, other) = if ipv4 { ("0.0.0.0:0", "198.51.100.1:9") } else { ("[::]:0", "[2001:db8::1]:9") };
    let socket = UdpSocket::bind(own).ok()?;
    socket.connect(other).ok()?;
    socket.local_addr().ok().map(|at| at.ip()).filter(|ip| !ip.is_loopback())
}
