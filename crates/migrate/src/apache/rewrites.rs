//! `RewriteRule` with its conditions: the forms that have an equivalent.

use super::state::Apache;
use crate::draft::Scope;
use crate::globs::{self, Glob, Subject};
use crate::outcome::{Outcome, default, refused};
use crate::reasons::{CONDITIONS, CONDITIONS_SERVED, HIDDEN, NO_PATTERN, PROGRAMS, TLS_FILE, VARIABLES};
use crate::tree::Directive;

/// The common requirement of the conditions of a rule.
enum Requirement {
    /// No condition.
    Nothing,
    /// No file has the requested name.
    Missing,
    /// The file with the ending `.html` exists.
    Page,
    /// The connection has no TLS.
    Plaintext,
    /// One of these hosts.
    Hosts(Vec<String>),
    /// Not some other paths.
    Exceptions,
    Other,
}

/// Returns the names of a `<VirtualHost>`.
pub(super) fn names(directive: &Directive) -> Vec<String> {
    let is_name =
        |inner: &&Directive| matches!(inner.name.to_ascii_lowercase().as_str(), "servername" | "serveralias");
    let all = directive.inner().iter().filter(is_name).flat_map(|inner| &inner.args);
    let plain = |name: &String| {
        let name = name.split("://").last().unwrap_or_default();
        name.split(':').next().unwrap_or_default().to_owned()
    };
    let mut found: Vec<String> = all.map(plain).filter(|name| !name.is_empty()).collect();
    found.dedup();
    found
}

/// Whether a `<VirtualHost>` has files.
pub(super) fn has_content(directive: &Directive) -> bool {
    directive.inner().iter().any(|inner| inner.name.eq_ignore_ascii_case("DocumentRoot"))
}

impl<'t> Apache<'t, '_, '_> {
    /// Refuses conditions without a rule.
    pub(super) fn end_conditions(&mut self) {
        for condition in std::mem::take(&mut self.conditions) {
            self.record(condition, refused("a RewriteRule is missing"));
        }
    }

    /// Translates a rule with the conditions before it.
    pub(super) fn rewrite(&mut self, rule: &'t Directive, scope: &Scope) {
        let conditions = std::mem::take(&mut self.conditions);
        let outcome = self.rule(rule, &conditions, scope);
        for condition in conditions {
            let outcome = match condition.arg(1) == "!-d" && outcome == Outcome::Translated {
                true => default("a folder without an index also gets the page; Apache answers 403 or 404"),
                false => outcome.clone(),
            };
            self.record(condition, outcome);
        }
        self.record(rule, outcome);
    }

    fn rule(&mut self, rule: &Directive, conditions: &[&Directive], scope: &Scope) -> Outcome {
        let (expression, target, line) = (rule.arg(0), rule.arg(1), rule.line);
        let flags: Vec<String> =
            rule.arg(2).trim_matches(['[', ']']).split(',').map(|flag| flag.trim().to_owned()).collect();
        let has = |name: &str| flags.iter().any(|flag| flag.eq_ignore_ascii_case(name));
        let status = flags.iter().find_map(|flag| match flag.split_once('=') {
            Some(("R" | "r" | "redirect", code)) => Some(match code {
                "permanent" => 301,
                "temp" => 302,
                _ => code.parse().unwrap_or(0),
            }),
            None if matches!(flag.as_str(), "R" | "r" | "redirect") => Some(302),
            _ => None,
        });
        let status = status.or((target.contains("://")).then_some(302));
        if flags.iter().any(|flag| matches!(flag.as_str(), "P" | "proxy")) {
            return refused(crate::reasons::FORWARDS);
        }
        if expression.starts_with('!') {
            return refused(CONDITIONS);
        }
        let requirement = requirement(conditions);
        let closes = has("F")
            || has("forbidden")
            || has("G")
            || has("gone")
            || status.is_some_and(|status| status >= 400);
        if closes {
            return self.close(expression, &requirement, scope, line);
        }
        if target == "-" {
            return match flags.iter().any(|flag| {
                flag.starts_with("E=")
                    || flag.starts_with("env=")
                    || flag.starts_with("T=")
                    || flag.starts_with("CO=")
            }) {
                true => refused(VARIABLES),
                false => default("files that exist are served"),
            };
        }
        if target.contains(".php") || target.contains(".cgi") {
            return refused(format!("{PROGRAMS}: a missing file is 404"));
        }
        let subject = if self.is_server && scope.is_whole() { Subject::Path } else { Subject::Relative };
        match requirement {
            Requirement::Missing | Requirement::Page => self.missing(expression, target, status, scope, line),
            Requirement::Plaintext => match self.draft.uses_tls() {
                true => self.draft.set("https-redirect", &["on"], line),
                false => refused(TLS_FILE),
            },
            Requirement::Hosts(hosts) => {
                let Some(status) = status else { return refused(CONDITIONS) };
                let pairs = match self.pairs(expression, target, subject) {
                    Ok(pairs) => pairs,
                    Err(why) => return why,
                };
                let site = match pairs.iter().all(|(from, _)| from == "/**") {
                    true => self.draft.separate_host(&hosts, line),
                    false => self.draft.host(&hosts, line),
                };
                match site {
                    // A redirect of some paths must not reach the other names of the host.
                    Ok(site) if self.draft.sites[site].names.iter().any(|name| !hosts.contains(name)) => {
                        refused(CONDITIONS)
                    }
                    Ok(site) => self.all(site, &pairs, Some(status), line),
                    Err(why) => why,
                }
            }
            Requirement::Nothing => match self.pairs(expression, target, subject) {
                Ok(pairs) => self.all(scope.site, &pairs, status, line),
                Err(why) => why,
            },
            Requirement::Exceptions | Requirement::Other => refused(CONDITIONS),
        }
    }

