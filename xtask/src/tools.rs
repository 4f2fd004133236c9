//! The tools of tests and measurements besides cargo: their purpose, the way to detect them, and their source.

use std::path::Path;

use crate::shell;

/// A tool, by the name that steps use.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) why: &'static str,
    probe: Probe,
    pub(crate) source: Installation,
}

/// The way to detect a tool, whatever its origin.
enum Probe {
    Program(&'static str),
    File(&'static str),
    Runs(&'static [&'static str]),
}

pub(crate) enum Installation {
    /// A package of Debian and Ubuntu.
    Debian,
    /// A package with a server for comparisons, which some distributions lack.
    Peer,
    /// Arguments of `rustup`.
    Rustup(&'static [&'static str]),
    /// Arguments of `cargo`.
    Cargo(&'static [&'static str]),
    /// A program by the module that `go` builds it from.
    Go(&'static str),
    /// A module of Node, by the folder whose package-lock.json has its version and its checksum.
    Npm(&'static str),
    /// Not installed by `setup`, because some mirrors lack it: the command that installs it.
    ByHand(&'static str),
}

use Installation::{ByHand, Cargo, Debian, Go, Npm, Peer, Rustup};
use Probe::{File, Program, Runs};

/// Tools as rows: the name, the purpose, the way to detect it, and its source.
macro_rules! tools {
    ($($name:literal $why:literal, $probe:expr, $source:expr;)+) => {
        &[$(Tool { name: $name, why: $why, probe: $probe, source: $source }),+]
    };
}

pub(crate) const TOOLS: &[Tool] = tools! {
    "rustfmt" "the format of the sources", Runs(&["cargo", "fmt", "--version"]), COMPONENTS;
    "clippy" "the lints", Runs(&["cargo", "clippy", "--version"]), COMPONENTS;
    "nightly" "the address sanitizer", Runs(&["rustup", "run", "nightly", "cargo", "--version"]), NIGHTLY;
    "cargo-deny" "bans, licences and sources", Runs(&["cargo", "deny", "--version"]), DENY;
    "miri" "undefined behaviour in what the interpreter can run",
        Runs(&["rustup", "run", "nightly", "cargo", "miri", "--version"]),
        ByHand("rustup component add miri rust-src --toolchain nightly");
    "rust-src" "a standard library that Miri or the thread sanitizer is built with",
        Runs(&["sh", "-c", "test -d \"$(rustup run nightly rustc --print sysroot)/lib/rustlib/src/rust/library\""]),
        ByHand("rustup component add rust-src --toolchain nightly");
    "cargo-deb" "packages for Debian", Runs(&["cargo", "deb", "--version"]), CARGO_DEB;
    "cargo-sbom" "the bill of materials of packages", Runs(&["cargo", "sbom", "--version"]), CARGO_SBOM;
    "binutils" "strip, for packages", Program("strip"), Debian;
    "aarch64-target" "packages for aarch64",
        Runs(&["sh", "-c", "test -d \"$(rustc --print target-libdir --target aarch64-unknown-linux-gnu)\""]),
        ByHand("rustup target add aarch64-unknown-linux-gnu");
    "g++-aarch64-linux-gnu" "packages for aarch64",
        Program("aarch64-linux-gnu-g++"), ByHand("apt-get install g++-aarch64-linux-gnu");
    "libstdc++6:arm64" "the libraries that packages for aarch64 depend on",
        File("/usr/lib/aarch64-linux-gnu/libstdc++.so.6"),
        ByHand("dpkg --add-architecture arm64 && apt-get update && apt-get install libstdc++6:arm64");
    "qemu-user-static" "the manual pages of packages for aarch64",
        Program("qemu-aarch64-static"), ByHand("apt-get install qemu-user-static");
    "qemu-system-arm" "a kernel that tries packages for aarch64",
        Program("qemu-system-aarch64"), ByHand("apt-get install qemu-system-arm");
    "cpio" "the files of that kernel", Program("cpio"), ByHand("apt-get install cpio");
    "mmdebstrap" "a Debian of their own for tests of packages",
        Program("mmdebstrap"), ByHand("apt-get install mmdebstrap");
    "systemd-container" "boots that Debian", Program("systemd-nspawn"), ByHand("apt-get install systemd-container");
    "systemd" "the units of the package", Program("systemd-analyze"), ByHand("apt-get install systemd");
    "gcc" "the floor programs of bench/", Program("gcc"), Debian;
    "libc6-dev" "the floor programs of bench/", File("/usr/include/stdio.h"), Debian;
    "g++" "the engine asio, and a peer of bench/", Program("g++"), Debian;
    "libevent-dev" "the engine libevent, and a peer of bench/", File("/usr/include/event2/event.h"), Debian;
    "libasio-dev" "the engine asio, and a peer of bench/", File("/usr/include/asio.hpp"), Debian;
    "make" "the floor programs of bench/", Program("make"), Debian;
    "liburing-dev" "the floor program on io_uring", File("/usr/include/liburing.h"), Debian;
    "libssl-dev" "the floor program of HTTP/2", File("/usr/include/openssl/ssl.h"), Debian;
    "strace" "tests that count system calls", Program("strace"), Debian;
    "wrk" "many connections kept busy, in tests of system calls and in measurements", Program("wrk"), Debian;
    "iproute2" "ss: which processes listen on a port", Program("ss"), Debian;
    "curl" "an independent client", Program("curl"), Debian;
    "nghttp2-client" "nghttp and h2load: independent clients of HTTP/2", Program("h2load"), Debian;
    "golang-go" "an independent client of HTTP/2", Program("go"), Debian;
    "wget" "an independent client", Program("wget"), Debian;
    "aria2" "a client that takes a file in pieces", Program("aria2c"), Debian;
    "git" "a client that clones over files alone", Program("git"), Debian;
    "ffmpeg" "ffprobe: a client that seeks in a film", Program("ffprobe"), Debian;
    "python3-pip" "pip: a client of a package index", Runs(&["python3", "-m", "pip", "--version"]), Debian;
    "apt" "a client of a package repository", Program("apt-get"), Debian;
    "python3" "the measuring tools", Program("python3"), Debian;
    "libnghttp2-dev" "another implementation of HPACK", File("/usr/include/nghttp2/nghttp2.h"), Debian;
    "patch" "the diff of `tenfold tune`", Program("patch"), Debian;
    "python3-hpack" "another implementation of HPACK",
        Runs(&["/usr/bin/python3", "-c", "import hpack"]), Debian;
    "chromium" "the demonstration site in a real browser", Program("chromium"), Debian;
    "postgresql" "members in a real PostgreSQL", File("/usr/lib/postgresql"), Debian;
    "mariadb-server" "members in a real MariaDB, which also represents MySQL", Program("mariadbd"), Debian;
    "util-linux" "setpriv: database servers refuse to be root", Program("setpriv"), Debian;
    "fonts-liberation" "letters in the browser's screenshots", File("/usr/share/fonts/truetype"), Debian;
    "prometheus" "a scrape of the metrics, and promtool, which checks them", Program("promtool"), Debian;
    "pebble" "an authority that issues certificates to tests", Program("pebble"), PEBBLE;
    "pebble-challtestsrv" "the name server of that authority", Program("pebble-challtestsrv"), PEBBLE_NAMES;
    "h2spec" "the conformance of HTTP/2", Program("h2spec"), H2SPEC;
    "kustomize" "the objects of Kubernetes", Program("kustomize"), KUSTOMIZE;
    "kubeconform" "the schemas of these objects", Program("kubeconform"), KUBECONFORM;
    "axe-core" "the accessibility of pages in a browser", File(AXE), Npm(AXE_FOLDER);
    "nginx-light" "the proxy in front of two nodes; also measured against", Program("nginx"), Debian;
    "haproxy" "a proxy in front, with PROXY headers", Program("haproxy"), Debian;
    "caddy" "a proxy in front, with header fields", Program("caddy"), Debian;
    "apache2" "measured against", Program("apache2"), Peer;
    "lighttpd" "measured against", Program("lighttpd"), Peer;
    "h2o" "measured against", Program("h2o"), Peer;
};

const COMPONENTS: Installation = Rustup(&["component", "add", "rustfmt", "clippy"]);
const NIGHTLY: Installation = Rustup(&["toolchain", "install", "nightly", "--profile", "minimal"]);

/// Unoptimised, because the build takes a third of the time and the program runs for seconds.
const DENY: Installation = Cargo(&["install", "cargo-deny", "--version", "0.20.2", "--locked", "--debug"]);

const CARGO_DEB: Installation = ByHand("cargo install cargo-deb --version 3.8.0 --locked --debug");
const CARGO_SBOM: Installation = ByHand("cargo install cargo-sbom --version 0.10.0 --locked --debug");

const PEBBLE: Installation = Go("github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1");
const PEBBLE_NAMES: Installation = Go("github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv@v2.10.1");
const H2SPEC: Installation = Go("github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible");
const KUSTOMIZE: Installation = Go("sigs.k8s.io/kustomize/kustomize/v5@v5.8.1");
const KUBECONFORM: Installation = Go("github.com/yannh/kubeconform/cmd/kubeconform@v0.7.0");

const AXE_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/axe");
const AXE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/axe/node_modules/axe-core/axe.min.js");

impl Tool {
    pub(crate) fn is_there(&self) -> bool {
        match self.probe {
            Program(name) => shell::on_path(name),
            File(path) => Path::new(path).exists(),
            Runs([program, args @ ..]) => shell::succeeds(program, args),
            Runs([]) => unreachable!("the table names a program in every row"),
        }
    }

    /// Whether `setup` installs it.
    pub(crate) fn is_installed_by_setup(&self) -> bool {
        !matches!(self.source, ByHand(_))
    }

    /// Its name, its purpose and the command that installs it.
    pub(crate) fn line(&self) -> String {
        let command =
            if let ByHand(command) = self.source { command } else { "cargo xtask setup --no-peers" };
        format!("{} is missing ({}): `{command}` installs it", self.name, self.why)
    }
}

/// Whether the table has a row of this name.
#[cfg(test)]
pub(crate) fn knows(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == name)
}

/// The missing tools of these names, each once.
pub(crate) fn missing<'a>(names: impl IntoIterator<Item = &'a &'static str>) -> Vec<&'static Tool> {
    let mut absent: Vec<&Tool> = Vec::new();
    for name in names {
        let tool = TOOLS.iter().find(|tool| tool.name == *name);
        let tool = tool.unwrap_or_else(|| panic!("{name} has a row in the table of tools"));
        if absent.iter().all(|other| other.name != tool.name) && !tool.is_there() {
            absent.push(tool);
        }
    }
    absent
}

/// Fails if a tool of these names is missing.
pub(crate) fn require(names: &[&'static str]) -> Result<(), String> {
    let lines: Vec<String> = missing(names).into_iter().map(Tool::line).collect();
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) }
}
