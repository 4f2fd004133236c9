//! The check of the systemd units: their validity and their exposure.

use std::fs;
use std::path::Path;

use crate::shell::{self, Failed};

/// Each unit with its greatest exposure, in tenths of `systemd-analyze security`.
const UNITS: [(&str, Option<&str>); 4] = [
    ("tenfold.service", Some("15")),
    ("tenfold.socket", None),
    ("tenfold-root.service", Some("25")),
    ("tenfold-root.socket", None),
];

/// Checks every unit.
pub(crate) fn check(root: &Path) -> Result<(), Failed> {
    let folder = root.join("target/units");
    let failed =
        |error: std::io::Error| Failed::from(format!("cannot copy units to {}: {error}", folder.display()));
    fs::create_dir_all(&folder).map_err(failed)?;
    for (name, _) in UNITS {
        let text = fs::read_to_string(root.join("packaging/systemd").join(name)).map_err(failed)?;
        // The program of the units is not installed here.
        fs::write(folder.join(name), text.replace("/usr/bin/tenfold", "/bin/true")).map_err(failed)?;
    }
    let names = UNITS.map(|(name, _)| format!("./{name}"));
    let verify = [&["--man=no", "verify"][..], &names.each_ref().map(String::as_str)].concat();
    shell::run(&folder, "systemd-analyze", &verify, &[])?;
    for (name, exposure) in UNITS {
        let Some(exposure) = exposure else { continue };
        let (threshold, name) = (format!("--threshold={exposure}"), format!("./{name}"));
        let args = ["security", "--offline=true", "--no-pager", &threshold, &name];
        shell::run(&folder, "systemd-analyze", &args, &[])?;
    }
    Ok(())
}
