//! Translates the command line of miniserve.

use std::path::{Path, PathBuf};

use crate::draft::{Draft, Scope};
use crate::input::{PROGRAM, is_command};
use crate::outcome::{Outcome, default, refused};
use crate::toml::quote;
use crate::tree::apache_words;

pub(crate) fn translate(text: &str, folder: &str, draft: &mut Draft<'_>) -> Result<(), String> {
    let mut command: Option<(usize, String)> = None;
    let mut continues = false;
    for (at, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim();
        if continues {
            if let Some((_, known)) = &mut command {
                known.push(' ');
                known.push_str(trimmed.trim_end_matches('\\'));
            }
            continues = trimmed.ends_with('\\');
        } else if command.is_none()
            && (is_command(trimmed) || text.lines().count() == 1 && runs_program(trimmed))
        {
            command = Some((at, trimmed.trim_end_matches('\\').to_owned()));
            continues = trimmed.ends_with('\\');
        } else if is_option_of_unit(trimmed) {
            let name = trimmed.split('=').next().unwrap_or_default();
            draft.record(at, name, refused("use the unit of Tenfold: see Operating in tenfold book"));
        }
    }
    let (line, command) = command.ok_or("no line runs miniserve")?;
    let mut words = apache_words(&command);
    if let Some(at) = words.iter().position(|word| is_program(word)) {
        words.drain(..=at);
    }
    let mut miniserve = Miniserve {
        draft,
        line,
        base: Path::new(folder).to_owned(),
        port: "8080".into(),
        interfaces: Vec::new(),
        certificate: None,
        key: None,
        index: None,
        spa: false,
    };
    miniserve.read(&words);
    Ok(())
}

fn is_program(word: &str) -> bool {
    word.rsplit('/').next() == Some(PROGRAM)
}

/// Whether a line names miniserve after other words, such as `sudo -u www`.
fn runs_program(line: &str) -> bool {
    apache_words(line).iter().any(|word| is_program(word))
}

fn is_option_of_unit(line: &str) -> bool {
    ["Environment=MINISERVE", "Environment=\"MINISERVE", "EnvironmentFile="]
        .iter()
        .any(|front| line.starts_with(front))
}

struct Miniserve<'a, 'b> {
    draft: &'a mut Draft<'b>,
    line: usize,
    /// The folder that relative paths begin at; empty if it is the folder of the output.
    base: PathBuf,
    port: String,
    interfaces: Vec<String>,
    certificate: Option<String>,
    key: Option<String>,
    index: Option<String>,
    spa: bool,
}

/// Flags with a value: the letter, the name.
const WITH_VALUE: &[(&str, &str)] = &[
    ("-p", "--port"),
    ("-i", "--interfaces"),
    ("-a", "--auth"),
    ("", "--auth-file"),
    ("", "--index"),
    ("", "--route-prefix"),
    ("-S", "--default-sorting-method"),
    ("-O", "--default-sorting-order"),
    ("-c", "--color-scheme"),
    ("-d", "--color-scheme-dark"),
    ("-m", "--media-type"),
    ("-M", "--raw-media-type"),
    ("-o", "--on-duplicate-files"),
    ("-t", "--title"),
    ("", "--header"),
    ("", "--tls-cert"),
    ("", "--tls-key"),
    ("", "--temp-directory"),
    ("", "--web-upload-files-concurrency"),
    ("", "--chmod"),
    ("", "--print-completions"),
    ("", "--size-display"),
    ("", "--log-color"),
];

/// Letters of flags without a value.
const LETTERS: &[(char, &str)] = &[
    ('H', "--hidden"),
    ('P', "--no-symlinks"),
    ('q', "--qrcode"),
    ('u', "--upload-files"),
    ('U', "--mkdir"),
    ('R', "--rm-files"),
    ('r', "--enable-tar"),
    ('g', "--enable-tar-gz"),
    ('z', "--enable-zip"),
    ('C', "--compress-response"),
    ('D', "--dirs-first"),
    ('l', "--show-symlink-info"),
    ('F', "--hide-version-footer"),
    ('W', "--show-wget-footer"),
    ('I', "--disable-indexing"),
    ('v', "--verbose"),
    ('h', "--help"),
    ('V', "--version"),
];

