//! TLS: certificates and keys.

use std::path::PathBuf;
use std::time::Duration;

use tenfold_tls::config::SecurityPreset;

use super::read::{rows, word};
use crate::settings::row::Initial::Value;
use crate::settings::row::{SettingRow, Text, many, one};
use crate::settings::units;
use crate::settings::values::HttpsRedirect;

pub(super) static ROWS: &[SettingRow] = rows! { "TLS":
    many "tls-certificate" "FILE|off" = Value("off"), not_null;
        tls_certificate = paths_or_off;
        "a file with a certificate and its chain (PEM); turns TLS on for every TCP address in listen without the prefix http:; repeatable";
    many "tls-key" "FILE|off" = Value("off"), not_null;
        tls_key = paths_or_off;
        "a file with the key of a certificate (PEM); one for each tls-certificate, in the same order";
    one "tls-preset" "modern|intermediate" = Value("intermediate"), not_null;
        tls_preset = word("TLS preset", &[("modern", SecurityPreset::Modern), ("intermediate", SecurityPreset::Intermediate)]);
        "TLS versions and their cipher suites: modern (1.3) or intermediate (1.2 and 1.3)";
    one "https-redirect" "on|off|PORT" = Value("off"), not_null;
        https_redirect = redirect;
        "redirect requests on addresses with the prefix http: to https (308), with PORT if clients use another port than that of the first address with TLS";
    one "hsts" "on|off|preload|TIME" = Value("off"), not_null;
        hsts = hsts;
        "send Strict-Transport-Security with TLS, so that browsers use https alone: on is a year, preload is two years with all subdomains";
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

/// Reads the value of the field (RFC 6797 §6.1). A time of 0 lets browsers forget the host.
fn hsts(given: Text<'_>) -> Result<Option<String>, String> {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    let max_age = |age: Duration| format!("max-age={}", age.as_secs());
    match given.text {
        "off" => Ok(None),
        "on" => Ok(Some(max_age(YEAR))),
        // The least that https://hstspreload.org accepts is a year.
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
