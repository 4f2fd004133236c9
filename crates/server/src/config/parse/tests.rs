use std::path::{Path, PathBuf};

use tenfold_engine::{Accept, TimerKind};
use tenfold_http::Limits;
use tenfold_sys::socket::ListenAddress;
use tenfold_testkit::folder::TempFolder;

use super::file;
use super::given::GivenSettings;
use super::problem::Problem;
use super::rows::rows;
use crate::config::values::log::{LogTarget, Manner, Rotate};
use crate::config::values::{Control, EngineChoice, ListenEntry, SettingSource, Settings};

mod any;

fn flags(words: &[(&'static str, &str)]) -> GivenSettings {
    let flags = words.iter().map(|(name, value)| (*name, vec![(*value).to_owned()])).collect();
    GivenSettings { flags, ..GivenSettings::default() }
}

pub(super) fn from_file(content: &str) -> Result<Settings, Vec<Problem>> {
    let mut settings = GivenSettings::default().resolve().expect("the defaults are legal");
    let mut problems = Vec::new();
    file::read_text(Path::new("conf/tenfold.toml"), content, &mut settings, &mut problems);
    if problems.is_empty() { Ok(settings) } else { Err(problems) }
}

pub(super) fn refusal(content: &str) -> String {
    let problems = from_file(content).expect_err(content);
    problems.iter().map(Problem::to_string).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn defaults_are_those_of_the_book() {
    let settings = GivenSettings::default().resolve().expect("legal");
    assert!(settings.addresses().eq(&["127.0.0.1:8080".parse().expect("an address")]));
    assert_eq!((settings.root, settings.index), (PathBuf::from("."), vec!["index.html".to_owned()]));
    assert_eq!((settings.engine, settings.topology, settings.workers), (EngineChoice::Auto, None, None));
    assert_eq!((settings.tcp_nodelay, settings.backlog, settings.defer_accept), (true, 511, true));
    assert_eq!((settings.tcp_cork, settings.fastopen), (false, None));
    assert_eq!((settings.linger, settings.notsent_lowat), (None, None));
    assert_eq!(settings.accept, Some(Accept::All));
    assert_eq!(settings.limits, Limits::default());
    assert_eq!(settings.access_log, LogTarget::Output);
    assert_eq!((settings.log, settings.log_rotate), (Manner::default(), Rotate::Off));
    assert_eq!((settings.user, settings.control), (None, Control::Usual));
}

#[test]
fn addresses_follow_from_tls_unless_they_are_given() {
    let listen = |words: &[(&'static str, &str)]| {
        let settings = flags(words).resolve().expect("legal");
        let entry =
            |entry: &ListenEntry| format!("{}{}", if entry.plaintext { "http:" } else { "" }, entry.address);
        settings.listen.iter().map(entry).collect::<Vec<_>>()
    };
    assert_eq!(listen(&[("tls", "internal")]), ["127.0.0.1:8443"]);
    let all = listen(&[("tls", "example.org")]);
    assert!(
        ["0.0.0.0:443", "http:0.0.0.0:80"].iter().all(|address| all.iter().any(|one| one == address)),
        "{all:?}"
    );
    assert!(all.len() == 2 || all[1] == "[::]:443" && all[3] == "http:[::]:80", "{all:?}");
    assert_eq!(listen(&[("tls", "example.org"), ("listen", "127.0.0.1:1")]), ["127.0.0.1:1"]);
    let (off, on) =
        (flags(&[]).resolve().expect("legal"), flags(&[("tls", "internal")]).resolve().expect("legal"));
    assert_eq!(off.fixed_changes(&on), ["listen"], "a reload cannot change them");
}

#[test]
fn a_flag_wins_over_a_variable_over_the_file_over_the_default() {
    let folder = TempFolder::new("settings");
    let text = "backlog = 1\nmax-head = 100\nindex = \"of-file\"\nlisten = [\"[::]:1\", \"[::]:2\"]\n";
    let said = |name, value: &str| (name, vec![value.to_owned()]);
    let given = GivenSettings {
        flags: vec![said("backlog", "3")],
        variables: vec![said("backlog", "2"), said("max-head", "200"), said("listen", "[::]:3")],
        config: Some(folder.write("tenfold.toml", text)),
    };
    let settings = given.resolve().expect("legal");
    assert_eq!(settings.backlog, 3);
    assert_eq!(settings.limits.max_head, 200);
    assert_eq!(settings.index, ["of-file"]);
    assert_eq!(settings.limits.max_body, 1 << 20);
    assert!(settings.addresses().eq(&["[::]:3".parse().expect("an address")]), "a list is replaced whole");
    assert_eq!(settings.source("backlog"), SettingSource::Flag);
    assert_eq!(settings.source("max-head"), SettingSource::Variable);
    assert_eq!(settings.source("index"), SettingSource::File);
    assert!(!settings.is_explicit("max-body"));
}

#[test]
fn a_wrong_value_is_refused_even_if_another_source_overrides_it() {
    let mut given = flags(&[("backlog", "3")]);
    given.variables = vec![("backlog", vec!["many".to_owned()])];
    let problems = given.resolve().expect_err("one is wrong");
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].to_string(), "TENFOLD_BACKLOG: \"many\" is not a number from 1 to 65535");
}

/// An invalid value of each setting, and the message.
const WRONG: &str = r#"
listen=localhost => "localhost" is not an address; write 127.0.0.1:8080, [::]:80 or unix:PATH
listen=0.0.0.0 => "0.0.0.0" has no port; write 0.0.0.0:8080
engine=io_uring => there is no engine "io_uring"; there are naive, fork, thread, pool, busy, select, poll, epoll, libevent, asio, asio-proactor, uring and auto (io_uring is uring)
root= => a path is missing
index=a/b => "a/b" is not the name of a file, such as index.html
engine=kqueue => there is no engine "kqueue"; there are naive, fork, thread, pool, busy, select, poll, epoll, libevent, asio, asio-proactor, uring and auto
topology=star => there is no topology "star"; there are single, threads, reuseport-processes, reuseport-threads, handoff
workers=257 => "257" is not a number from 1 to 256
dispatch=spin => there is no dispatch "spin"; there are inline, reactor, proactor
libevent-method=kqueue => there is no libevent method "kqueue"; there are epoll, poll, select
trigger=et => there is no trigger "et"; there are lt+et, lt+lt, et+lt, et+et (listener+connections)
send=pigeon => there is no sender "pigeon"; there are auto, copy, mmap, sendfile, splice, zerocopy
write=twice => there is no write mode "twice"; there are joined, split, per-header
accept=some => there is no accept mode "some"; there are all, one
pool-threads=0 => "0" is not a number from 1 to 4096
pool-queue=none => "none" is not a number from 1 to 1000000
handoff-queue=0 => "0" is not a number from 1 to 1000000
busy-sleep=2s => "2s" is not a duration from 0s to 1s, such as 250ms, 10s, 2m, 1h or 30d
timer=sundial => there is no timer "sundial"; there are list, wheel
tls-key-isolation=no => "no" is neither on nor off
tls-preset=old => there is no TLS preset "old"; there are modern, intermediate
tls-kernel=maybe => there is no value of tls-kernel "maybe"; there are on, off, auto
https-redirect=yes => "yes" is not a number from 1 to 65535, or on or off
hsts=1y => "1y" is not a duration from 0s to 87600h, such as 250ms, 10s, 2m, 1h or 30d, or on, off or preload
tcp-nodelay=yes => "yes" is neither on nor off
backlog=0 => "0" is not a number from 1 to 65535
defer-accept=1 => "1" is neither on nor off
max-rate=9 => "9" is not a size from 1 KiB to 1024 GiB, such as 4096, 16k, 64 KiB or 1 MiB, or off
max-handshakes-per-address=0 => "0" is not a number from 1 to 1000000 per second, or off
max-connections-per-address=0 => "0" is not a number from 1 to 1000000, or off
max-requests-per-address=30/s => "30/s" is not a number from 1 to 1000000 per second, or off
request-burst=off => "off" is not a number from 1 to 1000000
tcp-cork=yes => "yes" is neither on nor off
fastopen=0 => "0" is not a number from 1 to 65535, or off
linger=0 => "0" is not a number from 1 to 600, or off
notsent-lowat=0 => "0" is not a size from 1 bytes to 1 GiB, such as 4096, 16k, 64 KiB or 1 MiB, or off
accounts=oracle://x => a database is sqlite:PATH, postgres://USER:PASSWORD@HOST/NAME, mysql://USER:PASSWORD@HOST/NAME, or file:PATH of a file that holds one of the last two
protect=members => "members" is not a folder of the site such as /members/: it must begin with a slash
registration=maybe => there is no registration "maybe"; there are open, invitation, closed
session-idle=0s => "0s" is not a duration from 1s to 8760h, such as 250ms, 10s, 2m, 1h or 30d
session-lifetime=day => "day" is not a duration from 1s to 8760h, such as 250ms, 10s, 2m, 1h or 30d
password-min-length=5 => "5" is not a number from 6 to 128
password-memory=1k => "1k" is not a size from 64 KiB to 1 GiB, such as 4096, 16k, 64 KiB or 1 MiB
password-passes=0 => "0" is not a number from 1 to 64
login-throttle=1 => "1" is neither on nor off
forwarded-fields=x-real-ip => "x-real-ip" is not x-forwarded-for, x-forwarded-proto, x-forwarded-host or forwarded, nor off alone
trusted-proxy=lo => "lo" is not an address, a network such as 10.0.0.0/8 or fd00::/8, or unix
head-timeout=0s => "0s" is not a duration from 1ms to 24h, such as 250ms, 10s, 2m, 1h or 30d
body-timeout=10 => "10" is not a duration from 1ms to 24h, such as 250ms, 10s, 2m, 1h or 30d
send-timeout=25h => "25h" is not a duration from 1ms to 24h, such as 250ms, 10s, 2m, 1h or 30d
min-rate=0 => "0" is not a size from 1 bytes to 1 GiB, such as 4096, 16k, 64 KiB or 1 MiB
idle-timeout=off => "off" is not a duration from 1ms to 24h, such as 250ms, 10s, 2m, 1h or 30d
drain-timeout=soon => "soon" is not a duration from 1ms to 24h, such as 250ms, 10s, 2m, 1h or 30d
max-connections=0 => "0" is not a number from 1 to 100000000
max-head=63 => "63" is not a size from 64 bytes to 1 MiB, such as 4096, 16k, 64 KiB or 1 MiB
max-body=0 => "0" is not a size from 1 bytes to 64 MiB, such as 4096, 16k, 64 KiB or 1 MiB
precompressed=deflate => "deflate" is not a coding: on alone, off alone, or some of br, zstd and gzip
compress=x => "x" is not a coding: on alone, off alone, or some of br, zstd and gzip
compress-types=html => "html" is not a media type, such as text/html or text/*
compress-from=0 => "0" is not a size from 1 bytes to 2 MiB, such as 4096, 16k, 64 KiB or 1 MiB
etag=inode => there is no source of entity tags "inode"; there are time, content
listing=xml => there is no listing "xml"; there are off, html, json
archives=zip => "zip" is neither on nor off
watch=yes => "yes" is neither on nor off
work-threads=0 => "0" is not a number from 1 to 256
server-field=hidden => "hidden" is neither on nor off
http2=yes => "yes" is neither on nor off
http2-streams=0 => "0" is not a number from 1 to 1000
requests-per-connection=0 => "0" is not a number from 1 to 4294967295, or off
access-log= => a path is missing
log-format=xml => there is no log format "xml"; there are common, combined, json, and a text with fields such as {client} {status}
request-id=yes => "yes" is neither on nor off
server-timing=1 => "1" is neither on nor off
log-mode=lazy => there is no log mode "lazy"; there are async, buffered, sync
book=maybe => "maybe" is neither on nor off
log-full=burst => there is no rule for a full queue "burst"; there are block, drop
log-rotate=weekly => "weekly" is not a size from 1 KiB to 1048576 GiB, such as 4096, 16k, 64 KiB or 1 MiB, and neither off, daily nor a count such as 100000 lines
log-keep=0 => "0" is not a number from 1 to 100000, or off
log-level=loud => there is no level "loud"; there are error, warn, info, debug
control= => a path is missing
tls= => a name is missing
tls-directory=http://a.test => "http://a.test" is not a URL that begins with https://
tls-directory-root= => a path is missing, or off
tls-contact=admin => "admin" is not an address such as admin@example.org, or off
tls-external-account= => a path is missing, or off
tls-challenge=dns-01 => there is no challenge "dns-01"; there are tls-alpn-01, http-01
tls-dns-command= => a path is missing, or off
tls-state= => a path is missing
admin=91450 => "91450" is not an address; write 127.0.0.1:8080, [::]:80 or unix:PATH, or off
"#;

#[test]
fn a_wrong_value_names_the_legal_ones() {
    let mut unlisted: Vec<_> = rows().map(|row| row.name).collect();
    for row in WRONG.trim().lines() {
        let (given, expected) = row.split_once(" => ").expect(row);
        let (name, value) = given.split_once('=').expect(row);
        let problems = flags(&[(name, value)]).resolve().expect_err(row);
        assert_eq!(problems.len(), 1, "{row}");
        assert_eq!(problems[0].to_string(), format!("--{name}: {expected}"));
        unlisted.retain(|unlisted| *unlisted != name);
    }
    let free = ["echo", "tls-certificate", "tls-key", "accounts-user", "account-templates", "user"];
    assert_eq!(unlisted, free, "any word may be a path or a user's name");
}

#[test]
fn an_unknown_key_is_shown_with_a_similar_key() {
    assert_eq!(
        refusal("root = \"site\"\nidle-timout = \"75s\"\n"),
        "tenfold: error: there is no setting \"idle-timout\"\n\
         \x20--> conf/tenfold.toml:2:1\n\
         \x20 |\n\
         2 | idle-timout = \"75s\"\n\
         \x20 | ^^^^^^^^^^^ did you mean idle-timeout?"
    );
}

#[test]
fn a_wrong_value_is_shown_at_its_place() {
    assert_eq!(
        refusal("engine = \"kqueue\"\n"),
        "tenfold: error: invalid value of engine\n\
         \x20--> conf/tenfold.toml:1:10\n\
         \x20 |\n\
         1 | engine = \"kqueue\"\n\
         \x20 |          ^^^^^^^^ there is no engine \"kqueue\"; there are naive, fork, thread, \
         pool, busy, select, poll, epoll, libevent, asio, asio-proactor, uring and auto"
    );
}

#[test]
fn a_file_that_is_not_toml_is_shown_where_it_breaks() {
    let said = refusal("root = \"site\"\nindex = \n");
    assert!(said.starts_with("tenfold: error: this is not TOML\n --> conf/tenfold.toml:2:"), "{said}");
    let said = refusal("listen = 127.0.0.1:8080 # loopback\n");
    assert!(said.contains("a text is in quotes: listen = \"127.0.0.1:8080\""), "{said}");
}

#[test]
fn all_errors_are_reported_in_the_order_of_the_file() {
    let said = refusal("workers = 0\nengine = \"kqueue\"\n[[nonsense]]\n");
    let place = |line: &str| said.find(line).unwrap_or_else(|| panic!("{line} is not in {said}"));
    assert!(place(":1:11") < place(":2:10") && place(":2:10") < place(":3:"), "{said}");
}

#[test]
fn values_in_the_file_may_have_types_of_toml() {
    let settings = from_file(
        "access-log = false\nmax-head = 4096\nmax-rate = 4096\nlisten = [\"127.0.0.1:1\", \"unix:site.sock\"]\n\
         [experiment]\ntcp-nodelay = false\nlinger = 1\n",
    )
    .expect("legal");
    assert!(!settings.tcp_nodelay);
    assert_eq!(settings.access_log, LogTarget::Off);
    assert_eq!((settings.limits.max_head, settings.max_rate, settings.linger), (4096, Some(4096), Some(1)));
    assert_eq!(settings.listen[1].address, ListenAddress::Unix("conf/site.sock".into()));
    let said = refusal("root = true\n");
    assert!(said.contains("root is not written as a TOML boolean; put it in quotes"), "{said}");
}

#[test]
fn settings_of_experiments_have_a_table_in_the_file() {
    let settings =
        from_file("backlog = 7\n[experiment]\ntimer = \"list\"\nwrite = \"split\"\n").expect("legal");
    assert_eq!((settings.timer, settings.backlog), (Some(TimerKind::List), 7));
    for (wrong, words) in [
        ("timer = \"list\"\n", ["timer is in the wrong place", "write it below [experiment]"]),
        ("[experiment]\nbacklog = 7\n", ["backlog is in the wrong place", "write it above the first table"]),
        ("[experiment]\ntimre = \"list\"\n", ["there is no experiment \"timre\"", "did you mean timer?"]),
        ("experiment = 5\n", ["there is no setting \"experiment\"", "it is a table: [experiment]"]),
    ] {
        let said = refusal(wrong);
        assert!(words.iter().all(|words| said.contains(words)), "{wrong}: {said}");
    }
}

#[test]
fn paths_in_the_file_are_relative_to_it() {
    let settings = from_file("root = \"site\"\naccess-log = \"/var/log/tenfold.log\"\n").expect("legal");
    assert_eq!(settings.root, Path::new("conf/site"));
    assert_eq!(settings.access_log, LogTarget::File("/var/log/tenfold.log".into()));
}

#[test]
fn settings_that_cannot_change_on_a_reload_are_named() {
    let settings = |words| flags(words).resolve().expect("legal");
    let old = settings(&[("backlog", "100"), ("head-timeout", "1s")]);
    assert!(old.fixed_changes(&old).is_empty());
    assert!(
        old.fixed_changes(&settings(&[("backlog", "100"), ("head-timeout", "2s"), ("root", "x")])).is_empty()
    );
    assert_eq!(
        old.fixed_changes(&settings(&[("listen", "[::]:1"), ("workers", "2")])),
        ["listen", "workers", "backlog"]
    );
}

#[test]
fn a_log_is_rotated_by_bytes_by_lines_or_by_day() {
    for (text, expected) in [
        ("10 MiB", Rotate::Size(10 << 20)),
        ("4096", Rotate::Size(4096)),
        ("50000 lines", Rotate::Lines(50_000)),
        ("daily", Rotate::Daily),
        ("off", Rotate::Off),
    ] {
        assert_eq!(flags(&[("log-rotate", text)]).resolve().expect(text).log_rotate, expected);
    }
}

#[test]
fn with_null_settings_that_it_would_ignore_are_refused() {
    let ignored = |words| flags(words).resolve().expect("legal").ignored_by_null();
    assert_eq!(ignored(&[("send", "auto"), ("access-log", "off"), ("backlog", "5")]), None);
    assert_eq!(ignored(&[("send", "copy")]), Some("send"));
    assert_eq!(ignored(&[("access-log", "-")]), Some("access-log"));
    assert_eq!(ignored(&[("root", "x")]), Some("root"));
}

#[test]
fn an_address_has_short_forms() {
    let listen = |text| {
        let settings = flags(&[("listen", text)]).resolve().expect(text);
        settings.addresses().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (text, expected) in [
        ("8000", "127.0.0.1:8000"),
        ("localhost:8000", "127.0.0.1:8000"),
        ("0.0.0.0:8000", "0.0.0.0:8000"),
        ("[::]:8000", "[::]:8000"),
        ("http:8000", "127.0.0.1:8000"),
    ] {
        assert_eq!(listen(text), [expected], "{text}");
    }
    let all = listen(":8000");
    assert_eq!(all[0], "0.0.0.0:8000");
    assert!(all.len() == 1 || all[1..] == ["[::]:8000"], "{all:?}");
}

#[test]
fn a_port_in_the_file_is_a_number() {
    let mut settings = Settings::default();
    let mut problems = Vec::new();
    file::read_text(
        Path::new("x.toml"),
        "listen = [8000, \"unix:s\"]\nport = 80\n",
        &mut settings,
        &mut problems,
    );
    let addresses: Vec<_> = settings.addresses().map(ToString::to_string).collect();
    assert_eq!(addresses, ["127.0.0.1:8000", "unix:s"]);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].to_string().contains("did you mean listen?"), "{}", problems[0]);
}

#[test]
fn every_setting_is_on_the_page_of_settings() {
    let page = include_str!("../../../../../docs/reference/configuration.md");
    let named = |row: &&crate::config::parse::row::SettingRow| {
        let cell = format!("`{}`", row.name);
        page.lines().any(|line| line.split('|').nth(1).is_some_and(|names| names.contains(&cell)))
    };
    let missing: Vec<_> = rows().filter(|row| !named(row)).map(|row| row.name).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