    fn all(&mut self, site: usize, pairs: &[(String, String)], status: Option<u16>, line: usize) -> Outcome {
        let mut outcome = refused("nothing matches");
        for (from, to) in pairs {
            outcome = match status {
                Some(status) => self.draft.redirect(site, (from, to), status, line),
                None => self.draft.rewrite(site, (from, to), line),
            };
            if matches!(outcome, Outcome::Refused(_)) {
                break;
            }
        }
        outcome
    }

    fn close(&mut self, expression: &str, requirement: &Requirement, scope: &Scope, line: usize) -> Outcome {
        if globs::is_hidden(expression) {
            return default(HIDDEN);
        }
        let is_partly = matches!(requirement, Requirement::Exceptions);
        if !matches!(requirement, Requirement::Nothing | Requirement::Exceptions) {
            return refused(CONDITIONS_SERVED);
        }
        match globs::of(expression, Subject::Relative) {
            Some(found) => {
                let patterns = found.iter().map(|glob| self.based(&glob.pattern)).collect();
                let outcome = self.draft.close(&scope.beneath(patterns, 6000), line);
                if is_partly {
                    refused(format!("{CONDITIONS}; these paths are closed without exceptions"))
                } else {
                    outcome
                }
            }
            None => refused(
                "this expression has no pattern; these files are served now, so move them out of the root",
            ),
        }
    }

    /// A path of `.htaccess` beneath `RewriteBase`.
    fn based(&self, path: &str) -> String {
        format!("{}{}", self.base, path.trim_start_matches('/'))
    }

    /// Returns the paths and the targets of a rule.
    fn pairs(
        &self,
        expression: &str,
        target: &str,
        subject: Subject,
    ) -> Result<Vec<(String, String)>, Outcome> {
        let found = globs::of(expression, subject).ok_or_else(|| refused(NO_PATTERN))?;
        let hosts = [
            "https://%{HTTP_HOST}",
            "http://%{HTTP_HOST}",
            "https://%{SERVER_NAME}",
            "http://%{SERVER_NAME}",
            "%{REQUEST_SCHEME}://%{HTTP_HOST}",
        ];
        let local = hosts.iter().find_map(|front| target.strip_prefix(front));
        let target = local.unwrap_or(target).trim_end_matches('?');
        let pair = |glob: &Glob| {
            if let Some(front) = target.strip_suffix("%{REQUEST_URI}") {
                let from = self.of(&glob.pattern, subject);
                return (!front.contains('%') && !from.trim_end_matches("/**").contains('*'))
                    .then(|| (from.clone(), format!("{front}{from}")));
            }
            if target.contains('%') && target.contains("%{") {
                return None;
            }
            let (from, to) = glob.fill(target, '$')?;
            let is_relative = !to.starts_with('/') && !to.contains("://");
            Some((self.of(&from, subject), if is_relative { self.based(&to) } else { to }))
        };
        found
            .iter()
            .map(pair)
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| refused("only the rest of a path can be kept, and no variables"))
    }

    fn of(&self, pattern: &str, subject: Subject) -> String {
        match subject {
            Subject::Path => pattern.to_owned(),
            _ => self.based(pattern),
        }
    }

    /// A rule for paths without a file.
    fn missing(
        &mut self,
        expression: &str,
        target: &str,
        status: Option<u16>,
        scope: &Scope,
        line: usize,
    ) -> Outcome {
        if status.is_some() {
            return refused("a redirect does not depend on files");
        }
        let matches_all = matches!(
            expression,
            "^" | "."
                | ".*"
                | "^.*$"
                | "^(.*)$"
                | "^(.+)$"
                | "^.+$"
                | "(.*)"
                | "^([^.]+)$"
                | "^([^\\.]+)$"
                | "^(.*)"
                | "(.+)"
                | "^([^/]+)/?$"
                | "^(.*)/?$"
                | "^([^\\.]*)$"
                | "^.*"
        );
        let file = match target
            .strip_prefix("$1")
            .or_else(|| target.strip_prefix("%{REQUEST_FILENAME}"))
            .or_else(|| target.strip_prefix("/$1"))
            .or_else(|| target.strip_prefix("%{REQUEST_URI}"))
        {
            Some(ending) if ending.starts_with('.') => format!("{{path}}{ending}"),
            _ if target.starts_with('/') => target.to_owned(),
            _ => self.based(target),
        };
        if !matches_all || file.contains(['$', '%', '?', '*']) {
            return refused(CONDITIONS);
        }
        let value = format!("[\"{{path}}\", {}]", crate::toml::quote(&file));
        let here = match self.base.as_str() {
            "/" => scope.clone(),
            base => scope.beneath(vec![globs::beneath(base)], 100),
        };
        self.draft.rule(&here, "try-files", value, line)
    }
}

