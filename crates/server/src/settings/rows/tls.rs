//! TLS: certificates and keys.

use std::path::PathBuf;

use tenfold_tls::config::SecurityPreset;

use super::read::{rows, word};
use crate::settings::row::Initial::Value;
use crate::settings::row::{SettingRow, Text, many, one};

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
};

fn paths_or_off(given: &[Text<'_>]) -> Result<Vec<PathBuf>, String> {
    match given {
        [Text { text: "off", .. }] => Ok(Vec::new()),
        files => files.iter().map(Text::path).collect(),
    }
}
