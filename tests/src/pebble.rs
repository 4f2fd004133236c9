//! An authority that issues certificates to tests: Pebble, and a name server that resolves every name to this machine.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rcgen::CertifiedKey;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::address::ReservedAddress;
use crate::site::TempFolder;
use crate::time::{SOON, becomes_true};
use crate::tools::program;

/// An authority that runs until this value is dropped.
#[derive(Debug)]
pub struct Pebble {
    folder: TempFolder,
    directory: ReservedAddress,
    management: ReservedAddress,
    names_management: ReservedAddress,
    /// The address of the name server, for UDP too: only this program uses UDP ports of reservations.
    _names: ReservedAddress,
    processes: Vec<Child>,
}

impl Pebble {
    /// Starts an authority that validates names at this port by TLS.
    pub fn start(tls: u16) -> Pebble {
        let folder = TempFolder::new("pebble");
        let [directory, management, names, names_management] = [(); 4].map(|()| ReservedAddress::new());
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])
                .expect("a certificate can be made");
        let certificate = folder.write("cert.pem", cert.pem());
        let key = folder.write("key.pem", signing_key.serialize_pem());
        let config = serde_json::json!({"pebble": {
            "listenAddress": directory.to_string(), "managementListenAddress": management.to_string(),
            "certificate": certificate, "privateKey": key, "httpPort": 1, "tlsPort": tls,
            "retryAfter": {"authz": 1, "order": 1}, "keyAlgorithm": "ecdsa",
            "profiles": {"default": {"description": "of a test", "validityPeriod": 7_776_000}},
        }});
        let config = folder.write("pebble.json", config.to_string());
        let mut name_server = Command::new(program("pebble-challtestsrv"));
        name_server.args(["-http01=", "-https01=", "-tlsalpn01=", "-doh=", "-defaultIPv6="]);
        name_server.args([format!("-dnsserver={names}"), format!("-management={names_management}")]);
        let mut authority = Command::new(program("pebble"));
        authority.arg("-config").arg(config).args(["-strict", &format!("-dnsserver={names}")]);
        authority
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_AUTHZREUSE", "0")
            .env("PEBBLE_WFE_NONCEREJECT", "0");
        let processes = [name_server, authority].map(|mut command| {
            let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            started.unwrap_or_else(|error| panic!("run {command:?}: {error}"))
        });
        for address in [*names_management, *directory, *management] {
            becomes_true(SOON, "the authority listens", || TcpStream::connect(address).is_ok());
        }
        Pebble { folder, directory, management, names_management, _names: names, processes: processes.into() }
    }

    /// The URL of its directory.
    pub fn directory(&self) -> String {
        format!("https://{}/dir", self.directory)
    }

    /// The name of its folder in the folder of `--tls-state`.
    pub fn folder_name(&self) -> String {
        self.directory().replace("https://", "acme-").replace([':', '/'], "-")
    }

    /// A program that sets and clears TXT records.
    pub fn dns_command(&self) -> PathBuf {
        let data = r#"{\"host\":\"$2.\",\"value\":\"$3\"}"#;
        let (curl, url) = (program("curl"), *self.names_management);
        let script = format!(
            "#!/bin/sh\nexec {} --silent --fail --data \"{data}\" http://{url}/$1-txt\n",
            curl.display()
        );
        let path = self.folder.write("dns", script);
        self.folder.allow("dns", 0o700);
        path
    }

    /// The file of the root certificate for its HTTPS.
    pub fn root_file(&self) -> PathBuf {
        self.folder.at("cert.pem")
    }

    /// The root of the certificates that it issues, in DER.
    #[track_caller]
    pub fn issuer(&self) -> Vec<u8> {
        let pem = self.manage("/roots/0", &[]);
        CertificateDer::from_pem_slice(&pem).expect("it is a certificate").to_vec()
    }

    /// Makes it suggest that the certificate in this file was renewed long ago.
    #[track_caller]
    pub fn suggest_renewal(&self, certificate: &std::path::Path) {
        let pem = fs::read_to_string(certificate).expect("it is stored");
        let window =
            r#"{"suggestedWindow": {"start": "2020-01-01T00:00:00Z", "end": "2020-01-02T00:00:00Z"}}"#;
        let body = serde_json::json!({"Certificate": pem, "ARIResponse": window});
        self.manage("/set-renewal-info/", &["--data", &body.to_string()]);
    }

    #[track_caller]
    fn manage(&self, path: &str, more: &[&str]) -> Vec<u8> {
        let mut command = Command::new(program("curl"));
        command.args(["--silent", "--show-error", "--fail", "--cacert"]).arg(self.root_file()).args(more);
        let output = command.arg(format!("https://{}{path}", self.management)).output().expect("curl runs");
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
