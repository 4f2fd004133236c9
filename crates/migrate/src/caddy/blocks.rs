//! Blocks and matchers: handle, handle_errors, file_server.

use super::addresses;
use super::state::{Caddy, Matcher, beneath, is_forwarding};
use crate::draft::Scope;
use crate::globs::{self};
use crate::outcome::{Outcome, default, refused};
use crate::reasons::{self, CONDITIONS, HIDDEN, PROGRAMS, VARIABLES};
use crate::toml::quote;
use crate::tree::Directive;

impl Caddy<'_, '_> {
    pub(super) fn site(&mut self, site: &Directive, several: bool) {
        let Some(at) = addresses::site(self, site, several) else { return };
        self.matchers.clear();
        self.find_matchers(site.inner());
        let scope = Scope::of(at);
        (self.plain, self.has_tries) = (Vec::new(), false);
        self.block(site.inner(), &scope);
        // One `handle` applies, so the tried files of another one do not.
        for (scope, line) in std::mem::take(&mut self.plain) {
            if self.has_tries && !self.draft.has_rule(&scope, "try-files") {
                self.draft.rule(&scope, "try-files", "[\"{path}\"]".into(), line);
            }
        }
    }

    pub(super) fn block(&mut self, directives: &[Directive], scope: &Scope) {
        for directive in directives {
            self.note_program(directive);
            self.directive(directive, scope);
        }
    }

    pub(super) fn directive(&mut self, directive: &Directive, scope: &Scope) {
        let name = directive.name.as_str();
        match name {
            "handle" | "handle_path" | "route" => return self.handle(directive, scope),
            "handle_errors" => return self.handle_errors(directive, scope),
            "file_server" => return self.file_server(directive, scope),
            "header" | "encode" | "log" | "tls" | "basic_auth" | "basicauth" | "request_body" => {}
            _ if name.starts_with('@') => {
                let outcome = match self.matchers.get(&name[1..]) {
                    Some(Matcher::Other | Matcher::Partly(_)) | None => refused(CONDITIONS),
                    Some(Matcher::Hidden) => default(HIDDEN),
                    Some(_) => Outcome::Translated,
                };
                self.record(directive, outcome.clone());
                return self.record_all(directive.inner(), &outcome);
            }
            _ => {}
        }
        let (scoped, args) = self.scoped(directive, scope);
        let outcome = match scoped {
            Ok(here) => self.simple(directive, &here, args),
            Err(matcher) => self.matched(directive, &matcher, args, scope),
        };
        self.record(directive, outcome.clone());
        let is_read = ["header", "encode", "log", "tls", "request_body"].contains(&name)
            && outcome != refused(CONDITIONS);
        if !is_read {
            self.record_all(directive.inner(), &outcome);
        }
    }

    /// A directive with a matcher of other things than paths.
    pub(super) fn matched(
        &mut self,
        directive: &Directive,
        matcher: &Matcher,
        args: &[String],
        scope: &Scope,
    ) -> Outcome {
        match (directive.name.as_str(), matcher) {
            ("respond" | "error" | "abort", Matcher::Hidden) => default(HIDDEN),
            ("respond" | "error" | "abort", Matcher::Partly(patterns)) => {
                self.draft.close(&beneath(scope, patterns.clone()), directive.line);
                refused(format!("{CONDITIONS}; these paths are closed without exceptions"))
            }
            ("redir", Matcher::Hosts(hosts)) if scope.is_whole() => {
                match self.draft.host(hosts, directive.line) {
                    Ok(site) => self.redirect(&Scope::of(site), args, directive.line),
                    Err(why) => why,
                }
            }
            ("reverse_proxy" | "php_fastcgi", _) => {
                self.draft.close(scope, directive.line);
                let why = if directive.name == "php_fastcgi" { PROGRAMS } else { reasons::FORWARDS };
                refused(format!("{why}; these paths get 404"))
            }
            ("basic_auth" | "basicauth", _) => {
                self.draft.close(scope, directive.line);
                refused(format!("{CONDITIONS}; the paths are closed"))
            }
            _ => refused(CONDITIONS),
        }
    }

    pub(super) fn handle(&mut self, directive: &Directive, scope: &Scope) {
        let (scoped, _) = self.scoped(directive, scope);
        let here = match scoped {
            Ok(here) => here,
            Err(Matcher::Hosts(hosts)) if scope.is_whole() => match self.draft.host(&hosts, directive.line) {
                Ok(site) => Scope::of(site),
                Err(why) => return self.refuse(directive, &why),
            },
            Err(_) => return self.refuse(directive, &refused(CONDITIONS)),
        };
        let forwards = directive.inner().iter().any(|inner| is_forwarding(&inner.name));
        if !here.is_whole() && !forwards {
            self.draft.open(&here, directive.line);
        }
        match here.is_whole() {
            true => self.has_tries |= directive.find("try_files").is_some(),
            false => self.plain.push((here.clone(), directive.line)),
        }
        let mut outcome = Outcome::Translated;
        if directive.name == "handle_path" && !forwards {
            outcome = self.strip(&here, directive);
        }
        self.record(directive, outcome);
        let is_stripped = directive.name == "handle_path";
        for inner in directive.inner() {
            self.note_program(inner);
            match inner.name.as_str() {
                "root" if is_stripped => self.record(inner, Outcome::Translated),
                _ => self.directive(inner, &here),
            }
        }
    }

