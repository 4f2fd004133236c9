//! The layer with rustls' own client, driven by scripts.

mod alternating;
mod any;
mod early_data;
mod handshakes;
mod http2;
mod kernel;
mod kernel_io;
mod responses;
mod sealing;
mod signing;
mod transfers;

use std::io::{Read, Write};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rcgen::CertifiedKey;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::NoServerSessionStorage;
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, RootCertStore, ServerConfig, SupportedCipherSuite,
    SupportedProtocolVersion,
};
use tenfold_http::layer::{FileBytes, FileReader, HandshakeTurns, LayeredIo};
use tenfold_http::script::{Outcome, Script};
use tenfold_http::{
    Answer, Connection, IoError, Limits, OpenFile, ParkedHttp2, Request, ResponseWriter, Scheme, Service,
    Session, serve_connection,
};

use super::{HandshakeResult, TlsServer, TlsState, prepare};

const NAME: &str = "localhost";
pub(super) const BODY: &[u8] = b"a small body\n";

/// The implementation of records after the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordsOf {
    /// The server's own records.
    Extracted,
    /// The records of rustls.
    Unbuffered,
}

/// A server that answers every request, and the certificate that its clients trust.
#[derive(Clone)]
pub(super) struct Fixture {
    pub(super) tls: TlsServer,
    pub(super) client: Arc<ClientConfig>,
    pub(super) results: Arc<Mutex<Vec<HandshakeResult>>>,
    pub(super) limits: Limits,
    pub(super) turns: HandshakeTurns,
    pub(super) files: PatternFiles,
}

impl Fixture {
    pub(super) fn new(version: &'static SupportedProtocolVersion) -> Fixture {
        Fixture::with(version, RecordsOf::Extracted, |_| true)
    }

    pub(super) fn with(
        version: &'static SupportedProtocolVersion,
        served: RecordsOf,
        suites: impl Fn(CipherSuite) -> bool,
    ) -> Fixture {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed([NAME.to_owned()]).expect("a certificate can be made");
        let certificate = CertificateDer::from(cert.der().to_vec());
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("the key is a key");
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .expect("the key matches");
        config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().expect("there is randomness");
        config.session_storage = Arc::new(NoServerSessionStorage {});
        if served == RecordsOf::Extracted {
            config.alpn_protocols = vec![b"h2".to_vec()];
            prepare(&mut config);
        }
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        provider.cipher_suites.retain(|suite: &SupportedCipherSuite| suites(suite.suite()));
        let mut roots = RootCertStore::empty();
        roots.add(certificate).expect("the certificate is one");
        let mut client = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[version])
            .expect("the suites are of this version")
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![b"http/1.1".to_vec()];
        let results = Arc::new(Mutex::new(Vec::new()));
        let recorded = results.clone();
        let observe = move |result| recorded.lock().expect("no panic").push(result);
        Fixture {
            tls: TlsServer::new(Arc::new(config), &[true], observe),
            client: Arc::new(client),
            results,
            limits: Limits::default(),
            turns: HandshakeTurns::unbounded(),
            files: PatternFiles { bytes: u64::MAX },
        }
    }

    pub(super) fn client(&self) -> TestClient {
        TestClient::new(&self.client)
    }

    /// Runs `script` with HTTP above the layer.
    pub(super) fn play(&self, script: Script) -> Outcome {
        self.play_keeping(script).0
    }

    /// Like [`Fixture::play`], but also returns the layer's state.
    pub(super) fn play_keeping(&self, script: Script) -> (Outcome, Option<Box<TlsState>>) {
        self.play_with(&TestService, script)
    }

    /// The same with another service.
    pub(super) fn play_with(
        &self,
        service: &dyn Service,
        script: Script,
    ) -> (Outcome, Option<Box<TlsState>>) {
        let (mut state, mut session, parked) = (None, Session::default(), ParkedHttp2::default());
        let outcome = script.drive(async |io| {
            let mut io = LayeredIo::new(io, &self.tls, &mut state, &self.files, &self.turns);
            let by = tenfold_http::clock::now() + self.limits.head_timeout;
            if let Some(next) = io.begin(by).await {
                return next;
            }
            loop {
                let next =
                    serve_connection(&mut io, service, &self.limits, &mut session, Some(&parked)).await;
                if let Some(next) = io.end(next).await {
                    return next;
                }
            }
        });
        (outcome, state)
    }
}

struct TestService;

impl Service for TestService {
    fn answer(&self, request: &Request<'_>, facts: &Connection, response: &mut ResponseWriter<'_>) -> Answer {
        assert_eq!(facts.scheme, Scheme::Https);
        if request.target.path == "/echo" {
            return Answer::NeedBody { max: 1 << 24 };
        }
        let length: usize = request.target.path[1..].parse().unwrap_or(0);
        if length > 0 {
            response.head(200).content_length(length as u64);
            response.body(&pattern(0..length as u64));
        } else {
            response.head(200).content_length(BODY.len() as u64);
            response.body(BODY);
        }
        Answer::Done
    }

    fn answer_body(
        &self,
        _: &Request<'_>,
        body: &[u8],
        _: &Connection,
        response: &mut ResponseWriter<'_>,
    ) -> Answer {
        response.head(200).content_length(body.len() as u64);
        response.body(body);
        Answer::Done
    }
}

/// Files whose bytes derive from their offsets.
#[derive(Clone, Copy)]
pub(super) struct PatternFiles {
    /// The actual length of each file, whatever its size was when it was opened.
    pub(super) bytes: u64,
}

impl FileReader for PatternFiles {
    type Later = std::future::Ready<Option<Result<Vec<u8>, IoError>>>;

