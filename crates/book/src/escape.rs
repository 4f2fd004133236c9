//! Text in HTML and in JSON.

pub(crate) use tenfold_chart::escape as html;

/// `text` as a JSON string (RFC 8259).
pub(crate) fn json(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
