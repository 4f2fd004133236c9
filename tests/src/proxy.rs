//! nginx in front of servers, for cases about proxies.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Stdio};

use rustix::process::Signal;

use crate::process::Process;
use crate::site::TempFolder;
use crate::time::{SOON, eventually};
use crate::tools;

/// A proxy that runs until this value is dropped.
#[derive(Debug)]
pub struct Proxy {
    child: Child,
    _folder: TempFolder,
}

impl Proxy {
    /// Starts a proxy with these lines in its block `http`, which must contain `address`.
    ///
    /// # Panics
    /// If it is not installed or does not start.
    #[track_caller]
    pub fn start(address: SocketAddr, http: &str) -> Proxy {
        let folder = TempFolder::new("proxy");
        folder.allow(".", 0o777);
        let own = folder.path().display().to_string();
        let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let places = kinds.map(|kind| format!("{kind}_temp_path {own}/{kind};\n")).concat();
        let text = format!(
            "daemon off;\nworker_processes 1;\npid {own}/pid;\nevents {{ worker_connections 256; }}\n\
             http {{\naccess_log off;\n{places}{http}}}\n"
        );
        let file = folder.write("nginx.conf", text);
        let mut command = tools::as_nobody(&tools::program("nginx"));
        // Its working directory shows its owner.
        command.current_dir(&own).args(["-p", &own, "-e", "stderr", "-c"]).arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("run {command:?}: {error}"));
        let proxy = Proxy { child, _folder: folder };
        eventually(SOON, "nginx listens", || TcpStream::connect(address).ok());
        proxy
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        Process(self.child.id()).signal(Signal::TERM);
        let _ = self.child.wait();
    }
}
