//! Directives about files: folders, tried files, error pages, redirects and rewrites.

use super::servers;
use super::state::{Context, Nginx, VARIABLES_TOO, find_in, find_location, page_of};
use crate::draft::Scope;
use crate::globs::{self, Subject};
use crate::outcome::{Outcome, default, refused};
use crate::reasons::{PROGRAMS, VARIABLES};
use crate::toml::list;
use crate::tree::Directive;

impl<'t> Nginx<'_, '_> {
    pub(super) fn alias(&mut self, folder: &str, context: &Context<'t>, line: usize) -> Outcome {
        let root = self.draft.sites[context.scope.site]
            .root
            .as_ref()
            .map(|(root, _)| root.trim_end_matches('/').to_owned());
        let root =
            root.or_else(|| Some(find_in(context.server, "root")?.arg(0).trim_end_matches('/').to_owned()));
        let beneath =
            root.as_deref().filter(|root| !root.is_empty()).and_then(|root| folder.strip_prefix(root));
        let beneath = beneath.filter(|rest| rest.starts_with('/') && !rest.contains('$'));
        let (Some(rest), [pattern]) = (beneath, context.scope.patterns.as_slice()) else {
            return refused(
                "a host has one folder: move this folder beneath the root, or give it a [[host]] of its own",
            );
        };
        let to = rest.trim_end_matches('/');
        match pattern.trim_end_matches('*').trim_end_matches('/') {
            from if from == to => default("the folder has this path beneath the root"),
            from if pattern.ends_with('*') => {
                let (from, to) = (globs::beneath(from), globs::beneath(to));
                self.draft.rewrite(context.scope.site, (&from, &to), line)
            }
            from => self.draft.rewrite(context.scope.site, (from, to), line),
        }
    }

    pub(super) fn try_files(&mut self, directive: &Directive, context: &Context<'t>) -> Outcome {
        let mut files: Vec<String> = Vec::new();
        for (nth, word) in directive.args.iter().enumerate() {
            let is_last = nth + 1 == directive.args.len();
            let word = word.split('?').next().unwrap_or_default();
            let file = match word {
                "$uri" | "$uri/" | "${uri}" | "$request_uri" | "$document_root$uri" => "{path}".to_owned(),
                "=404" if is_last => continue,
                _ if word.starts_with('=') => return refused("a missing file is 404"),
                _ if word.contains(".php") => {
                    return refused(format!("{PROGRAMS}: a missing file is 404"));
                }
                _ if word.starts_with('@') => match find_location(context.server, word).and_then(page_of) {
                    Some(page) => page.to_owned(),
                    None => return refused(format!("{word} has no equivalent, and a missing file is 404")),
                },
                _ => word.replace("${uri}", "$uri").replace("$uri", "{path}"),
            };
            if file.contains('$') {
                return refused(VARIABLES);
            }
            if !files.contains(&file) {
                files.push(file);
            }
        }
        match files.as_slice() {
            [] => refused("no file is tried"),
            [only]
                if only == "{path}" && !self.draft.has_rule(&Scope::of(context.scope.site), "try-files") =>
            {
                default("a file, the index of a folder, or 404")
            }
            _ => self.draft.rule(&context.scope, "try-files", list(&files), directive.line),
        }
    }

    pub(super) fn error_page(&mut self, directive: &Directive, context: &Context<'t>) -> Outcome {
        let (Some((page, statuses)), line) = (directive.args.split_last(), directive.line) else {
            return refused("a page is missing");
        };
        let (replaces, statuses): (Vec<&String>, Vec<&String>) =
            statuses.iter().partition(|word| word.starts_with('='));
        let page = page.split('?').next().unwrap_or_default();
        if let [status] = replaces.as_slice() {
            let is_page = *status == "=200" && page.starts_with('/') && !page.contains(".php");
            return match (is_page, statuses.as_slice()) {
                (true, [only]) if *only == "404" => self.draft.rule(
                    &context.scope,
                    "try-files",
                    list(&["{path}".into(), page.to_owned()]),
                    line,
                ),
                _ => refused("an error page changes no status"),
            };
        }
        if !page.starts_with('/') || page.contains('$') {
            return refused("an error page is a file of the site");
        }
        let mut outcome = refused("a status is missing");
        for status in statuses {
            outcome = match status.parse::<u16>() {
                // These codes of nginx have no counterpart on the wire.
                Ok(494..=499) => default("Tenfold has no such status"),
                _ => self.draft.error_page(&context.scope, status, page, line),
            };
            if matches!(outcome, Outcome::Refused(_)) {
                break;
            }
        }
        outcome
    }

    pub(super) fn returned(
        &mut self,
        directive: &Directive,
        context: &Context<'t>,
        found: &[globs::Glob],
    ) -> Outcome {
        let line = directive.line;
        let (status, target) = match directive.args.as_slice() {
            [target] if target.contains("://") => (302, target.as_str()),
            [status] => (status.parse().unwrap_or(0), ""),
            [status, target] => (status.parse().unwrap_or(0), target.as_str()),
            _ => return refused("a status is missing"),
        };
        match status {
            301 | 302 | 303 | 307 | 308 => {}
            403 | 404 | 444 => return self.draft.close(&context.scope, line),
            400..=599 => {
                self.draft.close(&context.scope, line);
                return refused(format!("these paths get 404 instead of {status}"));
            }
            _ => {
                return refused(
                    "a response is a file: for a check of health, use a file, or /healthz of the setting admin",
                );
            }
        }
        if servers::leads_to_https(directive) && context.scope.is_whole() {
            return servers::https_redirect(self, line);
        }
        let patterns =
            if context.scope.is_whole() { vec!["/**".to_owned()] } else { context.scope.patterns.clone() };
        let mut outcome = refused(VARIABLES);
        for (nth, pattern) in patterns.iter().enumerate() {
            let name = find_in(context.server, "server_name").map_or("", |names| names.arg(0));
            let Some((from, to)) = redirect(pattern, target, found.get(nth), name) else {
                return refused(format!("the target {target} {VARIABLES_TOO}"));
            };
            outcome = self.draft.redirect(context.scope.site, (&from, &to), status, line);
            if matches!(outcome, Outcome::Refused(_)) {
                break;
            }
        }
        outcome
    }

    pub(super) fn rewrite(&mut self, directive: &Directive, context: &Context<'t>) -> Outcome {
        let (expression, target, flag, line) =
            (directive.arg(0), directive.arg(1), directive.arg(2), directive.line);
        let status = match flag {
            "permanent" => Some(301),
            "redirect" => Some(302),
            _ if target.starts_with("http") => Some(302),
            _ => None,
        };
        let target =
            target.trim_end_matches('?').replace("$scheme://$host", "").replace("$scheme://$http_host", "");
        let target = target.strip_suffix("$is_args$args").unwrap_or(&target);
        let Some(found) = globs::of(expression, Subject::Path) else {
            return refused(format!(
                "{expression} has no pattern: * matches a part of a name, and ** any characters"
            ));
        };
        let mut outcome = refused("nothing matches");
        for glob in found {
            let direct = redirect(&glob.pattern, target, Some(&glob), "");
            let Some((from, to)) = direct else {
                return refused(format!("the target {target} {VARIABLES_TOO}"));
            };
            outcome = match status {
                Some(status) => self.draft.redirect(context.scope.site, (&from, &to), status, line),
                None => self.draft.rewrite(context.scope.site, (&from, &to), line),
            };
            if matches!(outcome, Outcome::Refused(_)) {
                break;
            }
        }
        outcome
    }
}