    fn read(
        &self,
        _: &Arc<OpenFile>,
        range: Range<u64>,
        buffer: &mut Vec<u8>,
    ) -> Result<FileBytes<Self::Later>, IoError> {
        let end = range.end.min(range.start + 65_536).min(self.bytes);
        if end <= range.start {
            return Err(IoError::Truncated);
        }
        *buffer = pattern(range.start..end);
        Ok(FileBytes::Now(buffer.len()))
    }
}

pub(super) fn pattern(range: Range<u64>) -> Vec<u8> {
    range.map(|offset| (offset % 251) as u8).collect()
}

pub(super) fn request(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
}

/// rustls' client as the peer of a script.
#[derive(Clone)]
pub(super) struct TestClient(Arc<Mutex<ClientState>>);

struct ClientState {
    connection: ClientConnection,
    /// The number of the server's bytes that were read.
    read: usize,
    plaintext: Vec<u8>,
    /// Whether the server's closing record arrived.
    closed: bool,
    error: Option<rustls::Error>,
}

impl TestClient {
    pub(super) fn new(config: &Arc<ClientConfig>) -> TestClient {
        TestClient::named(config, NAME)
    }

    pub(super) fn named(config: &Arc<ClientConfig>, name: &'static str) -> TestClient {
        let name = ServerName::try_from(name).expect("a name");
        let connection = ClientConnection::new(config.clone(), name).expect("the configuration is legal");
        TestClient(Arc::new(Mutex::new(ClientState {
            connection,
            read: 0,
            plaintext: Vec::new(),
            closed: false,
            error: None,
        })))
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut ClientState) -> T) -> T {
        use_it(&mut self.0.lock().expect("no panic"))
    }

    /// Returns the bytes to send now.
    pub(super) fn wire(&self) -> Vec<u8> {
        self.with(|inner| {
            let mut wire = Vec::new();
            while inner.connection.wants_write() {
                inner.connection.write_tls(&mut wire).expect("a vector takes all");
            }
            wire
        })
    }

    /// Calls `use_it` with the connection.
    pub(super) fn connection<T>(&self, use_it: impl FnOnce(&mut ClientConnection) -> T) -> T {
        self.with(|inner| use_it(&mut inner.connection))
    }

    /// Seals `plaintext` for the next [`TestClient::wire`].
    pub(super) fn write(&self, plaintext: &[u8]) {
        self.connection(|connection| {
            connection.set_buffer_limit(None);
            connection.writer().write_all(plaintext).expect("there is no limit");
        });
    }

    /// Reads the server's output `sent` up to its end or an error.
    pub(super) fn read(&self, sent: &[u8]) {
        self.with(|inner| {
            let mut rest = &sent[inner.read..];
            inner.read = sent.len();
            while !rest.is_empty() && inner.error.is_none() {
                inner.connection.read_tls(&mut rest).expect("a slice can be read");
                match inner.connection.process_new_packets() {
                    Ok(state) => {
                        let before = inner.plaintext.len();
                        inner.plaintext.resize(before + state.plaintext_bytes_to_read(), 0);
                        inner
                            .connection
                            .reader()
                            .read_exact(&mut inner.plaintext[before..])
                            .expect("the plaintext is available");
                        inner.closed |= state.peer_has_closed();
                    }
                    Err(error) => inner.error = Some(error),
                }
            }
        });
    }

    /// Returns a step of a script that reads the server's bytes, and sends `plaintext` in two pieces, split
    /// at `at`.
    pub(super) fn answers(
        &self,
        at: usize,
        plaintext: &[u8],
    ) -> impl FnOnce(&[u8]) -> Vec<Vec<u8>> + Send + 'static {
        let (client, plaintext) = (self.clone(), plaintext.to_vec());
        move |sent| {
            client.read(sent);
            client.write(&plaintext);
            let mut wire = client.wire();
            let rest = wire.split_off(at.min(wire.len()));
            vec![wire, rest]
        }
    }

    /// Returns a script of the handshake, and of a second in which the connection is idle.
    pub(super) fn handshakes(&self) -> Script {
        Script::new().sends(self.wire()).responds(self.answers(0, b"")).waits(Duration::from_secs(1))
    }

    /// Returns a step of a script that reads the server's bytes, and sends a request without the last
    /// `missing` bytes of its record.
    pub(super) fn asks_without(&self, missing: usize) -> impl FnOnce(&[u8]) -> Vec<Vec<u8>> + Send + 'static {
        let client = self.clone();
        move |sent| {
            client.read(sent);
            client.write(&request("/"));
            let mut wire = client.wire();
            wire.truncate(wire.len() - missing);
            vec![wire]
        }
    }

    /// Returns a step of a script that reads the server's bytes and ends this side of the connection.
    pub(super) fn closes(&self) -> impl FnOnce(&[u8]) -> Vec<Vec<u8>> + Send + 'static {
        let client = self.clone();
        move |sent| {
            client.read(sent);
            client.connection(|connection| connection.send_close_notify());
            vec![client.wire()]
        }
    }

    /// Returns the server's plaintext without dates.
    pub(super) fn plaintext(&self) -> Vec<u8> {
        self.with(|inner| {
            let lines = inner.plaintext.split_inclusive(|&byte| byte == b'\n');
            lines.filter(|line| !line.starts_with(b"Date: ")).flatten().copied().collect()
        })
    }

    /// Returns the number of responses with [`BODY`].
    pub(super) fn small_answers(&self) -> usize {
        self.plaintext().windows(BODY.len()).filter(|window| *window == BODY).count()
    }

    pub(super) fn closed(&self) -> bool {
        self.with(|inner| inner.closed)
    }

    pub(super) fn error(&self) -> Option<rustls::Error> {
        self.with(|inner| inner.error.clone())
    }
}
