//! The sockets for validation: TLS with `acme-tls/1`, and plain HTTP.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use rustls::ServerConnection;
use tenfold_tls::certificates::chain::Chain;
use tenfold_tls::certificates::key;
use tenfold_tls::certificates::resolver::{Candidate, CertificateResolver, CertificateTable};
use tenfold_tls::challenges::{ChallengeBoard, HTTP_PREFIX};
use tenfold_tls::config::{SecurityPreset, server_config};
use tenfold_tls::shared::{SharedBytes, private_words};
use tenfold_tls::tickets::ticketer::SharedTicketer;

/// Threads that respond until the value is dropped.
pub(crate) struct Responder {
    stop: Arc<AtomicBool>,
    addresses: [SocketAddr; 2],
    threads: Vec<JoinHandle<()>>,
}

impl Responder {
    /// Listens at the addresses for HTTP and TLS.
    pub(crate) fn start(board: &ChallengeBoard, addresses: [SocketAddr; 2]) -> Responder {
        let [http, tls] = addresses;
        let stop = Arc::new(AtomicBool::new(false));
        let config = config(board);
        let (for_http, board) = (Arc::clone(&stop), board.clone());
        let answer_http = move |stream: TcpStream| drop(answer_http(&board, stream));
        let answer_tls = move |stream: TcpStream| handshake(&config, stream);
        let threads = vec![serve(http, for_http, answer_http), serve(tls, Arc::clone(&stop), answer_tls)];
        Responder { stop, addresses, threads }
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for address in self.addresses {
            // The connection wakes the thread.
            let _ = TcpStream::connect(address);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn serve(
    at: SocketAddr,
    stop: Arc<AtomicBool>,
    answer: impl Fn(TcpStream) + Send + 'static,
) -> JoinHandle<()> {
    let listener = TcpListener::bind(at).expect("no other test listens there");
    thread::spawn(move || {
        for stream in listener.incoming() {
            if stop.load(Ordering::SeqCst) {
                return;
            }
            if let Ok(stream) = stream {
                answer(stream);
            }
        }
    })
}

/// The settings of a server, with a certificate for all other clients.
fn config(board: &ChallengeBoard) -> Arc<rustls::ServerConfig> {
    let pair = rcgen::generate_simple_self_signed(["other.test".to_owned()]).expect("a certificate");
    let chain = Chain::parse(Path::new("other.pem"), pair.cert.pem().as_bytes()).expect("a chain");
    let key = key::parse(Path::new("key.pem"), pair.signing_key.serialize_pem().as_bytes()).expect("a key");
    let candidate = Candidate::new(&chain, key);
    let table = CertificateTable::new(vec![candidate]).expect("a certificate");
    let resolver = Arc::new(CertificateResolver::new(Some(table), Some(board.clone())));
    let tickets = SharedTicketer::new(SharedBytes::new(private_words(8)));
    Arc::new(server_config(SecurityPreset::Intermediate, resolver, tickets, true, false).expect("settings"))
}

fn handshake(config: &Arc<rustls::ServerConfig>, mut stream: TcpStream) {
    let mut connection = ServerConnection::new(Arc::clone(config)).expect("settings");
    while connection.is_handshaking() && connection.complete_io(&mut stream).is_ok() {}
    connection.send_close_notify();
    let _ = connection.write_tls(&mut stream);
}

fn answer_http(board: &ChallengeBoard, stream: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(&stream).lines();
    let line = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let path = line.split(' ').nth(1).unwrap_or_default();
    let body = path.strip_prefix(HTTP_PREFIX).and_then(|token| board.http_response(token));
    let (status, body) = body.map_or(("404 Not Found", String::new()), |body| ("200 OK", body));
    let length = body.len();
    write!(&stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}
