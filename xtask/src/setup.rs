//! The tools of tests and measurements besides cargo: their purpose, detection and installation.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::shell;

/// A tool, by the name that steps use.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    why: &'static str,
    probe: Probe,
    source: Installation,
}

/// The way to detect a tool, whatever its origin.
enum Probe {
    Program(&'static str),
    File(&'static str),
    Runs(&'static [&'static str]),
}

enum Installation {
    /// A package of Debian.
    Debian,
    /// A package of Debian with a server for comparisons.
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

const TOOLS: &[Tool] = tools! {
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
    "strace" "tests that count system calls", Program("strace"), Debian;
    "wrk" "many connections kept busy, in tests of system calls and in measurements", Program("wrk"), Debian;
    "iproute2" "ss: which processes listen on a port", Program("ss"), Debian;
    "curl" "an independent client", Program("curl"), Debian;
    "wget" "an independent client", Program("wget"), Debian;
    "aria2" "a client that takes a file in pieces", Program("aria2c"), Debian;
    "git" "a client that clones over files alone", Program("git"), Debian;
    "ffmpeg" "ffprobe: a client that seeks in a film", Program("ffprobe"), Debian;
    "python3-pip" "pip: a client of a package index", Runs(&["python3", "-m", "pip", "--version"]), Debian;
    "apt" "a client of a package repository", Program("apt-get"), Debian;
    "python3" "the measuring tools", Program("python3"), Debian;
    "chromium" "the demonstration site in a real browser", Program("chromium"), Debian;
    "postgresql" "members in a real PostgreSQL", File("/usr/lib/postgresql"), Debian;
    "mariadb-server" "members in a real MariaDB, which also represents MySQL", Program("mariadbd"), Debian;
    "util-linux" "setpriv: database servers refuse to be root", Program("setpriv"), Debian;
    "fonts-liberation" "letters in the browser's screenshots", File("/usr/share/fonts/truetype"), Debian;
    "prometheus" "a scrape of the metrics, and promtool, which checks them", Program("promtool"), Debian;
    "pebble" "an authority that issues certificates to tests", Program("pebble"), PEBBLE;
    "pebble-challtestsrv" "the name server of that authority", Program("pebble-challtestsrv"), PEBBLE_NAMES;
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

const AXE_FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/axe");
const AXE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/axe/node_modules/axe-core/axe.min.js");

impl Tool {
    fn is_there(&self) -> bool {
        match self.probe {
            Program(name) => shell::on_path(name),
            File(path) => Path::new(path).exists(),
            Runs([program, args @ ..]) => shell::succeeds(program, args),
            Runs([]) => unreachable!("the table names a program in every row"),
        }
    }
}

/// Whether the table has a row of this name.
#[cfg(test)]
pub(crate) fn knows(name: &str) -> bool {
    TOOLS.iter().any(|tool| tool.name == name)
}

/// A line for each missing tool, with the command that installs it.
pub(crate) fn missing(names: &[&str]) -> Vec<String> {
    let asked = |name: &&str| {
        let known = TOOLS.iter().find(|tool| tool.name == *name);
        known.unwrap_or_else(|| panic!("{name} has a row in the table of tools"))
    };
    let absent = names.iter().map(asked).filter(|tool| !tool.is_there());
    let line = |tool: &Tool| {
        let command = if let ByHand(command) = tool.source { command } else { "cargo xtask setup" };
        format!("{} is missing ({}): `{command}` installs it", tool.name, tool.why)
    };
    absent.map(line).collect()
}

/// Installs missing tools; prints one line if none is missing.
pub(crate) fn setup(with_peers: bool) -> Result<(), String> {
    let is_wanted = |tool: &&Tool| match tool.source {
        ByHand(_) => false,
        Peer => with_peers,
        Debian | Rustup(_) | Cargo(_) | Go(_) | Npm(_) => true,
    };
    let wanted = || TOOLS.iter().filter(is_wanted);
    let absent: Vec<&Tool> = wanted().filter(|tool| !tool.is_there()).collect();
    if absent.is_empty() {
        println!("setup: all {} tools are installed", wanted().count());
        return Ok(());
    }
    for tool in &absent {
        println!("{}: {}", tool.name, tool.why);
    }
    install_toolchains(&absent)?;
    install_packages(&absent)?;
    install_modules(&absent)?;
    install_node_modules(&absent)?;
    for tool in &absent {
        // Tools need no debug information.
        let vars = [("CARGO_PROFILE_DEV_DEBUG", "0")];
        let Cargo(args) = tool.source else { continue };
        shell::run(Path::new("/"), "cargo", args, &vars)?;
    }
    let names: Vec<&str> = absent.iter().filter(|tool| !tool.is_there()).map(|tool| tool.name).collect();
    if names.is_empty() {
        Ok(())
    } else {
        Err(format!("still missing after the installation: {}", names.join(", ")))
    }
}

fn install_toolchains(absent: &[&Tool]) -> Result<(), String> {
    let mut done: Vec<&[&str]> = Vec::new();
    for tool in absent {
        let Rustup(args) = tool.source else { continue };
        if done.contains(&args) {
            continue;
        }
        if !shell::on_path("rustup") {
            return Err(format!("{} needs rustup, which is missing: install Rust by rustup", tool.name));
        }
        shell::run(Path::new("/"), "rustup", args, &[])?;
        done.push(args);
    }
    Ok(())
}

/// Builds programs of Go modules into the folder of cargo's programs, which is on the path.
fn install_modules(absent: &[&Tool]) -> Result<(), String> {
    let home = || Some(Path::new(&std::env::var_os("HOME")?).join(".cargo"));
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home);
    for tool in absent {
        let Go(module) = tool.source else { continue };
        if !shell::on_path("go") {
            return Err(format!(
                "{} needs Go, which is missing: install Go 1.21 or newer (golang-go from Debian 13 on, or go.dev/dl)",
                tool.name
            ));
        }
        let bin = cargo.as_ref().ok_or("HOME is not set: no folder to install programs to")?.join("bin");
        let bin = bin.to_str().ok_or("the path of cargo's folder is not UTF-8")?;
        shell::run(Path::new("/"), "go", &["install", module], &[("GOBIN", bin)])?;
    }
    Ok(())
}

/// Installs modules of Node next to their package-lock.json. Their scripts are not run.
fn install_node_modules(absent: &[&Tool]) -> Result<(), String> {
    for tool in absent {
        let Npm(folder) = tool.source else { continue };
        if !shell::on_path("npm") {
            return Err(format!("{} needs npm, which is missing: install Node.js", tool.name));
        }
        let args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        shell::run(Path::new(folder), "npm", &args, &[])?;
    }
    Ok(())
}

fn install_packages(absent: &[&Tool]) -> Result<(), String> {
    let packages: Vec<&str> =
        absent.iter().filter(|tool| matches!(tool.source, Debian | Peer)).map(|tool| tool.name).collect();
    if packages.is_empty() {
        return Ok(());
    }
    if !shell::on_path("apt-get") {
        let list = packages.join(", ");
        return Err(format!(
            "this system has no apt-get; install the equivalents of these Debian packages: {list}"
        ));
    }
    apt_get(&["update", "-q"])?;
    apt_get(&[&["install", "-q", "-y", "--no-install-recommends"], packages.as_slice()].concat())?;
    if absent.iter().any(|tool| matches!(tool.source, Peer)) {
        println!(
            "setup: Debian may have started the peers as services; \
             `systemctl disable --now apache2 lighttpd h2o` ends that"
        );
    }
    Ok(())
}

/// Runs apt-get as root, after any concurrent run.
fn apt_get(args: &[&str]) -> Result<(), String> {
    const ENV: &[&str] =
        &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=300"];
    // The owner of /proc/self is the effective user.
    let root = std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0);
    let line: Vec<&str> = if root { [ENV, args].concat() } else { [&["sudo"], ENV, args].concat() };
    Ok(shell::run(Path::new("/"), line[0], &line[1..], &[])?)
}
