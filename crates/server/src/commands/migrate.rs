//! `tenfold migrate`: translates the configuration of another server, and lists the directives without an equivalent.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, value_parser};
use tenfold_migrate::{Format, Input, MOST_BYTES, Outcome, Translation};

use super::output::print;
use crate::config::parse::file;
use crate::config::parse::problem::WRONG_USAGE;
use crate::diagnostics::{self, error, visible};

/// The exit code if a directive has no equivalent.
const REFUSED: u8 = 3;

pub(crate) fn command() -> clap::Command {
    let names = Format::ALL.map(Format::name);
    clap::Command::new("migrate")
        .about("Translate the configuration of nginx, Caddy, Apache, lighttpd or miniserve, and list the rest")
        .after_help(
            "Exit codes: 0 if the output has the meaning of the whole file, 3 if a directive is not translated, \
                1 if the \
             file cannot be read or written, 2 for wrong usage.",
        )
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .required_unless_present("words")
                .help("nginx.conf, Caddyfile, httpd.conf, .htaccess, lighttpd.conf, a unit of miniserve, or - \
                    for standard input"),
        )
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("SERVER")
                .value_parser(PossibleValuesParser::new(names))
                .help("The server of the file; without it, its name and its content show the server"),
        )
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Write the configuration to this new file instead of standard output"),
        )
        .arg(
            Arg::new("words")
                .value_name("WORDS")
                .num_args(1..)
                .last(true)
                .conflicts_with("file")
                .help("A command line of miniserve: tenfold migrate -- miniserve -p 8080 site"),
        )
}

pub(crate) fn run(typed: &ArgMatches) -> ExitCode {
    let output = typed.get_one::<PathBuf>("output");
    match translate(typed) {
        Ok((name, translation)) => match write(output.map(PathBuf::as_path), &translation.toml) {
            Ok(()) => report(&name, &translation),
            Err(why) => fail(&why, 1),
        },
        Err((why, code)) => fail(&why, code),
    }
}

fn fail(why: &str, code: u8) -> ExitCode {
    error!("{why}");
    ExitCode::from(code)
}

/// Reads and translates the input. Returns its name, too.
fn translate(typed: &ArgMatches) -> Result<(String, Translation), (String, u8)> {
    let from = typed.get_one::<String>("from");
    let from = from.and_then(|name| Format::ALL.into_iter().find(|format| format.name() == name));
    if let Some(words) = typed.get_many::<String>("words") {
        if from.is_some_and(|from| from != Format::Miniserve) {
            return Err(("a command line is of miniserve; name a file instead".into(), WRONG_USAGE));
        }
        let text =
            words.map(|word| format!("\"{}\"", word.replace(['"', '\n'], ""))).collect::<Vec<_>>().join(" ");
        // A relative path in the output begins at the folder of the output.
        let output = typed.get_one::<PathBuf>("output").and_then(|output| output.parent());
        let here = shown_folder(Path::new("."));
        let folder =
            if output.is_none_or(|output| shown_folder(output) == here) { "" } else { here.as_str() };
        let input = Input { format: Format::Miniserve, name: "the command line", text: &text, folder };
        return finish(input).map_err(|(why, _)| (why, WRONG_USAGE));
    }
    let path = typed.get_one::<PathBuf>("file").expect("clap requires it or words");
    let (name, text) = read(path).map_err(|why| (why, 1))?;
    let Some(format) = from.or_else(|| Format::detect(&name, &text)) else {
        let names = Format::ALL.map(Format::name).join(", ");
        return Err((
            format!("the server of {name} is not clear; name it with --from: {names}"),
            WRONG_USAGE,
        ));
    };
    let folder = match path.as_os_str() == "-" {
        _ if format == Format::Miniserve => String::new(),
        true => shown_folder(Path::new(".")),
        false => shown_folder(path.parent().unwrap_or(Path::new("."))),
    };
    finish(Input { format, name: &name, text: &text, folder: &folder })
}

fn finish(input: Input<'_>) -> Result<(String, Translation), (String, u8)> {
    let legal = |piece: &str| file::first_problem(piece).map_or(Ok(()), Err);
    let translation = tenfold_migrate::translate(input, &legal);
    let translation = translation.map_err(|why| (format!("cannot translate {}: {why}", input.name), 1))?;
    Ok((input.name.to_owned(), translation))
}

/// Reads at most one byte more than is translated.
fn read(path: &Path) -> Result<(String, String), String> {
    let is_input = path.as_os_str() == "-";
    let name = if is_input { "standard input".to_owned() } else { path.display().to_string() };
    let source: io::Result<Box<dyn Read>> = match is_input {
        true => Ok(Box::new(io::stdin())),
        false => File::open(path).map(|file| Box::new(file) as Box<dyn Read>),
    };
    let mut bytes = Vec::new();
    let read = source.and_then(|source| source.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| format!("cannot read {name}: {error}"))?;
    Ok((name, String::from_utf8_lossy(&bytes).into_owned()))
}

/// The absolute path of a folder. A relative path in the output would begin at the output.
fn shown_folder(folder: &Path) -> String {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned()).display().to_string()
}

