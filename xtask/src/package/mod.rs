//! Packages for each processor: a `.deb`, an archive with a static program, a bill of materials and a container image.
//! With them, the book as a site, and checksums.

mod platform;
mod stage;
pub(crate) mod units;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) use self::platform::Platform;
use self::stage::write;
use crate::checks::output;
use crate::shell::{self, Failed};
use crate::tools;

/// The tools that make packages.
const TOOLS: &[&str] = &["cargo-deb", "cargo-sbom", "binutils", "libevent-dev", "libasio-dev", "wget"];
/// The tools of [`PackageOptions::test`].
const TEST_TOOLS: &[&str] = &["mmdebstrap", "systemd-container"];

/// The options of `cargo xtask package`.
#[derive(Default)]
pub(crate) struct PackageOptions {
    /// A program of this machine to pack. Without it, two are built for each processor, one of them static.
    pub(crate) binary: Option<PathBuf>,
    /// The only processor; `None`: every processor, or that of `binary`.
    pub(crate) platform: Option<Platform>,
    /// Whether to install, upgrade and purge the package of this machine in a clean root.
    pub(crate) test: bool,
}

impl PackageOptions {
    /// The processors to make packages for.
    fn platforms(&self) -> Result<Vec<Platform>, String> {
        let possible = match self.binary {
            Some(_) => Platform::native().into_iter().collect(),
            None => Platform::possible(),
        };
        match self.platform {
            Some(platform) if !possible.contains(&platform) => Err(format!(
                "cannot make packages for {platform} here: only x86_64 builds for other processors"
            )),
            Some(platform) => Ok(vec![platform]),
            None => Ok(possible),
        }
    }
}

/// Makes all packages in `target/package`.
pub(crate) fn package(root: &Path, options: &PackageOptions) -> Result<(), Failed> {
    let platforms = options.platforms()?;
    let cross = platforms.iter().flat_map(|platform| platform.tools());
    let test = if options.test { TEST_TOOLS } else { &[] };
    tools::require(&TOOLS.iter().chain(cross).chain(test).copied().collect::<Vec<_>>())?;
    let folder = root.join("target/package");
    fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    let version = version(root)?;
    let mut names = Vec::new();
    for &platform in &platforms {
        names.extend(package_for(root, platform, options, &folder, &version)?);
    }
    names.push(pack_book(root, &folder, &version)?);
    let sums = output(Command::new("sha256sum").args(&names).current_dir(&folder))?;
    write(&folder.join("SHA256SUMS"), sums.as_bytes())?;
    for name in names.iter().map(String::as_str).chain(["SHA256SUMS"]) {
        println!("{}", folder.join(name).display());
    }
    let native = platforms.into_iter().find(|platform| Platform::native() == Some(*platform));
    match native {
        Some(native) if options.test => {
            let deb = folder.join(package_name(native, &version)).display().to_string();
            shell::run(root, "sh", &["packaging/test.sh", &deb], &[])
        }
        _ => Ok(()),
    }
}

/// Makes the packages of a processor, and tries the program. Returns the names of the files.
fn package_for(
    root: &Path,
    platform: Platform,
    options: &PackageOptions,
    folder: &Path,
    version: &str,
) -> Result<Vec<String>, Failed> {
    let package = package_name(platform, version);
    let stage = folder.join("stage");
    stage::fill(root, platform, &program(root, platform, options, Linking::Dynamic)?, &stage)?;
    let (deb, target) = (folder.join(&package).display().to_string(), platform.target());
    let args =
        ["deb", "--quiet", "-p", "tenfold", "--no-build", "--no-strip", "--target", &target, "-o", &deb];
    shell::run(root, "cargo", &args, &[])?;
    let name = format!("tenfold-{version}-{platform}-linux");
    stage::fill(root, platform, &program(root, platform, options, Linking::Static)?, &stage)?;
    try_program(root, platform, &stage.join("bin/tenfold"))?;
    let archive = folder.join(&name);
    stage::archive(root, &stage, &archive)?;
    let materials = format!("{name}.cdx.json");
    bill_of_materials(root, &folder.join(&materials))?;
    build_image(root, platform, &archive, version)?;
    Ok(vec![package, format!("{name}.tar.gz"), materials])
}

