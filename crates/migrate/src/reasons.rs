//! Directives that need no translation, or have none, each with its reason.

use crate::outcome::{Outcome, default, refused};

/// Why a directive has no key in the output.
enum Reason {
    /// Tenfold does this by default.
    Same(&'static str),
    /// Tenfold does not do this.
    No(&'static str),
}

use Reason::{No, Same};

/// Names of directives, in lower case; a star at the end stands for any characters.
type Table = &'static [(&'static str, Reason)];

pub(crate) const NO_PATTERN: &str =
    "this expression has no pattern: * matches a part of a name, and ** any characters";
pub(crate) const SERVED: &str = "these files are served now, so move them out of the root";
pub(crate) const FORWARDS: &str =
    "Tenfold serves files only, and forwards no request: put it behind a proxy, or next to one";
pub(crate) const PROGRAMS: &str = "Tenfold serves files only, and runs no programs";
pub(crate) const INCLUDES: &str =
    "files that this file includes are not read: translate each of them separately";
pub(crate) const CONDITIONS: &str = "rules match paths and hosts, and have no other conditions";
pub(crate) const CONDITIONS_SERVED: &str = "rules match paths and hosts, and have no other conditions; requests that this rule refuses get the files now";
pub(crate) const CONDITIONS_CLOSED: &str =
    "rules match paths and hosts, and have no other conditions; these paths are closed until then";
pub(crate) const VARIABLES: &str = "Tenfold has no variables";
pub(crate) const ADDRESSES: &str =
    "no rule allows or denies addresses: use a firewall, a proxy or auth; these paths are closed until then";
pub(crate) const EVERY_PATH: &str = "this is a setting of the whole server, not of some paths";
pub(crate) const HIDDEN: &str = "names that begin with a dot or end with ~ get 404";
pub(crate) const METHODS: &str = "only GET, HEAD and OPTIONS are served";
pub(crate) const TLS_FILE: &str = "this file names no certificate: use tls-certificate and tls-key, or tls = \
    [\"example.org\"], which also redirects";

/// Returns the outcome of a directive of nginx that needs no translation or has none.
pub(crate) fn nginx(name: &str) -> Option<Outcome> {
    find(NGINX, name)
}

/// Returns the outcome of a directive of Apache, in lower case.
pub(crate) fn apache(name: &str) -> Option<Outcome> {
    find(APACHE, name)
}

/// Returns the outcome of a directive of Caddy.
pub(crate) fn caddy(name: &str) -> Option<Outcome> {
    find(CADDY, name)
}

/// Returns the outcome of a key of lighttpd.
pub(crate) fn lighttpd(name: &str) -> Option<Outcome> {
    find(LIGHTTPD, name)
}

fn find(table: Table, name: &str) -> Option<Outcome> {
    let fits = |names: &str| {
        names.split(' ').any(|known| match known.strip_suffix('*') {
            Some(front) => name.starts_with(front),
            None => known == name,
        })
    };
    table.iter().find(|(names, _)| fits(names)).map(|(_, reason)| match reason {
        Same(why) => default(*why),
        No(why) => refused(*why),
    })
}

