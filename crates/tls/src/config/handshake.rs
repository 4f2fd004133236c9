//! A rustls client, and handshakes in memory, for tests.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{
    ClientConfig, ClientConnection, Error, HandshakeKind, ProtocolVersion, ServerConfig, ServerConnection,
    SupportedProtocolVersion,
};

use super::{HTTP_1_1, provider};
use crate::certificates::unverified::unverified;

/// Returns a client of these versions, which keeps tickets.
pub(crate) fn client(versions: &[&'static SupportedProtocolVersion]) -> Arc<ClientConfig> {
    let builder =
        ClientConfig::builder_with_provider(provider()).with_protocol_versions(versions).expect("versions");
    let mut config =
        builder.dangerous().with_custom_certificate_verifier(unverified(&provider())).with_no_client_auth();
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
    Arc::new(config)
}

/// The result of a handshake on the server.
#[derive(Debug, PartialEq)]
pub(crate) struct Agreed {
    pub(crate) kind: HandshakeKind,
    pub(crate) version: ProtocolVersion,
    pub(crate) alpn: Option<Vec<u8>>,
}

/// Runs a handshake, and a message after it that delivers the tickets to the client.
pub(crate) fn handshake(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> Result<Agreed, Error> {
    let name = ServerName::try_from("a.test").expect("a name");
    let mut client = ClientConnection::new(Arc::clone(client), name)?;
    let mut server = ServerConnection::new(Arc::clone(server))?;
    for _ in 0..10 {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).expect("memory");
        server.read_tls(&mut &bytes[..]).expect("memory");
        server.process_new_packets()?;
        bytes.clear();
        server.write_tls(&mut bytes).expect("memory");
        client.read_tls(&mut &bytes[..]).expect("memory");
        client.process_new_packets()?;
    }
    assert!(!client.is_handshaking() && !server.is_handshaking());
    Ok(Agreed {
        kind: server.handshake_kind().expect("the handshake is complete"),
        version: server.protocol_version().expect("the handshake is complete"),
        alpn: server.alpn_protocol().map(<[u8]>::to_vec),
    })
}
