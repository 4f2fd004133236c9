//! TLS: certificates and keys.

use std::path::PathBuf;
use std::time::Duration;

use tenfold_tls::config::SecurityPreset;

use super::read::{or_off, path, rows, some, switch, word};
use crate::config::parse::row::Initial::{Follows, Value};
use crate::config::parse::row::{SettingRow, Text};
use crate::config::parse::units;
use crate::config::values::tls::{Challenge, TlsNames};
use crate::config::values::{HttpsRedirect, KernelTlsChoice};

pub(super) static ROWS: &[SettingRow] = rows! { "TLS":
    Many "tls" "NAME|internal|off" = Value("off"), not_null;
        names.tls = names;
        "a name to obtain and renew a certificate for (ACME), repeatable; or internal: a certificate of this machine's own authority";
    Many "tls-certificate" "FILE|off" = Value("off"), not_null;
        tls_certificate = paths_or_off;
        "a file with a certificate and its chain (PEM); turns TLS on for every TCP address in listen without the prefix http:; repeatable";
    Many "tls-key" "FILE|off" = Value("off"), not_null;
        tls_key = paths_or_off;
        "a file with the key of a certificate (PEM); one for each tls-certificate, in the same order";
    One "tls-key-isolation" "on|off" = Value("on"), not_null;
        tls_key_isolation = |given: Text<'_>| switch(given);
        "keep private keys out of workers: a process of its own signs handshakes";
    One "tls-preset" "modern|intermediate" = Value("intermediate"), not_null;
        tls_preset = word("TLS preset", &[("modern", SecurityPreset::Modern), ("intermediate", SecurityPreset::Intermediate)]);
        "TLS versions and their cipher suites: modern (1.3) or intermediate (1.2 and 1.3)";
    One "tls-kernel" "on|off|auto" = Value("off"), not_null;
        tls_kernel = word("value of tls-kernel", &[("on", KernelTlsChoice::On), ("off", KernelTlsChoice::Off), ("auto", KernelTlsChoice::Auto)]);
        "have the kernel (CONFIG_TLS) encrypt responses on TLS 1.3 connections, so that sendfile can send files: on, off, or auto (if the kernel can)";
    One "https-redirect" "on|off|PORT" = Follows("on with names in tls, else off"), not_null;
        https_redirect = some(redirect);
        "redirect requests on addresses with the prefix http: to https (308), with PORT if clients use another port than that of the first address with TLS";
    One "hsts" "on|off|preload|TIME" = Value("off"), not_null;
        hsts = hsts;
        "send Strict-Transport-Security with TLS, so that browsers use https alone: on is a year, preload is two years with all subdomains";
    One "tls-directory" "URL" = Value("https://acme-v02.api.letsencrypt.org/directory"), not_null;
        names.directory = https_url;
        "the directory of the authority that issues the certificate for tls";
    One "tls-directory-root" "FILE|off" = Value("off"), not_null;
        names.directory_root = or_off(path);
        "root certificates (PEM) to verify the HTTPS of a private authority, instead of the system's";
    One "tls-contact" "EMAIL|off" = Value("off"), not_null;
        names.contact = or_off(email);
        "the address that the authority may write to, given when the account is created";
    One "tls-external-account" "FILE|off" = Value("off"), not_null;
        names.external_account = or_off(path);
        "the external account that the authority requires (EAB): a file with its key identifier and its key in base64url";
    One "tls-challenge" "tls-alpn-01|http-01" = Value("tls-alpn-01"), not_null;
        names.challenge = word("challenge", &[("tls-alpn-01", Challenge::TlsAlpn01), ("http-01", Challenge::Http01)]);
        "how the authority checks that names are yours: tls-alpn-01 (it connects to port 443) or http-01 (port 80)";
    One "tls-dns-command" "FILE|off" = Value("off"), not_null;
        names.dns_command = or_off(path);
        "check names by dns-01 instead, which wildcards require: a program that gets set or clear, the name of a TXT record and its value";
    One "tls-state" "DIR" = Follows("the folder for lasting state"), not_null;
        names.state = some(path);
        "the folder for the account, keys and certificates of tls";
};

fn redirect(given: Text<'_>) -> Result<HttpsRedirect, String> {
    match given.text {
        "off" => Ok(HttpsRedirect::Off),
        "on" => Ok(HttpsRedirect::On),
        port => match units::number(port, 1..=u16::MAX) {
            Ok(port) => Ok(HttpsRedirect::ToPort(port)),
            Err(why) => Err(format!("{why}, or on or off")),
        },
    }
}

/// Reads the value of Strict-Transport-Security (RFC 6797 §6.1). With a time of 0, browsers forget the host.
fn hsts(given: Text<'_>) -> Result<Option<String>, String> {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    let max_age = |age: Duration| format!("max-age={}", age.as_secs());
    match given.text {
        "off" => Ok(None),
        "on" => Ok(Some(max_age(YEAR))),
        // https://hstspreload.org requires at least a year.
        "preload" => Ok(Some(format!("{}; includeSubDomains; preload", max_age(2 * YEAR)))),
        age => match units::duration(age, Duration::ZERO..=10 * YEAR) {
            Ok(age) => Ok(Some(max_age(age))),
            Err(why) => Err(format!("{why}, or on, off or preload")),
        },
    }
}

fn paths_or_off(given: &[Text<'_>]) -> Result<Vec<PathBuf>, String> {
    match given {
        [Text { text: "off", .. }] => Ok(Vec::new()),
        files => files.iter().map(Text::path).collect(),
    }
}

fn names(given: &[Text<'_>]) -> Result<TlsNames, String> {
    match given {
        [Text { text: "off", .. }] => Ok(TlsNames::Off),
        [Text { text: "internal", .. }] => Ok(TlsNames::Internal),
        several => {
            let word =
                several.iter().map(|name| name.text).find(|name| ["off", "internal", ""].contains(name));
            match word {
                Some("") => Err("a name is missing".into()),
                Some(word) => Err(format!("{word} does not go with names; give it alone")),
                None => {
                    Ok(TlsNames::Acme(several.iter().map(|name| name.text.to_ascii_lowercase()).collect()))
                }
            }
        }
    }
}

fn https_url(given: Text<'_>) -> Result<String, String> {
    match given.text.strip_prefix("https://") {
        Some(rest) if !rest.is_empty() => Ok(given.text.to_owned()),
        _ => Err(format!("{:?} is not a URL that begins with https://", given.text)),
    }
}

fn email(given: Text<'_>) -> Result<String, String> {
    let legal = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    match given.text.split_once('@') {
        Some((user, host)) if legal(user) && legal(host) => Ok(given.text.to_owned()),
        _ => Err(format!("{:?} is not an address such as admin@example.org", given.text)),
    }
}
