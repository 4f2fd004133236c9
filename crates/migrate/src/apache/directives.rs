//! Directives without a section.

use super::state::Apache;
use crate::draft::Scope;
use crate::globs::{self};
use crate::outcome::{Outcome, default, refused};
use crate::reasons::{self, CONDITIONS, PROGRAMS, VARIABLES};
use crate::toml::quote;
use crate::tree::Directive;
use crate::values::size;

impl<'t> Apache<'t, '_, '_> {
    pub(super) fn simple(
        &mut self,
        name: &str,
        directive: &Directive,
        block: &[Directive],
        scope: &Scope,
    ) -> Outcome {
        let (line, first) = (directive.line, directive.arg(0));
        let words: Vec<&str> = directive.args.iter().map(String::as_str).collect();
        match name {
            "documentroot" => self.draft.root(scope, first, line),
            "directoryindex" if first == "disabled" => refused("a folder has an index file"),
            "directoryindex" => self.draft.index(scope, &words, line),
            "errordocument" => match words.as_slice() {
                [status, page] if page.starts_with('/') => self.draft.error_page(scope, status, page, line),
                [_, "default"] => default("a line of text, or 404.html"),
                _ => refused("an error page is a file of the site"),
            },
            "options" => self.options(&words, scope, line),
            "redirect" | "redirectpermanent" | "redirecttemp" | "redirectmatch" => {
                self.redirect(name, &words, scope, line)
            }
            "rewritebase" => {
                self.base = format!("/{}/", first.trim_matches('/')).replace("//", "/");
                Outcome::Translated
            }
            "header" | "requestheader" => self.header(name, &words, scope, line),
            "expiresdefault" | "expiresbytype" => self.expires(&words, block, scope, line),
            "addtype" => self.add_type(&words, scope, line),
            "forcetype" => self.draft.media_type(scope, "*", first, line),
            "defaulttype" => refused("names with an unknown ending are application/octet-stream"),
            "addcharset" if first.eq_ignore_ascii_case("utf-8") => default("text is utf-8"),
            "addcharset" => {
                let patterns = words[1..]
                    .iter()
                    .map(|ending| format!("/**.{}", ending.trim_start_matches('.')))
                    .collect();
                self.draft.rule(&scope.beneath(patterns, 2000), "charset", quote(first), line)
            }
            "adddefaultcharset"
                if first.eq_ignore_ascii_case("utf-8") || first.eq_ignore_ascii_case("on") =>
            {
                default("text is utf-8")
            }
            "adddefaultcharset" if first.eq_ignore_ascii_case("off") => {
                self.draft.rule(scope, "charset", "false".into(), line)
            }
            "adddefaultcharset" => self.draft.rule(scope, "charset", quote(first), line),
            "addencoding" => match matches!(first.trim_start_matches("x-"), "gzip" | "br" | "zstd") {
                true => default("a compressed file has its Content-Encoding by its name"),
                false => refused("a coding is br, zstd or gzip"),
            },
            "addoutputfilterbytype" | "setoutputfilter" | "addoutputfilter" => {
                self.compress(name, &words, scope, line)
            }
            "fallbackresource" if first == "disabled" => default("fallback is off"),
            "fallbackresource" if first.contains(".php") => refused(PROGRAMS),
            "fallbackresource" => {
                self.draft.rule(scope, "try-files", format!("[\"{{path}}\", {}]", quote(first)), line)
            }
            "authtype" | "authname" | "authuserfile" | "require" | "order" | "allow" | "deny" | "satisfy" => {
                self.access(name, &words, block, scope, line)
            }
            "fileetag" if first.eq_ignore_ascii_case("none") => self.draft.remove_field(scope, "ETag", line),
            "addhandler" | "sethandler" | "removehandler" | "removetype" => {
                match words.iter().any(|word| matches!(*word, "default-handler" | "None" | "none"))
                    || name.starts_with("remove")
                {
                    true => default("each file is sent as it is"),
                    false => refused(PROGRAMS),
                }
            }
            "limitrequestbody" => match first.parse::<u64>() {
                Ok(0) => default("Tenfold accepts no uploads"),
                Ok(most) => self.setting(scope, "max-body", &size(most), line),
                Err(_) => refused("this is not a size"),
            },
            "listen" => {
                let (address, protocol) = (first, directive.arg(1));
                let tls = protocol == "https" || first.rsplit(':').next() == Some("443");
                match tls && !self.draft.uses_tls() {
                    true => refused(reasons::TLS_FILE),
                    false => {
                        let is_port = address.bytes().all(|byte| byte.is_ascii_digit());
                        let address = if is_port { format!(":{address}") } else { address.to_owned() };
                        self.draft.listen(&address, tls, false, line)
                    }
                }
            }
            "listenbacklog" => self.setting(scope, "backlog", first, line),
            "servername" | "serveralias" => default("the name of a [[host]], or any host"),
            "customlog" => self.log(&words, scope, line),
            "transferlog" => self.log(&[first, "common"], scope, line),
            "logformat" => match directive.arg(1) {
                "combined" | "common" => default("log-format has this format"),
                _ => refused("use log-format, a text with fields such as {client}"),
            },
            "timeout" => self.seconds(scope, "send-timeout", directive),
            "keepalivetimeout" => self.seconds(scope, "idle-timeout", directive),
            "maxkeepaliverequests" if first == "0" => default("a connection has any number of requests"),
            "maxkeepaliverequests" => self.setting(scope, "requests-per-connection", first, line),
            "keepalive" if first.eq_ignore_ascii_case("off") => {
                self.setting(scope, "requests-per-connection", "1", line)
            }
            "sslengine" => default("each address with a certificate has TLS"),
            "sslcertificatefile" | "sslcertificatekeyfile" => {
                match self.draft.certificates.iter().any(|(one, other)| one == first || other == first) {
                    true => Outcome::Translated,
                    false => refused("a certificate needs its key, and each is a file"),
                }
            }
            "sslcertificatechainfile" => {
                refused("the file of tls-certificate has the chain after the certificate")
            }
            "sslprotocol" => match words.as_slice() {
                ["TLSv1.3"] | ["-all", "+TLSv1.3"] => self.setting(scope, "tls-preset", "modern", line),
                _ => default("TLS 1.2 and 1.3 are on"),
            },
            "mdomain" | "mdomains" => self.draft.extend("tls", &words, line),
            "mdcertificateauthority" => self.setting(scope, "tls-directory", first, line),
            "mdcontactemail" => self.setting(scope, "tls-contact", first, line),
            "protocols" if words.contains(&"h2") || words.contains(&"h2c") => {
                default("HTTP/1.1 and HTTP/2 are on")
            }
            "protocols" => self.setting(scope, "http2", "off", line),
            "h2maxsessionstreams" => self.setting(scope, "http2-streams", first, line),
            "remoteipheader" if first.eq_ignore_ascii_case("x-forwarded-for") => {
                self.setting(scope, "forwarded-fields", "x-forwarded-for", line)
            }
            "remoteiptrustedproxy" | "remoteipinternalproxy" => {
                self.draft.extend("trusted-proxy", &words, line)
            }
            "alias" | "aliasmatch" => match self.draft.sites[scope.site].root.clone() {
                Some((root, _))
                    if directive.arg(1).starts_with(root.trim_end_matches('/')) && name == "alias" =>
                {
                    let to = directive.arg(1)[root.trim_end_matches('/').len()..].to_owned();
                    self.draft.rewrite(scope.site, (&globs::beneath(first), &globs::beneath(&to)), line)
                }
                _ => refused(
                    "a host has one folder: move this folder beneath the root, or give it a [[host]] of its own",
                ),
            },
            "serversignature" | "servertokens" => default("no response names a version"),
            "indexoptions" if words.iter().any(|word| word.eq_ignore_ascii_case("FancyIndexing")) => {
                default("a listing is a table")
            }
            _ => reasons::apache(name).unwrap_or_else(|| refused("this directive is unknown")),
        }
    }

