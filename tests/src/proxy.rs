//! nginx, HAProxy and Caddy in front of servers, for cases about proxies.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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
        Proxy::run(command, folder, address)
    }

    /// Starts HAProxy at `address` with these lines in its section `listen`. It repeats no request.
    #[track_caller]
    pub fn haproxy(address: SocketAddr, listen: &str) -> Proxy {
        let folder = TempFolder::new("haproxy");
        folder.allow(".", 0o777);
        let text = format!(
            "global\n maxconn 100\ndefaults\n mode http\n timeout connect 10s\n timeout client 10s\n \
             timeout server 10s\n retries 0\nlisten front\n bind {address}\n{listen}\n"
        );
        let file = folder.write("haproxy.cfg", text);
        let mut command = tools::as_nobody(&tools::program("haproxy"));
        command.current_dir(folder.path()).args(["-db", "-f"]).arg(file);
        Proxy::run(command, folder, address)
    }

    /// Starts a Caddy at `address` with these directives in its site. The scheme of `address` decides about TLS.
    #[track_caller]
    pub fn caddy(program: &Path, scheme: &str, address: SocketAddr, site: &str) -> Proxy {
        let folder = TempFolder::new("caddy");
        folder.allow(".", 0o777);
        let port = address.port();
        let text = format!(
            "{{\n admin off\n auto_https disable_redirects\n {scheme}_port {port}\n skip_install_trust\n}}\n\
             {scheme}://:{port} {{\n bind {}\n{site}\n}}\n",
            address.ip()
        );
        let file = folder.write("Caddyfile", text);
        let mut command = tools::as_nobody(program);
        command.current_dir(folder.path()).args(["run", "--adapter", "caddyfile", "--config"]).arg(file);
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            command.env(name, folder.path());
        }
        Proxy::run(command, folder, address)
    }

    #[track_caller]
    fn run(mut command: Command, folder: TempFolder, address: SocketAddr) -> Proxy {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("run {command:?}: {error}"));
        let proxy = Proxy { child, _folder: folder };
        eventually(SOON, "the proxy listens", || TcpStream::connect(address).ok());
        proxy
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        Process(self.child.id()).signal(Signal::TERM);
        let _ = self.child.wait();
    }
}

/// The Caddy in `TENFOLD_CADDY`, 2.7 or newer, which sends PROXY headers. The Caddy of Debian 12 is older.
pub fn new_caddy() -> Option<PathBuf> {
    std::env::var_os("TENFOLD_CADDY").map(PathBuf::from)
}