/// Returns the pattern and the target of a redirect from paths with this pattern.
fn redirect(
    pattern: &str,
    target: &str,
    found: Option<&globs::Glob>,
    name: &str,
) -> Option<(String, String)> {
    let target =
        target.strip_suffix("$is_args$args").or_else(|| target.strip_suffix("?$args")).unwrap_or(target);
    let target = target.replace("$server_name", name);
    let local = ["$scheme://$host", "$scheme://$http_host", "https://$host", "https://$http_host"];
    let target = local.iter().find_map(|front| target.strip_prefix(front)).unwrap_or(&target);
    let target = target.replace("$scheme", "https");
    for rest in ["$request_uri", "$uri"] {
        if let Some(front) = target.strip_suffix(rest) {
            if front.contains('$') || front.contains('*') {
                return None;
            }
            let beneath = pattern.trim_end_matches('*').trim_end_matches('/');
            let from = if pattern.ends_with('*') { globs::beneath(beneath) } else { pattern.to_owned() };
            return (!beneath.contains('*')).then(|| (from.clone(), format!("{front}{from}")));
        }
    }
    match found {
        Some(glob) => glob.fill(&target, '$'),
        None => (!target.contains(['$', '*'])).then(|| (pattern.to_owned(), target.clone())),
    }
}