const NGINX: Table = &[
    ("proxy_* uwsgi_* scgi_* grpc_* memcached_* upstream upstream_* tunnel_*", No(FORWARDS)),
    ("fastcgi_* passenger_* perl* js_*", No(PROGRAMS)),
    ("lua_* content_by_lua* access_by_lua* init_by_lua* rewrite_by_lua* header_filter_by_lua*", No(PROGRAMS)),
    ("stream mail", No("Tenfold speaks HTTP only")),
    (
        "ssi ssi_* sub_filter* addition_* add_before_body add_after_body xslt_* image_filter*",
        No("content is sent unchanged"),
    ),
    ("dav_* create_full_put_path", No("Tenfold accepts no uploads and no WebDAV")),
    ("mp4* flv hls*", No("files of video are served by ranges, without a start in the query")),
    ("map geo split_clients map_hash_* variables_hash_* geoip* set", No(VARIABLES)),
    ("if", No(CONDITIONS)),
    ("include", No(INCLUDES)),
    ("load_module", No("Tenfold has no modules")),
    ("allow deny satisfy", No(ADDRESSES)),
    (
        "auth_request* auth_jwt* secure_link* auth_digest*",
        No("only basic authentication exists; these paths are closed"),
    ),
    ("valid_referers", No(CONDITIONS)),
    (
        "worker_cpu_affinity worker_priority worker_aio_requests",
        No("the system places the workers on processors"),
    ),
    ("worker_rlimit_nofile", Same("the limit of descriptors is raised as far as the system allows")),
    (
        "worker_rlimit_core worker_shutdown_timeout working_directory env debug_* master_process",
        No("use the service manager for this"),
    ),
    ("pid lock_file", Same("the server runs in the foreground, and the service manager knows its process")),
    ("user", Same("if started as root, workers run as nobody, or as the user of the setting user")),
    ("use multi_accept accept_mutex* epoll_events", Same("the engine decides this; see tenfold engines")),
    ("pcre_jit timer_resolution thread_pool ssl_engine", Same("nothing to set")),
    ("types_hash_* server_names_hash_* proxy_headers_hash_*", Same("no table has a size to set")),
    (
        "sendfile sendfile_max_chunk output_buffers postpone_output aio aio_write directio* read_ahead",
        Same("send = \"auto\" sends small files from memory, and large files with sendfile"),
    ),
    (
        "tcp_nopush tcp_nodelay",
        Same("head and file begin in one segment, and small segments are sent immediately"),
    ),
    (
        "reset_timedout_connection lingering_*",
        Same("a refused connection is drained, and a slow one is reset"),
    ),
    ("open_file_cache* open_log_file_cache", Same("open files are cached, and checked once a second")),
    ("log_not_found log_subrequest", Same("a missing file is a line of the access log, not an error")),
    (
        "error_log",
        No(
            "messages go to standard error: the service manager, or 2>>FILE, stores them; log-level chooses them",
        ),
    ),
    ("rewrite_log", No("there is no log of rewrites")),
    (
        "server_name_in_redirect port_in_redirect absolute_redirect",
        Same("a redirect names a path, so the client keeps scheme, host and port"),
    ),
    ("merge_slashes", Same("empty names in a path are ignored")),
    (
        "msie_* chunked_transfer_encoding max_ranges underscores_in_headers ignore_invalid_headers",
        Same("Tenfold follows RFC 9110 and RFC 9112, with 64 ranges"),
    ),
    (
        "client_body_* client_header_buffer_size connection_pool_size request_pool_size output_buffers",
        Same("Tenfold accepts no uploads, and its memory follows the work"),
    ),
    (
        "gzip_comp_level gzip_buffers gzip_window gzip_hash brotli_comp_level brotli_window brotli_buffers \
            zstd_comp_level zstd_buffers",
        Same("each file is compressed once and cached, at a fixed level"),
    ),
    ("gzip_vary", Same("Vary is sent whenever a client has a choice")),
    (
        "gzip_proxied gzip_http_version gzip_disable gunzip gunzip_buffers",
        Same("every client that accepts a coding gets it"),
    ),
    ("charset_types override_charset source_charset charset_map", Same("every type of text has the charset")),
    ("autoindex_exact_size autoindex_localtime", Same("a listing shows sizes with units, and times in UTC")),
    (
        "ssl_session_* ssl_buffer_size ssl_early_data ssl_conf_command ssl_reject_handshake",
        Same("sessions are resumed by tickets, with keys that rotate; without early data"),
    ),
    (
        "ssl_ciphers ssl_prefer_server_ciphers ssl_ecdh_curve ssl_dhparam",
        Same("tls-preset has suites with forward secrecy and authenticated encryption only"),
    ),
    (
        "ssl_stapling* ssl_trusted_certificate ssl_crl ssl_ocsp*",
        No("there is no OCSP: most authorities have ended it"),
    ),
    ("ssl_client_certificate ssl_verify_*", No("clients have no certificates; these hosts are closed")),
    ("ssl_password_file", No("keys are files without a password")),
    ("resolver resolver_timeout", Same("no name is looked up while files are served")),
    ("http2_* spdy*", Same("HTTP/2 has fixed sizes of frames and windows")),
    ("http3 http3_* quic_*", No("HTTP/3 is not supported")),
    ("real_ip_recursive", Same("the last address that is no trusted-proxy is the client")),
    (
        "limit_conn_status limit_req_status limit_conn_log_level limit_req_log_level limit_conn_dry_run \
            limit_req_dry_run",
        No("a connection past the bound is closed, and a request gets 429"),
    ),
    ("limit_rate_after", No("max-rate applies from the first byte")),
    ("stub_status status vhost_traffic_status*", No("use admin = \"127.0.0.1:9145\", and tenfold status")),
    ("if_modified_since", Same("conditions of clients are evaluated exactly")),
    ("etag", Same("entity tags are sent")),
    ("server_tokens", Same("the field Server never names a version")),
    ("break", No("rewrites do not continue, so there is no break")),
    ("add_trailer expires_by_type", No("trailers do not exist here")),
    ("keepalive_disable keepalive_time subrequest_output_buffer_size", Same("nothing to set")),
    ("limit_except", Same(METHODS)),
    ("modsecurity* more_set_input_headers perl_*", No("Tenfold has no modules")),
    (
        "concat* mirror* empty_gif random_index slice recursive_error_pages uninitialized_variable_warn",
        No("Tenfold has no such feature"),
    ),
];

