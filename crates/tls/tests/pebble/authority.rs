//! A Pebble for one test, with a name server that resolves every name to this machine.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
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

/// A temporary folder for a test. Dropping it removes the folder.
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
    address: Ipv4Addr,
    root: PathBuf,
    reject: u8,
    server: Child,
    names: Child,
}

/// The ports of a test, below the ports of outgoing connections (`man 7 ip`, `ip_local_port_range`), which
/// could take a port first.
const DIRECTORY: u16 = 11_701;
const MANAGEMENT: u16 = 11_702;
const NAMES: u16 = 11_703;
const NAMES_MANAGEMENT: u16 = 11_704;
const HTTP: u16 = 11_705;
const TLS: u16 = 11_706;

const LIFETIME: Duration = Duration::from_secs(90 * 86_400);

/// Returns a loopback address that no other test or process uses, because all tests use the same ports.
fn own_address() -> Ipv4Addr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    assert!(number < 16, "four bits identify the test, and twenty the process");
    Ipv4Addr::from(u32::from(Ipv4Addr::new(127, 0, 0, 0)) | (std::process::id() << 4 | number) & 0x00ff_ffff)
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64
}

/// Starts a program of Pebble. Without the program, the test fails and explains the remedy.
fn start(command: &mut Command) -> Child {
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.unwrap_or_else(|error| {
        panic!("{program} cannot be started: {error}; `cargo xtask setup` installs it")
    })
}

fn wait_for(at: SocketAddr) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(at).is_err() {
        assert!(Instant::now() < deadline, "nothing listens at {at}");
        // The authority does not report that it listens.
        thread::sleep(Duration::from_millis(20));
    }
}

impl Pebble {
    /// Starts an authority that rejects `reject` percent of all nonces.
    pub(crate) fn start(reject: u8) -> Pebble {
        Pebble::start_with(reject, LIFETIME, "")
    }

