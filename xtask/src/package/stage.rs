//! The files of packages: the program, and its manual pages and completions, which the program writes.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::platform::Platform;
use crate::checks::output;
use crate::shell::{self, Failed};

/// Each shell with its completion, in the folders of its packages.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/tenfold"),
    ("zsh", "share/zsh/site-functions/_tenfold"),
    ("fish", "share/fish/vendor_completions.d/tenfold.fish"),
];

/// Files of the repository and their places in the archive.
const FILES: [(&str, &str); 11] = [
    ("README.md", "README.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("packaging/tenfold.toml", "etc/tenfold/tenfold.toml"),
    ("packaging/systemd/tenfold.service", "lib/systemd/system/tenfold.service"),
    ("packaging/systemd/tenfold.socket", "lib/systemd/system/tenfold.socket"),
    ("packaging/systemd/tenfold-root.service", "lib/systemd/system/tenfold-root.service"),
    ("packaging/systemd/tenfold-root.socket", "lib/systemd/system/tenfold-root.socket"),
    ("packaging/www/index.html", "share/tenfold/www/index.html"),
    ("packaging/grafana/tenfold.json", "share/tenfold/grafana/tenfold.json"),
];

/// Replaces the content of `folder` with the stripped program, its manual pages and completions.
pub(super) fn fill(root: &Path, platform: Platform, binary: &Path, folder: &Path) -> Result<(), Failed> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| format!("cannot remove {}: {error}", folder.display()))?;
    }
    let program = folder.join("bin/tenfold");
    let pages = folder.join("share/man/man1");
    make_folder_of(&program)?;
    let words = [binary, Path::new("-o"), &program].map(|word| word.display().to_string());
    shell::run(root, &platform.tool("strip"), &words.each_ref().map(String::as_str), &[])?;
    let (runner, to) = (platform.runner(&program), pages.display().to_string());
    let (run, args) = runner.split_first().expect("a runner has at least the program");
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    shell::run(root, run, &[&args[..], &["man", "--to", &to]].concat(), &[])?;
    for (name, place) in COMPLETIONS {
        let file = folder.join(place);
        make_folder_of(&file)?;
        let script = output(Command::new(run).args(&args).args(["completions", name]))?;
        write(&file, script.as_bytes())?;
    }
    Ok(())
}

/// Packs the staged files and files of the repository.
pub(super) fn archive(root: &Path, stage: &Path, archive: &Path) -> Result<(), Failed> {
    if archive.exists() {
        fs::remove_dir_all(archive)
            .map_err(|error| format!("cannot remove {}: {error}", archive.display()))?;
    }
    let (from, to) = (stage.display().to_string(), archive.display().to_string());
    shell::run(root, "cp", &["-r", &from, &to], &[])?;
    for (source, place) in FILES {
        let file = archive.join(place);
        make_folder_of(&file)?;
        fs::copy(root.join(source), &file)
            .map_err(|error| format!("cannot copy {source} to {}: {error}", file.display()))?;
    }
    pack(root, archive)
}

/// Packs a folder into a `.tar.gz` of its name. The order and the times of its files depend only on the commit.
pub(super) fn pack(root: &Path, folder: &Path) -> Result<(), Failed> {
    let seconds = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root))?;
    let time = format!("--mtime=@{}", seconds.trim());
    let name = file_name(folder);
    let tar = format!("{name}.tar.gz");
    let owner = ["--owner=0", "--group=0", "--numeric-owner", "--mode=u+rw,go=rX"];
    let gzip = "--use-compress-program=gzip --no-name";
    let args = [&["--sort=name", &time, gzip][..], &owner, &["-cf", &tar, &name]].concat();
    shell::run(folder.parent().unwrap_or(root), "tar", &args, &[])
}

fn make_folder_of(file: &Path) -> Result<(), Failed> {
    let folder = file.parent().unwrap_or(file);
    Ok(fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?)
}

pub(super) fn write(file: &Path, bytes: &[u8]) -> Result<(), Failed> {
    Ok(fs::write(file, bytes).map_err(|error| format!("cannot write {}: {error}", file.display()))?)
}

/// The last name of a path.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
