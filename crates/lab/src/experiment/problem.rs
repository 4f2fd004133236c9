//! Errors in experiment files, with the line, the column and the likely fix.

use std::ops::Range;

/// Describes a problem at `span` in the text of a file: its place, its line, and the remedy.
pub(super) fn at(file: &str, text: &str, span: Range<usize>, what: &str, fix: &str) -> String {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.floor_char_boundary(span.end.clamp(start, text.len()));
    let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line = text[begin..].lines().next().unwrap_or_default();
    let marked = text[start..end].lines().next().unwrap_or_default().chars().count().max(1);
    let (number, before) = (text[..start].matches('\n').count() + 1, text[begin..start].chars().count());
    let blank = " ".repeat(number.to_string().len());
    let mark = " ".repeat(before) + &"^".repeat(marked);
    let column = before + 1;
    let problem = format!("{file}:{number}:{column}: {what}\n{blank} |\n{number} | {line}\n{blank} | {mark}");
    if fix.is_empty() { problem } else { format!("{problem}\n{blank} = {fix}") }
}

/// Returns the remedy for a wrong word in a place of known words.
pub(super) fn among<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    suggestion(wrong, &known, || match known.is_empty() {
        true => "there is none yet".to_owned(),
        false => format!("use one of: {}", known.join(", ")),
    })
}

/// Describes an error of the TOML parser. The message of an unknown key or value lists the legal ones.
pub(super) fn of_toml(file: &str, text: &str, error: &toml::de::Error) -> String {
    let message = error.message().trim();
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let fix = match words.split_first() {
        Some((wrong, known)) if message.starts_with("unknown") && !known.is_empty() => {
            among(wrong, known.iter().copied())
        }
        _ if message.starts_with("missing field") => "add the field to this table".to_owned(),
        _ => String::new(),
    };
    at(file, text, error.span().unwrap_or(0..0), message, &fix)
}

/// Suggests the known word that is most similar to `wrong`. If no word is similar, returns `otherwise`.
pub(crate) fn suggestion(wrong: &str, known: &[&str], otherwise: impl FnOnce() -> String) -> String {
    let best = known.iter().map(|word| (strsim::jaro_winkler(wrong, word), word));
    let best = best.filter(|(like, _)| *like > 0.75).max_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or_else(otherwise, |(_, word)| format!("did you mean `{word}`?"))
}
