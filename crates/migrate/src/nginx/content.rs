//! Directives about responses, and every directive without a block.

use super::servers;
use super::state::{Context, Nginx, find_in, is_error_page};
use crate::outcome::{Outcome, default, refused};
use crate::reasons::{self, ADDRESSES, EVERY_PATH, FORWARDS, HIDDEN, PROGRAMS, VARIABLES};
use crate::toml::quote;
use crate::tree::Directive;
use crate::values::{bytes, lifetime, seconds, size};

impl<'t> Nginx<'_, '_> {
    pub(super) fn simple(&mut self, directive: &'t Directive, context: &Context<'t>) -> Outcome {
        let (line, scope, first) = (directive.line, &context.scope, directive.arg(0));
        match directive.name.as_str() {
            "root" => self.draft.root(scope, first, line),
            "alias" => self.alias(first, context, line),
            "index" => {
                let names: Vec<&str> = directive.args.iter().map(String::as_str).collect();
                match names.iter().any(|name| name.contains('$')) {
                    true => refused(VARIABLES),
                    false => {
                        let is_same = self.draft.sites[scope.site]
                            .index
                            .as_ref()
                            .is_some_and(|(known, _)| *known == names);
                        if is_same { Outcome::Translated } else { self.draft.index(scope, &names, line) }
                    }
                }
            }
            "try_files" => self.try_files(directive, context),
            "error_page" => self.error_page(directive, context),
            "return" => self.returned(directive, context, &[]),
            "rewrite" => self.rewrite(directive, context),
            "add_header" | "more_set_headers" | "more_clear_headers" | "add_header_inherit" => {
                self.header(directive, context)
            }
            "expires" => self.expires(directive, context),
            "gzip" | "brotli" | "zstd" => self.compress(directive, context),
            "gzip_types" | "brotli_types" | "zstd_types" => self.compress_types(directive, context),
            "gzip_min_length" | "brotli_min_length" | "zstd_min_length" => match bytes(first) {
                Some(least) => self.setting(context, "compress-from", &least.max(1).to_string(), line),
                None => refused("this is not a size"),
            },
            "gzip_static" | "brotli_static" | "zstd_static" if first == "off" => {
                default("precompressed is off")
            }
            "gzip_static" | "brotli_static" | "zstd_static" if !scope.is_whole() => refused(EVERY_PATH),
            "gzip_static" => self.draft.extend("precompressed", &["gzip"], line),
            "brotli_static" => self.draft.extend("precompressed", &["br"], line),
            "zstd_static" => self.draft.extend("precompressed", &["zstd"], line),
            "autoindex" if first == "on" => self.draft.rule(scope, "listing", quote("html"), line),
            "autoindex" if scope.is_whole() => default("listing is off"),
            "autoindex" => self.draft.rule(scope, "listing", quote("off"), line),
            "autoindex_format" if first == "html" => default("a listing is a page"),
            "autoindex_format" if first == "json" => {
                refused("use listing = \"json\"; html also sends JSON to clients that prefer it")
            }
            "charset" if first.eq_ignore_ascii_case("utf-8") => default("text is utf-8"),
            "charset" if first == "off" => self.draft.rule(scope, "charset", "false".into(), line),
            "charset" => self.draft.rule(scope, "charset", quote(first), line),
            "default_type" if first == "application/octet-stream" => {
                default("unknown endings have this type")
            }
            "default_type" => refused(
                "names with an unknown ending are application/octet-stream: use types for each ending",
            ),
            "include" if first.ends_with("mime.types") => default("common types are known"),
            "include" if first.contains("fastcgi") => refused(PROGRAMS),
            "include" if first.contains("proxy_params") || first.contains("uwsgi_params") => {
                refused(FORWARDS)
            }
            "auth_basic" | "auth_basic_user_file" => self.auth(directive, context),
            "allow" if first == "all" => default("access is open"),
            "allow" | "deny" if context.hidden => default(HIDDEN),
            "deny" if first == "all" && access_of_rules(context) => Outcome::Translated,
            "allow" | "deny" => refused(ADDRESSES),
            "internal" if scope.patterns.iter().all(|pattern| is_error_page(context.server, pattern)) => {
                refused("the page is also a file of the root, which clients can request")
            }
            "internal" => refused("no request leads here from within; these paths are closed"),
            "client_max_body_size" if first == "0" => {
                default("only a response that needs a body reads it, and accepts no upload")
            }
            "client_max_body_size" => match bytes(first) {
                Some(most) => self.setting(context, "max-body", &size(most), line),
                None => refused("this is not a size"),
            },
            "large_client_header_buffers" => {
                match (directive.arg(0).parse::<u64>().ok(), bytes(directive.arg(1))) {
                    (Some(number), Some(each)) => {
                        self.setting(context, "max-head", &size(number.saturating_mul(each)), line)
                    }
                    _ => refused("this is not a number and a size"),
                }
            }
            "keepalive_timeout" if seconds(first) == Some(0) => {
                self.setting(context, "requests-per-connection", "1", line)
            }
            "keepalive_timeout" => self.time(context, "idle-timeout", directive),
            "keepalive_requests" => self.setting(context, "requests-per-connection", first, line),
            "client_header_timeout" => self.time(context, "head-timeout", directive),
            "client_body_timeout" => self.time(context, "body-timeout", directive),
            "send_timeout" => self.time(context, "send-timeout", directive),
            "limit_rate" if matches!(first, "0" | "off") => default("max-rate is off"),
            "limit_rate" => match bytes(first) {
                Some(rate) => self.setting(context, "max-rate", &size(rate), line),
                None => refused(VARIABLES),
            },
            "limit_conn_zone" | "limit_req_zone" => self.zone(directive),
            "limit_conn" if self.by_address.iter().any(|zone| zone == first) => {
                self.setting(context, "max-connections-per-address", directive.arg(1), line)
            }
            "limit_conn" => refused("connections are counted by address only"),
            "limit_req" => self.limit_req(directive, context),
            "worker_processes" if first == "auto" => default("one worker for each processor"),
            "worker_processes" => self.draft.set("workers", &[first], line),
            "worker_connections" => self.draft.set("max-connections", &[first], line),
            "daemon" if first == "off" => default("the server stays in the foreground"),
            "daemon" => refused("the server stays in the foreground: use a service manager"),
            "access_log" => self.access_log(directive, context),
            "log_format" => match self.format(first) {
                Ok(_) => Outcome::Translated,
                Err(why) => refused(why),
            },
            "server_tokens" if first == "off" => default("the field Server never names a version"),
            "server_tokens" => refused("the field Server never names a version"),
            "etag" if first == "off" => self.draft.remove_field(scope, "ETag", line),
            "http2" if first == "off" => self.setting(context, "http2", "off", line),
            "http2" => default("HTTP/2 is on"),
            "http2_max_concurrent_streams" => self.setting(context, "http2-streams", first, line),
            "http2_push" | "http2_push_preload" if first == "off" => default("there is no push"),
            "http2_push" | "http2_push_preload" => refused("there is no push: use early-hints"),
            "set_real_ip_from" => match first {
                "unix:" => self.draft.extend("trusted-proxy", &["unix"], line),
                proxy => self.draft.extend("trusted-proxy", &[proxy], line),
            },
            "real_ip_header" => match first.to_ascii_lowercase().as_str() {
                "x-forwarded-for" if self.proxies => {
                    self.setting(context, "forwarded-fields", "x-forwarded-for", line)
                }
                "proxy_protocol" => default("the prefix proxy: of listen reads it"),
                _ => refused("use trusted-proxy with X-Forwarded-For or Forwarded"),
            },
            "disable_symlinks" => match first {
                "off" => default("links beneath the root are followed"),
                "if_not_owner" => self.draft.site_key(scope, "symlinks", quote("owner"), line),
                _ => self.draft.site_key(scope, "symlinks", quote("none"), line),
            },
            "ssl"
            | "ssl_certificate"
            | "ssl_certificate_key"
            | "ssl_protocols"
            | "listen"
            | "server_name" => servers::of_server(self, directive, scope.site),
            "open_file_cache" | "ssi" if first == "off" => default("off"),
            other => reasons::nginx(other).unwrap_or_else(|| refused("this directive is unknown")),
        }
    }

    pub(super) fn header(&mut self, directive: &Directive, context: &Context<'t>) -> Outcome {
        let (scope, line) = (&context.scope, directive.line);
        if directive.name != "add_header" {
            let mut outcome = refused("a field is missing");
            for field in &directive.args {
                let (name, value) = field.split_once(':').unwrap_or((field, ""));
                outcome = match (directive.name.as_str(), value.trim()) {
                    ("more_set_headers", value) if !value.is_empty() => {
                        self.draft.field(scope, name.trim(), value, line)
                    }
                    _ if name.starts_with('-') => refused("there are no options for statuses"),
                    _ => self.draft.remove_field(scope, name.trim(), line),
                };
            }
            return outcome;
        }
        let (name, value) = (directive.arg(0), directive.arg(1));
        match value {
            "" => default("a field without a value is not sent"),
            _ if value.contains('$') => refused(VARIABLES),
            _ if self.draft.sets_field(scope, name, line) => self.draft.add_field(scope, name, value, line),
            _ if name.eq_ignore_ascii_case("cache-control") && has_expires(context) => {
                match value.contains("immutable") {
                    true => Outcome::Translated,
                    false => default("cache sends the lifetime of expires"),
                }
            }
            _ => self.draft.field(scope, name, value, line),
        }
    }

    pub(super) fn expires(&mut self, directive: &'t Directive, context: &Context<'t>) -> Outcome {
        let (first, line) = (directive.arg(0), directive.line);
        let block = context.block;
        let fields = block
            .iter()
            .filter(|other| other.name == "add_header" && other.arg(0).eq_ignore_ascii_case("cache-control"));
        let says = |word: &str| fields.clone().any(|field| field.arg(1).contains(word));
        let value = match first {
            "max" => "immutable".to_owned(),
            "off" => return default("cache is off"),
            "epoch" => "revalidate".into(),
            _ if says("no-store") => "no-store".into(),
            _ if first.starts_with('-') => "revalidate".into(),
            _ => match seconds(first) {
                Some(365_u64..) if says("immutable") && seconds(first) >= Some(365 * 24 * 60 * 60) => {
                    "immutable".into()
                }
                Some(seconds) => lifetime(seconds),
                None if first.starts_with('$') => return refused(VARIABLES),
                None => return refused("a lifetime begins at the request"),
            },
        };
        self.draft.rule(&context.scope, "cache", quote(&value), line)
    }

    pub(super) fn compress(&mut self, directive: &Directive, context: &Context<'t>) -> Outcome {
        let coding = match directive.name.as_str() {
            "gzip" => "gzip",
            "brotli" => "br",
            _ => "zstd",
        };
        match (directive.arg(0), context.scope.is_whole()) {
            ("on", true) => self.draft.extend("compress", &[coding], directive.line),
            (_, true) if !self.draft.settings.contains_key("compress") => default("compress is off"),
            ("on", false)
                if self
                    .draft
                    .settings
                    .get("compress")
                    .is_some_and(|set| set.values.iter().any(|known| known == coding)) =>
            {
                default("compress applies to every path")
            }
            _ => refused(EVERY_PATH),
        }
    }

    pub(super) fn compress_types(&mut self, directive: &Directive, context: &Context<'t>) -> Outcome {
        if !context.scope.is_whole() {
            return refused(EVERY_PATH);
        }
        if directive.args == ["*"] {
            return self.draft.extend(
                "compress-types",
                &["text", "application/*", "font/*", "image/svg+xml"],
                directive.line,
            );
        }
        let mut types = vec!["text/html"];
        types.extend(directive.args.iter().map(String::as_str));
        self.draft.extend("compress-types", &types, directive.line)
    }

    pub(super) fn auth(&mut self, directive: &'t Directive, context: &Context<'t>) -> Outcome {
        let block = context.block;
        let of = |name: &str| {
            find_in(block, name).or_else(|| find_in(context.server, name)).map(|found| found.arg(0))
        };
        let scope = &context.scope;
        match (of("auth_basic"), of("auth_basic_user_file")) {
            (Some("off"), _) if scope.is_whole() => default("no password is needed"),
            (Some("off"), _) => self.draft.rule(scope, "auth", "false".into(), directive.line),
            (Some(realm), Some(users)) if !users.contains('$') && !realm.contains('$') => {
                self.draft.auth(scope, realm, &quote(users), directive.line)
            }
            _ => {
                self.draft.close(scope, directive.line);
                refused("a realm and a file of users are needed; these paths are closed until then")
            }
        }
    }
}

/// Whether a block denies all requests, and no address is an exception.
fn access_of_rules(context: &Context<'_>) -> bool {
    !context.block.iter().any(|other| other.name == "allow")
}

fn has_expires(context: &Context<'_>) -> bool {
    find_in(context.block, "expires").is_some_and(|expires| expires.arg(0) != "off")
}
