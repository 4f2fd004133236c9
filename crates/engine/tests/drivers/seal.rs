//! TLS of the tests: the certificate of this run, and the client's side of a connection.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use rcgen::CertifiedKey;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, Error, RootCertStore, ServerConfig};
use tenfold_tls::connection::prepare;

const NAME: &str = "localhost";

/// The certificate of this run.
pub(crate) struct Certificate {
    /// The certificate and its key, as PEM.
    pub(crate) chain: String,
    pub(crate) key: String,
    client: Arc<ClientConfig>,
}

impl Certificate {
    pub(crate) fn of_this_run() -> &'static Certificate {
        static CERTIFICATE: OnceLock<Certificate> = OnceLock::new();
        CERTIFICATE.get_or_init(|| {
            let CertifiedKey { cert, signing_key } =
                rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate can be made");
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from(cert.der().to_vec())).expect("a certificate");
            let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
            Certificate { chain: cert.pem(), key: signing_key.serialize_pem(), client: Arc::new(client) }
        })
    }

    /// A client that trusts the certificate.
    pub(crate) fn client(&self) -> Seal {
        let name = ServerName::try_from(NAME).expect("a name");
        let mut connection =
            ClientConnection::new(self.client.clone(), name).expect("the configuration is legal");
        connection.set_buffer_limit(None);
        let state = State { connection, closed: false, error: None };
        Seal(Arc::new(Mutex::new(state)))
    }
}

/// The configuration of a server with this certificate and key, which are PEM.
pub(crate) fn server_config(certificate: &str, key: &str) -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key);
    let mut config = config.expect("the key matches");
    prepare(&mut config);
    Arc::new(config)
}

/// The client's side of a connection. Its clones share the state, so that a thread can write while another reads.
#[derive(Clone)]
pub(crate) struct Seal(Arc<Mutex<State>>);

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

impl Seal {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no panic")
    }

    /// The first bytes of the connection; empty if they were returned before.
    pub(crate) fn hello(&self) -> Vec<u8> {
        self.state().pending()
    }

    /// Whether plaintext waits for the end of the handshake.
    pub(crate) fn is_shaking_hands(&self) -> bool {
        let state = self.state();
        state.connection.is_handshaking() && state.error.is_none()
    }

    /// Seals `plaintext`. During the handshake it is kept, and [`Seal::open`] returns it sealed later.
    pub(crate) fn seal(&self, plaintext: &[u8]) -> Vec<u8> {
        let mut state = self.state();
        state.connection.writer().write_all(plaintext).expect("there is no limit");
        state.pending()
    }

    /// Opens bytes of the server and appends their plaintext to `to`. Returns bytes to send to the server. Nothing is
    /// opened after an error or the closing record.
    pub(crate) fn open(&self, mut wire: &[u8], to: &mut Vec<u8>) -> Vec<u8> {
        let mut state = self.state();
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
    pub(crate) fn update_keys(&self) -> Vec<u8> {
        let mut state = self.state();
        state.connection.refresh_traffic_keys().expect("the handshake is over");
        state.pending()
    }

    /// The closing record.
    pub(crate) fn close(&self) -> Vec<u8> {
        let mut state = self.state();
        state.connection.send_close_notify();
        state.pending()
    }

    /// Whether the server's closing record came.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// The violation of the server, or the alert that it sent.
    pub(crate) fn error(&self) -> Option<Error> {
        self.state().error.clone()
    }
}
