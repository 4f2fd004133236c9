//! Certificates that the server makes or obtains by itself.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustix::process::Signal;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion, version};
use tenfold_tests::address::ReservedAddress;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::{Launch, tenfold};
use tenfold_tests::pebble::Pebble;
use tenfold_tests::process::Process;
use tenfold_tests::seal::{client_of, get_once};
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true, eventually};
use tenfold_tests::tools::program;
use tenfold_tests::wire::{Wire, request};

pub(crate) const THEME: Theme = Theme {
    name: "acme",
    cases: cases![
        Own on DRIVERS: challenges_are_answered_and_other_handshakes_refused_without_a_certificate,
            an_internal_certificate_is_made_and_kept;
        Own on EPOLL: a_certificate_is_obtained_renewed_and_kept_while_the_authority_is_away,
            a_wildcard_is_obtained_by_a_program_that_sets_records,
            a_damaged_certificate_stays_in_memory_until_another_is_obtained,
            an_internal_certificate_covers_each_printed_address,
            an_internal_certificate_omits_a_host_that_its_root_does_not_permit,
            an_internal_certificate_stays_in_memory_without_its_root,
            check_tells_what_a_start_would_find_and_makes_nothing;
    ],
};

/// A client that trusts this certificate, in DER.
pub(crate) fn trusting(root: Vec<u8>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(root.into()).expect("a certificate");
    client_of(Arc::new(roots))
}

const TOKEN: &str = "dG9rZW4";

fn challenges_are_answered_and_other_handshakes_refused_without_a_certificate(config: &Config) {
    let folder = TempFolder::new("challenges");
    let server = Launch::new(config, site::shared())
        .through("env", &[&format!("TENFOLD_TEST_CHALLENGE={TOKEN} {TOKEN}.print a.test")])
        .flag("--tls", "A.test")
        .flag("--tls-directory", "https://localhost:1/dir")
        .flag("--tls-state", folder.at("state").display())
        .flag("--listen", "http:127.0.0.1:0")
        .start();
    let plain = server.listening()[0];
    let get = |path: &str| {
        let mut wire = Wire::connect(plain);
        wire.send(request("GET", path, &[]));
        wire.response()
    };
    let path = format!("/.well-known/acme-challenge/{TOKEN}");
    let response =
        eventually(SOON, "the response is there", || Some(get(&path)).filter(|got| got.status == 200));
    assert_eq!(response.body, format!("{TOKEN}.print").as_bytes());
    assert_eq!(get("/.well-known/acme-challenge/other").status, 404);
    assert_eq!(get("/1k.html").body, site::content("1k.html"), "the site is served beside it");

    // The certificate contains the response in a critical extension, so other clients must refuse it.
    let refused = validate(server.address, "a.test").expect_err("nothing trusts it");
    assert!(refused.contains("UnsupportedCriticalExtension"), "{refused}");
    assert!(validate(server.address, "b.test").expect_err("no challenge").contains("AccessDenied"));
    let ordinary = trusting(some_certificate());
    let refused = get_once(server.address, &ordinary, "a.test", "/1k.html").expect_err("no certificate");
    assert!(refused.to_string().contains("AccessDenied"), "{refused}");
    closes_behind_a_validation(server.address, &version::TLS13);
    closes_behind_a_validation(server.address, &version::TLS12);
    let said = server.errors();
    assert!(said.contains("a.test (waiting for https://localhost:1/dir; handshakes are refused"), "{said}");
    server.expect_report("no new certificate for a.test: ");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn some_certificate() -> Vec<u8> {
    rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("it can be made").cert.der().to_vec()
}

/// Begins a handshake as an authority does.
fn validation(config: ClientConfig, name: &str) -> ClientConnection {
    let mut config = config;
    config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    ClientConnection::new(Arc::new(config), name).expect("the configuration is legal")
}

fn validate(address: SocketAddr, name: &str) -> Result<(), String> {
    let config = Arc::unwrap_or_clone(trusting(some_certificate()));
    let mut connection = validation(config, name);
    let mut stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
    stream.set_read_timeout(Some(SOON)).expect("a socket takes options");
    connection.complete_io(&mut stream).map(|_| ()).map_err(|error| error.to_string())
}

/// A request after the handshake of a validation gets no response, and the connection ends.
fn closes_behind_a_validation(address: SocketAddr, version: &'static SupportedProtocolVersion) {
    let builder = ClientConfig::builder_with_protocol_versions(&[version]).dangerous();
    let config =
        builder.with_custom_certificate_verifier(Arc::new(unverified::Unverified)).with_no_client_auth();
    let mut connection = validation(config, "a.test");
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(SOON)).expect("a socket takes options");
    let mut tls = rustls::Stream::new(&mut connection, &mut stream);
    tls.write_all(b"GET /1k.html HTTP/1.1\r\nHost: a.test\r\n\r\n").expect("the handshake succeeds");
    let mut received = Vec::new();
    match tls.read_to_end(&mut received) {
        Ok(_) => {}
        // The request was not read.
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
    assert_eq!(received, b"", "a validation gets no HTTP response");
    assert_eq!(connection.alpn_protocol(), Some(&b"acme-tls/1"[..]));
}

/// rustls refuses the critical extension in the certificate of a validation (RFC 8737 §3), so nothing is checked here.
mod unverified {
    use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
    use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
    use rustls::{DigitallySignedStruct, Error, SignatureScheme};

    macro_rules! accepts_signatures {
        ($($name:ident),+) => {$(
            fn $name(
                &self,
                _: &[u8],
                _: &CertificateDer<'_>,
                _: &DigitallySignedStruct,
            ) -> Result<HandshakeSignatureValid, Error> {
                Ok(HandshakeSignatureValid::assertion())
            }
        )+};
    }

    #[derive(Debug)]
    pub(super) struct Unverified;

    impl ServerCertVerifier for Unverified {
        fn verify_server_cert(
            &self,
            _: &CertificateDer<'_>,
            _: &[CertificateDer<'_>],
            _: &ServerName<'_>,
            _: &[u8],
            _: UnixTime,
        ) -> Result<ServerCertVerified, Error> {
            Ok(ServerCertVerified::assertion())
        }

        accepts_signatures!(verify_tls12_signature, verify_tls13_signature);

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ECDSA_NISTP256_SHA256]
        }
    }
}

