//! Errors in experiment files, with the line, the column and the likely fix.

use std::fmt;
use std::ops::Range;

/// An error at a place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// The file.
    pub file: String,
    /// Line and column, from 1.
    pub place: (usize, usize),
    /// The text of the line.
    pub line: String,
    /// The number of characters that are wrong.
    pub width: usize,
    /// The error.
    pub what: String,
    /// The likely fix.
    pub fix: Option<String>,
}

impl FileProblem {
    /// A problem at a range of bytes of `text`.
    pub fn at(file: &str, text: &str, span: Range<usize>, what: String) -> FileProblem {
        let start = text.floor_char_boundary(span.start.min(text.len()));
        let end = text.floor_char_boundary(span.end.clamp(start, text.len()));
        let begin = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line = text[begin..].lines().next().unwrap_or_default();
        let marked = text[start..end].lines().next().unwrap_or_default().chars().count().max(1);
        FileProblem {
            file: file.to_owned(),
            place: (text[..start].matches('\n').count() + 1, text[begin..start].chars().count() + 1),
            line: line.to_owned(),
            width: marked,
            what,
            fix: None,
        }
    }

    /// Adds a fix: the known word that is most similar to `wrong`, or all known words.
    pub fn among<'a>(mut self, wrong: &str, known: impl IntoIterator<Item = &'a str>) -> FileProblem {
        let known: Vec<&str> = known.into_iter().collect();
        self.fix = Some(suggestion(wrong, &known, || match known.is_empty() {
            true => "there is none yet".to_owned(),
            false => format!("use one of: {}", known.join(", ")),
        }));
        self
    }

    /// Adds a fix in words.
    pub fn fix(mut self, words: &str) -> FileProblem {
        self.fix = Some(words.to_owned());
        self
    }

    /// An error of the TOML reader. Its message lists the known words; the most similar word becomes the fix.
    pub fn of_toml(file: &str, text: &str, error: &toml::de::Error) -> FileProblem {
        let message = error.message().trim().to_owned();
        let problem = FileProblem::at(file, text, error.span().unwrap_or(0..0), message.clone());
        let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        match words.split_first() {
            Some((wrong, known)) if message.starts_with("unknown") && !known.is_empty() => {
                problem.among(wrong, known.iter().copied())
            }
            _ if message.starts_with("missing field") => problem.fix("add the field to this table"),
            _ => problem,
        }
    }
}

/// Suggests the known word that is most similar to `wrong`. If no word is similar, returns `otherwise`.
pub(crate) fn suggestion(wrong: &str, known: &[&str], otherwise: impl FnOnce() -> String) -> String {
    let best = known.iter().map(|word| (strsim::jaro_winkler(wrong, word), word));
    let best = best.filter(|(like, _)| *like > 0.75).max_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or_else(otherwise, |(_, word)| format!("did you mean `{word}`?"))
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.place;
        let number = line.to_string();
        let blank = " ".repeat(number.len());
        writeln!(f, "{}:{line}:{column}: {}", self.file, self.what)?;
        writeln!(f, "{blank} |\n{number} | {}", self.line)?;
        write!(f, "{blank} | {}{}", " ".repeat(column - 1), "^".repeat(self.width))?;
        match &self.fix {
            Some(fix) => write!(f, "\n{blank} = {fix}"),
            None => Ok(()),
        }
    }
}