fn package_name(platform: Platform, version: &str) -> String {
    format!("tenfold_{version}_{}.deb", platform.debian())
}

/// Serves a file by each engine of a static program: here, or by a kernel of its processor in an emulator.
fn try_program(root: &Path, platform: Platform, program: &Path) -> Result<(), Failed> {
    let script = if platform.is_native() { "packaging/try.sh" } else { "packaging/emulate.sh" };
    shell::run(root, "sh", &[script, &program.display().to_string()], &[])
}

/// Packs the book as a site of files. Returns the archive's name.
fn pack_book(root: &Path, folder: &Path, version: &str) -> Result<String, Failed> {
    let name = format!("tenfold-{version}-book");
    let pages = folder.join(&name);
    if pages.exists() {
        fs::remove_dir_all(&pages).map_err(|error| format!("cannot remove {}: {error}", pages.display()))?;
    }
    write_book(root, &pages)?;
    stage::pack(root, &pages)?;
    Ok(format!("{name}.tar.gz"))
}

/// Writes the pages of the book into a folder.
pub(crate) fn write_book(root: &Path, folder: &Path) -> Result<(), String> {
    let files = tenfold_book::files(root)?;
    for (path, text) in &files {
        let file = folder.join(path);
        let written = std::fs::create_dir_all(file.parent().unwrap_or(folder));
        let written = written.and_then(|()| std::fs::write(&file, text));
        written.map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    println!("{} files written to {}", files.len(), folder.display());
    Ok(())
}

/// The way in which a program gets its libraries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Linking {
    Dynamic,
    /// Everything is in the program. The C library looks up names in files and by DNS only.
    Static,
}

/// The program to pack, built with every engine and database.
fn program(
    root: &Path,
    platform: Platform,
    options: &PackageOptions,
    linking: Linking,
) -> Result<PathBuf, Failed> {
    if let Some(binary) = &options.binary {
        return Ok(binary.clone());
    }
    // With an explicit target, the flag does not apply to macros and build scripts, which the compiler loads. The two
    // ways of linking have their own folders, so that neither build discards the other.
    let (target, flags, folder) = match linking {
        Linking::Dynamic => (platform.target(), "", "target/dist-dynamic"),
        Linking::Static => (platform.target(), "-C target-feature=+crt-static", "target/dist-static"),
    };
    let args = ["build", "-p", "tenfold", "--features", "full", "--profile", "dist", "--target", &target];
    let args = [&args[..], &["--target-dir", folder]].concat();
    let variables = platform.variables(flags, &root.join("target/package"))?;
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    shell::run(root, "cargo", &args, &variables)?;
    Ok(root.join(folder).join(&target).join("dist/tenfold"))
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

/// Builders of images. The first that runs is used.
const BUILDERS: [&str; 3] = ["podman", "docker", "buildah"];

/// Builds the container image from the folder of the archive. Without a builder, it is reported as not built.
fn build_image(root: &Path, platform: Platform, archive: &Path, version: &str) -> Result<(), Failed> {
    let Some(builder) = BUILDERS.into_iter().find(|builder| shell::succeeds(builder, &["info"])) else {
        println!("container: NOT BUILT: none of {} runs here", BUILDERS.join(", "));
        return Ok(());
    };
    let (folder, of) = (archive.display().to_string(), format!("linux/{}", platform.debian()));
    let tag = format!("tenfold:{version}-{}", platform.debian());
    let file = "packaging/container/Containerfile";
    // An image of the other processor may have the same layers in the cache, with the wrong name of the processor.
    let args = ["build", "--no-cache", "--platform", &of, "-f", file, "-t", &tag, &folder];
    shell::run(root, builder, &args, &[])
}
