//! Sections: hosts, folders, files, and conditions about modules.

use super::rewrites;
use super::state::{Apache, denies};
use crate::draft::{Scope, same_folder};
use crate::globs::{self, Subject};
use crate::outcome::{Outcome, default, refused};
use crate::reasons::{self, CONDITIONS, HIDDEN, METHODS};
use crate::tree::Directive;

impl<'t> Apache<'t, '_, '_> {
    pub(super) fn block(&mut self, directives: &'t [Directive], scope: &Scope) {
        for directive in directives {
            self.note_program(directive);
            let name = directive.name.to_ascii_lowercase();
            match name.as_str() {
                _ if name.starts_with('<') => self.section(directive, scope),
                "rewritecond" => self.conditions.push(directive),
                "rewriterule" => self.rewrite(directive, scope),
                _ => {
                    let outcome = self.simple(&name, directive, directives, scope);
                    self.record(directive, outcome);
                }
            }
        }
    }

    pub(super) fn section(&mut self, directive: &'t Directive, scope: &Scope) {
        self.end_conditions();
        let (inner, first) = (directive.inner(), directive.arg(0));
        let scoped = match directive.name.as_str() {
            "<ifmodule" if first.starts_with('!') => {
                return self.record_all(
                    std::slice::from_ref(directive),
                    &default("the feature of the module exists"),
                );
            }
            "<ifmodule" => Ok(scope.clone()),
            "<ifversion" if directive.args.iter().any(|word| word.starts_with('<') || word == "2.2") => {
                return self.record_all(
                    std::slice::from_ref(directive),
                    &default("this is for older versions of Apache"),
                );
            }
            "<ifversion" | "<requireall" | "<requireany" => Ok(scope.clone()),
            "<limit" | "<limitexcept" => {
                return self.record_all(std::slice::from_ref(directive), &default(METHODS));
            }
            "<virtualhost" => return self.host(directive),
            "<directory" => match directive.args.as_slice() {
                [tilde, ..] if tilde == "~" => Err("a folder has a path, and no expression"),
                _ => self.folder(first.trim_matches('"'), scope).ok_or("the folder is not beneath a root"),
            },
            "<location" if first != "~" => Ok(match first {
                "/" => scope.clone(),
                path => scope.beneath(vec![globs::beneath(path)], 5000),
            }),
            "<files" if first != "~" => {
                let name = first.replace('?', "*");
                match name.starts_with(".ht") || name.starts_with(".") && name.len() > 1 {
                    true => return self.hidden(directive),
                    false => Ok(scope.beneath(vec![format!("/{name}"), format!("/**/{name}")], 2000)),
                }
            }
            "<filesmatch" | "<files" | "<locationmatch" | "<location" => {
                let expression = directive.args.last().map_or("", String::as_str);
                let subject = if directive.name.contains("files") { Subject::Name } else { Subject::Path };
                if globs::is_hidden(expression) {
                    return self.hidden(directive);
                }
                let found = globs::of(expression, subject);
                let patterns = found.map(|found| found.into_iter().map(|glob| glob.pattern).collect());
                patterns.map(|patterns| scope.beneath(patterns, 2000)).ok_or(reasons::NO_PATTERN)
            }
            "<proxy" | "<proxymatch" => Err(reasons::FORWARDS),
            _ => Err(CONDITIONS),
        };
        match scoped {
            Ok(mut here) => {
                let mut outcome = Outcome::Translated;
                let was_whole = here.is_whole();
                here.patterns.retain(|pattern| {
                    let checked = self.draft.check_patterns(&Scope::of(0).beneath(vec![pattern.clone()], 0));
                    outcome = checked.clone().err().unwrap_or(outcome.clone());
                    checked.is_ok()
                });
                if let (Outcome::Refused(why), true) = (&outcome, here.is_whole() && !was_whole) {
                    return self.refuse(directive, why);
                }
                self.record(directive, outcome);
                self.block(inner, &here);
                self.end_conditions();
            }
            Err(why) if denies(inner) => {
                self.refuse(
                    directive,
                    &format!("{why}; these files are served now, so move them out of the root"),
                );
            }
            Err(why) => self.refuse(directive, why),
        }
    }

    pub(super) fn hidden(&mut self, directive: &Directive) {
        let outcome = match denies(directive.inner()) {
            true => default(HIDDEN),
            false => refused(HIDDEN),
        };
        self.record_all(std::slice::from_ref(directive), &outcome);
    }

    pub(super) fn folder(&self, path: &str, scope: &Scope) -> Option<Scope> {
        let site = self.draft.sites.get(scope.site)?;
        let roots = std::iter::once((scope.site, site)).chain(self.draft.sites.iter().enumerate());
        for (at, site) in roots {
            let Some((root, _)) = &site.root else { continue };
            if same_folder(root, path) {
                return Some(Scope::of(at));
            }
            if let Some(rest) =
                path.strip_prefix(root.trim_end_matches('/')).filter(|rest| rest.starts_with('/'))
            {
                let weight = rest.len().min(1900);
                return Some(Scope::of(at).beneath(vec![globs::beneath(rest)], weight));
            }
        }
        (path == "/").then(|| scope.clone())
    }

    pub(super) fn host(&mut self, directive: &'t Directive) {
        let names = rewrites::names(directive);
        let is_content = rewrites::has_content(directive);
        let site = match (self.several || !is_content) && !names.is_empty() {
            true => self.draft.host(&names, directive.line),
            false => Ok(0),
        };
        let site = match site {
            Ok(site) => site,
            Err(why) => return self.record_all(std::slice::from_ref(directive), &why),
        };
        let listens = match self.listens {
            true => Outcome::Translated,
            false => self.listen_of(directive),
        };
        self.record(directive, listens);
        let scope = Scope::of(site);
        // Sections of folders refer to the root.
        if let Some(root) =
            directive.inner().iter().find(|inner| inner.name.eq_ignore_ascii_case("DocumentRoot"))
        {
            self.draft.root(&scope, root.arg(0), root.line);
        }
        self.block(directive.inner(), &scope);
        self.end_conditions();
    }

    /// Adds the addresses of a `<VirtualHost>`, if another file has its `Listen`.
    pub(super) fn listen_of(&mut self, directive: &Directive) -> Outcome {
        let mut outcome = Outcome::Translated;
        for word in &directive.args {
            let (address, port) = word.rsplit_once(':').unwrap_or((word, "80"));
            let tls = port == "443";
            let address = if matches!(address, "*" | "_default_") { "" } else { address };
            let done = match tls && !self.draft.uses_tls() {
                true => refused(reasons::TLS_FILE),
                false => self.draft.listen(&format!("{address}:{port}"), tls, false, directive.line),
            };
            outcome = if outcome == Outcome::Translated { done } else { outcome };
        }
        outcome
    }
}
