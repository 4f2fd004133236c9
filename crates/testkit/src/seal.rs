//! The client's side of TLS.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use memchr::memmem;
use rcgen::{CertifiedKey, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Error, HandshakeKind, RootCertStore};

use crate::folder::TempFolder;
use crate::time::{PATIENCE, lock};

/// The client's state of a TLS connection, with the certificate of this run. Clones share the state, so that a thread
/// can write while another reads.
#[derive(Clone, Debug)]
pub struct Seal(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    connection: ClientConnection,
    /// Whether the server's closing record came.
    closed: bool,
    error: Option<Error>,
}

impl State {
    fn pending(&mut self) -> Vec<u8> {
        let mut wire = Vec::new();
        while self.connection.wants_write() {
            self.connection.write_tls(&mut wire).expect("a vector takes all");
        }
        wire
    }
}

impl Default for Seal {
    fn default() -> Seal {
        Seal::new()
    }
}

impl Seal {
    /// The state before the first message.
    pub fn new() -> Seal {
        Seal::of(certificate().client.clone())
    }

    /// The same for a client that offers only this protocol (ALPN).
    pub fn with_protocol(protocol: &str) -> Seal {
        let mut client = ClientConfig::clone(&certificate().client);
        client.alpn_protocols = vec![protocol.into()];
        Seal::of(Arc::new(client))
    }

    fn of(client: Arc<ClientConfig>) -> Seal {
        let name = ServerName::try_from(NAME).expect("a name");
        let connection = ClientConnection::new(client, name);
        let mut connection = connection.expect("the configuration is legal");
        connection.set_buffer_limit(None);
        Seal(Arc::new(Mutex::new(State { connection, closed: false, error: None })))
    }

    /// The first bytes of the connection; empty if they were returned before.
    pub fn hello(&self) -> Vec<u8> {
        lock(&self.0).pending()
    }

    /// Whether plaintext waits for the end of the handshake.
    pub fn is_shaking_hands(&self) -> bool {
        let state = lock(&self.0);
        state.connection.is_handshaking() && state.error.is_none()
    }

    /// Seals `plaintext`. During the handshake it is kept, and [`Seal::open`] returns it sealed later.
    pub fn seal(&self, plaintext: &[u8]) -> Vec<u8> {
        let mut state = lock(&self.0);
        state.connection.writer().write_all(plaintext).expect("there is no limit");
        state.pending()
    }

    /// Opens bytes of the server and appends their plaintext to `to`. Returns bytes to send to the server. Nothing is
    /// opened after an error or the closing record.
    pub fn open(&self, mut wire: &[u8], to: &mut Vec<u8>) -> Vec<u8> {
        let mut state = lock(&self.0);
        while !wire.is_empty() && !state.closed && state.error.is_none() {
            state.connection.read_tls(&mut wire).expect("a slice can be read");
            match state.connection.process_new_packets() {
                Ok(came) => {
                    let before = to.len();
                    to.resize(before + came.plaintext_bytes_to_read(), 0);
                    state.connection.reader().read_exact(&mut to[before..]).expect("it is there");
                    state.closed = came.peer_has_closed();
                }
                Err(error) => state.error = Some(error),
            }
        }
        state.pending()
    }

    /// A record that changes the keys of the client and requests another key of the server.
    pub fn update_keys(&self) -> Vec<u8> {
        let mut state = lock(&self.0);
        state.connection.refresh_traffic_keys().expect("the handshake is over");
        state.pending()
    }

    /// The closing record.
    pub fn close(&self) -> Vec<u8> {
        let mut state = lock(&self.0);
        state.connection.send_close_notify();
        state.pending()
    }

    /// Whether the server's closing record came.
    pub fn is_closed(&self) -> bool {
        lock(&self.0).closed
    }

    /// The violation of the server, or the alert that it sent.
    pub fn error(&self) -> Option<Error> {
        lock(&self.0).error.clone()
    }
}

const NAME: &str = "localhost";

/// A certificate of this run, and the client that trusts it.
struct Certificate {
    folder: TempFolder,
    key: KeyPair,
    roots: Arc<RootCertStore>,
    client: Arc<ClientConfig>,
}

static CERTIFICATE: OnceLock<Certificate> = OnceLock::new();