fn an_internal_certificate_is_made_and_kept(config: &Config) {
    let (folder, address) = (TempFolder::new("internal"), ReservedAddress::new());
    let start = || {
        Launch::new(config, site::shared())
            .flag("--tls", "internal")
            .flag("--tls-state", folder.at("state").display())
            .flag("--listen", &address)
            .start_at(*address)
    };
    let server = start();
    let state = folder.at("state/internal");
    let root = state.join("root.pem");
    let source = format!("(internal, root certificate {})", root.display());
    server.expect_report(&source);
    let said = server.errors();
    assert!(said.contains(&format!(
        "curl --cacert {} https://localhost:{}/",
        root.display(),
        server.address.port()
    )));
    let client = trusting(CertificateDer::from_pem_file(&root).expect("a certificate").to_vec());
    let get = |server: &Server, name: &str| {
        let exchange = get_once(server.address, &client, name, "/1k.html").expect("a response");
        assert!(exchange.response.starts_with("HTTP/1.1 200 "), "{}", exchange.response);
        exchange.certificate
    };
    let certificate = get(&server, "localhost");
    assert_eq!(get(&server, "127.0.0.1"), certificate);
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!((mode(&state), mode(&state.join("root-key.pem"))), (0o700, 0o600));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    let again = start();
    assert_eq!(get(&again, "localhost"), certificate, "it is kept");
    assert!(!again.errors().contains("curl --cacert"), "the root is known");
    again.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn an_internal_certificate_covers_each_printed_address(config: &Config) {
    let folder = TempFolder::new("internal-addresses");
    let server = Launch::new(config, site::shared())
        .flag("--tls", "internal")
        .flag("--tls-state", folder.at("state").display())
        .flag("--listen", ":0")
        .start();
    let port = server.listening()[0].port();
    let root = folder.at("state/internal/root.pem");
    let client = trusting(CertificateDer::from_pem_file(&root).expect("a certificate").to_vec());
    let said = server.errors();
    let links = said.split_whitespace().filter_map(|word| word.strip_prefix("https://")?.strip_suffix('/'));
    let printed: Vec<SocketAddr> = links.filter_map(|link| link.parse().ok()).collect();
    assert!(printed.iter().any(|at| at.port() == port), "{said}");
    let machine = fs::read_to_string("/proc/sys/kernel/hostname").expect("the kernel has a name");
    let machine = machine.trim().to_ascii_lowercase();
    let names = printed.iter().map(|at| at.ip().to_string());
    for name in names.chain(["localhost".to_owned(), machine]) {
        get_once(server.address, &client, &name, "/1k.html").unwrap_or_else(|why| panic!("{name}: {why}"));
    }
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn an_internal_certificate_omits_a_host_that_its_root_does_not_permit(config: &Config) {
    let folder = TempFolder::new("internal-hosts");
    folder.write("site/index.html", "here");
    let root = folder.at("state/internal/root.pem");
    let start = |hosts: &[&str]| {
        let hosts = hosts.iter().map(|host| format!("[[host]]\nname = \"{host}\"\n")).collect::<String>();
        let text = format!("root = \"site\"\ntls = \"internal\"\ntls-state = \"state\"\n{hosts}");
        Launch::bare(config).flag("--config", folder.write("tenfold.toml", text).display()).start()
    };
    let fetched = |server: &Server, host: &str| {
        let port = server.address.port();
        let mut curl = Command::new(program("curl"));
        curl.args(["--silent", "--fail", "--cacert"]).arg(&root);
        curl.args(["--resolve", &format!("{host}:{port}:{}", server.address.ip())]);
        curl.arg(format!("https://{host}:{port}/")).output().expect("curl runs").stdout == b"here"
    };
    let server = start(&["a.example", "*.b.example"]);
    assert!(["localhost", "a.example", "www.b.example"].iter().all(|host| fetched(&server, host)));
    assert!(!server.errors().contains("does not permit"), "{}", server.errors());
    server.stop().unwrap_or_else(|why| panic!("{why}"));
    let server = start(&["a.example", "*.b.example", "c.example", "d.test"]);
    server.expect_report("does not permit these names, so the certificate omits them: c.example;");
    assert!(["localhost", "a.example", "www.b.example", "d.test"].iter().all(|host| fetched(&server, host)));
    assert!(!fetched(&server, "c.example"));
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// Reloads the configuration and waits until other workers serve.
fn reload(server: &Server) {
    let generation = || server.status()["generation"].as_u64();
    let former = generation();
    server.process.signal(Signal::HUP);
    becomes_true(SOON, "other workers serve", || {
        generation() > former && server.status()["workers"][0]["state"] != "starting"
    });
}

fn an_internal_certificate_stays_in_memory_without_its_root(config: &Config) {
    let folder = TempFolder::new("internal-damaged");
    let server = Launch::new(config, site::shared())
        .flag("--tls", "internal")
        .flag("--tls-state", folder.at("state").display())
        .start();
    let state = folder.at("state/internal");
    let root = CertificateDer::from_pem_file(state.join("root.pem")).expect("a certificate").to_vec();
    let presented = || {
        let exchange = get_once(server.address, &trusting(root.clone()), "localhost", "/1k.html");
        exchange.expect("a response").certificate
    };
    let certificate = presented();
    fs::write(state.join("root-key.pem"), "-----BEGIN").expect("our own folder");
    reload(&server);
    assert_eq!(presented(), certificate);
    server.expect_report("the running certificate stays in use");
    fs::remove_dir_all(&state).expect("our own folder");
    reload(&server);
    assert_eq!(presented(), certificate);
    server.expect_report("there is no certificate in ");
    assert!(!state.join("root.pem").exists(), "no new root");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

/// The process that obtains certificates: the only child of the supervisor that neither serves nor signs.
fn client_process(server: &Server) -> Process {
    let status = server.status();
    let mut workers: Vec<_> =
        status["workers"].as_array().expect("a list").iter().map(|one| one["process"].as_u64()).collect();
    workers.push(status["signing"]["process"].as_u64());
    let is_worker = |process: &Process| workers.contains(&Some(process.0.into()));
    eventually(SOON, "the process runs", || {
        server.process.children().into_iter().find(|child| !is_worker(child))
    })
}

const NO_CAPABILITIES: &str = "0000000000000000";

/// The mode of the system call filter of a process (`man 5 proc`), and its capabilities.
fn rights(process: Process) -> (String, String) {
    let status = |name| process.status(name).expect("it runs");
    (status("Seccomp"), status("CapEff"))
}

fn a_certificate_is_obtained_renewed_and_kept_while_the_authority_is_away(config: &Config) {
    let (folder, address, plain) =
        (TempFolder::new("obtained"), ReservedAddress::new(), ReservedAddress::new());
    let pebble = Pebble::start(address.port());
    let start = |names: &[&str]| {
        let launch =
            names.iter().fold(Launch::new(config, site::shared()), |launch, name| launch.flag("--tls", name));
        launch
            .flag("--tls-directory", pebble.directory())
            .flag("--tls-directory-root", pebble.root_file().display())
            .flag("--tls-state", folder.at("state").display())
            .flag("--listen", &address)
            .flag("--listen", format!("http:{plain}"))
            .start_at(*address)
    };
    let server = start(&["a.test", "www.a.test"]);
    let issuer = pebble.issuer();
    // A resumed session would keep the earlier certificate, so each client is new.
    let presented = |name: &str| {
        get_once(*address, &trusting(issuer.clone()), name, "/1k.html")
            .ok()
            .map(|exchange| exchange.certificate)
    };
    let first = eventually(SOON, "a certificate", || presented("www.a.test"));
    becomes_true(SOON, "plaintext is redirected", || {
        let mut wire = Wire::connect(*plain);
        wire.send("GET /1k.html HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let location = format!("https://a.test:{}/1k.html", address.port());
        wire.response().field("Location") == Some(&location)
    });
    assert_eq!(presented("a.test").as_ref(), Some(&first));
    server.expect_report("a new certificate: a.test www.a.test, expires ");
    let state = folder.at("state").join(pebble.folder_name());

    assert_eq!(rights(client_process(&server)), ("2".into(), NO_CAPABILITIES.into()), "a filter");
    becomes_true(SOON, "a process of its own signs", || server.status()["signing"]["process"].is_u64());
    // The renewal is due, and the wait after the first attempt is over.
    pebble.suggest_renewal(&state.join("certificate.pem"));
    fs::remove_file(state.join("attempts.json")).expect("an attempt was made");
    client_process(&server).signal(Signal::KILL);
    let second = eventually(SOON, "another certificate", || presented("a.test").filter(|now| *now != first));
    server.expect_report("another takes its place");
    server.stop().unwrap_or_else(|why| panic!("{why}"));

    // Without the authority the site keeps its certificate, also if a name is added.
    let (directory, root) = (pebble.directory(), fs::read(pebble.root_file()).expect("our own file"));
    drop(pebble);
    let root = folder.write("root.pem", root);
    let server = Launch::new(config, site::shared())
        .flag("--tls", "a.test")
        .flag("--tls", "b.test")
        .flag("--tls-directory", directory)
        .flag("--tls-directory-root", root.display())
        .flag("--tls-state", folder.at("state").display())
        .flag("--listen", &address)
        .start_at(*address);
    assert_eq!(presented("a.test"), Some(second));
    server.expect_report("no new certificate for a.test, b.test: ");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn a_damaged_certificate_stays_in_memory_until_another_is_obtained(config: &Config) {
    let (folder, address, plain) =
        (TempFolder::new("damaged"), ReservedAddress::new(), ReservedAddress::new());
    let pebble = Pebble::start(address.port());
    let root = folder.write("root.pem", fs::read(pebble.root_file()).expect("our own file"));
    let server = Launch::new(config, site::shared())
        .flag("--tls", "a.test")
        .flag("--tls-directory", pebble.directory())
        .flag("--tls-directory-root", root.display())
        .flag("--tls-state", folder.at("state").display())
        .flag("--listen", &address)
        .flag("--listen", format!("http:{plain}"))
        .start_at(*address);
    let issuer = pebble.issuer();
    let presented = || {
        get_once(*address, &trusting(issuer.clone()), "a.test", "/1k.html")
            .ok()
            .map(|exchange| exchange.certificate)
    };
    let first = eventually(SOON, "a certificate", presented);
    let state = folder.at("state").join(pebble.folder_name());
    let cut_key = || {
        let mut names =
            fs::read_dir(&state).expect("our own folder").map(|entry| entry.expect("a name").path());
        let is_key = |path: &std::path::PathBuf| path.display().to_string().contains("/key-");
        fs::write(names.find(is_key).expect("a key"), "-----BEGIN").expect("our own folder");
    };
    // Neither a reload nor the end of the process that signs needs the file.
    cut_key();
    let signing = server.status()["signing"]["process"].as_u64().expect("it runs");
    Process(u32::try_from(signing).expect("a process")).signal(Signal::KILL);
    becomes_true(SOON, "another process signs", || presented().is_some());
    reload(&server);
    assert!(presented().is_some(), "one of the two");
    server.expect_report("the running certificate stays in use until another one replaces it");
    let second = eventually(SOON, "another certificate", || presented().filter(|now| *now != first));
    drop(pebble);
    // The server may write a file while its folder is removed.
    let remove_folder = || becomes_true(SOON, "the folder is removed", || fs::remove_dir_all(&state).is_ok());
    for damage in [&cut_key as &dyn Fn(), &remove_folder] {
        damage();
        reload(&server);
        assert_eq!(presented().as_ref(), Some(&second));
        let mut wire = Wire::connect(*plain);
        wire.send("GET /1k.html HTTP/1.1\r\nHost: a.test\r\n\r\n");
        assert!(wire.response().field("Location").is_some(), "plaintext is redirected");
    }
    server.expect_report("no new certificate for a.test: ");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn a_wildcard_is_obtained_by_a_program_that_sets_records(config: &Config) {
    let folder = TempFolder::new("wildcard");
    let pebble = Pebble::start(1);
    let server = Launch::new(config, site::shared())
        .flag("--tls", "*.a.test")
        .flag("--tls-directory", pebble.directory())
        .flag("--tls-directory-root", pebble.root_file().display())
        .flag("--tls-dns-command", pebble.dns_command().display())
        .flag("--tls-state", folder.at("state").display())
        .start();
    let issuer = pebble.issuer();
    let get = |name: &str| get_once(server.address, &trusting(issuer.clone()), name, "/1k.html");
    let exchange = eventually(SOON, "a certificate", || get("any.a.test").ok());
    assert!(exchange.response.starts_with("HTTP/1.1 200 "), "{}", exchange.response);
    assert!(get("a.test").is_err(), "the wildcard is not for its parent");
    assert_eq!(rights(client_process(&server)), ("0".into(), NO_CAPABILITIES.into()), "no filter");
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn check_tells_what_a_start_would_find_and_makes_nothing(_: &Config) {
    let folder = TempFolder::new("acme-check");
    folder.write("site/index.html", "here");
    let check = |text: &str| {
        let text = format!("root = \"site\"\ntls-state = \"state\"\n{text}");
        let file = folder.write("tenfold.toml", text).display().to_string();
        let output = tenfold(&["check", &file]);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let listen = "listen = [\"127.0.0.1:0\", \"http:127.0.0.1:0\"]\n";
    for text in ["tls = \"internal\"\n", "tls = [\"a.test\", \"b.test\"]\ntls-challenge = \"http-01\"\n"] {
        let (accepted, said) = check(&format!("{listen}{text}"));
        assert!(accepted, "{said}");
        assert!(!folder.at("state").exists(), "a check makes nothing");
    }
    for (text, word) in [
        ("", "tls-state has no effect while tls is off"),
        ("tls = [\"internal\", \"a.test\"]\n", "internal does not go with names"),
        ("tls = \"localhost\"\n", "use `--tls internal`"),
        ("tls = \"*.a.test\"\n", "name a program with tls-dns-command"),
        ("tls = \"*.a.test\"\ntls-dns-command = \"site/index.html\"\n", "it is not executable"),
        ("tls = \"a.test\"\ntls-directory = \"http://a\"\n", "is not a URL that begins with https://"),
        ("tls = \"a.test\"\ntls-directory-root = \"site/index.html\"\n", "it has no CERTIFICATE section"),
        (
            "tls = \"a.test\"\ntls-external-account = \"site/index.html\"\n",
            "it does not have two words, a key identifier and a key in base64url",
        ),
        (
            "tls = \"internal\"\ntls-contact = \"a@b.test\"\n",
            "tls-contact has no effect without a domain to certify",
        ),
    ] {
        let (accepted, said) = check(&format!("{listen}{text}"));
        assert!(!accepted && said.contains(word), "{word}: {said}");
    }
    let (accepted, said) = check("listen = \"127.0.0.1:0\"\ntls = \"a.test\"\ntls-challenge = \"http-01\"\n");
    assert!(!accepted && said.contains("requires an address without TLS"), "{said}");
    let pair = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("it can be made");
    folder.write("a.pem", pair.cert.pem());
    folder.write("a-key.pem", pair.signing_key.serialize_pem());
    let files = "tls-certificate = \"a.pem\"\ntls-key = \"a-key.pem\"\n";
    let (accepted, said) = check(&format!("{listen}{files}tls = \"b.test\"\n"));
    assert!(accepted, "other names: {said}");
    let (accepted, said) = check(&format!("{listen}{files}tls = [\"b.test\", \"a.test\"]\n"));
    assert!(!accepted && said.contains("tls names a.test, which the certificate "), "{said}");
    folder.make("state/internal");
    folder.allow("state/internal", 0o755);
    let (accepted, said) = check(&format!("{listen}tls = \"internal\"\n"));
    assert!(!accepted && said.contains("other users can enter it"), "{said}");
}
