//! Directives of a site.

use super::addresses;
use super::state::{Caddy, is_forwarding};
use crate::draft::Scope;
use crate::globs::{self};
use crate::outcome::{Outcome, default, refused};
use crate::reasons::{self, CONDITIONS, EVERY_PATH, PROGRAMS, VARIABLES};
use crate::toml::{list, quote};
use crate::tree::Directive;
use crate::values::{bytes, size};

impl Caddy<'_, '_> {
    pub(super) fn simple(&mut self, directive: &Directive, here: &Scope, args: &[String]) -> Outcome {
        let line = directive.line;
        let arg = |at: usize| args.get(at).map_or("", String::as_str);
        match directive.name.as_str() {
            "root" => match directive.args.as_slice() {
                [folder] => self.draft.root(&Scope { patterns: Vec::new(), ..here.clone() }, folder, line),
                _ => self.draft.root(here, arg(0), line),
            },
            "encode" => self.encode(directive, here, args),
            "try_files" => self.try_files(&directive.args, here, line),
            "redir" => self.redirect(here, args, line),
            "rewrite" => self.rewrite(here, arg(0), line),
            "uri" => self.uri(here, args, line),
            "header" => self.header(directive, here, args),
            "basic_auth" | "basicauth" => self.auth(directive, here, args),
            "log" => {
                self.has_log = true;
                self.log(directive)
            }
            "tls" => addresses::tls(self, directive),
            "bind" => addresses::bind(self),
            "request_body" => {
                let most = directive.find("max_size").and_then(|most| bytes(most.arg(0)));
                let outcome = match most {
                    _ if !here.is_whole() => refused(EVERY_PATH),
                    Some(most) => self.draft.set("max-body", &[&size(most)], line),
                    None => refused("a size is missing"),
                };
                self.record_all(directive.inner(), &outcome);
                outcome
            }
            "respond" | "error" | "abort" => {
                let closes = directive.name != "respond"
                    || args.iter().any(|word| matches!(word.as_str(), "403" | "404"));
                self.draft.close(here, line);
                match closes {
                    true => Outcome::Translated,
                    false => refused(
                        "a response is a file: these paths get 404; for a check of health, use a file, or \
                            /healthz of the setting admin",
                    ),
                }
            }
            name if is_forwarding(name) => {
                match name.starts_with("php") && here.is_whole() {
                    true => self.draft.programs.insert("php"),
                    false => self.draft.close(here, line) == Outcome::Translated,
                };
                let why = if name.starts_with("reverse") || name.starts_with("forward") {
                    reasons::FORWARDS
                } else {
                    PROGRAMS
                };
                refused(format!("{why}; these paths get 404"))
            }
            name => reasons::caddy(name).unwrap_or_else(|| refused("this directive is unknown")),
        }
    }

    pub(super) fn encode(&mut self, directive: &Directive, here: &Scope, args: &[String]) -> Outcome {
        let line = directive.line;
        if !here.is_whole() {
            let outcome = refused(EVERY_PATH);
            self.record_all(directive.inner(), &outcome);
            return outcome;
        }
        let mut codings: Vec<String> = args.to_vec();
        for option in directive.inner() {
            let outcome = match option.name.as_str() {
                coding @ ("gzip" | "zstd" | "br") => {
                    codings.push(coding.to_owned());
                    Outcome::Translated
                }
                "minimum_length" => match bytes(option.arg(0)) {
                    Some(least) => self.draft.set("compress-from", &[&least.max(1).to_string()], option.line),
                    None => refused("this is not a size"),
                },
                _ => refused("use compress-types"),
            };
            self.record(option, outcome);
            self.record_all(option.inner(), &refused("use compress-types"));
        }
        if codings.is_empty() {
            codings = vec!["zstd".into(), "gzip".into()];
        }
        let all: Vec<&str> = codings.iter().map(String::as_str).collect();
        match self.draft.set("compress", &all, line) {
            // A build may lack zstd.
            Outcome::Refused(_)
                if all.contains(&"zstd")
                    && all.len() > 1
                    && !self.draft.settings.contains_key("compress") =>
            {
                let others: Vec<&str> = all.into_iter().filter(|coding| *coding != "zstd").collect();
                self.draft.set("compress", &others, line)
            }
            outcome => outcome,
        }
    }

