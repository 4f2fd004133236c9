//! A server for sessions.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::Signal;

use super::PATIENCE;
use crate::launch::free_address;
use crate::process::Process;
use crate::seal::certificate_folder;
use crate::site::TempFolder;
use crate::time::eventually;
use crate::tools;

/// A Redis, which also represents Valkey.
#[derive(Debug)]
pub struct RedisServer {
    /// Its URL.
    pub url: String,
    /// Its address.
    pub address: SocketAddr,
    child: Child,
    folder: Option<TempFolder>,
}

impl RedisServer {
    /// Starts a server.
    ///
    /// # Panics
    /// If it is not installed or does not start.
    #[track_caller]
    pub fn start() -> RedisServer {
        let folder = TempFolder::new("redis");
        folder.allow(".", 0o777);
        let mut redis = RedisServer::start_in(folder.path());
        redis.folder = Some(folder);
        redis
    }

    /// Starts a server that accepts TLS alone, with the certificate of this run.
    ///
    /// # Panics
    /// See [`RedisServer::start`].
    #[track_caller]
    pub fn start_encrypted() -> RedisServer {
        let (folder, address) = (TempFolder::new("redis"), free_address());
        folder.allow(".", 0o777);
        let copy = |file: &str| {
            let content = fs::read(certificate_folder().join(file)).expect("it was made");
            folder.write(file, content).display().to_string()
        };
        let (certificate, key, port) = (copy("cert.pem"), copy("key.pem"), address.port().to_string());
        let words = ["--port", "0", "--tls-port", &port, "--tls-auth-clients", "no"];
        let pair = ["--tls-cert-file", &certificate, "--tls-key-file", &key];
        let mut redis = RedisServer::begin(folder.path(), address, &[&words[..], &pair].concat());
        redis.url = format!("rediss://localhost:{port}");
        redis.folder = Some(folder);
        redis
    }

    /// Starts a server in this folder, which belongs to the caller.
    ///
    /// # Panics
    /// See [`RedisServer::start`].
    #[track_caller]
    pub fn start_in(folder: &Path) -> RedisServer {
        let address = free_address();
        RedisServer::begin(folder, address, &["--port", &address.port().to_string()])
    }

    #[track_caller]
    fn begin(folder: &Path, address: SocketAddr, words: &[&str]) -> RedisServer {
        let mut command = tools::as_nobody(&tools::program("redis-server"));
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.args(words).arg("--dir").arg(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("run {command:?}: {error}"));
        let redis = RedisServer { url: format!("redis://{address}"), address, child, folder: None };
        eventually(PATIENCE, "Redis listens", || TcpStream::connect(address).ok());
        redis
    }

    /// Its process.
    pub fn process(&self) -> Process {
        Process(self.child.id())
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.process().signal(Signal::TERM);
        let _ = self.child.wait();
    }
}
