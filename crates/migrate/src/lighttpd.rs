//! Translates lighttpd's configuration.

mod syntax;

use crate::draft::{Draft, Scope};
use crate::globs::{self, Subject};
use crate::outcome::{Outcome, default, refused};
use crate::reasons::{
    self, ADDRESSES, CONDITIONS, CONDITIONS_CLOSED, CONDITIONS_SERVED, EVERY_PATH, FORWARDS, HIDDEN, PROGRAMS,
};
use crate::toml::quote;
use crate::values::{cache_control, endings, expiry, lifetime, size};
use syntax::{Statement, Value};

pub(crate) fn translate(text: &str, draft: &mut Draft<'_>) -> Result<(), String> {
    let statements = syntax::read(text)?;
    let mut lighttpd = Lighttpd {
        draft,
        bind: (String::new(), 0),
        port: ("80".into(), 0),
        tls: false,
        users: None,
        log: None,
        redirect_status: 301,
    };
    lighttpd.prepare(&statements);
    let named =
        |statement: &Statement, name: &str| matches!(statement, Statement::Set { key, .. } if key == name);
    lighttpd.block(&statements, &Scope::of(0));
    let (bind, port) = (lighttpd.bind.clone(), lighttpd.port.clone());
    let is_socket = bind.0.starts_with('/');
    let host = if bind.0.is_empty() { "0.0.0.0" } else { bind.0.as_str() };
    let host = if host == "localhost" { "127.0.0.1" } else { host };
    let address = match is_socket {
        true => format!("unix:{host}"),
        false => format!("{host}:{}", port.0),
    };
    let tls = lighttpd.tls;
    let names = ["server.document-root", "server.port", "server.bind"];
    if statements.iter().any(|statement| names.iter().any(|name| named(statement, name))) {
        draft.listen(&address, tls, false, bind.1.max(port.1));
        if !draft.settings.contains_key("access-log") {
            draft.set("access-log", &["off"], 0);
        }
    }
    Ok(())
}

struct Lighttpd<'a, 'b> {
    draft: &'a mut Draft<'b>,
    bind: (String, usize),
    port: (String, usize),
    /// Whether the main socket has TLS.
    tls: bool,
    /// The file of users.
    users: Option<String>,
    log: Option<String>,
    redirect_status: u16,
}

impl Lighttpd<'_, '_> {
    /// Finds certificates and settings that keys before them need.
    fn prepare(&mut self, statements: &[Statement]) {
        let of = |name: &str| {
            statements.iter().find_map(|statement| match statement {
                Statement::Set { key, value, .. } if key == name => Some(value.text().to_owned()),
                _ => None,
            })
        };
        if let Some(certificate) = of("ssl.pemfile") {
            let key = of("ssl.privkey").unwrap_or_else(|| certificate.clone());
            let pair = (certificate, key);
            if !self.draft.certificates.contains(&pair) {
                self.draft.certificates.push(pair);
            }
        }
        self.users = self.users.take().or_else(|| of("auth.backend.htpasswd.userfile"));
        self.log = self.log.take().or_else(|| of("accesslog.format"));
        if let Some(code) = of("url.redirect-code").and_then(|code| code.parse().ok()) {
            self.redirect_status = code;
        }
        for statement in statements {
            if let Statement::When { block, .. } | Statement::Else { block, .. } = statement {
                self.prepare(block);
            }
        }
    }

    fn block(&mut self, statements: &[Statement], scope: &Scope) {
        for statement in statements {
            match statement {
                Statement::Set { line, key, value } => {
                    let outcome = self.key(key, value, scope, *line);
                    self.draft.record(*line, key, outcome);
                }
                Statement::Include { line, name } => {
                    self.draft.record(*line, name, refused(reasons::INCLUDES))
                }
                Statement::When { .. } => self.condition(statement, scope),
                Statement::Else { line, block } if denies(block) => {
                    self.draft.record(*line, "else", refused(CONDITIONS_CLOSED));
                    self.restrict(block, scope, CONDITIONS_CLOSED);
                }
                Statement::Else { line, block } => {
                    self.draft.record(*line, "else", refused(CONDITIONS));
                    self.refuse(block, CONDITIONS);
                }
            }
        }
    }