    pub(super) fn try_files(&mut self, words: &[String], here: &Scope, line: usize) -> Outcome {
        let mut files: Vec<String> = Vec::new();
        for word in words {
            let word = word
                .split('?')
                .next()
                .unwrap_or_default()
                .replace("{http.request.uri.path}", "{path}")
                .replace("{uri}", "{path}");
            match word.as_str() {
                "{path}/" => files.push("{path}".into()),
                _ if word.contains(".php") => return refused(format!("{PROGRAMS}: a missing file is 404")),
                "=404" => {}
                _ if word.starts_with('=') => return refused("a missing file is 404"),
                _ if word.replace("{path}", "").contains(['{', '$', '*']) => return refused(VARIABLES),
                _ if word.starts_with('/') || word.starts_with("{path}") => files.push(word),
                _ => files.push(format!("/{word}")),
            }
        }
        let mut unique: Vec<String> = Vec::new();
        files.retain(|file| {
            let is_new = !unique.contains(file);
            unique.push(file.clone());
            is_new
        });
        match files.as_slice() {
            [] => refused("no file is tried"),
            [only] if only == "{path}" && here.is_whole() => default("a file, the index of a folder, or 404"),
            _ => self.draft.rule(here, "try-files", list(&files), line),
        }
    }

    pub(super) fn redirect(&mut self, here: &Scope, args: &[String], line: usize) -> Outcome {
        let (target, code) = match args {
            [target] => (target.as_str(), "302"),
            [target, code] => (target.as_str(), code.as_str()),
            _ => return refused("a target is missing"),
        };
        let status = match code {
            "permanent" => 301,
            "temporary" => 302,
            "html" => return refused("a redirect is a status, not a page"),
            _ => code.parse().unwrap_or(0),
        };
        let target = ["{scheme}://{host}", "https://{host}", "{scheme}://{http.request.host}"]
            .iter()
            .find_map(|front| target.strip_prefix(front))
            .unwrap_or(target);
        let target = target
            .replace("{scheme}", "https")
            .replace("{http.request.uri}", "{uri}")
            .replace("{http.request.uri.path}", "{uri}")
            .replace("{path}", "{uri}");
        if target == "{uri}" {
            return addresses::https_redirect(self, line);
        }
        let all = vec!["/**".to_owned()];
        let patterns = if here.is_whole() { &all } else { &here.patterns };
        let mut outcome = refused("nothing matches");
        for from in patterns {
            let front = target.strip_suffix("{uri}");
            let to = match front {
                Some(front) if !from.trim_end_matches("/**").contains('*') => format!("{front}{from}"),
                Some(_) => return refused("only the rest of a path can be kept"),
                None => target.clone(),
            };
            if to.contains('{') {
                return refused(VARIABLES);
            }
            outcome = self.draft.redirect(here.site, (from, &to), status, line);
            if matches!(outcome, Outcome::Refused(_)) {
                break;
            }
        }
        outcome
    }

    pub(super) fn rewrite(&mut self, here: &Scope, target: &str, line: usize) -> Outcome {
        let target = target.replace("{uri}", "{path}");
        let target = target.strip_suffix("?{query}").unwrap_or(&target);
        let all = vec!["/**".to_owned()];
        let patterns = if here.is_whole() { &all } else { &here.patterns };
        let mut outcome = refused("nothing matches");
        for from in patterns {
            let to = match target.strip_suffix("{path}") {
                Some(front) => format!("{front}{from}"),
                None => target.to_owned(),
            };
            if to.contains('{') {
                return refused(VARIABLES);
            }
            outcome = self.draft.rewrite(here.site, (from, &to), line);
        }
        outcome
    }

    pub(super) fn uri(&mut self, here: &Scope, args: &[String], line: usize) -> Outcome {
        match args {
            [how, prefix] if how == "strip_prefix" => {
                let prefix = prefix.trim_end_matches('/');
                let from = globs::beneath(&format!("/{}", prefix.trim_start_matches('/')));
                self.draft.rewrite(here.site, (&from, "/**"), line)
            }
            _ => refused("only a prefix can be removed from a path"),
        }
    }