const APACHE: Table = &[
    ("loadmodule addmodule clearmodulelist", Same("every feature is in the program")),
    ("include includeoptional", No(INCLUDES)),
    ("proxy* balancermember sslproxy*", No(FORWARDS)),
    ("php_* phpinidir suphp_* fcgi* scriptalias* action script* cgi* suexec* passenger* wsgi*", No(PROGRAMS)),
    ("rewritemap rewriteoptions rewritelock rewritelog rewriteloglevel", No("rewrites match paths only")),
    (
        "setenv setenvif setenvifnocase browsermatch browsermatchnocase unsetenv passenv define",
        No("there are no variables: rules match paths and hosts"),
    ),
    (
        "serverroot serveradmin serversignature servertokens usecanonicalname* hostnamelookups contentdigest",
        Same("nothing to set: the server names no version and looks up no names"),
    ),
    (
        "errorlog errorlogformat loglevel",
        No(
            "messages go to standard error: the service manager, or 2>>FILE, stores them; log-level chooses them",
        ),
    ),
    (
        "pidfile mutex lockfile scoreboardfile coredumpdirectory defaultruntimedir",
        Same("the server runs in the foreground, and the service manager knows its process"),
    ),
    ("user group", Same("if started as root, workers run as nobody, or as the user of the setting user")),
    (
        "startservers min* max* serverlimit threadlimit threadsperchild asyncrequestworkerfactor threadstacksize",
        No("the engine decides this: workers and max-connections bound it"),
    ),
    ("keepalive", Same("connections are kept alive for idle-timeout")),
    (
        "enablesendfile enablemmap",
        Same("send = \"auto\" sends small files from memory, and large files with sendfile"),
    ),
    (
        "accessfilename allowoverride allowoverridelist",
        Same("no request looks for .htaccess: all rules are in the configuration"),
    ),
    ("traceenable", Same(METHODS)),
    ("fileetag", Same("entity tags are of the time and the size")),
    ("expiresactive rewriteengine headername readmename", Same("rules in the file are always active")),
    (
        "indexoptions indexignore indexignorereset indexorderdefault indexstylesheet indexheadinsert addicon* \
            defaulticon adddescription addalt*",
        No("a listing has one form, and hides names with a dot"),
    ),
    (
        "addlanguage defaultlanguage languagepriority forcelanguagepriority",
        No("no language of a file is negotiated"),
    ),
    (
        "deflate* brotli* filterprotocol filtertrace",
        Same("each file is compressed once and cached, at a fixed level"),
    ),
    (
        "filterdeclare filterprovider filterchain setinputfilter addinputfilter substitute* xsendfile* layout*",
        No("content is sent unchanged, except for compress"),
    ),
    ("mimemagicfile typesconfig", Same("common types are known")),
    (
        "sslciphersuite sslhonorcipherorder sslopensslconfcmd sslcompression sslsessiontickets sslsessioncache* \
            sslrandomseed sslpassphrasedialog sslinsecurerenegotiation sslcryptodevice sslstrictsnivhostcheck \
            ssloptions",
        Same(
            "tls-preset has suites with forward secrecy and authenticated encryption only, and sessions are \
                resumed by tickets",
        ),
    ),
    ("sslusestapling sslstapling*", No("there is no OCSP: most authorities have ended it")),
    (
        "sslverifyclient sslverifydepth sslcacertificate* sslca* sslrequire*",
        No("clients have no certificates; these hosts are closed"),
    ),
    ("requestreadtimeout", No("use head-timeout, body-timeout and min-rate")),
    (
        "limitrequestfields limitrequestfieldsize limitrequestline limitxmlrequestbody",
        Same("a head has at most max-head bytes and 100 fields, and a target 8 KiB"),
    ),
    ("dav*", No("Tenfold accepts no uploads and no WebDAV")),
    (
        "cachequickhandler cache* pagespeed* modpagespeed*",
        No("files are cached in memory, and sent unchanged"),
    ),
    ("extendedstatus", No("use admin = \"127.0.0.1:9145\", and tenfold status")),
    ("h2push h2earlyhints h2*", Same("HTTP/2 has fixed sizes of frames and windows, and no push")),
    ("namevirtualhost", Same("hosts need no declaration")),
    ("authbasicprovider authbasicauthoritative authusefake", Same("users come from a file")),
    (
        "authgroupfile authz* authn* authldap* authdigest* authform* session*",
        No("users come from one file, without groups"),
    ),
    ("secrule* secaction* secfilter* modsec* sec*", No("Tenfold has no modules")),
    ("checkspelling checkcaseonly", No("names of files are compared exactly")),
    ("acceptpathinfo", Same("a path after a file is 404")),
    (
        "directoryslash directorycheckhandler directoryindexredirect",
        Same("a folder without its slash is redirected"),
    ),
    ("multiviewsmatch", No("files are not negotiated by name: use try-files")),
    ("remoteipinternalproxy* remoteipproxiesheader", No("use trusted-proxy")),
    ("imap* ssi* xbithack", No("content is sent unchanged")),
    ("serverpath", No("hosts are chosen by their name only")),
];