/// Writes the configuration to a new file or to standard output.
fn write(path: Option<&Path>, toml: &str) -> Result<(), String> {
    let Some(path) = path else { return print(toml.as_bytes()) };
    let written = OpenOptions::new().write(true).create_new(true).open(path).and_then(|mut file| {
        file.write_all(toml.as_bytes())?;
        file.flush()
    });
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => format!("{} exists; name a new file", path.display()),
        _ => format!("cannot write {}: {error}", path.display()),
    })
}

/// Prints a line for each directive that is not translated or needs no translation, and the counts.
fn report(name: &str, translation: &Translation) -> ExitCode {
    let mut text = String::new();
    for entry in &translation.entries {
        let (what, why) = match &entry.outcome {
            Outcome::Translated => continue,
            Outcome::Default(why) => ("needs nothing", why),
            Outcome::Refused(why) => ("not translated", why),
        };
        text.push_str(&format!("{name}:{}: {what}: {}: {why}\n", entry.line, entry.directive));
    }
    let refused = translation.count(|outcome| matches!(outcome, Outcome::Refused(_)));
    text.push_str(&format!(
        "{name}: {} directives: {} translated, {} need nothing, {refused} not translated\n",
        translation.entries.len(),
        translation.count(|outcome| *outcome == Outcome::Translated),
        translation.count(|outcome| matches!(outcome, Outcome::Default(_))),
    ));
    diagnostics::raw(&visible(&text));
    if refused == 0 { ExitCode::SUCCESS } else { ExitCode::from(REFUSED) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Translates a text, and requires that Tenfold reads the output.
    #[track_caller]
    fn migrated(format: Format, text: &str) -> Translation {
        let input = Input { format, name: "file", text, folder: "/srv/site" };
        let (_, translation) = finish(input).unwrap_or_else(|(why, _)| panic!("{why}"));
        let problem = file::first_problem(&translation.toml);
        assert_eq!(problem, None, "{}", translation.toml);
        translation
    }

    #[track_caller]
    fn has(translation: &Translation, lines: &[&str]) {
        for line in lines {
            assert!(translation.toml.contains(line), "{line} is not in:\n{}", translation.toml);
        }
    }

    #[track_caller]
    fn refused(translation: &Translation, directive: &str, why: &str) {
        let entry = translation.entries.iter().find(|entry| match &entry.outcome {
            Outcome::Refused(_) => entry.directive == directive,
            _ => false,
        });
        let Some(Outcome::Refused(told)) = entry.map(|entry| &entry.outcome) else {
            panic!("{directive} is not refused: {:#?}", translation.entries)
        };
        assert!(told.contains(why), "{told}");
    }

    #[test]
    fn nginx_is_translated() {
        let translation = migrated(
            Format::Nginx,
            r#"
            http {
                log_format main '$remote_addr "$request" $status';
                access_log /var/log/a.log main;
                gzip on;
                server { listen 80; server_name www.a.example; return 301 https://a.example$request_uri; }
                server { listen 80; server_name a.example; return 301 https://$host$request_uri; }
                server {
                    listen 443 ssl;
                    server_name a.example;
                    ssl_certificate /etc/a.pem;
                    ssl_certificate_key /etc/a.key;
                    root /srv/a;
                    add_header Strict-Transport-Security "max-age=31536000" always;
                    client_max_body_size 100m;
                    location / { try_files $uri /index.html; }
                    location ~* \.(css|js)$ { expires 1y; add_header Cache-Control "public, immutable"; }
                    location /img/ { alias /srv/a/images/; }
                    location /api/ { proxy_pass http://app; }
                    location = /old { return 302 /new; }
                    location ^~ /docs { rewrite ^/docs/(.*)$ /manual/$1 last; }
                }
            }"#,
        );
        has(
            &translation,
            &[
                "listen = [\"http:0.0.0.0:80\", \"0.0.0.0:443\"]",
                "log-format = \"{client} \\\"{request}\\\" {status}\"",
                "compress-types = \"text/html\"",
                "https-redirect = \"on\"",
                "headers.set.Strict-Transport-Security = \"max-age=31536000\"",
                "tls-certificate = \"/etc/a.pem\"",
                "try-files = [\"{path}\", \"/index.html\"]",
                "match = [\"/**.css\", \"/**.js\"]",
                "cache = \"immutable\"",
                "{ from = \"/img/**\", to = \"/images/**\" }",
                "{ from = \"/api/**\", to = \"/.closed\" }",
                "from = \"/old\"",
                "status = 302",
                "{ from = \"/docs/**\", to = \"/manual/**\" }",
                "match = \"/.closed\"\ntry-files = [\"{path}\"]",
                "name = \"www.a.example\"",
                "to = \"https://a.example/**\"",
            ],
        );
        refused(&translation, "proxy_pass", "forwards no request");
        refused(&translation, "client_max_body_size", "64 MiB");
    }

    #[test]
    fn a_caddyfile_is_translated() {
        let translation = migrated(
            Format::Caddy,
            "{\n email a@a.example\n}\n(fields) {\n header X-A {args[0]}\n}\na.example, www.a.example {\n \
                import fields b\n \
             root * /srv/a\n encode gzip\n try_files {path} /index.html\n handle_path /static/* {\n  root * \
                 /srv/a/public\n  \
             file_server\n }\n @old path /old/*\n redir @old /new{uri} 308\n respond /secret 403\n \
                 reverse_proxy /api/* app:80\n \
             file_server browse\n}\n",
        );
        has(
            &translation,
            &[
                "tls = [\"a.example\", \"www.a.example\"]",
                "tls-contact = \"a@a.example\"",
                "access-log = \"off\"",
                "headers.set.X-A = \"b\"",
                "listing = \"html\"",
                "{ from = \"/static/**\", to = \"/public/**\" }",
                "{ from = \"/secret\", to = \"/.closed\" }",
                "{ from = \"/api/**\", to = \"/.closed\" }",
                "to = \"/new/old/**\"",
            ],
        );
        refused(&translation, "reverse_proxy", "forwards no request");
    }

    #[test]
    fn an_htaccess_is_translated() {
        let translation = migrated(
            Format::Apache,
            "DirectoryIndex index.html\nErrorDocument 404 /missing.html\nOptions -Indexes\nRewriteEngine On\n\
             RewriteCond %{HTTP_HOST} ^www\\.a\\.example$ [NC]\nRewriteRule ^(.*)$ https://a.example/$1 [R=301,L]\n\
             RewriteRule ^old/(.*)$ /new/$1 [R=302,L]\nRewriteCond %{REQUEST_FILENAME} !-f\nRewriteRule . \
                 /index.html [L]\n\
             RewriteCond %{QUERY_STRING} a\nRewriteRule ^x$ /y [R]\n\
             <IfModule mod_expires.c>\nExpiresActive On\nExpiresByType text/css \"access plus 1 year\"\n</IfModule>\n\
             <FilesMatch \"\\.(bak|sql)$\">\nRequire all denied\n</FilesMatch>\n<FilesMatch \"^\\.\">\nRequire \
                 all denied\n\
             </FilesMatch>\nHeader set X-Frame-Options DENY\nRedirect permanent /a /b\nAddHandler cgi-script \
                 .cgi .pl\n",
        );
        has(
            &translation,
            &[
                "root = \"/srv/site\"",
                "404 = \"/missing.html\"",
                "name = \"www.a.example\"",
                "to = \"https://a.example/**\"",
                "from = \"/old/**\"",
                "try-files = [\"{path}\", \"/index.html\"]",
                "match = \"/**.css\"",
                "{ from = \"/**.bak\", to = \"/.closed\" }",
                "{ from = \"/**.pl\", to = \"/.closed\" }",
                "X-Frame-Options = \"DENY\"",
                "from = \"/a/**\"",
            ],
        );
        refused(&translation, "RewriteRule", "no other conditions");
        refused(&translation, "AddHandler", "runs no programs");
    }

    #[test]
    fn lighttpd_is_translated() {
        let translation = migrated(
            Format::Lighttpd,
            "var.root = \"/srv\"\nserver.document-root = var.root + \"/a\"\nserver.port = 8080\n\
             mimetype.assign = (\".md\" => \"text/markdown\", \"\" => \"application/octet-stream\")\n\
             url.redirect = (\"^/old/(.*)\" => \"/new/$1\")\n$HTTP[\"host\"] =~ \"^(www\\.)?b\\.example$\" {\n\
             server.document-root = \"/srv/b\"\n}\n$HTTP[\"url\"] =~ \"^/down/\" {\ndir-listing.activate = \
                 \"enable\"\n}\n\
             $HTTP[\"useragent\"] =~ \"x\" {\nurl.access-deny = (\"\")\n}\nfastcgi.server = (\".php\" => ())\n",
        );
        has(
            &translation,
            &[
                "listen = \"0.0.0.0:8080\"",
                "root = \"/srv/a\"",
                "\".md\" = \"text/markdown\"",
                "to = \"/new/**\"",
                "name = [\"b.example\", \"www.b.example\"]",
                "match = \"/down/**\"",
            ],
        );
        refused(&translation, "fastcgi.server", "runs no programs");
        refused(&translation, "$HTTP[useragent]", "no other conditions");
    }

    #[test]
    fn miniserve_is_translated() {
        let unit = "[Service]\nExecStart=/usr/bin/miniserve -p 8000 -i 127.0.0.1 --spa --index index.html -Pruz \
            \\\n  --header \"X-A: b\" /srv/a\n";
        let translation = migrated(Format::Miniserve, unit);
        has(
            &translation,
            &[
                "listen = \"127.0.0.1:8000\"",
                "root = \"/srv/a\"",
                "try-files = [\"{path}\", \"/index.html\"]",
                "symlinks = \"none\"",
                "headers.set.X-A = \"b\"",
                "archives = \"on\"",
            ],
        );
        refused(&translation, "--upload-files", "no uploads");
        refused(&translation, "--enable-zip", "use archives");
    }
}