    pub(super) fn header(&mut self, directive: &Directive, here: &Scope, args: &[String]) -> Outcome {
        if let Err(why) = self.draft.check_patterns(here) {
            self.record_all(directive.inner(), &why);
            return why;
        }
        if !args.is_empty() {
            return self.field(here, args, directive.line);
        }
        for field in directive.inner() {
            let words: Vec<String> = [std::slice::from_ref(&field.name), &field.args].concat();
            let outcome = match field.name.as_str() {
                "defer" => default("fields are added to the finished response"),
                "match" => refused(CONDITIONS),
                _ => self.field(here, &words, field.line),
            };
            self.record(field, outcome);
        }
        Outcome::Translated
    }

    pub(super) fn field(&mut self, here: &Scope, words: &[String], line: usize) -> Outcome {
        let (first, value) = (words[0].trim_end_matches(':'), words.get(1).map_or("", String::as_str));
        if words.len() > 2 {
            return refused("a value cannot be edited");
        }
        if value.contains('{') {
            return refused(VARIABLES);
        }
        match first.chars().next() {
            Some('-') => self.draft.remove_field(here, &first[1..], line),
            Some('+') => self.draft.add_field(here, &first[1..], value, line),
            Some('?' | '>') => self.draft.field(here, &first[1..], value, line),
            _ if value.is_empty() => refused("a value is missing"),
            _ => self.draft.field(here, first, value, line),
        }
    }

    pub(super) fn auth(&mut self, directive: &Directive, here: &Scope, args: &[String]) -> Outcome {
        let realm = args
            .iter()
            .rfind(|word| !matches!(word.as_str(), "bcrypt" | "argon2id"))
            .map_or("restricted", String::as_str);
        let users =
            directive.inner().iter().map(|user| format!("{} = {}", quote(&user.name), quote(user.arg(0))));
        let users = format!("{{ {} }}", users.collect::<Vec<_>>().join(", "));
        let piece = format!("[site]\nauth = {{ realm = {}, users = {users} }}\n", quote(realm));
        match self.draft.check(&piece) {
            Ok(()) => self.draft.auth(here, realm, &users, directive.line),
            Err(why) => {
                self.draft.close(here, directive.line);
                match why {
                    Outcome::Refused(why) => refused(format!("{why}; these paths are closed until then")),
                    other => other,
                }
            }
        }
    }

    pub(super) fn log(&mut self, directive: &Directive) -> Outcome {
        let line = directive.line;
        let output = directive.find("output");
        let target = output.map_or("-", |output| match output.arg(0) {
            "file" => output.arg(1),
            "discard" => "off",
            _ => "-",
        });
        let outcome = match target.contains('{') {
            true => refused(VARIABLES),
            false => self.draft.set("access-log", &[target], line),
        };
        let is_file = !matches!(target, "-" | "off") && outcome == Outcome::Translated;
        for option in directive.inner() {
            let (first, at) = (option.arg(0), option.line);
            let own = match option.name.as_str() {
                "output" if matches!(first, "net" | "journald") => {
                    refused("the log is a file or standard output")
                }
                "output" => outcome.clone(),
                "format" if matches!(first, "json" | "") => self.draft.set("log-format", &["json"], at),
                "format" => refused("use log-format: common, combined, json, or a text with fields"),
                "level" => default("each response is a line"),
                _ => refused("one access log has all requests"),
            };
            self.record(option, own);
            for inner in option.inner() {
                let own = match inner.name.as_str() {
                    "roll_size" if is_file => bytes(inner.arg(0)).map_or_else(
                        || refused("this is not a size"),
                        |most| self.draft.set("log-rotate", &[&size(most)], inner.line),
                    ),
                    "roll_keep" if is_file => self.draft.set("log-keep", &[inner.arg(0)], inner.line),
                    "roll_disabled" => Outcome::Translated,
                    "roll_gzip" | "roll_uncompressed" | "roll_local_time" => {
                        default("rotated files stay as they are")
                    }
                    _ => refused("the log has no such option"),
                };
                self.record(inner, own);
                self.record_all(inner.inner(), &refused("the log has no such option"));
            }
        }
        // By default, Caddy begins a new file after 100 MiB and keeps ten.
        let rolls = output.is_none_or(|output| output.find("roll_disabled").is_none());
        if is_file && rolls {
            self.draft.set("log-rotate", &["100 MiB"], line);
            self.draft.set("log-keep", &["10"], line);
        }
        if outcome == Outcome::Translated && target != "off" && directive.find("format").is_none() {
            self.draft.set("log-format", &["json"], line);
        }
        outcome
    }
}
