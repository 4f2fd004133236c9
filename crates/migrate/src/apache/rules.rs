//! Redirects, access, lifetimes and compression.

use super::state::Apache;
use crate::draft::Scope;
use crate::globs::{self, Subject};
use crate::outcome::{Outcome, default, refused};
use crate::reasons::{ADDRESSES, EVERY_PATH, HIDDEN, METHODS, NO_PATTERN};
use crate::toml::quote;
use crate::tree::Directive;
use crate::values::{expiry, lifetime};

impl<'t> Apache<'t, '_, '_> {
    pub(super) fn redirect(&mut self, name: &str, words: &[&str], scope: &Scope, line: usize) -> Outcome {
        let (status, rest) = match (name, words) {
            ("redirectpermanent", rest) => (301, rest),
            ("redirecttemp", rest) => (302, rest),
            (_, [word, rest @ ..]) if word.bytes().all(|byte| byte.is_ascii_digit()) => {
                (word.parse().unwrap_or(0), rest)
            }
            (_, ["permanent", rest @ ..]) => (301, rest),
            (_, ["temp", rest @ ..]) => (302, rest),
            (_, ["seeother", rest @ ..]) => (303, rest),
            (_, ["gone", rest @ ..]) => (410, rest),
            (_, rest) => (302, rest),
        };
        let is_expression = name == "redirectmatch";
        if status >= 400 {
            let expression = rest.first().copied().unwrap_or_default();
            let patterns = match is_expression {
                true if globs::is_hidden(expression) => return default(HIDDEN),
                true => match globs::of(expression, Subject::Path) {
                    Some(found) => found.into_iter().map(|glob| glob.pattern).collect(),
                    None => {
                        return refused(NO_PATTERN);
                    }
                },
                false => vec![globs::beneath(expression)],
            };
            let outcome = self.draft.close(&scope.beneath(patterns, 6000), line);
            return match status {
                403 | 404 => outcome,
                _ => refused(format!("these paths get 404 instead of {status}")),
            };
        }
        match (rest, is_expression) {
            ([expression, to], true) => {
                let Some(found) = globs::of(expression, Subject::Path) else {
                    return refused(NO_PATTERN);
                };
                let mut outcome = refused("nothing matches");
                for glob in found {
                    let Some((from, to)) = glob.fill(to, '$') else {
                        return refused("only the rest of a path can be kept");
                    };
                    outcome = self.draft.redirect(scope.site, (&from, &to), status, line);
                }
                outcome
            }
            ([from, to], false) => {
                let to = if to.ends_with('/') || to.contains(['?', '#']) {
                    (*to).to_owned()
                } else {
                    format!("{to}/")
                };
                // A prefix keeps the rest of the path; a file has none.
                let is_file = from.rsplit('/').next().is_some_and(|last| last.contains('.'));
                let pair = match is_file || to.contains(['?', '#']) {
                    true => ((*from).to_owned(), rest[1].to_owned()),
                    false => (globs::beneath(from), format!("{to}**")),
                };
                // The path itself leads to the target without a slash.
                if pair.1.ends_with("/**") && !rest[1].ends_with('/') {
                    self.draft.redirect(scope.site, (from, rest[1]), status, line);
                }
                self.draft.redirect(scope.site, (&pair.0, &pair.1), status, line)
            }
            _ => refused("a path and a target are needed"),
        }
    }

    pub(super) fn expires(
        &mut self,
        words: &[&str],
        block: &[Directive],
        scope: &Scope,
        line: usize,
    ) -> Outcome {
        let (media_type, time) = match words {
            [media_type, rest @ ..] if media_type.contains('/') => (Some(*media_type), rest.join(" ")),
            all => (None, all.join(" ")),
        };
        let Some(seconds) = expiry(time.trim_matches('"')) else {
            return refused("a lifetime begins at the request");
        };
        let cache = quote(&lifetime(seconds));
        let of_pages = |directive: &Directive| {
            directive.name.eq_ignore_ascii_case("ExpiresByType") && directive.arg(0) == "text/html"
        };
        let all = |endings: &[&str]| endings.iter().map(|ending| format!("/**.{ending}")).collect::<Vec<_>>();
        match media_type {
            // Pages of folders have no ending, so the rule of the site is for them.
            None if scope.is_whole() && block.iter().any(of_pages) => {
                self.draft.rule(&scope.beneath(all(&["*"]), 10), "cache", cache, line)
            }
            None => self.draft.rule(scope, "cache", cache, line),
            Some(_) if !scope.is_whole() => refused("a rule has paths, and no media types"),
            Some("text/html") => {
                let outcome = self.draft.rule(scope, "cache", cache.clone(), line);
                match block.iter().any(|other| other.name.eq_ignore_ascii_case("ExpiresDefault")) {
                    true => self.draft.rule(&scope.beneath(all(&["html", "htm"]), 20), "cache", cache, line),
                    false => outcome,
                }
            }
            Some(media_type) => match crate::values::endings(media_type) {
                Some(endings) => self.draft.rule(&scope.beneath(all(endings), 20), "cache", cache, line),
                None => refused(format!("a rule has paths, and no ending of {media_type} is known")),
            },
        }
    }

