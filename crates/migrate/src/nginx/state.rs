//! The state of the translation, and the definitions that directives refer to.

use std::collections::BTreeMap;

use crate::draft::{Draft, Scope};
use crate::outcome::{Outcome, refused};
use crate::reasons::EVERY_PATH;
use crate::tree::Directive;
use crate::values::{seconds, time};

/// The place of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Http,
    Server,
    Location,
}

pub(super) struct Context<'t> {
    pub(super) scope: Scope,
    pub(super) level: Level,
    /// The directives of the server.
    pub(super) server: &'t [Directive],
    /// The directives of the same block.
    pub(super) block: &'t [Directive],
    /// Whether the paths are hidden files.
    pub(super) hidden: bool,
}

pub(super) struct Nginx<'a, 'b> {
    pub(super) draft: &'a mut Draft<'b>,
    /// `log_format` by name.
    pub(super) formats: BTreeMap<String, Vec<String>>,
    /// Requests a second of `limit_req_zone`, by zone.
    pub(super) rates: BTreeMap<String, Option<u64>>,
    /// Zones of `limit_conn_zone` that count by address.
    pub(super) by_address: Vec<String>,
    /// Whether `set_real_ip_from` names a proxy.
    pub(super) proxies: bool,
    /// The remaining servers, the next one last.
    pub(super) plans: Vec<Plan>,
    /// Whether several servers have content.
    pub(super) has_hosts: bool,
}

/// Blocks whose entries are values, and no directives.
pub(super) const OF_VALUES: [&str; 5] = ["types", "map", "geo", "split_clients", "charset_map"];

/// Directives that send a request elsewhere.
pub(super) const FORWARDING: [&str; 7] = [
    "proxy_pass",
    "fastcgi_pass",
    "uwsgi_pass",
    "scgi_pass",
    "grpc_pass",
    "memcached_pass",
    "content_by_lua_block",
];

/// Directives that restrict access in a way without an equivalent.
pub(super) const RESTRICTING: [&str; 6] =
    ["auth_request", "auth_jwt", "secure_link", "secure_link_secret", "auth_digest", "internal"];

pub(super) const VARIABLES_TOO: &str =
    "has variables without an equivalent: only the rest of a path can be kept";

/// Whether clients may request the paths of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Open,
    Closed,
}

pub(super) fn access_of(directives: &[Directive]) -> Access {
    let denies = |directive: &Directive| match directive.name.as_str() {
        "deny" | "internal" => true,
        "return" => matches!(directive.arg(0), "403" | "404" | "444"),
        _ => false,
    };
    if directives.iter().any(denies) { Access::Closed } else { Access::Open }
}

pub(super) fn find_in<'t>(directives: &'t [Directive], name: &str) -> Option<&'t Directive> {
    directives.iter().find(|directive| directive.name == name)
}

pub(super) fn find_location<'t>(directives: &'t [Directive], name: &str) -> Option<&'t Directive> {
    directives.iter().find(|directive| directive.name == "location" && directive.args == [name])
}

/// Returns the page of a location that only leads to a page.
pub(super) fn page_of(location: &Directive) -> Option<&str> {
    match location.inner() {
        [only]
            if only.name == "rewrite"
                && matches!(only.arg(0), "^" | ".*" | "^(.*)$" | "^(.+)$" | "^.*$" | "^/(.*)$" | "^/.*$") =>
        {
            let page = only.arg(1);
            (page.starts_with('/') && !page.contains('$') && !page.contains(".php")).then_some(page)
        }
        [only] if only.name == "try_files" && only.args.len() == 2 && only.arg(1) == "=404" => {
            let page = only.arg(0);
            (page.starts_with('/') && !page.contains('$')).then_some(page)
        }
        _ => None,
    }
}

pub(super) fn is_error_page(server: &[Directive], pattern: &str) -> bool {
    let pages = server.iter().filter(|directive| directive.name == "error_page");
    pages
        .filter_map(|directive| directive.args.last())
        .any(|page| page == pattern || pattern.trim_end_matches('*') == page)
}

/// The purpose of a `server`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// It serves the site at this place of the draft.
    Content(usize),
    /// It redirects every request.
    Redirect,
    /// It refuses unknown hosts.
    Refuse,
}

impl<'t> Nginx<'_, '_> {
    /// Collects the definitions that directives refer to.
    pub(super) fn collect(&mut self, directives: &[Directive]) {
        for directive in directives {
            let zone = directive.args.iter().find_map(|word| word.strip_prefix("zone="));
            let zone = zone.and_then(|zone| zone.split(':').next()).unwrap_or_default().to_owned();
            let by_address = matches!(directive.arg(0), "$binary_remote_addr" | "$remote_addr");
            match directive.name.as_str() {
                "log_format" => {
                    let parts = directive.args.iter().skip(1).filter(|part| !part.starts_with("escape="));
                    self.formats.insert(directive.arg(0).to_owned(), parts.cloned().collect());
                }
                "limit_req_zone" => {
                    let rate = directive.args.iter().find_map(|word| word.strip_prefix("rate="));
                    let rate =
                        rate.and_then(|rate| rate.strip_suffix("r/s")).and_then(|rate| rate.parse().ok());
                    self.rates.insert(zone, rate.filter(|_| by_address));
                }
                "limit_conn_zone" if by_address => self.by_address.push(zone),
                "set_real_ip_from" => self.proxies = true,
                _ => {}
            }
            self.collect(directive.inner());
        }
    }

    /// Notes files that run as programs, so that their text is not served.
    pub(super) fn note_program(&mut self, directive: &Directive) {
        if directive.args.iter().any(|arg| arg.contains(".php")) {
            self.draft.programs.insert("php");
        }
    }

    pub(super) fn refuse(&mut self, directive: &Directive, why: &str) {
        self.refuse_all(std::slice::from_ref(directive), why);
    }

    pub(super) fn refuse_all(&mut self, directives: &[Directive], why: &str) {
        for directive in directives {
            self.note_program(directive);
            self.draft.record(directive.line, &directive.name, refused(why));
            if !OF_VALUES.contains(&directive.name.as_str()) {
                self.refuse_all(directive.inner(), why);
            }
        }
    }

    pub(super) fn accept_all(&mut self, directives: &[Directive], outcome: &Outcome) {
        for directive in directives {
            self.draft.record(directive.line, &directive.name, outcome.clone());
            if !OF_VALUES.contains(&directive.name.as_str()) {
                self.accept_all(directive.inner(), outcome);
            }
        }
    }

    /// Sets a setting of the server, which nginx could limit to a location.
    pub(super) fn setting(
        &mut self,
        context: &Context<'t>,
        name: &'static str,
        value: &str,
        line: usize,
    ) -> Outcome {
        match context.scope.is_whole() {
            true => self.draft.set(name, &[value], line),
            false => refused(EVERY_PATH),
        }
    }

    pub(super) fn time(
        &mut self,
        context: &Context<'t>,
        name: &'static str,
        directive: &Directive,
    ) -> Outcome {
        match seconds(directive.arg(0)) {
            Some(seconds) => self.setting(context, name, &time(seconds), directive.line),
            None => refused(format!("{} is not a time", directive.arg(0))),
        }
    }
}