    /// `handle_path` serves files without its prefix: a rewrite to the folder, if that is beneath the root.
    pub(super) fn strip(&mut self, here: &Scope, directive: &Directive) -> Outcome {
        let [pattern] = here.patterns.as_slice() else { return Outcome::Translated };
        let Some(from) = pattern.strip_suffix("/**") else { return refused("a prefix ends with /*") };
        let root = directive.find("root").and_then(|root| root.args.last()).cloned();
        let site =
            self.draft.sites[here.site].root.as_ref().map(|(root, _)| root.trim_end_matches('/').to_owned());
        let folder = match (root, site) {
            (None, _) => String::new(),
            (Some(folder), Some(site)) if folder.starts_with(&site) => {
                folder[site.len()..].trim_end_matches('/').to_owned()
            }
            (Some(_), _) => {
                return refused(
                    "a host has one folder: move this folder beneath the root, or give it a [[host]] of its own",
                );
            }
        };
        if folder == from {
            return default("the folder has this path beneath the root");
        }
        self.draft.rewrite(here.site, (&globs::beneath(from), &globs::beneath(&folder)), directive.line)
    }

    pub(super) fn file_server(&mut self, directive: &Directive, scope: &Scope) {
        let (scoped, args) = self.scoped(directive, scope);
        let here = match scoped {
            Ok(here) => here,
            Err(_) => return self.refuse(directive, &refused(CONDITIONS)),
        };
        let mut outcome = default("files are always served");
        if args.iter().any(|word| word == "browse") {
            outcome = self.draft.rule(&here, "listing", quote("html"), directive.line);
        }
        self.record(directive, outcome);
        for option in directive.inner() {
            let words: Vec<&str> = option.args.iter().map(String::as_str).collect();
            let outcome = match option.name.as_str() {
                "root" => self.draft.root(&here, option.arg(0), option.line),
                "index" => self.draft.index(&here, &words, option.line),
                "browse" => {
                    let outcome = self.draft.rule(&here, "listing", quote("html"), option.line);
                    self.record_all(option.inner(), &refused("a listing has one form"));
                    match option.args.is_empty() {
                        true => outcome,
                        false => refused("a listing has one form, without templates"),
                    }
                }
                "precompressed" if words.is_empty() => {
                    self.draft.set("precompressed", &["br", "zstd", "gzip"], option.line)
                }
                "precompressed" => self.draft.set("precompressed", &words, option.line),
                "hide" => self.hide(&here, option),
                "disable_canonical_uris" => {
                    self.draft.site_key(&here, "trailing-slash", quote("either"), option.line)
                }
                "etag_file_extensions" | "fs" | "status" | "pass_thru" => {
                    refused("Tenfold has no such option")
                }
                _ => refused("this option is unknown"),
            };
            self.record(option, outcome);
        }
    }

    pub(super) fn hide(&mut self, here: &Scope, option: &Directive) -> Outcome {
        let mut outcome = default(HIDDEN);
        for name in option.args.iter().filter(|name| !name.trim_start_matches(['.', '/']).is_empty()) {
            let last = name.trim_start_matches("./").trim_start_matches('/');
            if last.starts_with('.') || name.contains("/.") || last == "Caddyfile" && name.contains("/etc/") {
                continue;
            }
            let last = last.replace("**", "*");
            let patterns = ["/", "/**/"]
                .iter()
                .flat_map(|front| [format!("{front}{last}"), format!("{front}{last}/**")]);
            outcome = self.draft.close(&here.beneath(patterns.collect(), 40_000), option.line);
        }
        outcome
    }

    pub(super) fn handle_errors(&mut self, directive: &Directive, scope: &Scope) {
        let ways: Vec<&Directive> =
            directive.inner().iter().filter(|inner| inner.name == "rewrite").collect();
        let page = match ways.as_slice() {
            [only] => only.args.last().map(String::as_str),
            _ => None,
        };
        let plain = directive
            .inner()
            .iter()
            .all(|inner| matches!(inner.name.as_str(), "rewrite" | "file_server" | "root"));
        let by_status = page.is_some_and(|page| page.contains("status_code}"));
        let statuses: Vec<String> = match directive.args.as_slice() {
            [] if by_status => ["401", "403", "404", "405", "500", "503"].map(str::to_owned).to_vec(),
            [] => ["4xx", "5xx"].map(str::to_owned).to_vec(),
            some => some.to_vec(),
        };
        let mut outcome = refused("error pages are files by status: error-pages = { 404 = \"/404.html\" }");
        if let Some(page) = page.filter(|_| plain) {
            for status in &statuses {
                let page =
                    page.replace("{err.status_code}", status).replace("{http.error.status_code}", status);
                outcome = match page.contains('{') {
                    true => refused(VARIABLES),
                    false => self.draft.error_page(scope, status, &page, directive.line),
                };
            }
        }
        self.record(directive, outcome.clone());
        self.record_all(directive.inner(), &outcome);
    }
}
