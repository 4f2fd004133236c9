//! TLS: certificates and keys.

use std::path::PathBuf;

use tenfold_tls::config::SecurityPreset;

use super::read::{rows, word};
use crate::settings::row::Initial::Value;
use crate::settings::row::{SettingRow, Text, many, one};

pub(super) static ROWS: &[SettingRow] = rows! { "TLS":
    many "tls-certificate" "FILE|off" = Value("off"), not_null;
        tls_certificate = paths_or_off;
        "a file with a certificate and its chain (PEM): every TCP address in listen that is not http: has TLS; can be given several times";
    many "tls-key" "FILE|off" = Value("off"), not_null;
        tls_key = paths_or_off;
        "a file with the key of tls-certificate (PEM); as often as that, in the same order";
    one "tls-preset" "modern|intermediate" = Value("intermediate"), not_null;
        tls_preset = word("TLS preset", &[("modern", SecurityPreset::Modern), ("intermediate", SecurityPreset::Intermediate)]);
        "versions and cipher suites of TLS: modern is 1.3, intermediate is 1.2 and 1.3";
};

fn paths_or_off(given: &[Text<'_>]) -> Result<Vec<PathBuf>, String> {
    match given {
        [Text { text: "off", .. }] => Ok(Vec::new()),
        files => files.iter().map(Text::path).collect(),
    }
}
