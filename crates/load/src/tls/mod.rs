//! The client's side of TLS: the certificates that it trusts, and the sessions that it resumes.

mod trust;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::client::{ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, NamedGroup};
use tenfold_tls::certificates::unverified::unverified;

use crate::error::LoadError;
use crate::plan::server_name;
use crate::plan::url::TargetUrl;
use crate::plan::{LoadPlan, RequestVersion};

pub(crate) use trust::failure;

/// The name of HTTP/2 in ALPN (RFC 9113 §3.1).
pub(crate) const H2: &[u8] = b"h2";

/// The settings for all servers of a plan.
pub(crate) fn config(plan: &LoadPlan) -> Result<Arc<ClientConfig>, LoadError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| LoadError::Failed(format!("cannot set TLS up: {error}")))?;
    let mut config = match plan.tls.insecure {
        true => builder.dangerous().with_custom_certificate_verifier(unverified(&provider)),
        false => builder.with_root_certificates(trust::roots(plan.tls.ca.as_ref())?),
    }
    .with_no_client_auth();
    // The plan asks for one version, so no other version is offered.
    let protocol: &[u8] = if plan.version == RequestVersion::Http2 { H2 } else { b"http/1.1" };
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// A server with TLS.
#[derive(Clone, Debug)]
pub(crate) struct TlsTarget {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsTarget {
    /// The server of `url`.
    pub(crate) fn new(
        config: Arc<ClientConfig>,
        url: &TargetUrl,
        sni: Option<&str>,
    ) -> Result<TlsTarget, LoadError> {
        let name = server_name(sni.unwrap_or(url.host())).map_err(LoadError::Usage)?;
        Ok(TlsTarget { config, name })
    }

    /// The same server, with a store of at most `most` sessions to resume.
    pub(crate) fn resuming(&self, most: usize) -> TlsTarget {
        let mut config = (*self.config).clone();
        config.resumption = Resumption::store(Arc::new(TicketStore::new(most)));
        TlsTarget { config: Arc::new(config), name: self.name.clone() }
    }

    /// A new connection, with a hello to send.
    pub(crate) fn connect(&self) -> Result<ClientConnection, rustls::Error> {
        ClientConnection::new(self.config.clone(), self.name.clone())
    }
}

/// The sessions of one server. The name of the server is not compared, because each server has its own store.
///
/// The store of rustls keeps eight tickets for a server, and each ticket of TLS 1.3 serves one connection (RFC 8446
/// §C.4). A worker opens more connections at a time, so most of them would perform a full handshake.
#[derive(Debug)]
struct TicketStore {
    most: usize,
    sessions: Mutex<StoredTickets>,
}

#[derive(Debug, Default)]
struct StoredTickets {
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    tls13: VecDeque<Tls13ClientSessionValue>,
}

impl TicketStore {
    /// An empty store of at most `most` tickets.
    fn new(most: usize) -> TicketStore {
        TicketStore { most, sessions: Mutex::default() }
    }

    fn sessions(&self) -> MutexGuard<'_, StoredTickets> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for TicketStore {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.sessions().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.sessions().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.sessions().tls12 = Some(value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.sessions().tls12.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.sessions().tls12 = None;
    }

    /// Adds a ticket. A full store drops its oldest ticket.
    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut sessions = self.sessions();
        if sessions.tls13.len() >= self.most {
            sessions.tls13.pop_front();
        }
        sessions.tls13.push_back(value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.sessions().tls13.pop_back()
    }
}
