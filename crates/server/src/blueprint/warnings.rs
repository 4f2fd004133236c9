//! Warnings about settings that are legal and unwise.

use tenfold_sys::socket::ListenAddress;

use crate::diagnostics::warning;
use crate::settings::values::Settings;

/// Warns about settings that are legal and unwise.
pub(crate) fn warn(settings: &Settings) {
    if let Some(warning) = of(settings) {
        warning!("{warning}");
    }
}

/// Passwords that anybody on the way can read.
pub(super) fn of(settings: &Settings) -> Option<String> {
    let is_open = |address: &&ListenAddress| match address {
        ListenAddress::Internet(at) => !at.ip().is_loopback(),
        ListenAddress::Unix(_) => false,
    };
    let address = settings.listen.iter().find(is_open).filter(|_| settings.asks_for_passwords())?;
    Some(format!(
        "basic authentication on {address} sends passwords unencrypted; listen on 127.0.0.1 behind a proxy that ends TLS"
    ))
}
