//! The installation of tools on Debian and Ubuntu.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell;
use crate::tools::Installation::{ByHand, Cargo, Debian, Go, Npm, Peer, Rustup};
use crate::tools::{TOOLS, Tool};

/// The toolchain that the module of Pebble names, for a Go that cannot fetch a newer one by itself.
const TOOLCHAIN: &str = "golang.org/toolchain@v0.0.1-go1.24.2.linux-";

/// Installs missing tools; prints one line if none is missing.
pub(crate) fn setup(with_peers: bool) -> Result<(), String> {
    let is_wanted = |tool: &&Tool| match tool.source {
        ByHand(_) => false,
        Peer => with_peers,
        Debian | Rustup(_) | Cargo(_) | Go(_) | Npm(_) => true,
    };
    let wanted: Vec<&Tool> = TOOLS.iter().filter(is_wanted).collect();
    let absent: Vec<&Tool> = wanted.iter().copied().filter(|tool| !tool.is_there()).collect();
    if absent.is_empty() {
        println!("setup: all {} tools are installed", wanted.len());
        return Ok(());
    }
    install(&absent)
}

/// Whether packages can be installed without a question.
pub(crate) fn may_install() -> bool {
    is_root() || shell::succeeds("sudo", &["-n", "true"])
}

/// Prints these tools and installs them. A failure does not prevent the other installations.
pub(crate) fn install(absent: &[&Tool]) -> Result<(), String> {
    for tool in absent {
        println!("{}: {}", tool.name, tool.why);
    }
    let kinds =
        [install_toolchains, install_packages, install_modules, install_node_modules, install_with_cargo];
    let mut reasons: Vec<String> = kinds.into_iter().filter_map(|kind| kind(absent).err()).collect();
    let is_missing = |tool: &&&Tool| !matches!(tool.source, Peer) && !tool.is_there();
    let names: Vec<&str> = absent.iter().filter(is_missing).map(|tool| tool.name).collect();
    if names.is_empty() {
        Ok(())
    } else {
        reasons.push(format!("still missing after the installation: {}", names.join(", ")));
        Err(reasons.join("\n"))
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

fn install_with_cargo(absent: &[&Tool]) -> Result<(), String> {
    for tool in absent {
        let Cargo(args) = tool.source else { continue };
        // Tools need no debug information.
        shell::run(Path::new("/"), "cargo", args, &[("CARGO_PROFILE_DEV_DEBUG", "0")])?;
    }
    Ok(())
}

/// Installs packages, and the programs that install modules of Go and Node. A package that the distribution lacks does
/// not prevent the installation of the others.
fn install_packages(absent: &[&Tool]) -> Result<(), String> {
    let mut packages: Vec<&str> =
        absent.iter().filter(|tool| matches!(tool.source, Debian | Peer)).map(|tool| tool.name).collect();
    let go = absent.iter().any(|tool| matches!(tool.source, Go(_))) && !shell::on_path("go");
    let npm = absent.iter().any(|tool| matches!(tool.source, Npm(_))) && !shell::on_path("npm");
    packages.extend([(go, "golang-go"), (npm, "npm")].iter().filter(|(needed, _)| *needed).map(|row| row.1));
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
    let (known, unknown): (Vec<&str>, Vec<&str>) =
        packages.into_iter().partition(|name| shell::succeeds("apt-cache", &["show", name]));
    if !known.is_empty() {
        apt_get(&[&["install", "-q", "-y", "--no-install-recommends"], known.as_slice()].concat())?;
    }
    if absent.iter().any(|tool| matches!(tool.source, Peer)) {
        println!(
            "setup: the distribution may have started the peers as services; \
             `systemctl disable --now apache2 lighttpd h2o` ends that"
        );
    }
    if unknown.is_empty() {
        Ok(())
    } else {
        let why = format!("this distribution has no package {}", unknown.join(", "));
        println!("setup: {why}");
        Err(why)
    }
}

/// Runs apt-get as root, after any concurrent run.
fn apt_get(args: &[&str]) -> Result<(), String> {
    const ENV: &[&str] =
        &["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-o", "DPkg::Lock::Timeout=300"];
    let line: Vec<&str> = if is_root() { [ENV, args].concat() } else { [&["sudo"], ENV, args].concat() };
    Ok(shell::run(Path::new("/"), line[0], &line[1..], &[])?)
}

fn is_root() -> bool {
    // The owner of /proc/self is the effective user.
    std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

/// Builds programs of Go modules into the folder of cargo's programs, which is on the path.
fn install_modules(absent: &[&Tool]) -> Result<(), String> {
    let modules =
        || absent.iter().filter_map(|tool| if let Go(module) = tool.source { Some(module) } else { None });
    if modules().next().is_none() {
        return Ok(());
    }
    let home = || Some(Path::new(&std::env::var_os("HOME")?).join(".cargo"));
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home);
    let bin = cargo.as_ref().ok_or("HOME is not set: no folder to install programs to")?.join("bin");
    let bin = bin.to_str().ok_or("the path of cargo's folder is not UTF-8")?;
    let toolchain = toolchain()?;
    let (go, vars) = match &toolchain {
        // Distributions set this to `local`.
        None => ("go".to_owned(), vec![("GOTOOLCHAIN", "auto"), ("GOBIN", bin)]),
        Some(folder) => {
            let vars = vec![("GOTOOLCHAIN", "local"), ("GOROOT", folder.as_str()), ("GOBIN", bin)];
            (format!("{folder}/bin/go"), vars)
        }
    };
    for module in modules() {
        shell::run(Path::new("/"), &go, &["install", module], &vars)?;
    }
    Ok(())
}

/// The folder of a newer Go, if the installed one is old, such as that of Debian 12. Since 1.21, Go itself fetches the
/// toolchain that a module names.
fn toolchain() -> Result<Option<String>, String> {
    let facts = go_env(&["GOVERSION", "GOARCH", "GOMODCACHE"])?;
    let [version, platform, cache] = facts.as_slice() else {
        return Err(format!("`go env` prints {facts:?}, not three values"));
    };
    if minor(version).is_some_and(|minor| minor >= 21) {
        return Ok(None);
    }
    let module = format!("{TOOLCHAIN}{platform}");
    shell::run(Path::new("/"), "go", &["mod", "download", &module], &[])?;
    let folder = format!("{cache}/{module}");
    // A module has no modes of files, and cannot contain another module.
    let script = "chmod -R u+x bin pkg/tool && chmod u+w src && cp -f src/_go.mod src/go.mod";
    shell::run(Path::new(&folder), "sh", &["-c", script], &[])?;
    Ok(Some(folder))
}

fn go_env(names: &[&str]) -> Result<Vec<String>, String> {
    let output = Command::new("go").arg("env").args(names).current_dir("/").output();
    let output = output.map_err(|error| format!("cannot run go: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// The second number of a version such as `go1.19.8`.
fn minor(version: &str) -> Option<u32> {
    let digits = version.strip_prefix("go1.")?;
    digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_go_is_read() {
        assert_eq!(minor("go1.19.8"), Some(19));
        assert_eq!(minor("go1.22.2-X:something"), Some(22));
        assert_eq!(minor("go1.26rc1"), Some(26));
        assert_eq!(minor("devel go1.27-abc"), None);
    }
}