    /// Closes the paths that a block denies to some clients, such as other addresses.
    fn restrict(&mut self, statements: &[Statement], scope: &Scope, why: &str) {
        for statement in statements {
            match statement {
                Statement::Set { line, key, value } => {
                    let outcome = match is_denial(key) {
                        true => {
                            self.key(key, value, scope, *line);
                            match key == "auth.require" {
                                true => refused(format!("{CONDITIONS}; every client needs the password")),
                                false => refused(why),
                            }
                        }
                        false => refused(CONDITIONS),
                    };
                    self.draft.record(*line, key, outcome);
                }
                Statement::Include { line, name } => {
                    self.draft.record(*line, name, refused(reasons::INCLUDES));
                }
                Statement::When { line, field, operator, value, block } => {
                    let here = self.scope_of(field, operator, value, scope, *line);
                    let here = here.unwrap_or_else(|| Ok(scope.clone()));
                    match here.and_then(|here| self.draft.check_patterns(&here).map(|()| here)) {
                        Ok(here) => {
                            self.draft.record(*line, field, refused(why));
                            self.restrict(block, &here, why);
                        }
                        Err(_) => {
                            let why = format!("{}; {}", reasons::NO_PATTERN, reasons::SERVED);
                            self.draft.record(*line, field, refused(why.clone()));
                            self.refuse(block, &why);
                        }
                    }
                }
                Statement::Else { line, block } => {
                    self.draft.record(*line, "else", refused(why));
                    self.restrict(block, scope, why);
                }
            }
        }
    }

    /// Returns the scope of a condition about hosts or paths; None for other conditions.
    fn scope_of(
        &mut self,
        field: &str,
        operator: &str,
        value: &String,
        scope: &Scope,
        line: usize,
    ) -> Option<Result<Scope, Outcome>> {
        let name = field.trim_start_matches('$').replace(['[', ']'], " ");
        Some(match (name.trim(), operator) {
            ("HTTP host", "==") if scope.is_whole() => {
                self.draft.host(std::slice::from_ref(value), line).map(Scope::of)
            }
            ("HTTP host", "=~") if scope.is_whole() => {
                let found = globs::of(value, Subject::Relative).unwrap_or_default();
                let names: Vec<String> = found
                    .iter()
                    .map(|glob| glob.pattern.trim_start_matches('/').replace("**.", "*."))
                    .filter(|name| !name.trim_start_matches("*.").contains('*') && !name.is_empty())
                    .collect();
                match names.is_empty() || names.len() < found.len() {
                    true => Err(refused("a host has names, or *.example.org, and no expressions")),
                    false => self.draft.host(&names, line).map(Scope::of),
                }
            }
            ("HTTP url", "==") => Ok(scope.beneath(vec![value.clone()], 9000)),
            ("HTTP url", "=^") => Ok(scope.beneath(vec![format!("{value}**")], value.len().min(8000))),
            ("HTTP url", "=$") => Ok(scope.beneath(vec![format!("/**{value}")], 8500)),
            ("HTTP url", "=~") => match globs::of(value, Subject::Path) {
                Some(found) => Ok(scope.beneath(found.into_iter().map(|glob| glob.pattern).collect(), 8500)),
                None => Err(refused(reasons::NO_PATTERN)),
            },
            _ => return None,
        })
    }

    fn refuse(&mut self, statements: &[Statement], why: &str) {
        for statement in statements {
            match statement {
                Statement::Set { line, key, .. } => self.draft.record(*line, key, refused(why)),
                Statement::Include { line, name } => self.draft.record(*line, name, refused(why)),
                Statement::When { line, field, block, .. } => {
                    self.draft.record(*line, field, refused(why));
                    self.refuse(block, why);
                }
                Statement::Else { line, block } => {
                    self.draft.record(*line, "else", refused(why));
                    self.refuse(block, why);
                }
            }
        }
    }