    pub(super) fn options(&mut self, words: &[&str], scope: &Scope, line: usize) -> Outcome {
        let mut outcome = default("links beneath the root are followed, and no folder is listed");
        for word in words {
            let (adds, word) =
                (!word.starts_with('-'), word.trim_start_matches(['+', '-']).to_ascii_lowercase());
            let done = match (word.as_str(), adds) {
                ("indexes", true) | ("all", true) => self.draft.rule(scope, "listing", quote("html"), line),
                ("indexes", false) if !scope.is_whole() => {
                    self.draft.rule(scope, "listing", quote("off"), line)
                }
                ("symlinksifownermatch", true)
                    if scope.is_whole() && !words.iter().any(|other| other.ends_with("FollowSymLinks")) =>
                {
                    self.draft.site_key(scope, "symlinks", quote("owner"), line)
                }
                ("followsymlinks", false) if scope.is_whole() => {
                    self.draft.site_key(scope, "symlinks", quote("none"), line)
                }
                ("multiviews", true) => refused("files are not negotiated by name: use try-files"),
                ("execcgi", true) => refused(PROGRAMS),
                ("includes" | "includesnoexec", true) => refused("content is sent unchanged"),
                _ => continue,
            };
            if !matches!(outcome, Outcome::Refused(_)) {
                outcome = done;
            }
        }
        outcome
    }