fn certificate() -> &'static Certificate {
    CERTIFICATE.get_or_init(|| {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate can be made");
        let folder = TempFolder::new("certificate");
        folder.write("cert.pem", cert.pem());
        folder.write("key.pem", signing_key.serialize_pem());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(cert.der().to_vec())).expect("it is one");
        let roots = Arc::new(roots);
        let mut client =
            ClientConfig::builder().with_root_certificates(Arc::clone(&roots)).with_no_client_auth();
        // Cases request many hosts, and the certificate has one name. Without SNI, the server does not answer 421 for
        // the other hosts.
        client.enable_sni = false;
        Certificate { folder, key: signing_key, roots, client: Arc::new(client) }
    })
}

/// The certificate of this run as a root.
pub fn trusted_roots() -> Arc<RootCertStore> {
    Arc::clone(&certificate().roots)
}

/// A client that trusts the certificate and has no sessions.
pub fn new_client() -> Arc<ClientConfig> {
    client_of(trusted_roots())
}

/// A client that trusts these certificates and has no sessions.
pub fn client_of(roots: Arc<RootCertStore>) -> Arc<ClientConfig> {
    let mut client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(client)
}

/// Requests `target` on a new connection. Returns the handshake, the certificate, and the response.
pub fn get_once(
    address: SocketAddr,
    client: &Arc<ClientConfig>,
    name: &str,
    target: &str,
) -> io::Result<SecureExchange> {
    let request = format!("GET {target} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n");
    exchange_once(TcpStream::connect(address)?, client, name, &request)
}

/// Sends `request` on a connection, which may have carried bytes such as a PROXY header, with the server name `name`.
/// Returns the handshake, the certificate, and all responses.
pub fn exchange_once(
    mut stream: TcpStream,
    client: &Arc<ClientConfig>,
    name: &str,
    request: &str,
) -> io::Result<SecureExchange> {
    let server_name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut connection =
        ClientConnection::new(Arc::clone(client), server_name).expect("the configuration is legal");
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut tls = rustls::Stream::new(&mut connection, &mut stream);
    tls.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    tls.read_to_end(&mut response)?;
    let certificate = connection.peer_certificates().and_then(|chain| chain.first());
    let resumed = connection.handshake_kind() == Some(HandshakeKind::Resumed);
    let certificate = certificate.expect("a handshake has one").to_vec();
    Ok(SecureExchange { resumed, certificate, response: String::from_utf8_lossy(&response).into_owned() })
}

/// The result of [`get_once`].
#[derive(Clone, Debug)]
pub struct SecureExchange {
    /// Whether the handshake resumed a session.
    pub resumed: bool,
    /// The certificate of the server, in DER.
    pub certificate: Vec<u8>,
    /// Head and body of the response.
    pub response: String,
}

/// The key of the certificate of this run.
pub fn own_key() -> &'static KeyPair {
    &certificate().key
}

/// Byte strings that only a process with the P-256 key of this file has in memory: the private number, and parts of the
/// file's text.
pub fn secret_parts(path: &Path) -> Vec<Vec<u8>> {
    let key = PrivateKeyDer::from_pem_file(path).expect("a key");
    // ECPrivateKey (RFC 5915 §3): version 1, and an octet string of 32 bytes. In memory it is a little-endian number.
    const BEFORE: &[u8] = &[2, 1, 1, 4, 32];
    let der = key.secret_der();
    let begin = memmem::find(der, BEFORE).expect("a key of P-256") + BEFORE.len();
    let mut number = der[begin..begin + 32].to_vec();
    number.reverse();
    let text = fs::read_to_string(path).expect("a key");
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('-')).map(str::as_bytes).collect();
    // The DER before and after the number is in the certificate too.
    vec![number, lines[0][begin / 3 * 4..].to_vec(), lines[1][..16].to_vec()]
}

/// The folder with `cert.pem` and `key.pem`. [`remove_certificate`] removes it at the end.
pub fn certificate_folder() -> &'static Path {
    certificate().folder.path()
}

/// Removes the certificate, if one was made.
pub fn remove_certificate() {
    if let Some(certificate) = CERTIFICATE.get() {
        let _ = fs::remove_dir_all(certificate.folder.path());
    }
}
