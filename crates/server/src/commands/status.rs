//! `tenfold status`: asks a running server for its report.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use super::output::{end, print};
use crate::status::place;
use crate::status::report::StatusReport;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Prints the status of the server at `control`, or of the only running one.
pub(crate) fn show(control: Option<PathBuf>, json: bool) -> ExitCode {
    let asked = control.map_or_else(place::find, Ok).and_then(|path| ask(&path));
    let printed = asked.and_then(|(text, report)| {
        let shown = if json { text } else { report.to_string() };
        print(shown.as_bytes())
    });
    end(printed)
}

fn ask(path: &Path) -> Result<(String, StatusReport), String> {
    let text = || -> io::Result<String> {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    };
    let text = text().map_err(|error| format!("no server answers at {}: {error}", path.display()))?;
    let report = serde_json::from_str(&text).map_err(|error| {
        format!("the process at {} does not answer as a server of this version: {error}", path.display())
    })?;
    Ok((text, report))
}
