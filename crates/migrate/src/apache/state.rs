//! The state of the translation.

use crate::draft::{Draft, Scope};
use crate::outcome::{Outcome, refused};
use crate::reasons::EVERY_PATH;
use crate::tree::Directive;
use crate::values::time;

pub(super) struct Apache<'t, 'a, 'b> {
    pub(super) draft: &'a mut Draft<'b>,
    /// Whether the file is of the server, and not of a folder.
    pub(super) is_server: bool,
    /// Whether several hosts have content.
    pub(super) several: bool,
    /// Whether `Listen` names the addresses.
    pub(super) listens: bool,
    /// The conditions of the next `RewriteRule`.
    pub(super) conditions: Vec<&'t Directive>,
    /// `RewriteBase`
    pub(super) base: String,
    pub(super) has_log: bool,
}

/// Whether a section denies access.
pub(super) fn denies(directives: &[Directive]) -> bool {
    directives.iter().any(|directive| {
        let words = directive.args.join(" ").to_ascii_lowercase();
        match directive.name.to_ascii_lowercase().as_str() {
            "require" => words == "all denied",
            "deny" => words.starts_with("from"),
            _ => denies(directive.inner()),
        }
    })
}

impl<'t> Apache<'t, '_, '_> {
    /// Finds certificates and roots, which directives before them need.
    pub(super) fn prepare(&mut self, directives: &[Directive]) {
        let of = |name: &str| {
            directives
                .iter()
                .find(|directive| directive.name.eq_ignore_ascii_case(name))
                .map(|found| found.arg(0).to_owned())
        };
        if let (Some(certificate), Some(key)) = (of("sslcertificatefile"), of("sslcertificatekeyfile")) {
            let is_plain = ![&certificate, &key].iter().any(|path| path.contains('$'));
            if is_plain && !self.draft.certificates.contains(&(certificate.clone(), key.clone())) {
                self.draft.certificates.push((certificate, key));
            }
        }
        directives.iter().for_each(|directive| self.prepare(directive.inner()));
    }

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

    pub(super) fn refuse(&mut self, directive: &Directive, why: &str) {
        self.record_all(std::slice::from_ref(directive), &refused(why));
    }

    pub(super) fn note_program(&mut self, directive: &Directive) {
        let is_php =
            |word: &String| word.contains(".php") || word.contains("php-fpm") || word.contains("x-httpd-php");
        if directive.name.to_ascii_lowercase().starts_with("php_") || directive.args.iter().any(is_php) {
            self.draft.programs.insert("php");
        }
        if directive.args.iter().any(|word| word == "cgi-script") {
            let endings = ["cgi", "pl", "py", "sh"];
            let named =
                |ending: &&str| directive.args.iter().any(|word| word.trim_start_matches('.') == *ending);
            self.draft.programs.extend(endings.into_iter().filter(named));
        }
    }

    pub(super) fn setting(&mut self, scope: &Scope, name: &'static str, value: &str, line: usize) -> Outcome {
        match scope.is_whole() {
            true => self.draft.set(name, &[value], line),
            false => refused(EVERY_PATH),
        }
    }

    pub(super) fn seconds(&mut self, scope: &Scope, name: &'static str, directive: &Directive) -> Outcome {
        match directive.arg(0).parse::<u64>() {
            Ok(seconds) => self.setting(scope, name, &time(seconds), directive.line),
            Err(_) => refused("this is not a number of seconds"),
        }
    }
}