/// Returns the common requirement of all conditions.
fn requirement(conditions: &[&Directive]) -> Requirement {
    let is_file = |condition: &&&Directive| {
        let test = condition.arg(0);
        test.contains("REQUEST_FILENAME")
            || test.contains("SCRIPT_FILENAME")
            || test.contains("DOCUMENT_ROOT")
    };
    match conditions {
        [] => Requirement::Nothing,
        all if all.iter().all(|condition| {
            is_file(&condition) && matches!(condition.arg(1), "!-f" | "!-d" | "!-l" | "!-s" | "!-F")
        }) =>
        {
            Requirement::Missing
        }
        all if all.iter().any(|condition| {
            condition.arg(0).replace('\\', "").ends_with("}.html") && condition.arg(1) == "-f"
        }) && all.iter().all(|condition| is_file(&condition)) =>
        {
            Requirement::Page
        }
        all if all.iter().all(|condition| is_exception(condition)) => Requirement::Exceptions,
        all if all.iter().all(|condition| is_plaintext(condition)) => Requirement::Plaintext,
        all if all
            .iter()
            .all(|condition| condition.arg(0) == "%{HTTP_HOST}" || condition.arg(0) == "%{SERVER_NAME}") =>
        {
            let is_or = |condition: &&Directive| {
                condition.arg(2).contains("OR") || condition.arg(2).contains("ornext")
            };
            let joined = all.iter().rev().skip(1).all(is_or);
            let hosts: Option<Vec<Vec<String>>> =
                all.iter().map(|condition| hosts(condition.arg(1))).collect();
            match hosts {
                Some(hosts) if joined => Requirement::Hosts(hosts.concat()),
                _ => Requirement::Other,
            }
        }
        _ => Requirement::Other,
    }
}

/// Whether a condition excludes paths from a rule.
fn is_exception(condition: &Directive) -> bool {
    let is_path =
        matches!(condition.arg(0), "%{REQUEST_URI}" | "%{REQUEST_FILENAME}" | "%{THE_REQUEST}" | "$1" | "$2");
    is_path && condition.arg(1).starts_with('!')
}

fn is_plaintext(condition: &Directive) -> bool {
    let (test, value) = (condition.arg(0), condition.arg(1).to_ascii_lowercase());
    match test {
        "%{HTTPS}" => matches!(value.as_str(), "off" | "!on" | "!=on" | "=off" | "^off$" | "!^on$"),
        "%{SERVER_PORT}" => matches!(value.as_str(), "80" | "^80$" | "!443" | "!^443$" | "!=443"),
        "%{REQUEST_SCHEME}" => matches!(value.as_str(), "http" | "!https" | "=http" | "!=https"),
        _ => {
            test.eq_ignore_ascii_case("%{HTTP:X-Forwarded-Proto}")
                && matches!(value.as_str(), "!https" | "http" | "!=https" | "=http")
        }
    }
}

/// Returns the hosts that an expression matches, if they are names.
fn hosts(expression: &str) -> Option<Vec<String>> {
    if expression.starts_with('!') {
        return None;
    }
    if let Some(name) = expression.strip_prefix('=') {
        return Some(vec![name.to_owned()]);
    }
    let found = globs::of(expression, Subject::Relative)?;
    let names: Vec<String> =
        found.iter().map(|glob| glob.pattern.trim_start_matches('/').to_owned()).collect();
    (!names.iter().any(|name| name.contains('*') || name.is_empty())).then_some(names)
}
