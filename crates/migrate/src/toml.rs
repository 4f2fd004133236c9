//! Values of TOML as text.

use std::fmt::Write;

/// Returns a TOML string.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            _ if character.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(character));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns a TOML string for one value, and a list for several.
pub(crate) fn list(values: &[String]) -> String {
    match values {
        [only] => quote(only),
        _ => format!("[{}]", values.iter().map(|value| quote(value)).collect::<Vec<_>>().join(", ")),
    }
}

/// Returns a key, in quotes if it needs them.
pub(crate) fn key(text: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    match !text.is_empty() && text.bytes().all(bare) {
        true => text.to_owned(),
        false => quote(text),
    }
}