    fn condition(&mut self, statement: &Statement, scope: &Scope) {
        let Statement::When { line, field, operator, value, block } = statement else { return };
        let denies = denies(block);
        let name = field.trim_start_matches('$').to_owned();
        let here = match (name.replace(['[', ']'], " ").trim(), operator.as_str()) {
            ("HTTP url", "=~")
                if globs::is_hidden(value)
                    && has(block, |key, value| key == "url.access-deny" && value.texts() == [""]) =>
            {
                self.draft.record(*line, field, default(HIDDEN));
                for inner in block {
                    if let Statement::Set { line, key, .. } = inner {
                        self.draft.record(*line, key, default(HIDDEN));
                    }
                }
                return;
            }
            ("HTTP remoteip" | "HTTP remote-ip", _) if denies => {
                self.draft.record(*line, field, refused(ADDRESSES));
                return self.restrict(block, scope, ADDRESSES);
            }
            ("HTTP scheme", "==")
                if value == "http" && !has(block, |key, _| !key.starts_with("url.redirect")) =>
            {
                let outcome = match self.draft.uses_tls() {
                    true => self.draft.set("https-redirect", &["on"], *line),
                    false => refused(reasons::TLS_FILE),
                };
                self.draft.record(*line, field, outcome.clone());
                for inner in block {
                    if let Statement::Set { line, key, .. } = inner {
                        self.draft.record(*line, key, outcome.clone());
                    }
                }
                return;
            }
            ("HTTP scheme", "==") => Ok(scope.clone()),
            ("SERVER socket", "==") => {
                let tls = has(block, |key, value| key == "ssl.engine" && value.text() == "enable");
                let address = match value.strip_prefix("0.0.0.0:").or(value.strip_prefix(':')) {
                    Some(port) => format!("0.0.0.0:{port}"),
                    None => value.clone(),
                };
                let outcome = match tls && !self.draft.uses_tls() {
                    true => refused(reasons::TLS_FILE),
                    false => self.draft.listen(&address, tls, false, *line),
                };
                match outcome {
                    Outcome::Translated => Ok(scope.clone()),
                    other => Err(other),
                }
            }
            _ => self
                .scope_of(field, operator, value, scope, *line)
                .unwrap_or_else(|| Err(refused(if denies { CONDITIONS_SERVED } else { CONDITIONS }))),
        };
        match here.and_then(|here| self.draft.check_patterns(&here).map(|()| here)) {
            Ok(here) => {
                self.draft.record(*line, field, Outcome::Translated);
                self.block(block, &here);
            }
            Err(outcome) => {
                let why = match &outcome {
                    Outcome::Refused(why) if denies && why == reasons::NO_PATTERN => {
                        format!("{why}; {}", reasons::SERVED)
                    }
                    Outcome::Refused(why) => why.clone(),
                    _ => CONDITIONS.to_owned(),
                };
                self.draft.record(*line, field, refused(why.clone()));
                self.refuse(block, &why);
            }
        }
    }

    fn setting(&mut self, scope: &Scope, name: &'static str, value: &str, line: usize) -> Outcome {
        match scope.is_whole() {
            true => self.draft.set(name, &[value], line),
            false => refused(EVERY_PATH),
        }
    }

