//! The client's side of TLS: the certificates that it trusts, and the sessions that it resumes.

mod tickets;
mod trust;

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use tenfold_tls::certificates::unverified::unverified;

use crate::error::LoadError;
use crate::plan::LoadPlan;
use crate::plan::tls::server_name;
use crate::plan::url::TargetUrl;

pub(crate) use trust::failure;

/// The settings for all servers of a plan.
pub(crate) fn config(plan: &LoadPlan) -> Result<Arc<ClientConfig>, LoadError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| LoadError::Failed(format!("cannot set TLS up: {error}")))?;
    let mut config = match plan.tls.insecure {
        true => builder.dangerous().with_custom_certificate_verifier(unverified(&provider)),
        false => builder.with_root_certificates(trust::roots(plan.tls.ca.as_deref())?),
    }
    .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
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
    ///
    /// # Errors
    /// Its host is no name that a certificate can cover.
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
        config.resumption = Resumption::store(Arc::new(tickets::TicketStore::new(most)));
        TlsTarget { config: Arc::new(config), name: self.name.clone() }
    }

    /// A new connection, with a hello to send.
    ///
    /// # Errors
    /// The error of rustls.
    pub(crate) fn connect(&self) -> Result<ClientConnection, rustls::Error> {
        ClientConnection::new(self.config.clone(), self.name.clone())
    }
}