impl Miniserve<'_, '_> {
    fn read(&mut self, words: &[String]) {
        let scope = Scope::of(0);
        let mut folder = None;
        let mut listing = true;
        let mut rest = words.iter().peekable();
        while let Some(word) = rest.next() {
            if word == "--" {
                continue;
            }
            if !word.starts_with('-') || word == "-" {
                let outcome = match folder {
                    None if word.contains(['$', '%']) => refused("name the folder: there are no variables"),
                    None => self.draft.root(&scope, &self.path(word), self.line),
                    Some(_) => refused("one folder is served"),
                };
                folder.get_or_insert(word.clone());
                self.draft.record(self.line, word, outcome);
                continue;
            }
            for (name, joined) in self.flags(word) {
                let takes = WITH_VALUE.iter().any(|(_, long)| *long == name)
                    || name == "--upload-files"
                        && rest.peek().is_some_and(|next| next.starts_with('/') && folder.is_some());
                // These have an optional value, which only an equals sign joins to the flag.
                let value = match (joined, takes) {
                    (Some(value), _) => value,
                    (None, true) => rest.next().cloned().unwrap_or_default(),
                    (None, false) => String::new(),
                };
                listing &= name != "--disable-indexing";
                let outcome = self.flag(&name, &value, &scope);
                self.draft.record(self.line, &name, outcome);
            }
        }
        if folder.is_none() {
            self.draft.root(&scope, &self.path("."), self.line);
        }
        self.finish(listing, &scope);
    }

    fn path(&self, path: &str) -> String {
        match path {
            "." if !self.base.as_os_str().is_empty() => self.base.display().to_string(),
            _ => self.base.join(path).display().to_string(),
        }
    }