    fn key(&mut self, key: &str, value: &Value, scope: &Scope, line: usize) -> Outcome {
        let text = value.text();
        let seconds = || format!("{}s", text.trim());
        match key {
            _ if key.starts_with("var.") => default("the value is in the place of the name"),
            "server.document-root" => self.draft.root(scope, text, line),
            "server.bind" if scope.site == 0 => {
                self.bind = (text.to_owned(), line);
                Outcome::Translated
            }
            "server.port" if scope.site == 0 => {
                self.port = (text.to_owned(), line);
                Outcome::Translated
            }
            "index-file.names" | "server.indexfiles" => self.draft.index(scope, &value.texts(), line),
            "server.error-handler-404" => match text.split_once(['?', '#']).map_or(text, |(page, _)| page) {
                page if page.contains(".php") || page.contains("cgi") => refused(PROGRAMS),
                page => self.draft.error_page(scope, "404", page, line),
            },
            "server.errorfile-prefix" => {
                let root = self.draft.sites[scope.site]
                    .root
                    .clone()
                    .map_or_else(String::new, |(root, _)| root.trim_end_matches('/').to_owned());
                match text.strip_prefix(&root).filter(|rest| !root.is_empty() && rest.starts_with('/')) {
                    Some(rest) => {
                        let page = format!("{rest}404.html");
                        self.draft.error_page(scope, "404", &page, line)
                    }
                    None => refused("an error page is a file of the site: copy the pages beneath the root"),
                }
            }
            "server.max-keep-alive-idle" => self.setting(scope, "idle-timeout", &seconds(), line),
            "server.max-keep-alive-requests" if text == "0" => {
                default("a connection has any number of requests")
            }
            "server.max-keep-alive-requests" => self.setting(scope, "requests-per-connection", text, line),
            "server.max-read-idle" => self.setting(scope, "body-timeout", &seconds(), line),
            "server.max-write-idle" => self.setting(scope, "send-timeout", &seconds(), line),
            "server.max-connections" => self.setting(scope, "max-connections", text, line),
            "server.max-worker" if text == "0" => default("one worker for each processor"),
            "server.max-worker" => self.setting(scope, "workers", text, line),
            "server.listen-backlog" => self.setting(scope, "backlog", text, line),
            "server.max-request-size" => match text.parse::<u64>() {
                Ok(0) | Err(_) => default("Tenfold accepts no uploads"),
                Ok(most) => self.setting(scope, "max-body", &size(most.saturating_mul(1024)), line),
            },
            "server.max-request-field-size" => self.setting(scope, "max-head", text, line),
            "connection.kbytes-per-second" if text != "0" => match text.parse::<u64>() {
                Ok(rate) => self.setting(scope, "max-rate", &size(rate.saturating_mul(1024)), line),
                Err(_) => refused("this is not a rate"),
            },
            "server.kbytes-per-second" if text != "0" => refused("a rate is one of each connection"),
            "server.kbytes-per-second" | "connection.kbytes-per-second" => default("max-rate is off"),
            "evasive.max-conns-per-ip" => self.setting(scope, "max-connections-per-address", text, line),
            "server.tag" if text.is_empty() => self.setting(scope, "server-field", "off", line),
            "server.tag" => refused("the field Server never names a version"),
            "server.feature-flags" if value.get("server.h2proto") == "disable" => {
                self.setting(scope, "http2", "off", line)
            }
            "server.feature-flags" => default("HTTP/2 is on"),
            "accesslog.filename" if text.starts_with('|') => refused("the log is a file or standard output"),
            "accesslog.filename" => self.setting(scope, "access-log", text, line),
            "accesslog.format" => refused("the log has the format combined; use log-format for another one"),
            "deflate.mimetypes"
            | "compress.filetype"
            | "deflate.allowed-encodings"
            | "compress.allowed-encodings" => self.compress(key, value, scope, line),
            "expire.url" | "expire.mimetypes" => self.expire(key, value, scope, line),
            "url.redirect"
            | "url.rewrite"
            | "url.rewrite-once"
            | "url.rewrite-repeat"
            | "url.rewrite-if-not-file" => self.ways(key, value, scope, line),
            "url.redirect-code" => Outcome::Translated,
            "url.access-deny" => {
                let mut outcome = default(HIDDEN);
                for ending in value.texts().into_iter().filter(|ending| *ending != "~") {
                    let here = match ending {
                        "" => scope.clone(),
                        _ => scope.beneath(vec![format!("/**{ending}")], 9500),
                    };
                    outcome = self.draft.close(&here, line);
                }
                outcome
            }
            "static-file.exclude-extensions" => {
                let patterns = value.texts().into_iter().map(|ending| format!("/**{ending}")).collect();
                self.draft.close(&scope.beneath(patterns, 9500), line)
            }
            "setenv.add-response-header" | "setenv.set-response-header" => {
                let mut outcome = default("no field");
                for (name, value) in value.pairs() {
                    outcome = match key.contains("set-") || cache_control(value.text()).is_some() {
                        true => self.draft.field(scope, name, value.text(), line),
                        false => self.draft.add_field(scope, name, value.text(), line),
                    };
                    if name.eq_ignore_ascii_case("X-Content-Type-Options")
                        || name.eq_ignore_ascii_case("Strict-Transport-Security")
                    {
                        outcome = self.draft.field(scope, name, value.text(), line);
                    }
                }
                outcome
            }
            "dir-listing.activate" | "server.dir-listing" => match text {
                "enable" => self.draft.rule(scope, "listing", quote("html"), line),
                _ if scope.is_whole() => default("listing is off"),
                _ => self.draft.rule(scope, "listing", quote("off"), line),
            },
            "mimetype.assign" => {
                let mut outcome = Outcome::Translated;
                for (ending, media_type) in value.pairs() {
                    let done = match (ending, media_type.text()) {
                        ("", "application/octet-stream") => default("unknown endings have this type"),
                        (ending, media_type) => self.draft.media_type(scope, ending, media_type, line),
                    };
                    outcome = if matches!(done, Outcome::Refused(_)) { done } else { outcome };
                }
                outcome
            }
            "auth.backend" if text == "htpasswd" => default("users come from a file"),
            "auth.backend.htpasswd.userfile" => Outcome::Translated,
            "auth.require" => self.auth(value, scope, line),
            "alias.url" => self.alias(value, scope, line),
            "ssl.engine" => {
                self.tls |= scope.site == 0 && text == "enable" && self.draft.addresses.is_empty();
                default("each address with a certificate has TLS")
            }
            "ssl.pemfile" | "ssl.privkey" => Outcome::Translated,
            "ssl.openssl.ssl-conf-cmd" => match value.get("MinProtocol") {
                "TLSv1.3" => self.setting(scope, "tls-preset", "modern", line),
                _ => default("TLS 1.2 and 1.3 are on"),
            },
            "extforward.forwarder" => {
                let trusted: Vec<&str> = value
                    .pairs()
                    .into_iter()
                    .filter(|(_, word)| word.text() == "trust")
                    .map(|(name, _)| name)
                    .collect();
                match trusted.contains(&"all") || trusted.is_empty() {
                    true => refused("name the addresses of the proxies in trusted-proxy"),
                    false => self.draft.extend("trusted-proxy", &trusted, line),
                }
            }
            "extforward.headers" => default("forwarded-fields has X-Forwarded-For and Forwarded"),
            _ if is_forwarding(key) => self.forward(key, value, scope, line),
            _ => reasons::lighttpd(key).unwrap_or_else(|| refused("this key is unknown")),
        }
    }