    pub(super) fn header(&mut self, name: &str, words: &[&str], scope: &Scope, line: usize) -> Outcome {
        if name == "requestheader" {
            return refused(reasons::FORWARDS);
        }
        let words = match words {
            [first, rest @ ..] if matches!(first.to_ascii_lowercase().as_str(), "always" | "onsuccess") => {
                rest
            }
            all => all,
        };
        let (words, conditions): (Vec<&str>, Vec<&str>) = words
            .iter()
            .partition(|word| !word.starts_with("env=") && !word.starts_with("expr=") && **word != "early");
        let is_always_true = |word: &str| word == "env=!NEVER" || word == "early";
        if conditions.iter().any(|word| !is_always_true(word)) {
            return refused(CONDITIONS);
        }
        let (what, rest) = words.split_first().map_or(("", &[][..]), |(first, rest)| (*first, rest));
        let what = what.to_ascii_lowercase();
        match (what.as_str(), rest) {
            (_, [_, value, ..]) if value.contains("%{") => refused(VARIABLES),
            ("append" | "merge", [field, value])
                if field.eq_ignore_ascii_case("Cache-Control") && value.eq_ignore_ascii_case("public") =>
            {
                default("every cache may store a response without a password")
            }
            ("set" | "setifempty", [field, value]) => {
                self.draft.field(scope, field.trim_end_matches(':'), value, line)
            }
            ("append" | "add" | "merge", [field, value]) => {
                self.draft.add_field(scope, field.trim_end_matches(':'), value, line)
            }
            ("unset", [field, ..]) => self.draft.remove_field(scope, field, line),
            _ => refused("a value cannot be edited"),
        }
    }

    pub(super) fn add_type(&mut self, words: &[&str], scope: &Scope, line: usize) -> Outcome {
        let Some((media_type, endings)) = words.split_first() else { return refused("a type is missing") };
        if media_type.contains("x-httpd-") || media_type.contains("-source") {
            return refused(PROGRAMS);
        }
        let mut outcome = refused("an ending is missing");
        for ending in endings {
            outcome = self.draft.media_type(
                scope,
                &format!(".{}", ending.trim_start_matches('.')),
                media_type,
                line,
            );
        }
        outcome
    }

    pub(super) fn log(&mut self, words: &[&str], scope: &Scope, line: usize) -> Outcome {
        self.has_log = true;
        match words {
            [target, ..] if target.starts_with('|') => refused("the log is a file or standard output"),
            [target, ..] if target.contains('$') => refused(VARIABLES),
            [target, format, ..] => match (self.setting(scope, "access-log", target, line), *format) {
                (Outcome::Translated, "common") => self.setting(scope, "log-format", "common", line),
                (outcome, "combined" | "vhost_combined") => outcome,
                (Outcome::Translated, _) => {
                    refused("the log has the format combined; use log-format for another one")
                }
                (outcome, _) => outcome,
            },
            [target] => self.setting(scope, "access-log", target, line),
            [] => refused("a file is missing"),
        }
    }
}
