//! `tenfold init`: writes a configuration for a folder, with comments.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, ArgAction, ArgMatches, ValueHint};

use super::next::listed;
use super::output::{end, print};
use crate::config::parse::file::first_problem;
use crate::config::parse::problem::{Problem, refuse};
use crate::diagnostics::warning;

/// The name of the file, in the current folder.
const FILE: &str = "tenfold.toml";
/// Usual names of the folder with the pages of a site.
const FOLDERS: [&str; 8] = ["public", "dist", "build", "_site", "site", "out", "www", "htdocs"];

const ABOUT: &str = "\
The file is tenfold.toml in the current folder. It is never overwritten, and it must be outside DIR,
because a file in DIR is served.";

pub(super) fn command() -> clap::Command {
    clap::Command::new("init")
        .about("Write a commented configuration, tenfold.toml, for a folder")
        .after_help(ABOUT)
        .arg(
            Arg::new("DIR")
                .help("The folder with the pages [default: the first of public, dist, build, _site, site, out, www and htdocs that has an index.html]")
                .value_parser(NonEmptyStringValueParser::new())
                .value_hint(ValueHint::DirPath),
        )
        .arg(
            Arg::new("tls")
                .long("tls")
                .value_name("NAME")
                .action(ArgAction::Append)
                .help("Serve HTTPS for this name, with a certificate that is obtained and renewed; repeatable; or internal, for this machine"),
        )
        .arg(
            Arg::new("spa")
                .long("spa")
                .action(ArgAction::SetTrue)
                .help("Serve index.html for paths without a file, as single-page applications need"),
        )
}

pub(super) fn run(typed: &ArgMatches) -> ExitCode {
    let names: Vec<&str> =
        typed.get_many::<String>("tls").into_iter().flatten().map(String::as_str).collect();
    let site = match folder(typed.get_one::<String>("DIR")) {
        Ok(folder) => NewSite { folder, names, spa: typed.get_flag("spa") },
        Err(why) => return end(Err(why)),
    };
    let text = site.text();
    if let Some(why) = first_problem(&text) {
        return refuse(&[Problem::new(format!("--tls: {why}"))]);
    }
    end(write(&text).and_then(|()| {
        if site.spa && !Path::new(&site.folder).join("index.html").is_file() {
            warning!("{} has no index.html, which --spa serves for paths without a file", site.folder);
        }
        let steps = [
            (format!("tenfold check {FILE}"), "check the file, the folder and the addresses"),
            (format!("tenfold serve -c {FILE}"), "serve the site"),
            ("tenfold reload".to_owned(), "apply changes of the file while it runs"),
        ];
        print(
            format!("{FILE} was written for {} ({})\n\n{}", site.folder, site.address(), listed(&steps))
                .as_bytes(),
        )
    }))
}

/// Returns the folder with the pages: the typed one, or the first usual one.
fn folder(typed: Option<&String>) -> Result<String, String> {
    let has_index = |name: &&str| Path::new(name).join("index.html").is_file();
    let name = match typed {
        Some(name) => name.clone(),
        None => FOLDERS.into_iter().find(has_index).map(str::to_owned).ok_or_else(|| {
            "no folder here has an index.html; name the folder with the pages: tenfold init DIR".to_owned()
        })?,
    };
    let unread = |error| format!("cannot read the folder {name}: {error}");
    let served = fs::canonicalize(&name).map_err(unread)?;
    fs::read_dir(&served).map_err(unread)?;
    let here = std::env::current_dir().and_then(fs::canonicalize);
    match here.is_ok_and(|here| here.starts_with(&served)) {
        true => Err(format!(
            "{FILE} would be a page of the site: it belongs to the current folder, which is in {name}; run the command \
             outside {name}"
        )),
        false => Ok(name),
    }
}

fn write(text: &str) -> Result<(), String> {
    let file = OpenOptions::new().write(true).create_new(true).open(FILE);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            format!("{FILE} exists and is not overwritten; move it away, or edit it")
        }
        _ => format!("cannot write {FILE}: {error}"),
    })
}

/// A site for which a file is written.
struct NewSite<'a> {
    folder: String,
    /// The values of `tls`.
    names: Vec<&'a str>,
    spa: bool,
}

