//! The state of the translation, and matchers.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::draft::{Draft, Scope};
use crate::globs::{self, Subject};
use crate::outcome::Outcome;
use crate::tree::Directive;
use crate::values::{seconds, time};

pub(super) fn only_redirects(site: &Directive) -> bool {
    let is_way =
        |directive: &Directive| matches!(directive.name.as_str(), "redir" | "tls" | "log" | "header");
    site.find("redir").is_some_and(|redirect| redirect.args.iter().all(|word| !word.starts_with(['/', '@'])))
        && site.inner().iter().all(is_way)
}

/// The requests that a matcher selects.
#[derive(Clone, Debug)]
pub(super) enum Matcher {
    Paths(Vec<String>),
    Hosts(Vec<String>),
    /// A part of these paths.
    Partly(Vec<String>),
    /// Names that begin with a dot.
    Hidden,
    Other,
}

pub(super) struct Caddy<'a, 'b> {
    pub(super) draft: &'a mut Draft<'b>,
    /// The matchers of the site, by name.
    pub(super) matchers: BTreeMap<String, Matcher>,
    pub(super) global: Global,
    pub(super) has_log: bool,
    /// Paths of `handle` without `try_files`, with their lines.
    pub(super) plain: Vec<(Scope, usize)>,
    /// Whether a `handle` for the other paths has `try_files`.
    pub(super) has_tries: bool,
}

pub(super) fn is_forwarding(name: &str) -> bool {
    matches!(
        name,
        "reverse_proxy"
            | "php_fastcgi"
            | "php_server"
            | "php"
            | "cgi"
            | "forward_auth"
            | "forward_proxy"
            | "frankenphp"
    )
}

pub(super) fn beneath(scope: &Scope, patterns: Vec<String>) -> Scope {
    let weight = patterns.iter().map(|pattern| pattern.trim_end_matches('*').len()).max().unwrap_or(0);
    scope.beneath(patterns, weight)
}

/// Returns a path of Caddy, in which a star also stands for slashes.
pub(super) fn pattern(path: &str) -> String {
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    path.replace('*', "**")
}

pub(super) fn matcher(kind: &str, args: &[String]) -> Matcher {
    match (kind, args) {
        ("path", paths) if !paths.is_empty() => {
            match paths.iter().all(|path| path.contains("/.") && !path.contains("well-known")) {
                true => Matcher::Hidden,
                false => Matcher::Paths(paths.iter().map(|path| pattern(path)).collect()),
            }
        }
        ("path_regexp", [.., expression]) => match globs::is_hidden(expression) {
            true => Matcher::Hidden,
            false => globs::of(expression, Subject::Path).map_or(Matcher::Other, |found| {
                Matcher::Paths(found.into_iter().map(|glob| glob.pattern).collect())
            }),
        },
        ("host", hosts) => Matcher::Hosts(hosts.to_vec()),
        _ => Matcher::Other,
    }
}

/// Returns the duration of an option as Tenfold writes it.
pub(super) fn duration(text: &str) -> Option<String> {
    seconds(text).map(time)
}

/// Options of the whole server, and needs of the sites.
#[derive(Debug, Default)]
pub(super) struct Global {
    pub(super) http_port: Option<u16>,
    pub(super) https_port: Option<u16>,
    /// Whether hosts have certificates without an option of their own.
    pub(super) without_tls: bool,
    pub(super) without_redirects: bool,
    pub(super) local: bool,
    /// The line of a site that uses the usual ports with TLS.
    pub(super) usual_tls: Option<usize>,
    /// The IP addresses of every site; empty: all addresses.
    pub(super) bound: Vec<IpAddr>,
}

impl Global {
    /// Returns the usual ports of HTTP and HTTPS.
    pub(super) fn ports(&self) -> (u16, u16) {
        (self.http_port.unwrap_or(80), self.https_port.unwrap_or(443))
    }
}

impl Caddy<'_, '_> {
    pub(super) fn record(&mut self, directive: &Directive, outcome: Outcome) {
        self.draft.record(directive.line, &directive.name, outcome);
    }

    pub(super) fn record_all(&mut self, directives: &[Directive], outcome: &Outcome) {
        for directive in directives {
            self.note_program(directive);
            self.record(directive, outcome.clone());
            self.record_all(directive.inner(), outcome);
        }
    }

    pub(super) fn note_program(&mut self, directive: &Directive) {
        if directive.name.starts_with("php") || directive.args.iter().any(|arg| arg.contains(".php")) {
            self.draft.programs.insert("php");
        }
    }

    pub(super) fn refuse(&mut self, directive: &Directive, outcome: &Outcome) {
        self.record(directive, outcome.clone());
        self.record_all(directive.inner(), outcome);
    }

    pub(super) fn find_matchers(&mut self, directives: &[Directive]) {
        for directive in directives {
            if let Some(name) = directive.name.strip_prefix('@') {
                let matcher = match directive.block {
                    Some(_) => match directive.inner() {
                        [only] => matcher(&only.name, &only.args),
                        several => several
                            .iter()
                            .find_map(|one| match matcher(&one.name, &one.args) {
                                Matcher::Paths(patterns) => Some(Matcher::Partly(patterns)),
                                _ => None,
                            })
                            .unwrap_or(Matcher::Other),
                    },
                    None => directive
                        .args
                        .split_first()
                        .map_or(Matcher::Other, |(kind, args)| matcher(kind, args)),
                };
                self.matchers.insert(name.to_owned(), matcher);
            }
            self.find_matchers(directive.inner());
        }
    }

    /// Returns the scope of a directive with a matcher, and the arguments after the matcher.
    pub(super) fn scoped<'d>(
        &self,
        directive: &'d Directive,
        scope: &Scope,
    ) -> (Result<Scope, Matcher>, &'d [String]) {
        let (first, rest) = match directive.args.split_first() {
            Some((first, rest)) => (first.as_str(), rest),
            None => return (Ok(scope.clone()), &[]),
        };
        match first {
            "*" => (Ok(scope.clone()), rest),
            _ if first.starts_with('@') => {
                let matcher = self.matchers.get(&first[1..]).cloned().unwrap_or(Matcher::Other);
                match matcher {
                    Matcher::Paths(patterns) => (Ok(beneath(scope, patterns)), rest),
                    other => (Err(other), rest),
                }
            }
            _ if first.starts_with('/') => (Ok(beneath(scope, vec![pattern(first)])), rest),
            _ => (Ok(scope.clone()), &directive.args),
        }
    }
}
