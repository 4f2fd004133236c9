//! Members: where they are kept, what is theirs, and how they come.

use std::time::Duration;

use tenfold_accounts::Registration;

use super::super::members::Place;
use super::super::table::Initial::{Follows, Value};
use super::super::table::{Row, Text, many, one};
use super::super::units::{duration, number, size, switch, word};

const HEADING: &str = "Members";

const SECOND: Duration = Duration::from_secs(1);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const MB: u64 = 1 << 20;

pub(super) static ROWS: &[Row] = &[
    one(
        ("accounts", "URL|off", HEADING),
        Value("off"),
        "where members are kept: sqlite:PATH, sqlite (in this system's place for such files), \
         postgres://USER:PASSWORD@HOST/NAME, mysql://USER:PASSWORD@HOST/NAME, file:PATH (a file that holds such a URL), \
         or off",
        |settings, text| {
            settings.members.accounts = match text.text {
                "off" => None,
                "sqlite" => Some(Place::Usual),
                url => Some(Place::At(url.parse::<tenfold_accounts::store::url::Url>()?.beneath(text.base))),
            };
            Ok(())
        },
    )
    .fixed()
    .null_only("off"),
    one(
        ("accounts-user", "NAME", HEADING),
        Follows("tenfold-accounts if that user exists, else the user of the workers; when started as root"),
        "the user of the accounts process, for a server that is started as root; workers of another user cannot read \
         the database",
        |settings, text| {
            settings.members.user = Some(text.text.to_owned());
            Ok(())
        },
    )
    .fixed()
    .not_null(),
    many(
        ("protect", "FOLDER", HEADING),
        Value("off"),
        "a folder of the site that is for members only, such as /members/; can be given several times",
        |settings, texts| {
            settings.members.protect = match texts {
                [Text { text: "off", .. }] => Vec::new(),
                texts => texts.iter().map(|text| text.text.parse()).collect::<Result<_, _>>()?,
            };
            Ok(())
        },
    )
    .not_null(),
    one(
        ("registration", "WHO", HEADING),
        Value("open"),
        "who can register: open (everybody), invitation (who has a code of `tenfold users invite`), or closed",
        |settings, text| {
            let words = [
                ("open", Registration::Open),
                ("invitation", Registration::Invitation),
                ("closed", Registration::Closed),
            ];
            settings.members.registration = word(text.text, "registration", &words)?;
            Ok(())
        },
    )
    .fixed()
    .not_null(),
    one(
        ("account-templates", "DIR|off", HEADING),
        Value("off"),
        "a folder with templates of your own for the members' pages",
        |settings, text| {
            settings.members.templates = if text.text == "off" { None } else { Some(text.path()?) };
            Ok(())
        },
    )
    .not_null(),
    one(
        ("sessions", "URL|database", HEADING),
        Value("database"),
        "where sessions are kept: database (with the accounts), or a Valkey or Redis, redis://HOST, that nodes share, \
         or file:PATH (a file that holds such a URL)",
        |settings, text| {
            settings.members.sessions = match text.text {
                "database" => None,
                url if url.starts_with("redis://") || url.starts_with("redis+unix://") => Some(url.to_owned()),
                url => match url.strip_prefix("file:") {
                    Some(path) if !path.is_empty() => {
                        Some(format!("file:{}", text.base.join(path).display()))
                    }
                    _ => return Err("sessions are kept in database, redis://HOST:PORT or file:PATH".into()),
                },
            };
            Ok(())
        },
    )
    .fixed()
    .not_null(),
    one(
        ("session-idle", "TIME", HEADING),
        Value("24h"),
        "idle session timeout",
        |settings, text| {
            settings.members.idle = duration(text.text, SECOND..=YEAR)?;
            Ok(())
        },
    )
    .fixed()
    .not_null(),
    one(
        ("session-lifetime", "TIME", HEADING),
        Value("720h"),
        "a session ends after so long in any case",
        |settings, text| {
            settings.members.absolute = duration(text.text, SECOND..=YEAR)?;
            Ok(())
        },
    )
    .fixed()
    .not_null(),
    one(
        ("password-min-length", "N", HEADING),
        Value("8"),
        "characters that a new password has at least",
        |settings, text| {
            settings.members.least_password = number(text.text, 6..=128u32)? as usize;
            Ok(())
        },
    )
    .fixed()
    .not_null(),
    one(
        ("password-memory", "BYTES", HEADING),
        Value("19 MB"),
        "memory that hashing a password takes (Argon2id)",
        |settings, text| {
            settings.members.memory = size(text.text, 64 * 1024..=1024 * MB)?;
            Ok(())
        },
    )
    .fixed()
    .not_null(),
    one(("password-passes", "N", HEADING), Value("2"), "passes over that memory", |settings, text| {
        settings.members.passes = number(text.text, 1..=64u32)?;
        Ok(())
    })
    .fixed()
    .not_null(),
    one(
        ("password-threads", "N", HEADING),
        Value("1"),
        "passwords that are hashed at once, on the whole server",
        |settings, text| {
            settings.members.hash_threads = number(text.text, 1..=64u32)? as usize;
            Ok(())
        },
    )
    .fixed()
    .not_null(),
    one(
        ("password-queue", "N", HEADING),
        Value("64"),
        "forms with a password that wait for one, on the whole server; past it 503",
        |settings, text| {
            settings.members.hash_queue = number(text.text, 1..=100_000u32)? as usize;
            Ok(())
        },
    )
    .fixed()
    .not_null(),
    one(
        ("db-connections", "N", HEADING),
        Value("8"),
        "connections to the database, of the whole server",
        |settings, text| {
            settings.members.connections = number(text.text, 1..=256u32)? as usize;
            Ok(())
        },
    )
    .fixed()
    .not_null(),
    one(
        ("login-throttle", "on|off", HEADING),
        Value("on"),
        "whether attempts to log in, also by basic authentication, are counted by name and by address, and too many refused",
        |settings, text| {
            settings.members.throttle = switch(text.text)?;
            Ok(())
        },
    )
    .fixed()
    .not_null(),
    many(
        ("trusted-proxy", "ADDRESS|unix", HEADING),
        Value("off"),
        "a proxy whose X-Forwarded-For and X-Forwarded-Proto are used: an address, a network, or unix (whatever \
         connects to a Unix socket of this server); can be given several times",
        |settings, texts| {
            settings.members.trusted = match texts {
                [Text { text: "off", .. }] => Vec::new(),
                texts => texts.iter().map(|text| text.text.parse()).collect::<Result<_, _>>()?,
            };
            Ok(())
        },
    )
    .not_null(),
];
