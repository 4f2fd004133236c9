//! The definition of a setting. Its flag, `TENFOLD_` variable, key of the file, help, default, reader and field, and
//! whether a reload can change it, all come from its row in [`super::rows`].

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use tenfold_engine::Engine;
use tenfold_sys::socket::ListenAddress;

use crate::config::values::tls::has_ipv6;
use crate::config::values::{ListenEntry, Settings};

/// One setting.
pub(crate) struct SettingRow {
    /// The name: `--NAME`, and the key in the file.
    pub(crate) name: &'static str,
    /// The placeholder of the value in the help.
    pub(crate) value: &'static str,
    /// The meaning, in one line. The text before the first colon or semicolon is the meaning in a few words.
    pub(crate) about: &'static str,
    /// The heading in the help.
    pub(crate) heading: &'static str,
    pub(crate) initial: Initial,
    /// Whether a change needs a restart.
    pub(crate) fixed: bool,
    /// Whether the setting has an effect with `--null`, which reads no request.
    pub(crate) null: bool,
    /// Reads the value.
    pub(crate) set: Set,
}

/// The default of a setting.
pub(crate) enum Initial {
    /// A text, read like any other value.
    Value(&'static str),
    /// Another setting decides the default, described in words.
    Follows(&'static str),
}

/// How a setting is read.
pub(crate) enum Set {
    /// One value; the last source wins.
    One(fn(&mut Settings, Text<'_>) -> Result<(), String>),
    /// Several values; a source with any value replaces all values of weaker sources.
    Many(fn(&mut Settings, &[Text<'_>]) -> Result<(), String>),
}

/// A value as written, and the base folder of relative paths in it.
#[derive(Clone, Copy)]
pub(crate) struct Text<'a> {
    pub(crate) text: &'a str,
    pub(crate) base: &'a Path,
}

/// The heading of experiments. A file has them in the table `[experiment]`.
pub(crate) const EXPERIMENTS: &str = "Experiments ([experiment] in a file)";

/// The prefixes of an address in `listen`: `http` turns TLS off, `proxy` requires a PROXY header.
const LISTEN_PREFIXES: [&str; 3] = ["http:", "proxy:", "proxy+http:"];

/// The letters of frequent settings; `-c` is the configuration file, `-p` a port and `-v` the log level.
const SHORT: &[(&str, char)] = &[
    ("listen", 'l'),
    ("root", 'r'),
    ("index", 'i'),
    ("compress", 'z'),
    ("listing", 'd'),
    ("engine", 'e'),
    ("workers", 'w'),
    ("tls", 't'),
    ("access-log", 'a'),
    ("user", 'u'),
];

/// The legal words of settings whose placeholder does not name them.
const WORDS: &[(&str, &[&str])] = &[
    ("topology", &["single", "threads", "reuseport-processes", "reuseport-threads", "handoff"]),
    ("dispatch", &["inline", "reactor", "proactor"]),
    ("libevent-method", &["epoll", "poll", "select"]),
    ("trigger", &["lt+et", "lt+lt", "et+lt", "et+et"]),
    ("send", &["auto", "copy", "mmap", "sendfile", "splice", "zerocopy"]),
    ("write", &["joined", "split", "per-header"]),
    ("timer", &["list", "wheel"]),
    ("precompressed", &["on", "br", "zstd", "gzip", "off"]),
    ("compress", &["on", "zstd", "br", "gzip", "off"]),
    ("log-format", &["common", "combined", "json"]),
    ("log-mode", &["buffered", "sync", "async"]),
    ("log-full", &["block", "drop"]),
    ("log-rotate", &["off", "daily"]),
    ("log-level", &["error", "warn", "info", "debug"]),
];

impl Text<'_> {
    pub(super) fn path(&self) -> Result<PathBuf, String> {
        if self.text.is_empty() { Err("a path is missing".into()) } else { Ok(self.base.join(self.text)) }
    }

    /// Reads `text` as an address. The folder of this setting is the base of a relative Unix path. A port without an
    /// address, and `localhost`, mean loopback.
    pub(super) fn address(&self, text: &str) -> Result<ListenAddress, String> {
        let port = text.strip_prefix("localhost:").unwrap_or(text);
        if let Ok(port) = port.parse() {
            return Ok(ListenAddress::Internet(SocketAddr::from((Ipv4Addr::LOCALHOST, port))));
        }
        Ok(match text.parse()? {
            ListenAddress::Unix(path) => ListenAddress::Unix(self.base.join(path)),
            internet => internet,
        })
    }

    /// Reads the text as an address in `listen`. `:PORT` means all addresses of IPv4 and IPv6.
    pub(super) fn listen_entries(&self) -> Result<Vec<ListenEntry>, String> {
        let (prefix, rest) = LISTEN_PREFIXES
            .iter()
            .find_map(|prefix| Some((*prefix, self.text.strip_prefix(prefix)?)))
            .unwrap_or(("", self.text));
        let has = |word| prefix.trim_end_matches(':').split('+').any(|part| part == word);
        let entry = |address| ListenEntry { address, plaintext: has("http"), proxied: has("proxy") };
        let Some(port) = rest.strip_prefix(':').and_then(|port| port.parse::<u16>().ok()) else {
            return Ok(vec![entry(self.address(rest)?)]);
        };
        let mut all = vec![SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))];
        if has_ipv6() {
            all.push(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)));
        }
        Ok(all.into_iter().map(|at| entry(ListenAddress::Internet(at))).collect())
    }
}

impl SettingRow {
    /// The name of the environment variable.
    pub(crate) fn variable(&self) -> String {
        format!("TENFOLD_{}", self.name.to_ascii_uppercase().replace('-', "_"))
    }

