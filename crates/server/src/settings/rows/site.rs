//! What is served, and where.

use super::super::table::Initial::Value;
use super::super::table::{Row, Text, many, one};

const HEADING: &str = "The site";

pub(super) static ROWS: &[Row] = &[
    many(
        ("listen", "ADDRESS", HEADING),
        Value("127.0.0.1:8080"),
        "where to listen: ADDRESS:PORT, [::]:80 or unix:PATH; can be given several times",
        |settings, texts| {
            settings.listen = texts.iter().map(Text::address).collect::<Result<_, _>>()?;
            if settings.listen.is_empty() { Err("at least one address is needed".into()) } else { Ok(()) }
        },
    )
    .fixed(),
    one(("root", "DIR", HEADING), Value("."), "the folder to serve", |settings, text| {
        settings.root = text.path()?;
        Ok(())
    })
    .not_null(),
    one(
        ("index", "NAME", HEADING),
        Value("index.html"),
        "the file that is served for a folder",
        |settings, text| {
            if text.text.is_empty() || text.text.contains(['/', '\0']) {
                return Err(format!("{:?} is not the name of a file, such as index.html", text.text));
            }
            settings.index = text.text.to_owned();
            Ok(())
        },
    )
    .not_null(),
    one(
        ("echo", "PATH|off", HEADING),
        Value("off"),
        "a path that answers any method with the body of the request, for tests of framing",
        |settings, text| {
            settings.echo = match text.text {
                "off" => None,
                path if is_path(path) => Some(path.to_owned()),
                _ => return Err(format!("{:?} is not the path of a URL, such as /echo, or off", text.text)),
            };
            Ok(())
        },
    )
    .not_null(),
];

/// Whether `text` can be the path of a request, as it stands there.
fn is_path(text: &str) -> bool {
    text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#".contains(&byte))
}