    /// Closes the paths that lighttpd forwards: Tenfold would send their files.
    fn forward(&mut self, key: &str, value: &Value, scope: &Scope, line: usize) -> Outcome {
        let why = if key == "proxy.server" { FORWARDS } else { PROGRAMS };
        let mut outcome = refused(format!("{why}; these paths are closed"));
        for (path, _) in value.pairs() {
            let here = match path {
                "" | "/" => scope.clone(),
                _ if path.starts_with('/') => scope.beneath(vec![format!("{path}**")], path.len().min(8000)),
                _ => scope.beneath(vec![format!("/**{path}")], 9500),
            };
            if let Outcome::Refused(problem) = self.draft.close(&here, line) {
                outcome = refused(format!("{why}; {problem}; {}", reasons::SERVED));
            }
        }
        outcome
    }

    fn compress(&mut self, key: &str, value: &Value, scope: &Scope, line: usize) -> Outcome {
        if !scope.is_whole() {
            return refused(EVERY_PATH);
        }
        let values = value.texts();
        if key.ends_with("allowed-encodings") {
            let codings: Vec<&str> = values
                .into_iter()
                .map(|coding| if coding == "brotli" { "br" } else { coding })
                .filter(|coding| matches!(*coding, "br" | "gzip" | "zstd"))
                .collect();
            return match codings.is_empty() {
                true => refused("a coding is br, zstd or gzip"),
                false => self.draft.extend("compress", &codings, line),
            };
        }
        if !self.draft.settings.contains_key("compress") {
            self.draft.extend("compress", &["gzip"], line);
        }
        let types: Vec<String> = values
            .iter()
            .filter(|name| !name.is_empty())
            .map(|name| match name.split_once('/') {
                Some((kind, "")) => format!("{kind}/*"),
                _ => (*name).to_owned(),
            })
            .collect();
        let types: Vec<&str> = types.iter().map(String::as_str).collect();
        self.draft.extend("compress-types", &types, line)
    }

    fn expire(&mut self, key: &str, value: &Value, scope: &Scope, line: usize) -> Outcome {
        let mut outcome = refused("a path is missing");
        for (name, time) in value.pairs() {
            let Some(seconds) = expiry(time.text()) else {
                return refused("a lifetime begins at the request");
            };
            let patterns = match key {
                "expire.url" => vec![format!("{name}**")],
                _ => match endings(name) {
                    Some(endings) => endings.iter().map(|ending| format!("/**.{ending}")).collect(),
                    None => return refused(format!("a rule has paths, and no ending of {name} is known")),
                },
            };
            let here = match name {
                "" | "/" if key == "expire.url" => scope.clone(),
                _ if !scope.is_whole() && name.is_empty() => scope.clone(),
                _ => scope.beneath(patterns, name.len()),
            };
            outcome = self.draft.rule(&here, "cache", quote(&lifetime(seconds)), line);
        }
        outcome
    }

