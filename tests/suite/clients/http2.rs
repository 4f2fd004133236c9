//! HTTP/2 over TLS in independent clients: a file of 64 MiB, and a thousand files at once.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use aws_lc_rs::digest;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http2 as hyper_http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tenfold_tests::config::Config;
use tenfold_tests::launch::Launch;
use tenfold_tests::seal;
use tenfold_tests::server::Server;
use tenfold_tests::site::{self, TempFolder};
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::tools::program;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::{read, run, stop, text};

/// The number of small files.
pub(crate) const FILES: usize = 1_000;

/// A server with `large.bin` and a thousand different files.
pub(crate) struct ManyFiles {
    pub(crate) server: Server,
    _folder: TempFolder,
}

impl ManyFiles {
    /// Starts the server, through TLS.
    pub(crate) fn serve(config: &Config) -> ManyFiles {
        let folder = TempFolder::new("many-files");
        folder.write("site/large.bin", site::large());
        // A browser requests it.
        folder.write("site/favicon.ico", "");
        (0..FILES).for_each(|number| drop(folder.write(&format!("site/{number}.txt"), content(number))));
        let launch = Launch::new(&config.over_tls(), &folder.at("site"));
        let launch = if config.at_once().is_some() { launch.flag("--idle-timeout", "200ms") } else { launch };
        ManyFiles { server: launch.start(), _folder: folder }
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("https://localhost:{}/{name}", self.server.address.port())
    }

    fn names(&self) -> Vec<String> {
        (0..FILES).map(|number| format!("{number}.txt")).collect()
    }

    /// The URLs of the thousand files, one per line.
    fn urls(&self) -> String {
        self.names().iter().map(|name| self.url(name) + "\n").collect()
    }

    /// Waits until the log has at least as many responses over HTTP/2, and checks that it has no others. Stops the server.
    pub(crate) fn end(self, responses: usize) {
        let is_one = |line: &str| line.contains(" HTTP/2.0\" 200 ");
        becomes_true(SOON, "the log has every response", || {
            self.server.log().lines().filter(|line| is_one(line)).count() >= responses
        });
        let log = self.server.log();
        assert_eq!(log.lines().find(|line| !is_one(line)), None);
        stop(self.server);
    }
}

/// The content of a small file, with a length of its own.
fn content(number: usize) -> String {
    format!("{number} ").repeat(1 + number % 700)
}

fn certificate() -> String {
    seal::certificate_folder().join("cert.pem").display().to_string()
}

/// The SHA-256 in hexadecimal digits.
fn sha256(bytes: &[u8]) -> String {
    let hash = digest::digest(&digest::SHA256, bytes);
    hash.as_ref().iter().fold(String::new(), |mut all, byte| {
        let _ = write!(all, "{byte:02x}");
        all
    })
}

/// The hashes of the large file and of each small file.
pub(crate) fn hashes() -> Vec<String> {
    let small = (0..FILES).map(|number| sha256(content(number).as_bytes()));
    [sha256(site::large())].into_iter().chain(small).collect()
}

pub(super) fn curl_takes_a_large_file_and_a_thousand_at_once(config: &Config) {
    let (files, folder) = (ManyFiles::serve(config), TempFolder::new("curl-http2"));
    let certificate = certificate();
    let common = ["-sSf", "--http2", "--cacert", &certificate];
    let large = files.url("large.bin");
    let version = run(
        "curl",
        folder.path(),
        &[&common[..], &["-o", "large", "-w", "%{http_version}", &large]].concat(),
    );
    assert_eq!(text(version), "2");
    assert!(read(&folder.at("large")) == site::large());
    let mut list = String::new();
    for name in files.names() {
        let _ = write!(list, "url = \"{}\"\noutput = \"{name}\"\n", files.url(&name));
    }
    folder.write("list", list);
    run(
        "curl",
        folder.path(),
        &[&common[..], &["--parallel", "--parallel-max", "300", "-K", "list"]].concat(),
    );
    for (number, name) in files.names().iter().enumerate() {
        assert!(read(&folder.at(name)) == content(number).as_bytes(), "{name} differs");
    }
    files.end(FILES + 1);
}

