//! Packages: a `.deb`, an archive with a static program, a bill of materials, checksums, and a container image.

mod stage;
pub(crate) mod units;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::stage::{file_name, write};
use crate::checks::output;
use crate::shell::{self, Failed};
use crate::tools;

/// The tools that make packages.
const TOOLS: &[&str] = &["cargo-deb", "cargo-sbom", "binutils", "libevent-dev", "libasio-dev"];
/// The tools of [`PackageOptions::test`].
const TEST_TOOLS: &[&str] = &["mmdebstrap", "systemd-container"];

/// The options of `cargo xtask package`.
#[derive(Default)]
pub(crate) struct PackageOptions {
    /// A program to pack. Without it, two are built, one of them static.
    pub(crate) binary: Option<PathBuf>,
    /// Whether to install, upgrade and purge the package in a clean root.
    pub(crate) test: bool,
}

/// Makes all packages in `target/package`.
pub(crate) fn package(root: &Path, options: &PackageOptions) -> Result<(), Failed> {
    tools::require(&[TOOLS, if options.test { TEST_TOOLS } else { &[] }].concat())?;
    let folder = root.join("target/package");
    fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let version = version(root)?;
    let stage = stage::fill(root, &program(root, options, Linking::Dynamic)?, &folder.join("stage"))?;
    let package = folder.join(format!("tenfold_{version}_{}.deb", architecture(root)?));
    let deb = package.display().to_string();
    shell::run(
        root,
        "cargo",
        &["deb", "--quiet", "-p", "tenfold", "--no-build", "--no-strip", "-o", &deb],
        &[],
    )?;
    let name = format!("tenfold-{version}-{}-linux", std::env::consts::ARCH);
    stage::fill(root, &program(root, options, Linking::Static)?, &stage)?;
    let archive = folder.join(&name);
    stage::archive(root, &stage, &archive)?;
    let materials = format!("{name}.cdx.json");
    bill_of_materials(root, &folder.join(&materials))?;
    let tar = format!("{name}.tar.gz");
    let names = [file_name(&package), tar, materials];
    let sums = output(Command::new("sha256sum").args(&names).current_dir(&folder))?;
    write(&folder.join("SHA256SUMS"), sums.as_bytes())?;
    build_image(root, &archive, &version)?;
    for name in names.iter().map(String::as_str).chain(["SHA256SUMS"]) {
        println!("{}", folder.join(name).display());
    }
    match options.test {
        true => shell::run(root, "sh", &["packaging/test.sh", &deb], &[]),
        false => Ok(()),
    }
}

/// The way in which a program gets its libraries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Linking {
    Dynamic,
    /// Everything is in the program. The C library looks up names in files and by DNS only.
    Static,
}

/// The program to pack, built with every engine and database.
fn program(root: &Path, options: &PackageOptions, linking: Linking) -> Result<PathBuf, Failed> {
    if let Some(binary) = &options.binary {
        return Ok(binary.clone());
    }
    let platform = shell::platform();
    let build = ["build", "-p", "tenfold", "--features", "full", "--profile", "dist"];
    let required = ("TENFOLD_LIBRARIES", "require");
    match linking {
        Linking::Dynamic => {
            shell::run(root, "cargo", &build, &[required])?;
            Ok(root.join("target/dist/tenfold"))
        }
        Linking::Static => {
            // With an explicit target, the flag does not apply to macros and build scripts, which the compiler loads.
            let args = [&build[..], &["--target", &platform]].concat();
            shell::run(root, "cargo", &args, &[required, ("RUSTFLAGS", "-C target-feature=+crt-static")])?;
            Ok(root.join("target").join(&platform).join("dist/tenfold"))
        }
    }
}

/// Writes a bill of materials (CycloneDX) from `Cargo.lock`.
fn bill_of_materials(root: &Path, file: &Path) -> Result<(), Failed> {
    let mut command = Command::new("cargo");
    command.args(["sbom", "--cargo-package", "tenfold", "--output-format", "cyclone_dx_json_1_6"]);
    let text = output(command.current_dir(root))?;
    write(file, text.as_bytes())
}

/// The version of the workspace.
fn version(root: &Path) -> Result<String, Failed> {
    let manifest = root.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)
        .map_err(|error| format!("cannot read {}: {error}", manifest.display()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    Ok(line.map(str::to_owned).ok_or_else(|| format!("{} has no version", manifest.display()))?)
}

/// Debian's name of this architecture.
fn architecture(root: &Path) -> Result<String, Failed> {
    let said = output(Command::new("dpkg").arg("--print-architecture").current_dir(root))?;
    Ok(said.trim().to_owned())
}

/// Builders of images. The first that runs is used.
const BUILDERS: [&str; 3] = ["podman", "docker", "buildah"];

/// Builds the container image from the folder of the archive. Without a builder, it is reported as not built.
fn build_image(root: &Path, archive: &Path, version: &str) -> Result<(), Failed> {
    let Some(builder) = BUILDERS.into_iter().find(|builder| shell::succeeds(builder, &["info"])) else {
        println!("container: NOT BUILT: none of {} runs here", BUILDERS.join(", "));
        return Ok(());
    };
    let (folder, tag) = (archive.display().to_string(), format!("tenfold:{version}"));
    let file = "packaging/container/Containerfile";
    shell::run(root, builder, &["build", "-f", file, "-t", &tag, &folder], &[])
}