    fn ways(&mut self, key: &str, value: &Value, scope: &Scope, line: usize) -> Outcome {
        let mut outcome = refused("a path is missing");
        let is_redirect = key == "url.redirect";
        for (expression, target) in value.pairs() {
            let target = target.text().trim_end_matches("${qsa}");
            if target.contains(".php") {
                return refused(PROGRAMS);
            }
            let is_page = key == "url.rewrite-if-not-file"
                && matches!(
                    expression,
                    "" | "^/.*"
                        | "^/.*$"
                        | "^/(.*)$"
                        | "^/(.*)"
                        | "(.*)"
                        | "^(.*)$"
                        | ".*"
                        | "/(.*)"
                        | "/(?!assets).*"
                );
            if is_page && !target.contains(['$', '%']) {
                outcome =
                    self.draft.rule(scope, "try-files", format!("[\"{{path}}\", {}]", quote(target)), line);
                continue;
            }
            if key == "url.rewrite-if-not-file" {
                return refused(CONDITIONS);
            }
            // A redirect in a block for some paths is for these paths only.
            let found = match (scope.is_whole(), globs::of(expression, Subject::Path)) {
                (true, Some(found)) => found,
                _ => {
                    return refused(reasons::NO_PATTERN);
                }
            };
            let target = target.replace("${url.path}", "$0");
            for glob in found {
                let Some((from, to)) = glob.fill(&target, '$') else {
                    return refused("only the rest of a path can be kept, and no variables");
                };
                outcome = match is_redirect {
                    true => self.draft.redirect(scope.site, (&from, &to), self.redirect_status, line),
                    false => self.draft.rewrite(scope.site, (&from, &to), line),
                };
                if matches!(outcome, Outcome::Refused(_)) {
                    return outcome;
                }
            }
        }
        outcome
    }

    fn auth(&mut self, value: &Value, scope: &Scope, line: usize) -> Outcome {
        let mut outcome = refused("a path is missing");
        for (path, options) in value.pairs() {
            let here = match path {
                "" | "/" => scope.clone(),
                _ => scope.beneath(vec![format!("{path}**")], path.len()),
            };
            let is_basic = options.get("method") == "basic" && options.get("require") == "valid-user";
            outcome = match self.users.clone() {
                Some(users) if is_basic => self.draft.auth(&here, options.get("realm"), &quote(&users), line),
                _ => {
                    self.draft.close(&here, line);
                    refused(
                        "only basic authentication with a file of users exists; these paths are closed until then",
                    )
                }
            };
        }
        outcome
    }

    fn alias(&mut self, value: &Value, scope: &Scope, line: usize) -> Outcome {
        let root = self.draft.sites[scope.site]
            .root
            .clone()
            .map_or_else(String::new, |(root, _)| root.trim_end_matches('/').to_owned());
        let mut outcome = refused("a path is missing");
        for (path, folder) in value.pairs() {
            outcome = match folder
                .text()
                .strip_prefix(&root)
                .filter(|rest| !root.is_empty() && rest.starts_with('/'))
            {
                Some(rest) => {
                    self.draft.rewrite(scope.site, (&globs::beneath(path), &globs::beneath(rest)), line)
                }
                None => refused(
                    "a host has one folder: move this folder beneath the root, or give it a [[host]] of its own",
                ),
            };
        }
        outcome
    }
}

/// Whether a key closes paths, or requires a password for them.
fn is_denial(key: &str) -> bool {
    matches!(key, "url.access-deny" | "static-file.exclude-extensions" | "auth.require") || is_forwarding(key)
}

/// Whether a key forwards paths to a proxy or a program.
fn is_forwarding(key: &str) -> bool {
    key == "cgi.assign"
        || ["proxy", "fastcgi", "scgi", "uwsgi", "ajp13", "sockproxy", "wstunnel"]
            .iter()
            .any(|module| key.strip_prefix(module) == Some(".server"))
}

/// Whether a block, or a block in it, closes paths.
fn denies(block: &[Statement]) -> bool {
    block.iter().any(|inner| match inner {
        Statement::Set { key, .. } => is_denial(key),
        Statement::When { block, .. } | Statement::Else { block, .. } => denies(block),
        Statement::Include { .. } => false,
    })
}

/// Whether a block has an assignment that `is` accepts.
fn has(block: &[Statement], is: impl Fn(&str, &Value) -> bool) -> bool {
    block.iter().any(|inner| matches!(inner, Statement::Set { key, value, .. } if is(key, value)))
}
