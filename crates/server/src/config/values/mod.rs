//! The values of all settings, each checked without the others.

pub(crate) mod bounds;
pub(crate) mod log;
pub(crate) mod members;
pub(crate) mod tls;

use std::path::PathBuf;
use std::time::Duration;

use tenfold_engine::{Accept, Dispatch, Engine, Method, Sender, TimerKind, Topology, Triggers};
use tenfold_http::Limits;
use tenfold_http::semantics::forwarded::TrustedProxies;
use tenfold_site::{Codings, Listing, TagFrom};
use tenfold_sys::socket::ListenAddress;
use tenfold_tls::config::SecurityPreset;

use crate::config::parse::tables::site::SiteTable;
use crate::diagnostics::Level;
use log::{LogTarget, Manner, Rotate};
use members::MembersSettings;
use tls::NamesSettings;

/// The settings as given: the input of [`crate::config::resolve::ResolvedConfig`]. If the table of settings has a
/// default, the `Option` of the setting is always `Some`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) listen: Vec<ListenEntry>,
    /// Whether a service manager opened the sockets of `listen`.
    pub(crate) passed: bool,
    /// Whether there is a configuration file.
    pub(crate) configured: bool,
    pub(crate) root: PathBuf,
    /// Whether the root had an index file when the settings were read.
    pub(crate) has_index: bool,
    /// In the order of lookups.
    pub(crate) index: Vec<String>,
    pub(crate) echo: Option<String>,
    /// `None`: on if the root is the demonstration, else off.
    pub(crate) book: Option<bool>,
    pub(crate) engine: EngineChoice,
    pub(crate) topology: Option<Topology>,
    pub(crate) workers: Option<usize>,
    pub(crate) dispatch: Option<Dispatch>,
    pub(crate) libevent_method: Option<Method>,
    pub(crate) trigger: Option<Triggers>,
    pub(crate) send: Option<Sender>,
    pub(crate) accept: Option<Accept>,
    pub(crate) pool_threads: usize,
    pub(crate) pool_queue: usize,
    pub(crate) handoff_queue: usize,
    pub(crate) busy_sleep: Duration,
    pub(crate) timer: Option<TimerKind>,
    pub(crate) tcp_nodelay: bool,
    pub(crate) backlog: u32,
    pub(crate) defer_accept: bool,
    pub(crate) tcp_cork: bool,
    /// The bound on connections whose handshake has not ended.
    pub(crate) fastopen: Option<u32>,
    /// Seconds.
    pub(crate) linger: Option<u16>,
    /// Bytes.
    pub(crate) notsent_lowat: Option<u32>,
    pub(crate) limits: Limits,
    pub(crate) server_field: bool,
    /// `None`: see [`Settings::http2`].
    pub(crate) http2: Option<bool>,
    pub(crate) codings: Codings,
    pub(crate) tags: TagFrom,
    /// `None`: the command line decides, see [`Settings::listing`].
    pub(crate) listing: Option<Listing>,
    /// `None`: see [`Settings::archives`].
    pub(crate) archives: Option<bool>,
    pub(crate) watch: bool,
    pub(crate) drain_timeout: Duration,
    pub(crate) work_threads: usize,
    pub(crate) max_connections: Option<usize>,
    /// The bound for one address.
    pub(crate) max_connections_per_address: Option<u32>,
    /// Requests per second of one address.
    pub(crate) max_requests_per_address: Option<u32>,
    /// `None`: equal to the requests per second.
    pub(crate) request_burst: Option<u32>,
    /// Handshakes per second of one address.
    pub(crate) max_handshakes_per_address: Option<u32>,
    /// Bytes per second for each connection.
    pub(crate) max_rate: Option<u64>,
    pub(crate) access_log: LogTarget,
    pub(crate) log: Manner,
    /// Whether requests have identifiers.
    pub(crate) request_id: bool,
    /// Whether responses name the model.
    pub(crate) server_timing: bool,
    pub(crate) log_rotate: Rotate,
    /// Rotated files that are kept.
    pub(crate) log_keep: Option<usize>,
    pub(crate) log_level: Level,
    pub(crate) user: Option<String>,
    pub(crate) control: Control,
    pub(crate) admin: Option<ListenAddress>,
    pub(crate) tls_certificate: Vec<PathBuf>,
    /// In the order of the certificates.
    pub(crate) tls_key: Vec<PathBuf>,
    /// Whether the signing process has the keys.
    pub(crate) tls_key_isolation: bool,
    pub(crate) tls_preset: SecurityPreset,
    pub(crate) tls_kernel: KernelTlsChoice,
    /// `None`: `tls` decides, see [`Settings::redirect`].
    pub(crate) https_redirect: Option<HttpsRedirect>,
    /// The value of Strict-Transport-Security.
    pub(crate) hsts: Option<String>,
    pub(crate) names: NamesSettings,
    pub(crate) members: MembersSettings,
    pub(crate) proxies: TrustedProxies,
    /// The table `[site]`.
    pub(crate) site: SiteTable,
    /// The tables `[[host]]`.
    pub(crate) hosts: Vec<SiteTable>,
    /// The text of each setting, from the source with precedence.
    pub(super) said: Vec<Said>,
}

/// Whether the kernel encrypts TLS records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KernelTlsChoice {
    #[default]
    Off,
    On,
    /// If the kernel can.
    Auto,
}

/// An entry of `listen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListenEntry {
    pub(crate) address: ListenAddress,
    /// Whether the entry never uses TLS.
    pub(crate) plaintext: bool,
    /// Whether its connections begin with a PROXY header.
    pub(crate) proxied: bool,
}

impl ListenEntry {
    /// Whether clients of other machines use the entry: directly, or through a proxy with a PROXY header.
    pub(crate) fn is_open(&self) -> bool {
        self.proxied || self.address.is_off_loopback()
    }
}

/// Redirects of plaintext requests to https.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HttpsRedirect {
    #[default]
    Off,
    /// To the port of the first address with TLS.
    On,
    /// To this port, which a proxy or firewall forwards.
    ToPort(u16),
}

/// The requested I/O model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EngineChoice {
    /// The server chooses, and reports the reason.
    #[default]
    Auto,
    /// This engine.
    Named(Engine),
}

/// The address of the control socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Control {
    /// The default of this system.
    #[default]
    Usual,
    Off,
    At(PathBuf),
}

/// The text of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) name: &'static str,
    pub(super) values: Vec<String>,
    /// The base folder of relative paths.
    pub(super) base: PathBuf,
    pub(super) source: SettingSource,
}

/// The source of a setting; a later source has precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SettingSource {
    Default,
    File,
    Variable,
    Flag,
}