const CADDY: Table = &[
    ("reverse_proxy forward_auth forward_proxy", No(FORWARDS)),
    ("php_fastcgi php_server php frankenphp cgi exec", No(PROGRAMS)),
    ("templates replace markdown", No("content is sent unchanged")),
    ("map vars", No(VARIABLES)),
    ("push", No("there is no push: use early-hints")),
    ("metrics", No("use admin = \"127.0.0.1:9145\"")),
    ("tracing", No("use request-id, and log-format = \"json\"")),
    ("acme_server pki webdav upload rate_limit crowdsec", No("Tenfold has no such feature")),
    ("request_header copy_response* intercept", No(FORWARDS)),
    ("method", Same(METHODS)),
    ("log_skip skip_log log_append log_name", No("one access log has all requests")),
    ("order", Same("rules have a fixed order")),
    ("admin", No("there is no API: HUP reads the file again, and tenfold status prints counters")),
    (
        "storage storage_* renew_interval cert_issuer cert_lifetime ocsp_* key_type preferred_chains \
            on_demand_tls events filesystem",
        No("certificates of tls are renewed by the server: see tls-state"),
    ),
    (
        "skip_install_trust persist_config pki shutdown_delay",
        Same("nothing to set: no store is changed, and no state is kept"),
    ),
    ("invoke fs", No("Tenfold has no such feature")),
    ("strict_sni_host", Same("421 for a host that the connection cannot have")),
];