    /// Returns the flags of a word by their long names, with the value that is part of the word.
    fn flags(&self, word: &str) -> Vec<(String, Option<String>)> {
        if let Some((name, value)) = word.strip_prefix("--").and_then(|long| long.split_once('=')) {
            return vec![(format!("--{name}"), Some(value.to_owned()))];
        }
        if word.starts_with("--") {
            return vec![(word.to_owned(), None)];
        }
        let mut found = Vec::new();
        for (at, letter) in word[1..].char_indices() {
            if let Some((_, long)) = WITH_VALUE.iter().find(|(short, _)| short.chars().nth(1) == Some(letter))
            {
                let value = word[1 + at + letter.len_utf8()..].trim_start_matches('=');
                found.push(((*long).to_owned(), (!value.is_empty()).then(|| value.to_owned())));
                break;
            }
            let long = LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, long)| (*long).to_owned());
            found.push((long.unwrap_or_else(|| format!("-{letter}")), None));
        }
        found
    }

    fn flag(&mut self, name: &str, value: &str, scope: &Scope) -> Outcome {
        let line = self.line;
        match name {
            "--port" => match value.parse::<u16>() {
                Ok(1..) => {
                    self.port = value.to_owned();
                    Outcome::Translated
                }
                _ => refused("name the port"),
            },
            "--interfaces" => {
                self.interfaces.extend(value.split(',').map(str::to_owned));
                Outcome::Translated
            }
            "--index" => {
                self.index = Some(value.to_owned());
                self.draft.index(scope, &[value], line)
            }
            "--spa" => {
                self.spa = true;
                Outcome::Translated
            }
            "--pretty-urls" => {
                self.draft.rule(scope, "try-files", "[\"{path}\", \"{path}.html\"]".into(), line)
            }
            "--hidden" => self.draft.site_key(scope, "dotfiles", "[\"/**\"]".into(), line),
            "--no-symlinks" => self.draft.site_key(scope, "symlinks", quote("none"), line),
            "--auth" => {
                self.draft.close(scope, line);
                refused(
                    "auth has hashes of htpasswd -nB, not passwords or SHA; everything is closed until then",
                )
            }
            "--auth-file" => {
                self.draft.close(scope, line);
                refused("auth reads name:hash with hashes of htpasswd -nB; everything is closed until then")
            }
            "--header" => match value.split_once(':') {
                Some((name, value)) => self.draft.field(scope, name.trim(), value.trim(), line),
                None => refused("a field has a name and a value"),
            },
            "--compress-response" => self.draft.set("compress", &["on"], line),
            "--tls-cert" => {
                self.certificate = Some(self.path(value));
                Outcome::Translated
            }
            "--tls-key" => {
                self.key = Some(self.path(value));
                Outcome::Translated
            }
            "--verbose" => self.draft.set("log-level", &["debug"], line),
            "--disable-indexing" => default("listing is off"),
            "--qrcode" => refused("use the flag --qr of serve"),
            "--route-prefix" => self.draft.rewrite(
                0,
                (&crate::globs::beneath(&format!("/{}", value.trim_matches('/'))), "/**"),
                line,
            ),
            "--random-route" => {
                self.draft.close(scope, line);
                refused("a path is not a secret: use auth; everything is closed until then")
            }
            "--upload-files"
            | "--mkdir"
            | "--media-type"
            | "--raw-media-type"
            | "--on-duplicate-files"
            | "--overwrite-files"
            | "--rm-files"
            | "--temp-directory"
            | "--web-upload-files-concurrency"
            | "--chmod"
            | "--enable-webdav" => refused("Tenfold accepts no uploads and no WebDAV"),
            "--enable-tar" => self.draft.set("archives", &["on"], line),
            "--enable-tar-gz" | "--enable-zip" => refused("archives of folders are tar; use archives"),
            "--dirs-first" => default("folders come first"),
            "--readme" => default("a listing ends with the text of the README file"),
            "--hide-version-footer" | "--hide-theme-selector" => {
                default("a listing names no version and has no choice of themes")
            }
            "--default-sorting-method" if value == "name" => default("a listing begins with this order"),
            "--default-sorting-method" | "--default-sorting-order" => {
                refused("a click on a column sorts a listing")
            }
            "--color-scheme" | "--color-scheme-dark" => {
                refused("a listing follows the light or dark mode of the browser")
            }
            "--title" | "--show-symlink-info" | "--show-wget-footer" | "--size-display" => {
                refused("a listing has one form")
            }
            "--log-color" | "--print-completions" | "--print-manpage" | "--help" | "--version" => {
                default("this does not change the server")
            }
            _ => refused("this flag is unknown"),
        }
    }

    fn finish(&mut self, listing: bool, scope: &Scope) {
        let line = self.line;
        if self.spa {
            let index = self.index.clone().unwrap_or_else(|| "index.html".into());
            self.draft.rule(
                scope,
                "try-files",
                format!("[\"{{path}}\", {}]", quote(&format!("/{index}"))),
                line,
            );
        }
        if let (Some(certificate), Some(key)) = (self.certificate.take(), self.key.take()) {
            self.draft.certificates.push((certificate, key));
        }
        let tls = self.draft.uses_tls();
        if self.interfaces.is_empty() {
            self.draft.listen(&format!(":{}", self.port), tls, false, line);
        }
        for interface in std::mem::take(&mut self.interfaces) {
            let address = match interface.as_str() {
                path if path.starts_with('/') => format!("unix:{path}"),
                host if host.contains(':') && !host.starts_with('[') => format!("[{host}]:{}", self.port),
                host => format!("{host}:{}", self.port),
            };
            if let why @ Outcome::Refused(_) = self.draft.listen(&address, tls, false, line) {
                self.draft.record(line, "--interfaces", why);
            }
        }
        // If the index has no file in a folder, miniserve lists the folder.
        if listing && !self.spa {
            self.draft.rule(scope, "listing", quote("html"), line);
        }
    }
}
