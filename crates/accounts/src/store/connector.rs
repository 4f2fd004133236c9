//! TLS for the client of PostgreSQL, by rustls.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use postgres::Socket;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tenfold_tls::certificates::roots::root_store;
use tenfold_tls::certificates::unverified::unverified;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::encryption::Encryption;

/// Encrypts the connections of a client.
#[derive(Clone)]
pub(super) struct Connector(Arc<ClientConfig>);

impl Connector {
    /// A connector; `None` without encryption.
    pub(super) fn new(encryption: &Encryption) -> Result<Option<Connector>, String> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder =
            ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| format!("cannot use TLS: {error}"))?;
        let builder = match encryption {
            Encryption::Off => return Ok(None),
            Encryption::Unverified => {
                builder.dangerous().with_custom_certificate_verifier(unverified(&provider))
            }
            Encryption::Verified(file) => {
                let roots = root_store(file.as_deref());
                builder.with_root_certificates(roots.map_err(|why| {
                    format!("cannot verify the database: {why}; name its authority with sslrootcert")
                })?)
            }
        };
        let mut config = builder.with_no_client_auth();
        // With `sslnegotiation=direct` it is required.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Some(Connector(Arc::new(config))))
    }
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = EncryptedStream;
    type TlsConnect = ConnectorTo;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<ConnectorTo, InvalidDnsNameError> {
        let host = ServerName::try_from(host)?.to_owned();
        Ok(ConnectorTo { config: self.0.clone(), host })
    }
}

/// Encrypts a connection to this host.
pub(super) struct ConnectorTo {
    config: Arc<ClientConfig>,
    host: ServerName<'static>,
}

impl TlsConnect<Socket> for ConnectorTo {
    type Stream = EncryptedStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<EncryptedStream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            TlsConnector::from(self.config).connect(self.host, socket).await.map(EncryptedStream)
        })
    }
}

/// An encrypted connection.
pub(super) struct EncryptedStream(TlsStream<Socket>);

impl postgres::tls::TlsStream for EncryptedStream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for EncryptedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for EncryptedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(cx)
    }
}
