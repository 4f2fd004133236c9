//! `tenfold` without a command: prints the next step for the working folder.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use super::output::{end, print};

/// Configuration files that the next step looks for.
const FILES: [&str; 2] = ["tenfold.toml", "/etc/tenfold/tenfold.toml"];

pub(crate) fn show() -> ExitCode {
    let folder = std::env::current_dir().unwrap_or_else(|_| ".".into());
    end(print(text(&folder).as_bytes()))
}

fn text(folder: &Path) -> String {
    let mut steps: Vec<(String, &str)> = Vec::new();
    match FILES.iter().find(|file| folder.join(file).is_file()) {
        Some(file) => {
            steps.push((format!("tenfold serve -c {file}"), "serve the sites of this configuration"))
        }
        None => steps.push(("tenfold init DIR".into(), "write a commented configuration for a folder")),
    }
    steps.push(("tenfold serve".into(), "serve this folder at http://127.0.0.1:8080/, to this machine only"));
    steps.push(("tenfold serve DIR -p 8000".into(), "serve another folder on another port"));
    steps.push(("tenfold serve DIR -l :8080".into(), "share a folder with other machines of the network"));
    steps.push(("tenfold serve -h".into(), "the most used settings"));
    steps.push(("tenfold book".into(), "the manual, in a browser"));
    steps.push(("tenfold --help".into(), "all commands"));
    let mut text =
        format!("tenfold {}, an HTTP server for static sites and media\n\n", env!("CARGO_PKG_VERSION"));
    text += &listed(&steps);
    let _ = writeln!(text, "\nThis folder is {}.", folder.display());
    text
}

/// Formats commands, each with its purpose.
pub(crate) fn listed(steps: &[(String, &str)]) -> String {
    let width = steps.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
    steps.iter().map(|(command, about)| format!("  {command:<width$}   {about}\n")).collect()
}