    /// Starts an authority that requires an external account, with this identifier and key in base64url.
    pub(crate) fn start_with_account(identifier: &str, key: &str) -> Pebble {
        let keys = format!(r#"{{"{identifier}": "{key}"}}"#);
        let required =
            format!(r#""externalAccountBindingRequired": true, "externalAccountMACKeys": {keys},"#);
        Pebble::start_with(0, LIFETIME, &required)
    }

    /// Starts an authority whose certificates are valid for `lifetime`, with more settings.
    pub(crate) fn start_with(reject: u8, lifetime: Duration, more: &str) -> Pebble {
        let scratch = TestFolder::new();
        let own = StateFolder::open(&scratch.0.join("authority")).expect("a folder of our own");
        let address = own_address();
        internal::certificate(&own, &[address.to_string()], now(), true).expect("a certificate");
        let (own, root) = (internal::files(&own), internal::root(&own));
        let config = format!(
            r#"{{"pebble": {{"listenAddress": "{address}:{DIRECTORY}",
            "managementListenAddress": "{address}:{MANAGEMENT}",
            "certificate": {:?}, "privateKey": {:?}, "httpPort": {HTTP}, "tlsPort": {TLS},
            "retryAfter": {{"authz": 1, "order": 1}}, "keyAlgorithm": "ecdsa",
            "domainBlocklist": ["blocked.test"], {more}
            "profiles": {{"default": {{"description": "of a test", "validityPeriod": {}}}}}}}}}"#,
            own.certificate,
            own.key,
            lifetime.as_secs()
        );
        fs::write(scratch.0.join("pebble.json"), config).expect("our own folder");
        let names = start(Command::new("pebble-challtestsrv").args([
            "-http01=",
            "-https01=",
            "-tlsalpn01=",
            "-doh=",
            "-defaultIPv6=",
            &format!("-defaultIPv4={address}"),
            &format!("-dnsserver={address}:{NAMES}"),
            &format!("-management={address}:{NAMES_MANAGEMENT}"),
        ]));
        let server = run_pebble(&scratch.0, address, reject);
        let pebble = Pebble { scratch, address, root, reject, server, names };
        wait_for(pebble.at(DIRECTORY));
        wait_for(pebble.at(NAMES_MANAGEMENT));
        pebble
    }

    fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::from((self.address, port))
    }

    /// Makes a name resolve to this address.
    pub(crate) fn move_name(&self, name: &str, to: Ipv4Addr) {
        let body = format!(r#"{{"host": "{name}", "addresses": ["{to}"]}}"#);
        for change in ["clear-a", "add-a"] {
            let url = format!("http://{}/{change}", self.names());
            let status = Command::new("curl").args(["--silent", "--fail", "--data", &body, &url]).status();
            assert!(status.expect("curl is there").success());
        }
    }

    /// Returns the loopback address of this authority.
    pub(crate) fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Returns the address at which the name server accepts records.
    pub(crate) fn names(&self) -> SocketAddr {
        self.at(NAMES_MANAGEMENT)
    }

    /// Returns the addresses for validation by HTTP and by TLS.
    pub(crate) fn validated(&self) -> [SocketAddr; 2] {
        [HTTP, TLS].map(|port| self.at(port))
    }

    /// Ends the authority, but not its name server.
    pub(crate) fn stop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    /// Restarts it, without its accounts, orders and certificates.
    pub(crate) fn restart(&mut self) {
        self.stop();
        self.server = run_pebble(&self.scratch.0, self.address, self.reject);
        wait_for(self.at(DIRECTORY));
    }

    /// Makes the authority suggest a renewal between two times.
    pub(crate) fn suggest_renewal(&self, stored: &StoredCertificate, start: &str, end: &str) {
        let pem = fs::read_to_string(&stored.chain.path).expect("it is stored");
        let response = format!(r#"{{\"suggestedWindow\": {{\"start\": \"{start}\", \"end\": \"{end}\"}}}}"#);
        let body =
            format!(r#"{{"Certificate": "{}", "ARIResponse": "{response}"}}"#, pem.replace('\n', "\\n"));
        let status = Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--data", &body, "--cacert"])
            .arg(&self.root)
            .arg(format!("https://{}/set-renewal-info/", self.at(MANAGEMENT)))
            .status();
        assert!(status.expect("curl is there").success());
    }

    pub(crate) fn settings(&self, names: &[&str], validation: Validation) -> AcmeSettings {
        let settings = AcmeSettings {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            directory: format!("https://{}/dir", self.at(DIRECTORY)),
            authority_roots: Some(self.root.clone()),
            contact: Some("admin@example.org".to_owned()),
            external_account: None,
            validation,
        };
        settings.check().expect("settings that check accepts");
        settings
    }

    pub(crate) fn state(&self) -> StateFolder {
        state(&self.scratch.0)
    }

    /// Starts the sockets for validation.
    pub(crate) fn responder(&self) -> (ChallengeBoard, Responder) {
        let board = board();
        let responder = Responder::start(&board, self.validated());
        (board, responder)
    }

    /// Returns a client with the test's folder.
    pub(crate) fn client(&self, settings: AcmeSettings, board: &ChallengeBoard) -> AcmeClient {
        let state = self.state();
        let known = stored::load(&state).expect("no error");
        AcmeClient::new(settings, state, board.clone(), known.as_ref()).expect("a client")
    }

    /// Ends the wait after an attempt.
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

fn run_pebble(scratch: &Path, address: Ipv4Addr, reject: u8) -> Child {
    start(
        Command::new("pebble")
            .arg("-config")
            .arg(scratch.join("pebble.json"))
            .args(["-strict", &format!("-dnsserver={address}:{NAMES}")])
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

/// Runs a step, and returns the certificate that it obtained.
pub(crate) fn obtained(client: &mut AcmeClient) -> StoredCertificate {
    let step = client.step();
    match step.event {
        Some(AcmeEvent::Changed(stored)) => stored,
        other => panic!("no certificate: {other:?}"),
    }
}