    /// The letter on the command line, if the setting has one.
    pub(crate) fn short(&self) -> Option<char> {
        SHORT.iter().find(|(name, _)| *name == self.name).map(|(_, letter)| *letter)
    }

    /// The meaning in a few words.
    pub(crate) fn brief(&self) -> &'static str {
        let mut depth = 0;
        let is_end = |letter: char| {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            depth == 0 && [':', ';'].contains(&letter)
        };
        let end = self.about.find(is_end).unwrap_or(self.about.len());
        &self.about[..end]
    }

    /// The words among the legal values, for completions.
    pub(crate) fn words(&self) -> Vec<&'static str> {
        let placeholder = self.value.split('|');
        let fixed =
            placeholder.filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'));
        match WORDS.iter().find(|(name, _)| *name == self.name) {
            _ if self.name == "engine" => {
                ["auto"].into_iter().chain(Engine::ALL.iter().map(|it| it.name())).collect()
            }
            Some((_, words)) => words.to_vec(),
            None => fixed.filter(|word| *word != "-").collect(),
        }
    }

    /// Whether the file may have a number in place of a text.
    pub(super) fn takes_numbers(&self) -> bool {
        let is_number = |word: &str| {
            word.starts_with('N') || ["BYTES", "SECONDS"].contains(&word) || word.contains("PORT")
        };
        self.value == "TIME" || self.value.split('|').any(is_number)
    }

    /// Whether a file has the setting in the table `[experiment]`.
    pub(crate) fn is_experiment(&self) -> bool {
        self.heading == EXPERIMENTS
    }

    /// Whether the setting takes several values.
    pub(crate) fn is_many(&self) -> bool {
        matches!(self.set, Set::Many(_))
    }

    /// The default in words.
    pub(crate) fn shown_initial(&self) -> &'static str {
        match self.initial {
            Initial::Value(text) | Initial::Follows(text) => text,
        }
    }
}

impl SettingRow {
    /// Marks a setting whose change needs a restart.
    pub(super) const fn fixed(mut self) -> SettingRow {
        self.fixed = true;
        self
    }

    /// Marks a setting without effect with `--null`.
    pub(super) const fn not_null(mut self) -> SettingRow {
        self.null = false;
        self
    }
}
