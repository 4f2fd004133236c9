//! The sources of settings: flags, variables, a file and defaults, in this order.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tenfold_http::WriteMode;
use tenfold_site::{Listing, Policy};
use tenfold_sys::socket::ListenAddress;

use super::file;
use super::problem::Problem;
use super::row::{Initial, Set, SettingRow, Text};
use super::rows::{row, rows};
use super::tables::site::SiteTable;
use super::units::meant;
use crate::config::values::members::AccountsLocation;
use crate::config::values::tls::TlsNames;
use crate::config::values::{HttpsRedirect, KernelTlsChoice, ListenEntry, Said, SettingSource, Settings};
use crate::diagnostics::warning;

/// The file that marks the root of the demonstration site.
const DEMONSTRATION: &str = ".tenfold-demonstration";

/// The usual name of a configuration.
const USUAL: &str = "tenfold.toml";

/// Values that ask for nothing that `--null` does not do.
const WORDS_OF_NULL: [&str; 3] = ["auto", "joined", "off"];

/// The flags and variables of this process, kept for reloads, which read only the file again.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenSettings {
    /// Values from flags, by the name of the setting.
    pub(crate) flags: Vec<(&'static str, Vec<String>)>,
    /// Values from environment variables, by the name of the setting.
    pub(crate) variables: Vec<(&'static str, Vec<String>)>,
    /// The path of the configuration file.
    pub(crate) config: Option<PathBuf>,
}

impl GivenSettings {
    /// Takes the variables of this process.
    pub(crate) fn take_variables(&mut self) {
        let value = |row: &SettingRow| std::env::var(row.variable()).ok().filter(|value| !value.is_empty());
        let list = |row: &SettingRow, value: String| match row.is_many() {
            true => value.split([',', ' ']).filter(|part| !part.is_empty()).map(str::to_owned).collect(),
            false => vec![value],
        };
        self.variables =
            rows().filter_map(|row| value(row).map(|value| (row.name, list(row, value)))).collect();
        if self.config.is_none() {
            let file = std::env::var_os("TENFOLD_CONFIG").filter(|file| !file.is_empty());
            self.config = file.map(PathBuf::from);
        }
    }

    /// Returns the settings, or all problems, also those of values that another source overrides.
    pub(crate) fn resolve(&self) -> Result<Settings, Vec<Problem>> {
        self.resolve_by(file::read)
    }

    /// Returns the settings as if the file had this content.
    pub(crate) fn resolve_content(&self, content: &str) -> Result<Settings, Vec<Problem>> {
        self.resolve_by(|path, settings, problems| file::read_text(path, content, settings, problems))
    }

    fn resolve_by(
        &self,
        read: impl FnOnce(&Path, &mut Settings, &mut Vec<Problem>),
    ) -> Result<Settings, Vec<Problem>> {
        let mut settings = Settings::default();
        let mut problems = Vec::new();
        for row in rows() {
            if let Initial::Value(text) = row.initial {
                let result = settings.take(row, &[text], Path::new(""), SettingSource::Default);
                debug_assert_eq!(result, Ok(()), "the default of {} is legal", row.name);
            }
        }
        settings.configured = self.config.is_some();
        if let Some(path) = &self.config {
            read(path, &mut settings, &mut problems);
        }
        let places = [(&self.variables, SettingSource::Variable), (&self.flags, SettingSource::Flag)];
        for (said, source) in places {
            for (name, values) in said {
                let row = row(name).expect("only settings are collected");
                let values: Vec<_> = values.iter().map(String::as_str).collect();
                if let Err(why) = settings.take(row, &values, Path::new(""), source) {
                    let place =
                        if source == SettingSource::Flag { format!("--{name}") } else { row.variable() };
                    problems.push(Problem::new(format!("{place}: {why}")));
                }
            }
        }
        settings.has_index = settings.index.iter().any(|index| settings.root.join(index).is_file());
        if problems.is_empty() { Ok(settings.listening()) } else { Err(problems) }
    }
}

impl GivenSettings {
    /// Warns of a file that all users can read and that contains the password of the database.
    pub(crate) fn warn_of_readable_password(&self, settings: &Settings) {
        const READ_BY_OTHERS: u32 = 0o004;
        let (Some(config), Some(AccountsLocation::At(url))) = (&self.config, &settings.members.accounts)
        else {
            return;
        };
        let Some(path) = url.password_file(config) else { return };
        let is_readable = std::fs::metadata(path).is_ok_and(|facts| facts.mode() & READ_BY_OTHERS != 0);
        if is_readable && settings.source("accounts") == SettingSource::File {
            let path = path.display();
            warning!("all users can read {path}, which has the password of the database; chmod o-r {path}");
        }
    }

    /// Takes the file `tenfold.toml` of the current folder, unless a flag or variable names a file.
    pub(crate) fn take_usual_file(&mut self) {
        if self.config.is_none() && Path::new(USUAL).is_file() {
            self.config = Some(USUAL.into());
        }
    }

    /// Warns of a configuration in the current folder, unless a flag or variable names a file or the folder to serve.
    pub(crate) fn warn_of_unread_file(&self) {
        let has_root = self.flags.iter().chain(&self.variables).any(|(name, _)| *name == "root");
        if self.config.is_none() && !has_root && Path::new(USUAL).is_file() {
            warning!("{USUAL} in this folder is not read; name it: tenfold serve -c {USUAL}");
        }
    }
}

/// Warns of variables that begin like settings but are unknown, such as misspelled ones.
pub(crate) fn warn_of_slips() {
    for (variable, _) in std::env::vars_os() {
        let Some(name) = variable.to_str().and_then(|name| name.strip_prefix("TENFOLD_")) else { continue };
        let name = name.to_ascii_lowercase().replace('_', "-");
        let near = meant(&name, rows().map(|row| row.name));
        match near.and_then(row) {
            Some(row) if row.name != name && name != "config" => {
                warning!("there is no setting {}; did you mean {}?", variable.display(), row.variable());
            }
            _ => {}
        }
    }
}

impl Settings {
    /// The addresses of `listen`.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &ListenAddress> {
        self.listen.iter().map(|entry| &entry.address)
    }

    /// Replaces the addresses of `listen`.
    pub(crate) fn listen_on(&mut self, addresses: Vec<ListenAddress>) -> Result<(), String> {
        let entries = |address: ListenAddress| {
            Text { text: &address.to_string(), base: Path::new("") }.listen_entries()
        };
        let entries: Vec<_> = addresses.into_iter().map(entries).collect::<Result<_, _>>()?;
        self.listen = entries.concat();
        Ok(())
    }

    /// Whether connections to this entry have TLS.
    pub(crate) fn has_tls(&self, entry: &ListenEntry) -> bool {
        let over_tcp = matches!(entry.address, ListenAddress::Internet(_));
        self.uses_tls() && over_tcp && !entry.plaintext
    }

    /// Whether there is any source of certificates.
    pub(crate) fn uses_tls(&self) -> bool {
        !self.tls_certificate.is_empty() || self.names.tls != TlsNames::Off
    }

    /// Whether clients may choose HTTP/2.
    pub(crate) fn http2(&self) -> bool {
        self.http2 != Some(false) && self.http2_excludes().is_none()
    }

    /// The setting and its value with which clients get HTTP/1.1 only.
    pub(crate) fn http2_excludes(&self) -> Option<&'static str> {
        match (self.limits.write, self.tls_kernel) {
            (WriteMode::Split, _) => Some("write split"),
            (WriteMode::PerHeader, _) => Some("write per-header"),
            (WriteMode::Joined, KernelTlsChoice::On) => Some("tls-kernel on"),
            (WriteMode::Joined, KernelTlsChoice::Off | KernelTlsChoice::Auto) => None,
        }
    }

    /// Redirects of plaintext requests. By default, a server that obtains its certificate redirects.
    pub(crate) fn redirect(&self) -> HttpsRedirect {
        self.https_redirect.unwrap_or(match self.names.tls {
            TlsNames::Acme(_) => HttpsRedirect::On,
            TlsNames::Off | TlsNames::Internal => HttpsRedirect::Off,
        })
    }

    /// Returns the settings with the default addresses of `tls`, unless `listen` was given.
    fn listening(mut self) -> Settings {
        let follows = self.names.tls.addresses();
        if !follows.is_empty() && !self.is_explicit("listen") {
            let row = row("listen").expect("it is a setting");
            let result = self.take(row, follows, Path::new(""), SettingSource::Default);
            debug_assert_eq!(result, Ok(()), "they are addresses");
        }
        self
    }

    /// The policies of all sites, for all paths and by rules.
    pub(crate) fn all_policies(&self) -> impl Iterator<Item = &Policy> {
        std::iter::once(&self.site).chain(&self.hosts).flat_map(SiteTable::all_policies)
    }

    /// Whether the server also serves the manual.
    pub(crate) fn serves_book(&self) -> bool {
        self.book.unwrap_or_else(|| self.is_demonstration())
    }

    /// Whether the root is the demonstration site.
    pub(crate) fn is_demonstration(&self) -> bool {
        self.root.join(DEMONSTRATION).is_file()
    }

    /// Whether only clients on this machine can connect, directly.
    pub(crate) fn is_local(&self) -> bool {
        self.is_without_proxy() && !self.addresses().any(ListenAddress::is_off_loopback)
    }

    /// Whether clients connect directly, to addresses of the command line or the file.
    fn is_without_proxy(&self) -> bool {
        // A Unix socket is usually for a proxy.
        let is_internet = |at: &ListenAddress| matches!(at, ListenAddress::Internet(_));
        !self.passed && self.proxies.proxies.is_empty() && self.addresses().all(is_internet)
    }

    /// The form of folders without an index, unless a rule changes it. By default, the server lists folders if only
    /// this machine can connect, and a configured site lists none. If the command line opens a folder without an index
    /// to the network, it is listed, because its first page would be an error. A site with an index keeps the names of
    /// its files private.
    pub(crate) fn listing(&self) -> Listing {
        let is_opened = self.source("listen") == SettingSource::Flag && self.is_without_proxy();
        let usual = match !self.configured && (self.is_local() || is_opened && !self.has_index) {
            true => Listing::Html,
            false => Listing::Off,
        };
        self.listing.unwrap_or(usual)
    }

    /// Whether listed folders are also archives. By default, only for a user who shares a folder from the command line.
    pub(crate) fn archives(&self) -> bool {
        self.archives.unwrap_or(!self.configured)
    }

    /// Whether folders are listed on any path of any host.
    pub(crate) fn lists_folders(&self) -> bool {
        let said = self.all_policies().filter_map(|policy| policy.listing);
        said.chain([self.listing()]).any(|listing| listing != Listing::Off)
    }

    /// Whether any host names the hidden files that it serves.
    pub(crate) fn serves_dotfiles(&self) -> bool {
        std::iter::once(&self.site).chain(&self.hosts).any(SiteTable::names_dotfiles)
    }

    /// Whether any path of any host requires a password.
    pub(crate) fn asks_for_passwords(&self) -> bool {
        self.all_policies().any(|policy| matches!(policy.auth, Some(Some(_))))
    }

    /// Reads `values` into the field of `row`, and records their source.
    pub(super) fn take(
        &mut self,
        row: &SettingRow,
        values: &[&str],
        base: &Path,
        source: SettingSource,
    ) -> Result<(), String> {
        self.apply(row, values, base)?;
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        self.said.retain(|said| said.name != row.name);
        self.said.push(Said { name: row.name, values, base: base.to_owned(), source });
        Ok(())
    }

    fn apply(&mut self, row: &SettingRow, values: &[&str], base: &Path) -> Result<(), String> {
        let text = |text| Text { text, base };
        match (&row.set, values) {
            (Set::Many(set), _) => set(self, &values.iter().map(|value| text(value)).collect::<Vec<_>>()),
            (Set::One(set), [only]) => set(self, text(only)),
            (Set::One(_), _) => Err(format!("one value is needed, not {}", values.len())),
        }
    }

    fn said(&self, name: &str) -> Option<&Said> {
        self.said.iter().find(|said| said.name == name)
    }

    pub(crate) fn source(&self, name: &str) -> SettingSource {
        self.said(name).map_or(SettingSource::Default, |said| said.source)
    }

    /// The first flag that has no effect with `--null`.
    pub(crate) fn ignored_by_null(&self) -> Option<&'static str> {
        let asks = |said: &Said| !matches!(&said.values[..], [word] if WORDS_OF_NULL.contains(&&word[..]));
        let ignored = |said: &&Said| {
            said.source == SettingSource::Flag && asks(said) && row(said.name).is_some_and(|row| !row.null)
        };
        self.said.iter().find(ignored).map(|said| said.name)
    }

    /// Whether a setting was given explicitly.
    pub(crate) fn is_explicit(&self, name: &str) -> bool {
        self.source(name) != SettingSource::Default
    }

    /// Returns the text of a setting, unless it has its default.
    pub(crate) fn unusual(&self, name: &str) -> Option<String> {
        let said = self.said(name)?.values.join(" ");
        let usual = row(name).is_some_and(|row| row.shown_initial() == said);
        (!usual).then_some(said)
    }

    /// The changed settings that need a restart.
    pub(crate) fn fixed_changes(&self, newer: &Settings) -> Vec<&'static str> {
        let changes = |row: &&SettingRow| row.fixed && self.only(row) != newer.only(row);
        rows().filter(changes).map(|row| row.name).collect()
    }

    /// Default settings, except the value of `row`.
    fn only(&self, row: &SettingRow) -> Settings {
        let mut settings = Settings::default();
        if let Some(said) = self.said(row.name) {
            let values: Vec<_> = said.values.iter().map(String::as_str).collect();
            let result = settings.apply(row, &values, &said.base);
            debug_assert_eq!(result, Ok(()), "what was read once can be read again");
        }
        settings
    }
}
