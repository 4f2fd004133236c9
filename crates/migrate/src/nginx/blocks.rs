//! Blocks: locations, conditions, and tables of types.

use super::servers;
use super::state::{
    Access, Context, FORWARDING, Level, Nginx, OF_VALUES, RESTRICTING, access_of, is_error_page, page_of,
};
use crate::draft::Scope;
use crate::globs::{self, Subject};
use crate::outcome::{Outcome, default, refused};
use crate::reasons::{self, CONDITIONS, CONDITIONS_SERVED, FORWARDS, HIDDEN, METHODS, PROGRAMS, VARIABLES};
use crate::toml::list;
use crate::tree::Directive;

impl<'t> Nginx<'_, '_> {
    /// Translates the directives of a block.
    pub(super) fn block(&mut self, directives: &'t [Directive], context: &Context<'t>) {
        self.restrict(directives, context);
        let Context { scope, level, server, hidden, .. } = context;
        let (scope, level, hidden) = (scope.clone(), *level, *hidden);
        let context = &Context { scope, level, server, block: directives, hidden };
        for directive in directives {
            self.directive(directive, context);
        }
    }

    /// Closes the paths of a block with a rule about access that has no equivalent.
    pub(super) fn restrict(&mut self, directives: &[Directive], context: &Context<'t>) {
        let rules: Vec<&str> = directives
            .iter()
            .filter(|directive| matches!(directive.name.as_str(), "allow" | "deny"))
            .map(|directive| if directive.arg(0) == "all" { directive.name.as_str() } else { "some" })
            .collect();
        let denies = !matches!(rules.as_slice(), [] | ["allow", ..]);
        let restricting = directives.iter().find(|directive| {
            RESTRICTING.contains(&directive.name.as_str())
                || directive.name == "ssl_verify_client" && directive.arg(0) != "off"
        });
        let line = directives.first().map_or(0, |directive| directive.line);
        let is_page = context.scope.patterns.iter().all(|pattern| is_error_page(context.server, pattern));
        let is_internal_page = restricting.is_some_and(|directive| directive.name == "internal") && is_page;
        if (denies || restricting.is_some() && !is_internal_page) && !context.hidden {
            self.draft.close(&context.scope, line);
        }
    }

    pub(super) fn directive(&mut self, directive: &'t Directive, context: &Context<'t>) {
        self.note_program(directive);
        match directive.name.as_str() {
            "http" | "events" if directive.block.is_some() => {
                self.draft.record(directive.line, &directive.name, default("settings have one level"));
                self.block(directive.inner(), context);
            }
            "server" if directive.block.is_some() => servers::server(self, directive),
            "location" if directive.block.is_some() => self.location(directive, context),
            "if" => self.condition(directive, context),
            "types" => self.types(directive, context),
            "limit_except" => {
                self.draft.record(directive.line, &directive.name, default(METHODS));
                self.accept_all(directive.inner(), &default(METHODS));
            }
            name if OF_VALUES.contains(&name) => {
                let outcome = reasons::nginx(&directive.name).unwrap_or_else(|| refused(VARIABLES));
                self.draft.record(directive.line, &directive.name, outcome);
            }
            _ if directive.block.is_some() => {
                let outcome = reasons::nginx(&directive.name);
                match outcome {
                    Some(Outcome::Refused(why)) => self.refuse(directive, &why),
                    _ => self.refuse(directive, "this block is unknown"),
                }
            }
            _ => {
                let outcome = self.simple(directive, context);
                self.draft.record(directive.line, &directive.name, outcome);
            }
        }
    }

    pub(super) fn location(&mut self, directive: &'t Directive, context: &Context<'t>) {
        let (modifier, path) = match directive.args.as_slice() {
            [path] if path.starts_with('@') => return self.named_location(directive, context),
            [path] => ("", path.as_str()),
            [modifier, path] => (modifier.as_str(), path.as_str()),
            _ => return self.refuse(directive, "a location has a path"),
        };
        // nginx allows a modifier without a space: `=/path`.
        let (modifier, path) = match (modifier, path) {
            ("", path) => ["^~", "~*", "~", "="]
                .iter()
                .find_map(|modifier| Some((*modifier, path.strip_prefix(modifier)?)))
                .unwrap_or(("", path)),
            both => both,
        };
        let is_expression = modifier.starts_with('~');
        let found = match is_expression {
            true => globs::of(path, Subject::Path).unwrap_or_default(),
            false => Vec::new(),
        };
        let nth = context.server.iter().take_while(|other| !std::ptr::eq(*other, directive)).count();
        let (patterns, weight) = match modifier {
            "=" => (vec![path.to_owned()], 30_000),
            "^~" => (vec![prefix(path)], 20_000 + path.len().min(9000)),
            _ if is_expression => {
                let patterns: Vec<String> = found.iter().map(|glob| glob.pattern.clone()).collect();
                (patterns, 10_000 - nth.min(900))
            }
            _ if path == "/" => (Vec::new(), 0),
            _ => (vec![prefix(path)], path.len().min(9000)),
        };
        let hidden =
            is_expression && globs::is_hidden(path) || path.starts_with("/.ht") || path.starts_with("/.git");
        if patterns.is_empty() && (is_expression || path.is_empty()) && !hidden {
            let why = reasons::NO_PATTERN;
            if access_of(directive.inner()) == Access::Closed {
                return self.refuse(
                    directive,
                    &format!("{why}; these files are served now, so move them out of the root"),
                );
            }
            return self.refuse(directive, why);
        }
        if hidden && access_of(directive.inner()) == Access::Closed {
            self.draft.record(directive.line, &directive.name, default(HIDDEN));
            return self.accept_all(directive.inner(), &default(HIDDEN));
        }
        let scope = context.scope.beneath(patterns, weight);
        if let Err(outcome) = self.draft.check_patterns(&scope) {
            self.draft.record(directive.line, &directive.name, outcome.clone());
            return match outcome {
                Outcome::Refused(why) => self.refuse_all(directive.inner(), &why),
                _ => self.accept_all(directive.inner(), &outcome),
            };
        }
        let forwards = directive.inner().iter().find(|inner| FORWARDING.contains(&inner.name.as_str()));
        match forwards {
            Some(forwarding) => {
                let why = if forwarding.name.starts_with("fastcgi") { PROGRAMS } else { FORWARDS };
                self.draft.record(
                    directive.line,
                    &directive.name,
                    refused(format!("{why}; these paths get 404")),
                );
                self.draft.close(&scope, directive.line);
            }
            None => {
                self.draft.record(directive.line, &directive.name, Outcome::Translated);
                if access_of(directive.inner()) == Access::Open {
                    self.draft.open(&scope, directive.line);
                }
            }
        }
        let (server, block) = (context.server, directive.inner());
        let inner = Context { scope, level: Level::Location, server, block, hidden: false };
        self.location_block(directive, &inner, &found);
        self.reset(directive, context, &inner.scope);
    }

    pub(super) fn location_block(
        &mut self,
        directive: &'t Directive,
        context: &Context<'t>,
        found: &[globs::Glob],
    ) {
        let of_type = directive.inner().iter().any(|inner| inner.name == "types" && inner.inner().is_empty());
        self.restrict(directive.inner(), context);
        for inner in directive.inner() {
            let outcome = match inner.name.as_str() {
                "return" => Some(self.returned(inner, context, found)),
                "default_type"
                    if of_type || context.scope.patterns.iter().all(|pattern| has_no_ending(pattern)) =>
                {
                    let key = if of_type { "*" } else { "" };
                    Some(self.draft.media_type(&context.scope, key, inner.arg(0), inner.line))
                }
                _ => None,
            };
            match outcome {
                Some(outcome) => self.draft.record(inner.line, &inner.name, outcome),
                None => self.directive(inner, context),
            }
        }
    }

    /// Switches off the rules of shorter locations: in nginx, one location applies.
    pub(super) fn reset(&mut self, directive: &Directive, context: &Context<'t>, scope: &Scope) {
        let leads = |inner: &Directive| {
            matches!(inner.name.as_str(), "return" | "rewrite") || FORWARDING.contains(&inner.name.as_str())
        };
        let redirects = directive.inner().iter().any(leads);
        if scope.is_whole() || redirects || access_of(directive.inner()) == Access::Closed {
            return;
        }
        let whole = Scope::of(scope.site);
        let broad = context.server.iter().find(|other| other.name == "location" && other.args == ["/"]);
        let broad = |name: &str| broad.and_then(|broad| broad.find(name));
        let at_server = |name: &str| context.server.iter().any(|other| other.name == name);
        for (name, key, off) in [
            ("autoindex", "listing", "\"off\""),
            ("auth_basic", "auth", "false"),
            ("try_files", "try-files", "[\"{path}\"]"),
        ] {
            let is_leaking = broad(name).is_some() && !at_server(name) && directive.find(name).is_none();
            if is_leaking && self.draft.has_rule(&whole, key) && !self.draft.has_rule(scope, key) {
                self.draft.rule(scope, key, off.into(), directive.line);
            }
        }
    }

    /// A location with a name: `try_files` and `error_page` lead to it.
    pub(super) fn named_location(&mut self, directive: &'t Directive, _context: &Context<'t>) {
        match page_of(directive) {
            Some(_) => {
                self.draft.record(directive.line, &directive.name, Outcome::Translated);
                self.accept_all(directive.inner(), &Outcome::Translated);
            }
            None => {
                let forwards =
                    directive.inner().iter().any(|inner| FORWARDING.contains(&inner.name.as_str()));
                self.refuse(
                    directive,
                    if forwards { FORWARDS } else { "a location with a name has no equivalent" },
                );
            }
        }
    }

    pub(super) fn condition(&mut self, directive: &'t Directive, context: &Context<'t>) {
        let condition = directive.args.join(" ");
        let condition = condition.trim_matches(['(', ')']).trim();
        let only = match directive.inner() {
            [only] => Some(only),
            _ => None,
        };
        let is_method = condition.starts_with("$request_method") && condition.contains('!');
        if is_method && only.is_some_and(|only| only.name == "return") {
            self.draft.record(directive.line, &directive.name, default(METHODS));
            return self.accept_all(directive.inner(), &default(METHODS));
        }
        let missing = condition.strip_prefix("!-").is_some_and(|rest| rest.ends_with("$request_filename"));
        if missing && let Some(only) = only.filter(|only| only.name == "rewrite") {
            let page = only.arg(1);
            let outcome = match page.starts_with('/') && !page.contains('$') && !page.contains(".php") {
                true => self.draft.rule(
                    &context.scope,
                    "try-files",
                    list(&["{path}".into(), page.into()]),
                    only.line,
                ),
                false => refused(if page.contains(".php") { PROGRAMS } else { CONDITIONS }),
            };
            self.draft.record(directive.line, &directive.name, outcome.clone());
            return self.draft.record(only.line, &only.name, outcome);
        }
        if let Some(host) =
            condition.strip_prefix("$host = ").or_else(|| condition.strip_prefix("$http_host = "))
            && let Some(only) = only.filter(|only| only.name == "return")
            && only.args.last().is_some_and(|target| target.contains("://"))
            && context.level == Level::Server
        {
            let outcome = servers::host_redirect(self, host.trim_matches(['"', '\'']), only);
            self.draft.record(directive.line, &directive.name, outcome.clone());
            return self.draft.record(only.line, &only.name, outcome);
        }
        let to_https = only.is_some_and(servers::leads_to_https);
        if to_https
            && (condition.starts_with("$scheme")
                || condition.starts_with("$https")
                || condition.starts_with("$server_port"))
        {
            let outcome = servers::https_redirect(self, directive.line);
            self.draft.record(directive.line, &directive.name, outcome.clone());
            return self.accept_all(directive.inner(), &outcome);
        }
        let closes = access_of(directive.inner()) == Access::Closed;
        self.refuse(directive, if closes { CONDITIONS_SERVED } else { CONDITIONS });
    }

    pub(super) fn types(&mut self, directive: &Directive, context: &Context<'t>) {
        let mut outcome = Outcome::Translated;
        for entry in directive.inner() {
            for ending in &entry.args {
                let key = format!(".{ending}");
                if let refused @ Outcome::Refused(_) =
                    self.draft.media_type(&context.scope, &key, &entry.name, entry.line)
                {
                    outcome = refused;
                }
            }
        }
        self.draft.record(directive.line, &directive.name, outcome);
    }
}

/// Returns the pattern of a prefix, which nginx compares as text.
fn prefix(path: &str) -> String {
    format!("{path}**")
}

/// Whether the last part of a path has no dot.
fn has_no_ending(pattern: &str) -> bool {
    !pattern.ends_with('*') && !pattern.rsplit('/').next().unwrap_or_default().contains('.')
}
