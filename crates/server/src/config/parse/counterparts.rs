//! Names that other servers and file servers use, and the setting for the same purpose.

/// The remedy for a name of another server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counterpart {
    /// This setting has the same purpose.
    Setting(&'static str),
    /// This key of `[site]` or `[[host]]` has the same purpose.
    Key(&'static str),
    /// A sentence, if the purpose needs several settings or none.
    Advice(&'static str),
}

const TABLE: &[(&[&str], Counterpart)] = &[
    (
        &["port", "ports", "bind", "address", "addr", "host", "host-port", "server-port", "server-bind"],
        Setting("listen"),
    ),
    (
        &["dir", "directory", "folder", "document-root", "documentroot", "server-document-root", "alias"],
        Setting("root"),
    ),
    (&["directoryindex", "directory-index", "index-file", "index-files", "index-names"], Setting("index")),
    (&["gzip", "brotli", "zstd", "encode", "compression", "deflate", "gzip-comp-level"], Setting("compress")),
    (&["gzip-static", "brotli-static", "compression-static", "precompress"], Setting("precompressed")),
    (&["gzip-types"], Setting("compress-types")),
    (&["gzip-min-length"], Setting("compress-from")),
    (&["autoindex", "browse", "directory-listing", "dir-listing", "options"], Setting("listing")),
    (&["ssl", "https", "letsencrypt", "acme"], Setting("tls")),
    (&["http3", "quic"], Advice("remove it: the server speaks HTTP/1.1 and HTTP/2; tls encrypts them")),
    (
        &["ssl-certificate", "cert", "certificate", "tls-cert", "http2-tls-cert", "sslcertificatefile"],
        Setting("tls-certificate"),
    ),
    (
        &["ssl-certificate-key", "key", "private-key", "http2-tls-key", "sslcertificatekeyfile"],
        Setting("tls-key"),
    ),
    (&["ssl-protocols"], Setting("tls-preset")),
    (&["threads", "worker-processes", "processes", "threads-multiplier"], Setting("workers")),
    (&["worker-connections"], Setting("max-connections")),
    (&["limit-conn"], Setting("max-connections-per-address")),
    (&["limit-req"], Setting("max-requests-per-address")),
    (&["limit-rate"], Setting("max-rate")),
    (&["client-max-body-size"], Setting("max-body")),
    (&["keepalive-timeout", "keep-alive", "keepalive"], Setting("idle-timeout")),
    (&["client-header-timeout"], Setting("head-timeout")),
    (&["client-body-timeout"], Setting("body-timeout")),
    (&["sendfile"], Setting("send")),
    (&["tcp-nopush", "nopush", "cork"], Setting("tcp-cork")),
    (&["nodelay"], Setting("tcp-nodelay")),
    (&["customlog", "log", "log-file"], Setting("access-log")),
    (&["error-log", "verbose", "loglevel"], Setting("log-level")),
    (&["set-real-ip-from", "real-ip-header", "trusted-proxies"], Setting("trusted-proxy")),
    (&["use", "io", "model"], Setting("engine")),
    (
        &["proxy-pass", "reverse-proxy", "fastcgi-pass", "uwsgi-pass", "proxypass", "cgi", "upstream"],
        Advice("Tenfold serves files and forwards no request: put a proxy in front of both"),
    ),
    (&["server-name", "server-alias", "servername", "serveralias"], Key("name")),
    (
        &["virtual-host", "server", "virtualhost", "hosts"],
        Advice("a virtual host is a table of the configuration file: [[host]] with name = \"example.org\""),
    ),
    (&["location"], Key("path")),
    (&["return"], Key("redirect")),
    (&["error-page", "errordocument", "page404", "not-found", "404"], Key("error-pages")),
    (&["add-header", "header"], Key("headers")),
    (&["expires", "cache-control", "cache-control-headers"], Key("cache")),
    (&["basic-auth", "auth-basic", "auth-basic-user-file"], Key("auth")),
    (&["spa"], Key("fallback")),
    (&["default-type", "mime-types", "addtype"], Key("types")),
    (
        &["allow", "deny", "satisfy"],
        Advice(
            "no rule allows or denies addresses: protect the path with auth, or use a firewall or a proxy",
        ),
    ),
    (&["map", "if", "set"], Advice("there are no variables and no conditions: rules match paths and hosts")),
    (
        &["server-tokens", "servertokens"],
        Advice("the field Server never names a version; server-field off removes it"),
    ),
    (&["gzip-vary"], Advice("remove it: Vary is sent whenever a client has a choice")),
    (
        &["daemon", "background", "detach"],
        Advice("the server stays in the foreground; `tenfold book` has a unit for systemd (Operating)"),
    ),
    (
        &["quiet", "silent"],
        Advice("access-log off hides requests, and log-level error everything but errors"),
    ),
];

use Counterpart::{Advice, Key, Setting};

/// Returns the remedy for `name`, written with hyphens or underscores, if it is a known name of another server.
pub(crate) fn counterpart(name: &str) -> Option<Counterpart> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    TABLE.iter().find(|(names, _)| names.contains(&name.as_str())).map(|(_, counterpart)| *counterpart)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse::rows::row;

    #[test]
    fn every_counterpart_leads_to_a_setting_and_is_not_a_setting() {
        for (names, counterpart) in TABLE {
            for name in *names {
                assert!(row(name).is_none(), "{name} is a setting itself");
            }
            if let Setting(setting) = counterpart {
                assert!(row(setting).is_some(), "there is no setting {setting}");
            }
        }
    }

    #[test]
    fn names_of_other_servers_lead_to_settings() {
        assert_eq!(counterpart("port"), Some(Setting("listen")));
        assert_eq!(counterpart("gzip"), Some(Setting("compress")));
        assert_eq!(counterpart("SSL_certificate"), Some(Setting("tls-certificate")));
        assert!(
            matches!(counterpart("proxy_pass"), Some(Advice(advice)) if advice.contains("forwards no request"))
        );
        assert_eq!(counterpart("error_page"), Some(Key("error-pages")));
        assert_eq!(counterpart("colour"), None);
    }
}
