//! TLS: certificates and keys.

use std::path::PathBuf;

use super::read::rows;
use crate::settings::row::Initial::Value;
use crate::settings::row::{SettingRow, Text, one};

pub(super) static ROWS: &[SettingRow] = rows! { "TLS":
    one "tls-certificate" "FILE|off" = Value("off"), not_null;
        tls_certificate = path_or_off;
        "a file with a certificate and its chain (PEM): every TCP address in listen that is not http: has TLS";
    one "tls-key" "FILE|off" = Value("off"), not_null;
        tls_key = path_or_off;
        "a file with the key of tls-certificate (PEM)";
};

fn path_or_off(given: Text<'_>) -> Result<Option<PathBuf>, String> {
    if given.text == "off" { Ok(None) } else { given.path().map(Some) }
}