const LIGHTTPD: Table = &[
    ("server.modules", Same("every feature is in the program")),
    ("include include_shell", No(INCLUDES)),
    ("proxy.* ", No(FORWARDS)),
    ("cgi.* fastcgi.* scgi.* ssi.* magnet.* ajp13.* wstunnel.* sockproxy.*", No(PROGRAMS)),
    ("webdav.*", No("Tenfold accepts no uploads and no WebDAV")),
    (
        "server.pid-file server.name",
        Same("the server runs in the foreground, and the service manager knows its process"),
    ),
    (
        "server.username server.groupname",
        Same("if started as root, workers run as nobody, or as the user of the setting user"),
    ),
    ("server.chroot", No("a sandbox limits the workers instead")),
    (
        "server.errorlog server.errorlog-use-syslog debug.* server.breakagelog accesslog.use-syslog",
        No(
            "messages go to standard error: the service manager, or 2>>FILE, stores them; log-level chooses them",
        ),
    ),
    (
        "server.event-handler server.network-backend server.stat-cache-engine server.max-fds ",
        Same("the engine and send = \"auto\" decide this"),
    ),
    ("server.upload-dirs server.stream-*", Same("Tenfold accepts no uploads")),
    (
        "server.http-parseopt* server.http-parseopts server.range-requests server.reject-expect-100-with-417 \
            server.protocol-http11",
        Same("Tenfold follows RFC 9110 and RFC 9112"),
    ),
    ("server.compat-module-load server.core-files server.systemd-socket-activation", Same("nothing to set")),
    ("static-file.etags etag.*", Same("entity tags are of the time and the size")),
    ("static-file.disable-pathinfo", Same("a path after a file is 404")),
    (
        "compress.cache-dir deflate.cache-dir deflate.max-* deflate.min-* deflate.output-* deflate.work-* \
            deflate.params deflate.compression-level",
        Same("each file is compressed once, and cached in memory"),
    ),
    ("dir-listing.encoding dir-listing.*", No("a listing has one form, and hides names with a dot")),
    (
        "ssl.cipher-list ssl.honor-cipher-order ssl.dh-file ssl.ec-curve ssl.disable-client-renegotiation ssl.use-*",
        Same("tls-preset has suites with forward secrecy and authenticated encryption only"),
    ),
    ("ssl.ca-file ssl.verifyclient.* ssl.ca-*", No("clients have no certificates")),
    ("ssl.stapling-file ssl.acme-*", No("use tls = [\"example.org\"]")),
    ("status.*", No("use admin = \"127.0.0.1:9145\", and tenfold status")),
    ("setenv.*", No("there are no variables")),
    ("simple-vhost.* evhost.* mysql-vhost.* vhostdb.*", No("hosts are tables: [[host]] with name and root")),
    (
        "userdir.* usertrack.* secdownload.* rrdtool.* flv-* trigger-b4-dl.* sql.*",
        No("Tenfold has no such feature"),
    ),
    ("evasive.silent", Same("a connection past the bound is closed, and counted")),
    ("mimetype.use-xattr mimetype.xattr-name", Same("a type follows from the name")),
    ("server.follow-symlink", Same("links beneath the root are followed")),
    ("server.force-lowercase-filenames", No("names of files are compared exactly")),
    (
        "server.use-ipv6 server.set-v6only server.defer-accept server.bsd-accept-filter",
        Same("each address in listen is IPv4 or IPv6"),
    ),
    ("server.error-intercept server.error-handler", No("error pages are files by status")),
];
