//! Settings about members: accounts, pages and sessions.

use std::time::Duration;

use tenfold_accounts::Registration;
use tenfold_accounts::store::url::DatabaseUrl;

use super::read::{count, each_or_off, name, number, rows, size, switch, time, word};
use crate::config::parse::row::Initial::{Follows, Value};
use crate::config::parse::row::{SettingRow, Text};
use crate::config::values::members::AccountsLocation;

const SECOND: Duration = Duration::from_secs(1);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const MIB: u64 = 1 << 20;
const REGISTRATION: &[(&str, Registration)] = &[
    ("open", Registration::Open),
    ("invitation", Registration::Invitation),
    ("closed", Registration::Closed),
];

pub(super) static ROWS: &[SettingRow] = rows! { "Members":
    One "accounts" "URL|off" = Value("off"), fixed, not_null;
        members.accounts = accounts;
        "the members' database: sqlite:PATH, sqlite (at this system's usual path), \
         postgres://USER:PASSWORD@HOST/NAME, mysql://USER:PASSWORD@HOST/NAME, file:PATH (a file that holds such a URL), or off";
    One "accounts-user" "NAME" = Follows("if started as root, tenfold-accounts if that user exists, else the user of the workers"), fixed, not_null;
        members.user = name;
        "the user of the accounts process, if the server is started as root; workers that run as another user cannot read the database";
    Many "protect" "FOLDER" = Value("off"), not_null;
        members.protect = each_or_off;
        "a folder of the site for members only, such as /members/; repeatable";
    One "registration" "WHO" = Value("open"), fixed, not_null;
        members.registration = word("registration", REGISTRATION);
        "access to registration: open (everybody), invitation (with a code of `tenfold users invite`), or closed";
    One "account-templates" "DIR|off" = Value("off"), not_null;
        members.templates = |given: Text<'_>| if given.text == "off" { Ok(None) } else { given.path().map(Some) };
        "a folder with custom templates for the members' pages";
    One "session-idle" "TIME" = Value("24h"), fixed, not_null;
        members.idle = time(SECOND..=YEAR);
        "idle session timeout";
    One "session-lifetime" "TIME" = Value("720h"), fixed, not_null;
        members.absolute = time(SECOND..=YEAR);
        "maximum age of a session, even in use";
    One "password-min-length" "N" = Value("8"), fixed, not_null;
        members.least_password = count(6..=128);
        "minimum number of characters of a new password";
    One "password-memory" "BYTES" = Value("19 MiB"), fixed, not_null;
        members.memory = size(64 * 1024..=1024 * MIB);
        "memory to hash one password (Argon2id)";
    One "password-passes" "N" = Value("2"), fixed, not_null;
        members.passes = number(1..=64u32);
        "passes over password-memory to hash one password (Argon2id)";
    One "login-throttle" "on|off" = Value("on"), fixed, not_null;
        members.throttle = switch;
        "count failed logins by name and by address, with basic authentication too, and refuse further attempts if there are too many";
};

fn accounts(given: Text<'_>) -> Result<Option<AccountsLocation>, String> {
    Ok(match given.text {
        "off" => None,
        "sqlite" => Some(AccountsLocation::Usual),
        url => Some(AccountsLocation::At(url.parse::<DatabaseUrl>()?.beneath(given.base))),
    })
}
