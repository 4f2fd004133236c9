use super::*;
use crate::admission::ConnectionBound;
use crate::config::parse::given::GivenSettings;

const DESCRIPTORS: u64 = 20_000;

fn settings(words: &[(&'static str, &str)]) -> Settings {
    let flags = words.iter().map(|(name, value)| (*name, vec![(*value).to_owned()])).collect();
    GivenSettings { flags, ..GivenSettings::default() }.resolve().expect("legal")
}

fn resolve(words: &[(&'static str, &str)], descriptors: u64) -> Result<ResolvedConfig, String> {
    ResolvedConfig::resolve(&settings(words), descriptors)
}

fn refusal(words: &[(&'static str, &str)], descriptors: u64) -> String {
    resolve(words, descriptors).expect_err("it makes no sense")
}

#[test]
fn a_setting_that_an_engine_ignores_is_refused_with_the_engines_that_use_it() {
    for (engine, name, value, said) in [
        (
            "epoll",
            "pool-threads",
            "4",
            "pool-threads is for engine pool, and for dispatch reactor and proactor, not for epoll with dispatch inline",
        ),
        (
            "fork",
            "pool-queue",
            "4",
            "pool-queue is for engine pool, and for dispatch reactor and proactor, not for fork with dispatch inline",
        ),
        ("poll", "busy-sleep", "2ms", "busy-sleep is for engine busy, not poll"),
        (
            "naive",
            "timer",
            "wheel",
            "timer is for engines busy, select, poll, epoll, libevent, asio, asio-proactor, uring, not naive",
        ),
        (
            "pool",
            "max-connections",
            "9",
            "max-connections is for engines fork, thread, busy, select, poll, epoll, libevent, asio, asio-proactor, \
             uring, not pool",
        ),
    ] {
        assert_eq!(refusal(&[("engine", engine), (name, value)], DESCRIPTORS), said);
    }
}

#[test]
fn auto_chooses_an_allowed_engine_and_names_the_reason() {
    assert_eq!(choose(|_| true).0, Engine::Epoll);
    assert_eq!(tenfold_lab::report::advice::DEFAULT, Engine::Epoll, "the laboratory names the default");
    assert_eq!(choose(|engine| engine != Engine::Epoll).0, Engine::Uring);
    let (last, why) = choose(|engine| !matches!(engine, Engine::Epoll | Engine::Uring));
    assert_eq!(last, Engine::Poll);
    assert!(why.is_some_and(|why| why.contains("neither epoll nor, within its limits, io_uring")));
}

#[test]
fn auto_takes_rings_that_may_be_locked_by_all_workers() {
    let each = Engine::Uring.model().locked_bytes;
    assert!(
        each > 0 && may_lock(Engine::Uring, Some(2), Some(2 * each)) && may_lock(Engine::Uring, None, None)
    );
    assert!(!may_lock(Engine::Uring, Some(2), Some(2 * each - 1)));
    assert!(may_lock(Engine::Poll, Some(2), Some(0)), "it locks nothing");
}

#[test]
fn logs_that_can_not_be_are_refused() {
    for (words, said) in [
        (
            [("engine", "fork"), ("log-mode", "async")],
            "log-mode async does not go with engine fork: a child that ends with its connection has no use for \
             a thread; take sync or buffered",
        ),
        (
            [("log-mode", "sync"), ("log-full", "drop")],
            "log-full has no effect unless log-mode is async, which has a queue; set it, or remove log-full",
        ),
        (
            [("access-log", "-"), ("log-rotate", "daily")],
            "log-rotate requires an access log in a file: standard output cannot be renamed; name a file with \
             access-log, or leave log-rotate out",
        ),
        (
            [("access-log", "/dev/null"), ("log-rotate", "1 MiB")],
            "log-rotate requires an access log in a file: /dev/null is not a regular file; name a file with access-log, or \
             leave log-rotate out",
        ),
        (
            [("access-log", "/dev/stderr"), ("log-rotate", "100 lines")],
            "log-rotate requires an access log in a file: /dev/stderr is a link, and its target is not \
             renamed with it; name a file with access-log, or leave log-rotate out",
        ),
    ] {
        assert_eq!(refusal(&words, DESCRIPTORS), said);
    }
}

#[test]
fn a_log_that_is_off_has_no_format_mode_or_rotation() {
    for (name, value) in [("log-format", "json"), ("log-mode", "sync"), ("log-rotate", "daily")] {
        assert_eq!(
            refusal(&[("access-log", "off"), (name, value)], DESCRIPTORS),
            format!(
                "{name} has no effect while access-log is off; name a file, or - for standard output, or remove \
                 {name}"
            )
        );
    }
}

#[test]
fn a_flag_turns_off_a_log_that_other_sources_describe() {
    let flags = vec![("access-log", vec!["off".to_owned()])];
    let variables = vec![("log-format", vec!["json".to_owned()])];
    let given = GivenSettings { flags, variables, ..GivenSettings::default() };
    assert!(ResolvedConfig::resolve(&given.resolve().expect("legal"), DESCRIPTORS).is_ok());
}

#[test]
fn options_of_tcp_are_refused_where_every_address_is_a_unix_socket() {
    for (name, value) in [
        ("tcp-nodelay", "on"),
        ("tcp-cork", "on"),
        ("defer-accept", "off"),
        ("linger", "1"),
        ("notsent-lowat", "16k"),
    ] {
        assert_eq!(
            refusal(&[("listen", "unix:/run/a.sock"), (name, value)], DESCRIPTORS),
            format!(
                "{name} is for TCP, and every address in listen is a Unix socket; leave it out, or listen on an \
                 address such as 127.0.0.1:8080, too"
            )
        );
    }
    assert!(resolve(&[("listen", "unix:/run/a.sock"), ("backlog", "16")], DESCRIPTORS).is_ok());
}

#[test]
fn accept_one_is_for_workers_that_accept_and_are_notified_again() {
    let accept = |words: &[(&'static str, &'static str)]| {
        refusal(&[words, &[("accept", "one"), ("workers", "2")]].concat(), DESCRIPTORS)
    };
    assert_eq!(
        accept(&[("engine", "epoll"), ("trigger", "et+et")]),
        "accept one does not go with trigger et+et: an edge-triggered listener is reported only once \
         for several connections, and the others would wait; take lt+et or lt+lt"
    );
    assert_eq!(
        accept(&[("engine", "poll"), ("topology", "handoff")]),
        "accept is for workers that accept for themselves, and not for topology handoff, in which one thread does \
         nothing else; leave it out, or take topology threads"
    );
    assert_eq!(
        refusal(&[("engine", "pool"), ("accept", "all")], DESCRIPTORS),
        "accept is for engines busy, select, poll, epoll, libevent, asio, uring, not pool"
    );
    assert_eq!(
        refusal(&[("engine", "asio-proactor"), ("accept", "one")], DESCRIPTORS),
        "accept is for engines busy, select, poll, epoll, libevent, asio, uring, not asio-proactor"
    );
}

#[test]
fn the_switches_of_transport_arrive_where_they_are_set() {
    let words = [
        ("engine", "epoll"),
        ("accept", "one"),
        ("tcp-cork", "on"),
        ("linger", "2"),
        ("notsent-lowat", "16k"),
        ("tcp-nodelay", "off"),
    ];
    let ResolvedConfig { plan, options, .. } = resolve(&words, DESCRIPTORS).expect("legal");
    assert_eq!((plan.accept, plan.cork), (Accept::One, true));
    assert_eq!((options.linger, options.notsent_lowat), (Some(2), Some(16_384)));
    assert!(!options.tcp_nodelay);
}

#[test]
fn the_bound_of_connections_leaves_descriptors_for_files() {
    let most = |words: &[(&'static str, &str)]| {
        let one = [words, &[("workers", "1")]].concat();
        resolve(&one, DESCRIPTORS).expect("legal").plan.bounds.connections
    };
    // 20,000, less 32 for the server and 256 for files that stay open; then a tenth, or half, is for other files.
    assert_eq!(most(&[("engine", "epoll")]), 17_741);
    assert_eq!(most(&[("engine", "epoll"), ("send", "sendfile")]), 9_856);
    let two = [("engine", "epoll"), ("topology", "threads"), ("workers", "2")];
    assert_eq!(resolve(&two, DESCRIPTORS).expect("legal").plan.bounds.connections, 8_756);
}

#[test]
fn compression_of_nothing_is_refused() {
    assert_eq!(
        refusal(&[("compress-from", "2k")], DESCRIPTORS),
        "compress-from has no effect while compress is off; set compress, or remove compress-from"
    );
    let some = resolve(&[("compress", "gzip")], DESCRIPTORS).expect("legal");
    assert_eq!(some.site.codings.made.len(), 1);
}

#[test]
fn a_setting_that_an_engine_uses_is_in_its_plan() {
    let pool = [("engine", "pool"), ("pool-threads", "3"), ("pool-queue", "5")];
    let Bounds { pool_threads, pool_queue, connections, .. } =
        resolve(&pool, DESCRIPTORS).expect("legal").plan.bounds;
    assert_eq!((pool_threads, pool_queue, connections), (3, 5, 8));
    let handoff = [("engine", "epoll"), ("topology", "handoff"), ("workers", "2"), ("handoff-queue", "7")];
    assert_eq!(resolve(&handoff, DESCRIPTORS).expect("legal").plan.bounds.handoff_queue, 7);
    let single = [("engine", "epoll"), ("workers", "1"), ("handoff-queue", "7")];
    assert_eq!(refusal(&single, DESCRIPTORS), "handoff-queue is for topology handoff, not single");
    let busy = resolve(&[("engine", "busy"), ("busy-sleep", "7ms")], DESCRIPTORS).expect("legal");
    assert_eq!(busy.plan.bounds.busy_sleep.as_millis(), 7);
    let timers = [("engine", "poll"), ("timer", "list")];
    let plan = resolve(&timers, DESCRIPTORS).expect("legal").plan;
    assert_eq!(plan.timer, TimerKind::List);
}

#[test]
fn tls_needs_a_key_an_address_and_a_sender_that_reads() {
    let (certificate, key) = (("tls-certificate", "none.pem"), ("tls-key", "none.key"));
    let refused = |words: &[(&'static str, &str)]| refusal(words, DESCRIPTORS);
    assert_eq!(refused(&[certificate]), "tls-certificate requires tls-key: name the file with the key");
    assert_eq!(refused(&[key]), "tls-key requires tls-certificate: name the file with the certificate");
    for (name, value) in
        [("tls-preset", "modern"), ("tls-kernel", "auto"), ("tls-key-isolation", "off"), ("hsts", "on")]
    {
        assert_eq!(
            refused(&[(name, value)]),
            format!("{name} has no effect without tls-certificate or tls; name a certificate, or remove it")
        );
    }
    assert_eq!(
        refused(&[certificate, key, ("https-redirect", "on")]),
        "https-redirect has no use: no TCP address in listen begins with http:; listen on an address such as \
         http:0.0.0.0:80, too"
    );
    for listen in ["unix:/run/site.sock", "http:127.0.0.1:80"] {
        assert_eq!(
            refused(&[certificate, key, ("listen", listen)]),
            "tls-certificate has no use: every address in listen is a Unix socket or begins with http:; listen on an \
             address such as 0.0.0.0:443"
        );
    }
    for sender in ["sendfile", "splice", "mmap"] {
        assert_eq!(
            refused(&[certificate, key, ("send", sender)]),
            format!(
                "send {sender} does not go with tls-certificate: files are read and encrypted by this process; take \
                 send auto, or have the kernel encrypt with tls-kernel on"
            )
        );
    }
    for sender in ["auto", "copy"] {
        let refused = refused(&[certificate, key, ("send", sender)]);
        assert!(
            refused.starts_with("cannot read certificate ") && refused.contains("; cannot read key "),
            "{refused}"
        );
    }
}

#[test]
fn an_address_with_http_in_front_has_no_tls() {
    let settings = of_file(
        "entries",
        "listen = [\"127.0.0.1:1\", \"http:127.0.0.1:2\", \"unix:a.sock\", \"http:unix:b.sock\"]\ntls-certificate = \"a.pem\"\n",
        &[],
    );
    let has_tls: Vec<_> = settings.listen.iter().map(|entry| settings.has_tls(entry)).collect();
    assert_eq!(has_tls, [true, false, false, false]);
}

#[test]
fn zerocopy_is_for_tcp_and_the_pipes_of_splice_leave_fewer_descriptors_to_connections() {
    let unix = [("send", "zerocopy"), ("listen", "unix:/run/site.sock")];
    assert_eq!(
        refusal(&unix, DESCRIPTORS),
        "send zerocopy is for TCP, and unix:/run/site.sock is a Unix socket; take another sender, or another \
         address"
    );
    assert!(resolve(&[("send", "zerocopy")], DESCRIPTORS).expect("legal").options.zerocopy);
    assert!(!resolve(&[("send", "copy")], DESCRIPTORS).expect("legal").options.zerocopy);
    for (descriptors, pipes) in [(DESCRIPTORS, 256), (1024, 64)] {
        let most = |sender| {
            let words = [("engine", "epoll"), ("workers", "1"), ("send", sender)];
            resolve(&words, descriptors).expect("legal").plan.bounds
        };
        assert_eq!(most("splice").pipes, pipes);
        assert_eq!(most("sendfile").connections - most("splice").connections, pipes);
    }
}

#[test]
fn select_has_as_many_connections_as_its_sets_have_room_for() {
    let select = |most| [("engine", "select"), ("workers", "1"), ("max-connections", most)];
    assert_eq!(resolve(&select("992"), DESCRIPTORS).expect("legal").plan.bounds.connections, 992);
    assert_eq!(
        refusal(&select("993"), DESCRIPTORS),
        "max-connections is 993, but engine select watches descriptors below 1024: enough for 992 in each \
         worker; ask for less, or choose another engine"
    );
    let unsaid = resolve(&select("1")[..2], DESCRIPTORS).expect("legal").plan.bounds.connections;
    assert_eq!(unsaid, 992);
}

#[test]
fn a_pool_that_could_not_hold_its_connections_is_refused() {
    let unsaid = resolve(&[("engine", "pool")], 1024).expect("legal").plan.bounds;
    assert_eq!((unsaid.pool_threads, unsaid.pool_queue), (16, 944));
    assert_eq!(
        refusal(&[("engine", "pool"), ("pool-queue", "1024")], 1024),
        "pool-threads 16 and pool-queue 1024 need 1072 descriptors, but the limit of 1024 leaves 992; raise it \
         (ulimit -n), or ask for less"
    );
}

fn of_file(name: &str, text: &str, flags: &[(&'static str, &str)]) -> Settings {
    let file = std::env::temp_dir().join(format!("tenfold-{name}-{}.toml", std::process::id()));
    std::fs::write(&file, text).expect("a temporary file");
    let flags = flags.iter().map(|(name, value)| (*name, vec![(*value).to_owned()])).collect();
    let settings = GivenSettings { flags, config: Some(file.clone()), ..GivenSettings::default() }.resolve();
    std::fs::remove_file(&file).expect("our own file");
    settings.unwrap_or_else(|problems| panic!("{}", problems[0]))
}

#[test]
fn h83_every_route_to_a_protected_folder_is_legal_since_its_files_are_protected() {
    let flags = [("accounts", "sqlite:members.db"), ("protect", "/members/area/")];
    for text in [
        "[[site.rewrite]]\nfrom = \"/a/**\"\nto = \"/members/area/**\"\n",
        "[site]\ntry-files = \"/members{path}\"\n",
        "[site]\nfallback = \"/members/area/index.html\"\n",
    ] {
        let resolved = ResolvedConfig::resolve(&of_file("routes", text, &flags), DESCRIPTORS);
        assert!(resolved.is_ok(), "{text}: {:?}", resolved.map(|_| ()));
    }
}

#[test]
fn h85_passwords_over_plain_http_are_warned_about_off_loopback() {
    let auth =
        "auth = { users = { a = \"$2y$04$ldLE7Yhlg22/2WQ9xeV0NegEaK6HITypbwmpMYvfVgdRlGDqiBoxC\" } }\n";
    for (rule, listen, expected) in [
        (auth, "0.0.0.0:8080", true),
        (auth, "[2001:db8::1]:8080", true),
        (auth, "127.0.0.9:8080", false),
        (auth, "[::1]:8080", false),
        ("", "0.0.0.0:8080", false),
    ] {
        let text = format!("[site]\ncharset = false\n[[site.path]]\nmatch = \"/a/**\"\n{rule}");
        let settings = of_file("plain", &text, &[("listen", listen)]);
        let warned = open_passwords(&settings);
        assert_eq!(warned.is_some(), expected, "{rule}{listen}");
        assert!(warned.is_none_or(|warning| warning.contains(listen)));
    }
}

#[test]
fn tls_on_port_80_is_warned_about() {
    for (listen, expected) in [
        ("0.0.0.0:80", Some("write http:0.0.0.0:80")),
        ("[::]:80", Some("write http:[::]:80")),
        ("http:0.0.0.0:80", None),
        ("0.0.0.0:8080", None),
    ] {
        let flags = [("tls", "internal"), ("listen", listen)];
        let warned = tls_on_http_port(&of_file("http-port", "", &flags));
        assert_eq!(warned.is_some(), expected.is_some(), "{listen}");
        assert!(warned.zip(expected).is_none_or(|(warned, expected)| warned.contains(expected)));
    }
}

#[test]
fn settings_of_attempts_are_for_members_and_for_passwords_of_paths() {
    let flags = [("login-throttle", "off")];
    let auth = "[site]\nauth = { users = { a = \"$2y$04$ldLE7Yhlg22/2WQ9xeV0NegEaK6HITypbwmpMYvfVgdRlGDqiBoxC\" } }\n";
    assert!(ResolvedConfig::resolve(&of_file("attempts", auth, &flags), DESCRIPTORS).is_ok());
    let why =
        ResolvedConfig::resolve(&of_file("attempts", "", &flags), DESCRIPTORS).map(|_| ()).expect_err("idle");
    assert!(why.contains("is for a server that has members"), "{why}");
}

#[test]
fn off_loopback_an_address_has_a_quarter_of_the_connections_by_default() {
    let connections = |words: &[(&'static str, &str)]| {
        let config = resolve(words, DESCRIPTORS).expect("it can be done");
        config.shares.map(|shares| shares.connections)
    };
    let two = [("engine", "epoll"), ("workers", "2"), ("max-connections", "4000")];
    let [engine, workers, most] = two;
    for (listen, expected) in [
        ("127.0.0.1:8080", None),
        ("[::1]:8080", None),
        ("unix:/run/tenfold.socket", None),
        ("0.0.0.0:80", Some(ConnectionBound::Default(2000))),
        ("[::]:80", Some(ConnectionBound::Default(2000))),
        ("192.0.2.1:80", Some(ConnectionBound::Default(2000))),
    ] {
        let listen = ("listen", listen);
        assert_eq!(connections(&[engine, workers, most, listen]), expected, "{listen:?}");
    }
    let anywhere = ("listen", "0.0.0.0:80");
    let of_address = |value| ("max-connections-per-address", value);
    assert_eq!(
        connections(&[engine, workers, anywhere, ("max-connections", "64")]),
        Some(ConnectionBound::Default(64)),
        "half, for others"
    );
    for topology in ["threads", "handoff"] {
        let words = [engine, workers, anywhere, most, ("topology", topology)];
        assert_eq!(connections(&words), Some(ConnectionBound::Default(1000)), "a full worker refuses alone");
    }
    assert_eq!(connections(&[engine, anywhere, of_address("off")]), None);
    assert_eq!(connections(&[engine, anywhere, of_address("7")]), Some(ConnectionBound::Explicit(7)));
    assert_eq!(connections(&[engine, of_address("7")]), Some(ConnectionBound::Explicit(7)));
    assert_eq!(connections(&[("engine", "naive"), anywhere]), None, "one at a time has no bound by address");
}

/// Otherwise a client with many addresses could fill the memory with responses that it does not read.
#[test]
fn h17_off_loopback_connections_are_bounded_by_memory() {
    let connections = |listen, most: &[(&'static str, &'static str)]| {
        let words = [&[("engine", "epoll"), ("workers", "2"), ("listen", listen)], most].concat();
        resolve(&words, 1 << 40).expect("it can be done").plan.bounds.connections
    };
    // 256 KiB, and 1 KiB for each of 100 streams.
    let in_memory = (tenfold_sys::limits::memory() / ((2 * 356) << 10) / 2) as usize;
    assert!(in_memory > 100, "a machine for tests has more memory");
    assert_eq!(connections("0.0.0.0:80", &[]), in_memory);
    assert_eq!(connections("proxy:127.0.0.1:80", &[("trusted-proxy", "127.0.0.1")]), in_memory);
    assert!(connections("127.0.0.1:80", &[]) > 100 * in_memory);
    assert_eq!(connections("0.0.0.0:80", &[("max-connections", "90000000")]), 90_000_000);
    assert!(connections("0.0.0.0:80", &[("max-head", "1048576")]) < in_memory / 3);
    let settings = settings(&[("engine", "thread")]);
    let plan = ResolvedConfig::resolve(&settings, DESCRIPTORS).expect("it can be done").plan;
    assert_eq!(capacity::of_stalled(&settings, &plan), (356 << 10) + (1 << 20), "each has a cache");
    let settings = self::settings(&[("engine", "uring"), ("http2", "off")]);
    let plan = ResolvedConfig::resolve(&settings, DESCRIPTORS).expect("it can be done").plan;
    assert_eq!(capacity::of_stalled(&settings, &plan), (256 + 16 + 256) << 10, "a receive takes all buffers");
    let settings = of_file("fork", "", &[("engine", "fork"), ("compress", "gzip")]);
    let config = ResolvedConfig::resolve(&settings, DESCRIPTORS).expect("it can be done");
    let bytes = capacity::of_stalled(&settings, &config.plan);
    assert_eq!(bytes, (356 << 10) + (1 << 20) + (20 << 20), "each compresses for itself");
    assert_eq!(config.site.codings.cache_bytes, 0, "nobody else would read it");
}

#[test]
fn hosts_share_the_files_that_are_kept_open() {
    let hosts: String =
        (0..9).map(|number| format!("[[host]]\nname = \"{number}.test\"\nroot = \".\"\n")).collect();
    for (engine, files, dispatch) in
        [("thread", 2, "inline"), ("epoll", 0, "inline"), ("epoll", 0, "reactor")]
    {
        let settings = of_file("open-files", &hosts, &[("engine", engine), ("dispatch", dispatch)]);
        let config = ResolvedConfig::resolve(&settings, 4096).expect("it can be done");
        let kept = config.site.open_files;
        assert_eq!(config.hosts.iter().map(|host| host.open_files).max(), Some(kept));
        let connections = config.plan.bounds.connections;
        let all = match engine {
            "thread" => connections * (files + kept),
            _ if dispatch == "reactor" => connections + kept * (config.plan.bounds.pool_threads + 1),
            _ => connections + kept,
        };
        assert!((2000..4096).contains(&all), "{engine}, {dispatch}: {connections} and {kept}: {all}");
    }
}

#[test]
fn open_files_leave_descriptors_to_connections_and_their_first_files() {
    for (flags, expected) in [
        // 32 of the process itself, and half of what connections and kept files leave.
        (vec![("engine", "epoll"), ("max-connections", "1000")], 256 + (4096 - 32 - 1000 - 256) / 2),
        (vec![("engine", "epoll"), ("max-connections", "4064")], 0),
        (
            vec![("engine", "epoll"), ("workers", "2"), ("topology", "threads"), ("max-connections", "500")],
            512 + (4096 - 32 - 1000 - 512) / 2,
        ),
        (vec![("engine", "fork"), ("max-connections", "9000")], 1 + (4096 - 32 - 1 - 1) / 2),
        (vec![("engine", "thread"), ("max-connections", "1000")], 1000 + (4096 - 32 - 2000) / 2),
    ] {
        let config = resolve(&flags, 4096).expect("it can be done");
        assert_eq!(config.open_files, expected, "{flags:?}");
    }
}

#[test]
fn fields_of_proxies_need_a_trusted_proxy() {
    let (proxy, fields) = (("trusted-proxy", "192.0.2.1"), ("forwarded-fields", "forwarded"));
    let said = refusal(&[fields], DESCRIPTORS);
    assert_eq!(said, "forwarded-fields has no effect without trusted-proxy; name the proxy, or remove it");
    assert!(resolve(&[proxy], DESCRIPTORS).is_ok() && resolve(&[proxy, fields], DESCRIPTORS).is_ok());
}

#[test]
fn proxy_headers_need_a_trusted_proxy_of_the_same_family() {
    let with = |listen, proxy| refusal(&[("listen", listen), ("trusted-proxy", proxy)], DESCRIPTORS);
    let address = "the PROXY headers of 127.0.0.1:80 need a trusted-proxy: name the address or the network of the proxy";
    assert_eq!(refusal(&[("listen", "proxy:127.0.0.1:80")], DESCRIPTORS), address);
    assert_eq!(with("proxy+http:127.0.0.1:80", "unix"), address);
    assert!(with("proxy:unix:/run/s", "10.0.0.0/8").contains("add trusted-proxy unix"));
    let of = |listen| of_file("prefixes", "", &[("listen", listen), ("trusted-proxy", "10.0.0.1")]).listen;
    let facts = |listen| of(listen).iter().map(|entry| (entry.plaintext, entry.proxied)).collect::<Vec<_>>();
    assert_eq!(facts("127.0.0.1:80"), [(false, false)]);
    assert_eq!(facts("http:127.0.0.1:80"), [(true, false)]);
    assert_eq!(facts("proxy:[::1]:80"), [(false, true)]);
    assert_eq!(facts("proxy+http:127.0.0.1:80"), [(true, true)]);
}