impl NewSite<'_> {
    fn is_internal(&self) -> bool {
        self.names == ["internal"]
    }

    /// The address of the site, for a person.
    fn address(&self) -> String {
        match self.names.first() {
            None => "http://127.0.0.1:8080/".to_owned(),
            Some(_) if self.is_internal() => "https://localhost:8443/".to_owned(),
            Some(name) => format!("https://{name}/"),
        }
    }

    /// The file.
    fn text(&self) -> String {
        let mut text = format!(
            "# The configuration of a site. Paths are relative to this file.\n\
             #\n\
             #     tenfold check {FILE}        checks it\n\
             #     tenfold serve -c {FILE}     serves the site\n\
             #     tenfold reload                    applies changes while the server runs\n\
             #\n\
             # `tenfold help WORD` finds settings, and `tenfold book` is the manual.\n\n\
             # The folder with the pages.\n\
             root = {}\n\n",
            quoted(&self.folder)
        );
        text += &self.listening();
        text += "# A line for each response: a file such as \"access.log\", \"-\" for standard output, or \"off\".\n\
                 access-log = \"-\"\n\n\
                 # Compress texts for clients that accept it.\n\
                 compress = \"on\"\n\n\
                 # A page that lists the files of a folder without an index: \"html\", \"json\" or \"off\".\n\
                 # listing = \"html\"\n\n\
                 # Metrics, health checks and a status page, for this machine only.\n\
                 # admin = \"127.0.0.1:9145\"\n\n\
                 # Rules of the site. Settings of the server are above.\n\
                 [site]\n";
        text += match self.spa {
            true => {
                "# The page for paths without a file, whose last part has no dot. The application reads the path.\n\
                 fallback = \"/index.html\"\n\n"
            }
            false => {
                "# The page for paths without a file, for single-page applications.\n# fallback = \"/index.html\"\n\n"
            }
        };
        let mark = if Path::new(&self.folder).join("404.html").is_file() { "" } else { "# " };
        let _ = write!(
            text,
            "# Pages for errors.\n{mark}[site.error-pages]\n{mark}404 = \"/404.html\"\n\n\
             # Files whose names change with their content: browsers keep them for a year.\n\
             # [[site.path]]\n# match = \"/assets/**\"\n# cache = \"immutable\"\n\n\
             # [[site.redirect]]\n# from = \"/old/**\"\n# to = \"/new/**\"\n"
        );
        text
    }

    /// The addresses and TLS.
    fn listening(&self) -> String {
        let names = match &self.names[..] {
            [only] => quoted(only),
            names => format!("[{}]", names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")),
        };
        if self.names.is_empty() {
            return "# The address: a port of this machine only. \":8080\" is the port of all addresses.\n\
                    listen = \"127.0.0.1:8080\"\n\n\
                    # HTTPS: the name of the site, in place of listen. The certificate is obtained and renewed.\n\
                    # tls = \"www.example.org\"\n\n"
                .to_owned();
        }
        if self.is_internal() {
            return format!(
                "# HTTPS at https://localhost:8443/, with a certificate of this machine's own authority.\n\
                 tls = {names}\n\n\
                 # Another address.\n\
                 # listen = \":8443\"\n\n"
            );
        }
        format!(
            "# HTTPS for these names, on port 443 of all addresses; port 80 redirects to it. The certificate is obtained\n\
             # from Let's Encrypt and renewed: the names must lead to this machine. Ports below 1024 need root, or\n\
             # AmbientCapabilities=CAP_NET_BIND_SERVICE in a unit of systemd.\n\
             tls = {names}\n\n\
             # Tell browsers to use only HTTPS for this time, when HTTPS works.\n\
             # hsts = \"24h\"\n\n"
        )
    }
}

/// Returns a TOML string. Strings of JSON are strings of TOML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(folder: &str, names: &[&str], spa: bool) -> String {
        NewSite { folder: folder.to_owned(), names: names.to_vec(), spa }.text()
    }

    /// Without the mark of a comment, each example would be in force, so it must be legal.
    #[test]
    fn every_written_file_and_its_examples_are_legal() {
        for names in [&[][..], &["internal"], &["example.org"], &["a.example", "b.example"]] {
            for spa in [false, true] {
                let text = text("a \"b\\\nc", names, spa);
                assert_eq!(first_problem(&text), None, "{text}");
                assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
                let is_example =
                    |line: &str| line.contains(" = \"") && !line.contains(": ") || line.starts_with("# [");
                let examples: String = text
                    .lines()
                    .map(|line| {
                        line.strip_prefix("# ").filter(|_| is_example(line)).unwrap_or(line).to_owned() + "\n"
                    })
                    .filter(|line| names.is_empty() || !line.starts_with("tls = \"www"))
                    .collect();
                assert_eq!(first_problem(&examples), None, "{examples}");
            }
        }
        assert!(first_problem(&text("site", &["internal", "a.example"], false)).is_some());
    }
}
