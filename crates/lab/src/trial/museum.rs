//! Servers of the museum: compiled once for each variant, in the folder that this process made for the site. That of the
//! run may be an archive of somebody else, with programs in it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::experiment::museum::{DELAY, EXHIBITS, Exhibit, HEADER, exhibit};
use crate::experiment::subject::Cell;
use crate::machine::environment::{COMPILER, installed};
use crate::record;
use crate::trial::bench::Workbench;

/// The command of an exhibit that serves the file of its cell.
pub(crate) fn words(bench: &Workbench, cell: &Cell, address: SocketAddr) -> Result<Vec<String>, String> {
    let setting = |name: &str| cell.settings.get(name).map(String::as_str);
    let name = setting("exhibit").unwrap_or_default();
    let found = exhibit(name).ok_or_else(|| {
        let names: Vec<&str> = EXHIBITS.iter().map(|exhibit| exhibit.name).collect();
        format!("there is no exhibit `{name}`; set `exhibit` to one of: {}", names.join(", "))
    })?;
    let corrected = match setting("corrected") {
        Some("on") => true,
        None | Some("off") => false,
        Some(other) => return Err(format!("corrected is `{other}`; use on or off")),
    };
    let program = compile(found, corrected, &bench.kept, bench.site.scratch())?;
    let file = bench.site.file(cell.load.file_bytes())?;
    let path = bench.site.folder().join(file.path.trim_start_matches('/'));
    Ok(vec![program.display().to_string(), address.to_string(), path.display().to_string()])
}

/// The command of the proxy that adds a round trip of this many milliseconds.
pub(crate) fn delay(
    bench: &Workbench,
    address: SocketAddr,
    server: SocketAddr,
    round_trip: u32,
) -> Result<Vec<String>, String> {
    let program = compile(&DELAY, false, &bench.kept, bench.site.scratch())?.display().to_string();
    Ok(vec![program, address.to_string(), server.to_string(), round_trip.to_string()])
}

/// Compiles a variant of an exhibit from its source in `kept`, unless this process did before.
fn compile(exhibit: &Exhibit, corrected: bool, kept: &Path, folder: &Path) -> Result<PathBuf, String> {
    let variant = if corrected { "corrected" } else { "as-published" };
    let program = folder.join(format!("{}-{variant}", exhibit.name));
    if program.exists() {
        return Ok(program);
    }
    let compiler = installed(COMPILER)
        .ok_or_else(|| format!("cannot compile {}: no C compiler ({COMPILER}) is installed", exhibit.name))?;
    let source = format!("{}.c", exhibit.name);
    for (name, text) in [(source.as_str(), exhibit.source), ("museum.h", HEADER)] {
        record::write(&kept.join(name), text)?;
    }
    let source = kept.join(source);
    let mut command = Command::new(compiler);
    command.args(["-O2", "-Wall", "-Wextra", "-pthread"]);
    if corrected {
        command.arg("-DCORRECTED");
    }
    // Moved to its name when it is whole, so that an interrupted run does not leave half a program.
    let begun = folder.join(format!("{}-{variant}.part", exhibit.name));
    let output = command.arg("-o").arg(&begun).arg(&source).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("cannot start {COMPILER}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().find(|line| line.contains("error")).unwrap_or("it gave no reason");
        return Err(format!("cannot compile {}: {line}", source.display()));
    }
    fs::rename(&begun, &program).map_err(|error| format!("cannot name {}: {error}", program.display()))?;
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exhibit_compiles_both_ways() {
        if installed(COMPILER).is_none() {
            return;
        }
        let folder = std::env::temp_dir().join(format!("tenfold-lab-museum-{}", std::process::id()));
        let kept = folder.join("kept");
        fs::create_dir_all(&kept).expect("a folder");
        compile(&DELAY, false, &kept, &folder).unwrap_or_else(|why| panic!("{why}"));
        for exhibit in EXHIBITS {
            let programs = [false, true].map(|corrected| {
                compile(exhibit, corrected, &kept, &folder).unwrap_or_else(|why| panic!("{why}"))
            });
            let [before, after] = programs.map(|path| fs::read(path).expect("it is there"));
            assert_ne!(before, after, "{}: the corrected line changes nothing", exhibit.name);
        }
        let broken = Exhibit { name: "broken", source: "int main(void) { return nothing; }\n" };
        let said = compile(&broken, false, &kept, &folder).expect_err("it is no program");
        assert!(said.contains("broken.c") && said.contains("nothing"), "{said}");
        fs::remove_dir_all(&folder).expect("it is removed");
    }
}
