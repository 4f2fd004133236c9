//! Directives about the server, its limits and its log.

use super::state::{Context, Level, Nginx};
use crate::outcome::{Outcome, default, refused};
use crate::reasons::VARIABLES;
use crate::toml::quote;
use crate::tree::Directive;

impl<'t> Nginx<'_, '_> {
    pub(super) fn zone(&self, directive: &Directive) -> Outcome {
        match matches!(directive.arg(0), "$binary_remote_addr" | "$remote_addr") {
            true => default("every address is counted, in a table of a fixed size"),
            false => refused("connections and requests are counted by address only"),
        }
    }

    pub(super) fn limit_req(&mut self, directive: &Directive, context: &Context<'t>) -> Outcome {
        let word = |front: &str| directive.args.iter().find_map(|word| word.strip_prefix(front));
        let rate = word("zone=").and_then(|zone| self.rates.get(zone)).copied().flatten();
        let Some(rate) = rate else {
            return refused("a rate is at least one request a second, by address");
        };
        let outcome = self.setting(context, "max-requests-per-address", &rate.to_string(), directive.line);
        match word("burst=") {
            Some(burst) if outcome == Outcome::Translated => {
                self.setting(context, "request-burst", burst, directive.line)
            }
            _ => outcome,
        }
    }

    pub(super) fn access_log(&mut self, directive: &Directive, context: &Context<'t>) -> Outcome {
        let (target, format, line) = (directive.arg(0), directive.arg(1), directive.line);
        let is_of_host = context.level == Level::Server && self.has_hosts && directive.arg(0) == "off";
        if !context.scope.is_whole() || context.level == Level::Location || is_of_host {
            return refused("one access log has the requests for all hosts and paths");
        }
        let target = match target {
            "off" => "off",
            "/dev/stdout" => "-",
            _ if target.starts_with("syslog:") => return refused("the log is a file or standard output"),
            _ if target.contains('$') => return refused(VARIABLES),
            _ => target,
        };
        let outcome = self.draft.set("access-log", &[target], line);
        if outcome != Outcome::Translated
            || matches!(format, "" | "combined" | "main" if !self.formats.contains_key(format))
        {
            return outcome;
        }
        match self.format(format) {
            Ok(text) => self.draft.set("log-format", &[&text], line),
            Err(why) => refused(format!("the format {format}: {why}; the log has the format combined")),
        }
    }

    /// Returns a `log_format` as Tenfold writes it.
    pub(super) fn format(&self, name: &str) -> Result<String, String> {
        let parts =
            self.formats.get(name).ok_or_else(|| format!("there is no log_format {name} in this file"))?;
        let text = parts.concat();
        let combined = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
            \"$http_referer\" \"$http_user_agent\"";
        if text == combined {
            return Ok("combined".into());
        }
        let (mut result, mut rest) = (String::new(), text.as_str());
        while let Some(at) = rest.find('$') {
            result.push_str(&braced(&rest[..at]));
            let after = rest[at + 1..].trim_start_matches('{');
            let end =
                after.find(|next: char| !next.is_ascii_alphanumeric() && next != '_').unwrap_or(after.len());
            let (variable, next) = after.split_at(end);
            rest = if rest[at + 1..].starts_with('{') { next.trim_start_matches('}') } else { next };
            let field = LOG_FIELDS.iter().find(|(known, _)| *known == variable).map(|(_, field)| *field);
            result.push_str(field.ok_or_else(|| format!("the log has no field for ${variable}"))?);
        }
        result.push_str(&braced(rest));
        self.draft.check(&format!("log-format = {}\n", quote(&result))).map_err(|outcome| match outcome {
            Outcome::Refused(why) => why,
            _ => "no format".into(),
        })?;
        Ok(result)
    }
}

/// The fields of a log.
const LOG_FIELDS: &[(&str, &str)] = &[
    ("remote_addr", "{client}"),
    ("binary_remote_addr", "{client}"),
    ("remote_user", "{user}"),
    ("request_id", "{request_id}"),
    ("time_local", "{time}"),
    ("time_iso8601", "{time_iso}"),
    ("request", "{request}"),
    ("request_method", "{method}"),
    ("server_protocol", "{protocol}"),
    ("http_host", "{host}"),
    ("host", "{host}"),
    ("uri", "{path}"),
    ("args", "{query}"),
    ("query_string", "{query}"),
    ("status", "{status}"),
    ("body_bytes_sent", "{bytes}"),
    ("http_referer", "{referer}"),
    ("http_user_agent", "{agent}"),
    ("ssl_protocol", "{tls_version}"),
    ("ssl_cipher", "{tls_cipher}"),
    ("ssl_server_name", "{tls_server_name}"),
];

fn braced(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}
