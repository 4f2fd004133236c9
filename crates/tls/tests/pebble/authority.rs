//! A Pebble of one test, with a name server that knows every name as this machine.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tenfold_tls::acme::client::{AcmeClient, AcmeEvent};
use tenfold_tls::acme::settings::{AcmeSettings, Validation};
use tenfold_tls::acme::stored::{self, StoredCertificate};
use tenfold_tls::challenges::{ChallengeBoard, MAX_BYTES};
use tenfold_tls::internal;
use tenfold_tls::shared::{SharedBytes, private_words};
use tenfold_tls::state::StateFolder;

use crate::responder::Responder;

/// A folder of one test, removed with everything in it.
pub(crate) struct TestFolder(pub(crate) PathBuf);

impl TestFolder {
    fn new() -> TestFolder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique =
            format!("tenfold-pebble-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(unique);
        fs::create_dir(&path).expect("a folder of our own");
        TestFolder(path)
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running authority.
pub(crate) struct Pebble {
    pub(crate) scratch: TestFolder,
    pub(crate) ports: Ports,
    root: PathBuf,
    reject: u8,
    server: Child,
    names: Child,
}

/// The ports of one test.
#[derive(Clone, Copy)]
pub(crate) struct Ports {
    pub(crate) directory: u16,
    pub(crate) management: u16,
    pub(crate) http: u16,
    pub(crate) tls: u16,
    pub(crate) dns: u16,
    pub(crate) dns_management: u16,
}

/// Returns ports that are free now. They are held together, so that they differ.
fn free_ports() -> Ports {
    let held: Vec<TcpListener> =
        (0..6).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port")).collect();
    let port = |place: usize| held[place].local_addr().expect("it is bound").port();
    Ports {
        directory: port(0),
        management: port(1),
        http: port(2),
        tls: port(3),
        dns: port(4),
        dns_management: port(5),
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64
}

/// Starts a program of Pebble; without it the test fails and says what to do.
fn start(command: &mut Command) -> Child {
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.unwrap_or_else(|error| {
        panic!("{program} cannot be started: {error}; `cargo xtask setup` installs it")
    })
}

fn wait_for(port: u16) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        assert!(Instant::now() < deadline, "nothing listens on port {port}");
        thread::sleep(Duration::from_millis(20));
    }
}

impl Pebble {
    /// Starts an authority that rejects `reject` percent of all nonces.
    pub(crate) fn start(reject: u8) -> Pebble {
        let scratch = TestFolder::new();
        let own = StateFolder::open(&scratch.0.join("authority")).expect("a folder of our own");
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate = internal::certificate(&own, &names, now()).expect("a certificate");
        let ports = free_ports();
        let config = format!(
            r#"{{"pebble": {{"listenAddress": "127.0.0.1:{}", "managementListenAddress": "127.0.0.1:{}",
            "certificate": {:?}, "privateKey": {:?}, "httpPort": {}, "tlsPort": {},
            "retryAfter": {{"authz": 1, "order": 1}}, "keyAlgorithm": "ecdsa",
            "profiles": {{"default": {{"description": "of a test", "validityPeriod": 7776000}}}}}}}}"#,
            ports.directory,
            ports.management,
            certificate.chain.path,
            certificate.key_path,
            ports.http,
            ports.tls
        );
        fs::write(scratch.0.join("pebble.json"), config).expect("our own folder");
        let names = start(Command::new("pebble-challtestsrv").args([
            "-http01=",
            "-https01=",
            "-tlsalpn01=",
            "-doh=",
            "-defaultIPv6=",
            &format!("-dnsserver=127.0.0.1:{}", ports.dns),
            &format!("-management=127.0.0.1:{}", ports.dns_management),
        ]));
        let server = run_pebble(&scratch.0, ports, reject);
        wait_for(ports.directory);
        wait_for(ports.dns_management);
        Pebble { scratch, ports, root: certificate.root, reject, server, names }
    }

    /// Ends the authority; its name server stays.
    pub(crate) fn stop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    /// Starts it again: it has forgotten all accounts, orders and certificates.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.server = run_pebble(&self.scratch.0, self.ports, self.reject);
        wait_for(self.ports.directory);
    }

    /// Makes the authority suggest a renewal between two moments.
    pub(crate) fn suggest_renewal(&self, stored: &StoredCertificate, start: &str, end: &str) {
        let pem = fs::read_to_string(&stored.chain.path).expect("it is stored");
        let response = format!(r#"{{\"suggestedWindow\": {{\"start\": \"{start}\", \"end\": \"{end}\"}}}}"#);
        let body =
            format!(r#"{{"Certificate": "{}", "ARIResponse": "{response}"}}"#, pem.replace('\n', "\\n"));
        let status = Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--data", &body, "--cacert"])
            .arg(&self.root)
            .arg(format!("https://127.0.0.1:{}/set-renewal-info/", self.ports.management))
            .status();
        assert!(status.expect("curl is there").success());
    }

    pub(crate) fn settings(&self, names: &[&str], validation: Validation) -> AcmeSettings {
        let settings = AcmeSettings {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            directory: format!("https://127.0.0.1:{}/dir", self.ports.directory),
            authority_roots: Some(self.root.clone()),
            contact: Some("admin@example.org".to_owned()),
            validation,
        };
        settings.check().expect("settings that check accepts");
        settings
    }

    pub(crate) fn state(&self) -> StateFolder {
        state(&self.scratch.0)
    }

    /// Starts the sockets that the authority validates by.
    pub(crate) fn responder(&self) -> (ChallengeBoard, Responder) {
        let board = board();
        let responder = Responder::start(&board, self.ports.http, self.ports.tls);
        (board, responder)
    }

    /// Returns a client over the folder of the test.
    pub(crate) fn client(&self, settings: AcmeSettings, board: &ChallengeBoard) -> AcmeClient {
        let state = self.state();
        let known = stored::load(&state).expect("no error");
        AcmeClient::new(settings, state, board.clone(), known.as_ref()).expect("a client")
    }

    /// Forgets the wait that follows an attempt.
    pub(crate) fn forget_wait(&self) {
        let _ = fs::remove_file(self.scratch.0.join("state/attempts.json"));
    }
}

pub(crate) fn state(scratch: &Path) -> StateFolder {
    StateFolder::open(&scratch.join("state")).expect("a folder of our own")
}

pub(crate) fn board() -> ChallengeBoard {
    ChallengeBoard::new(SharedBytes::new(private_words(SharedBytes::words_for(MAX_BYTES))))
}

fn run_pebble(scratch: &Path, ports: Ports, reject: u8) -> Child {
    start(
        Command::new("pebble")
            .arg("-config")
            .arg(scratch.join("pebble.json"))
            .args(["-strict", &format!("-dnsserver=127.0.0.1:{}", ports.dns)])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_AUTHZREUSE", "0")
            .env("PEBBLE_WFE_NONCEREJECT", reject.to_string()),
    )
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for child in [&mut self.server, &mut self.names] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Makes one step and returns the certificate that it obtained.
pub(crate) fn obtained(client: &mut AcmeClient) -> StoredCertificate {
    let step = client.step();
    match step.event {
        Some(AcmeEvent::Changed(stored)) => stored,
        other => panic!("no certificate: {other:?}"),
    }
}