/// `nghttp` interleaves the bodies of its standard output, so the thousand files are compared by their lengths and by the
/// number of each byte.
pub(super) fn nghttp_takes_a_large_file_and_a_thousand_at_once(config: &Config) {
    let (files, folder) = (ManyFiles::serve(config), TempFolder::new("nghttp"));
    // It has no option for a certificate of an authority.
    let large = run("nghttp", folder.path(), &["-y", &files.url("large.bin")]);
    assert!(large == site::large(), "{} bytes", large.len());
    let urls: Vec<String> = files.names().iter().map(|name| files.url(name)).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    let counts = |bytes: &[u8]| {
        let mut counts = [0_u32; 256];
        bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        counts
    };
    let expected: String = (0..FILES).map(content).collect();
    let found = run("nghttp", folder.path(), &[&["-y"], &urls[..]].concat());
    assert_eq!(found.len(), expected.len());
    assert!(counts(&found) == counts(expected.as_bytes()), "the bodies differ");
    let table = text(run("nghttp", folder.path(), &[&["-y", "-n", "-s"], &urls[..]].concat()));
    let rows = table.lines().filter(|line| line.contains(" 200 ") && line.contains(".txt")).count();
    assert_eq!(rows, FILES, "{table}");
    files.end(2 * FILES + 1);
}

/// `h2load` counts bodies and their bytes.
pub(super) fn h2load_counts_a_large_file_and_a_thousand_at_once(config: &Config) {
    let (files, folder) = (ManyFiles::serve(config), TempFolder::new("h2load"));
    let list = folder.write("list", files.urls()).display().to_string();
    let large = files.url("large.bin");
    let expected: usize = (0..FILES).map(|number| content(number).len()).sum();
    let runs = [
        (vec!["-n1", "-c1", &large], 1, site::LARGE),
        (vec!["-n1000", "-c1", "-m100", "-i", &list], FILES, expected),
    ];
    for (words, count, bytes) in runs {
        let report = text(run("h2load", folder.path(), &words));
        let succeeded = format!("{count} succeeded, 0 failed, 0 errored, 0 timeout");
        assert!(report.contains(&succeeded) && report.contains(&format!("({bytes}) data")), "{report}");
        assert!(report.contains("Application protocol: h2\n"), "{report}");
    }
    files.end(FILES + 1);
}

/// Go builds the client at each run; its cache has the libraries.
pub(super) fn go_takes_a_large_file_and_a_thousand_at_once(config: &Config) {
    let (files, folder) = (ManyFiles::serve(config), TempFolder::new("go"));
    folder.write("get.go", include_str!("get.go"));
    let get = folder.at("get");
    let mut build = Command::new(program("go"));
    build.args(["build", "-o"]).arg(&get).arg("get.go").current_dir(folder.path());
    let built = build.output().expect("go runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    // The large file first, at the same time as the others.
    let urls = files.url("large.bin") + "\n" + &files.urls();
    let mut command = Command::new(get);
    command.arg(certificate()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the client runs");
    child.stdin.take().expect("a pipe").write_all(urls.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text(output.stdout).lines().eq(hashes()), "a body differs");
    files.end(FILES + 1);
}

pub(super) fn hyper_takes_a_large_file_and_a_thousand_at_once(config: &Config) {
    let files = ManyFiles::serve(config);
    let mut tls = ClientConfig::builder().with_root_certificates(seal::trusted_roots()).with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let address = files.server.address;
    let urls: Vec<String> =
        (files.url("large.bin") + "\n" + &files.urls()).lines().map(str::to_owned).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
    let found = runtime.block_on(async move {
        let stream = TcpStream::connect(address).await.expect("it listens");
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await.expect("a handshake");
        let opened = hyper_http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
        let (sender, connection) = opened.expect("HTTP/2");
        tokio::spawn(connection);
        let mut requests = JoinSet::new();
        for (at, url) in urls.into_iter().enumerate() {
            let mut sender = sender.clone();
            requests.spawn(async move {
                let request = hyper::Request::get(&url).body(Empty::<Bytes>::new()).expect("a request");
                let response =
                    sender.send_request(request).await.unwrap_or_else(|error| panic!("{url}: {error}"));
                assert_eq!((response.status().as_u16(), response.version()), (200, hyper::Version::HTTP_2));
                let body =
                    response.into_body().collect().await.unwrap_or_else(|error| panic!("{url}: {error}"));
                (at, sha256(&body.to_bytes()))
            });
        }
        let mut found = requests.join_all().await;
        found.sort_unstable();
        found
    });
    assert!(found.into_iter().map(|(_, hash)| hash).eq(hashes()), "a body differs");
    files.end(FILES + 1);
}