    pub(super) fn compress(&mut self, name: &str, words: &[&str], scope: &Scope, line: usize) -> Outcome {
        let filter = words.first().copied().unwrap_or_default();
        let coding = match filter.to_ascii_uppercase().as_str() {
            word if word.contains("BROTLI") => "br",
            word if word.contains("DEFLATE") => "gzip",
            _ => return refused("content is sent unchanged, except for compress"),
        };
        if !scope.is_whole() {
            return match self.draft.settings.contains_key("compress") {
                true => default("compress applies to every path"),
                false => refused(EVERY_PATH),
            };
        }
        let types: Vec<&str> = match name {
            "addoutputfilterbytype" => {
                words[1..].iter().copied().filter(|word| !word.eq_ignore_ascii_case("DEFLATE")).collect()
            }
            "addoutputfilter" => words[1..]
                .iter()
                .filter_map(|ending| match ending.trim_start_matches('.') {
                    "html" | "htm" => Some("text/html"),
                    "css" => Some("text/css"),
                    "js" => Some("text/javascript"),
                    "svg" => Some("image/svg+xml"),
                    "xml" => Some("application/xml"),
                    "json" => Some("application/json"),
                    "txt" => Some("text/plain"),
                    _ => None,
                })
                .collect(),
            _ => vec!["text"],
        };
        // Apache sends Brotli if both filters match.
        if coding == "br" && self.draft.settings.get("compress").is_some_and(|known| known.values == ["gzip"])
        {
            self.draft.settings.remove("compress");
            self.draft.extend("compress", &["br", "gzip"], line);
        }
        let outcome = self.draft.extend("compress", &[coding], line);
        match outcome {
            Outcome::Translated => self.draft.extend("compress-types", &types, line),
            other => other,
        }
    }

    pub(super) fn access(
        &mut self,
        name: &str,
        words: &[&str],
        block: &[Directive],
        scope: &Scope,
        line: usize,
    ) -> Outcome {
        let lower: Vec<String> = words.iter().map(|word| word.to_ascii_lowercase()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        let of = |name: &str| {
            block
                .iter()
                .find(|other| other.name.eq_ignore_ascii_case(name))
                .map(|found| found.arg(0).to_owned())
        };
        let has_allow = block.iter().any(|other| {
            other.name.eq_ignore_ascii_case("allow")
                && !other.args.iter().any(|word| word.eq_ignore_ascii_case("all"))
        });
        match (name, lower.as_slice()) {
            ("require", ["all", "granted"]) | ("allow", ["from", "all"]) | ("order", _) => {
                default("access is open, or a rule below closes it")
            }
            ("require", ["all", "denied"]) | ("deny", ["from", "all"]) if !has_allow => {
                self.draft.close(scope, line)
            }
            ("satisfy", ["all"]) => default("each rule applies"),
            ("authtype", [kind]) if *kind != "basic" => {
                self.draft.close(scope, line);
                refused("only basic authentication exists; these paths are closed")
            }
            ("authtype" | "authname" | "authuserfile" | "require", _)
                if name != "require" || lower.first() == Some(&"valid-user") =>
            {
                match (of("AuthName"), of("AuthUserFile"), of("AuthType")) {
                    (Some(realm), Some(users), Some(kind)) if kind.eq_ignore_ascii_case("basic") => {
                        self.draft.auth(scope, &realm, &quote(&users), line)
                    }
                    _ => {
                        self.draft.close(scope, line);
                        refused(
                            "AuthType Basic, AuthName and AuthUserFile are needed together; these paths are \
                                closed until then",
                        )
                    }
                }
            }
            ("require", ["method", ..]) => default(METHODS),
            ("require", ["user" | "group", ..]) => {
                self.draft.close(scope, line);
                refused("auth accepts every user of its file; these paths are closed until then")
            }
            _ => {
                self.draft.close(scope, line);
                refused(ADDRESSES)
            }
        }
    }
}
