//! Problems of settings, and their form for a person.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use crate::diagnostics::{self, error};

/// A problem of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    what: String,
    place: Option<ProblemSpan>,
    failure: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ProblemSpan {
    file: String,
    content: String,
    bytes: Range<usize>,
    mend: String,
}

impl Problem {
    /// A problem without a place in a file.
    pub(crate) fn new(what: String) -> Problem {
        Problem { what, place: None, failure: false }
    }

    /// A problem of the system, such as a file that cannot be read.
    pub(crate) fn failure(what: String) -> Problem {
        Problem { what, place: None, failure: true }
    }

    /// A problem at these bytes of a file, with the remedy.
    pub(crate) fn at(what: String, file: &Path, content: &str, bytes: Range<usize>, mend: String) -> Problem {
        // An empty range, as at the end of the file, would be invisible.
        let end = bytes.end.clamp(bytes.start, content.len());
        let place = ProblemSpan {
            file: file.display().to_string(),
            content: content.to_owned(),
            bytes: bytes.start..end,
            mend,
        };
        Problem { what, place: Some(place), failure: false }
    }

    /// Whether the problem has a place in a file.
    pub(crate) fn is_placed(&self) -> bool {
        self.place.is_some()
    }

    /// The remedy, or the problem if it has no place in a file.
    pub(crate) fn remedy(&self) -> String {
        self.place.as_ref().map_or_else(|| self.what.clone(), |place| place.mend.clone())
    }

    /// The problem with its lines of the file; `styled` for a terminal.
    pub(crate) fn render(&self, styled: bool) -> String {
        let Some(place) = &self.place else { return self.what.clone() };
        let mark = AnnotationKind::Primary.span(place.bytes.clone()).label(place.mend.as_str());
        let snippet = Snippet::source(place.content.as_str()).path(place.file.as_str()).annotation(mark);
        // The prefix of every error of this program.
        let level = Level::ERROR.with_name("tenfold: error");
        let report = [level.primary_title(self.what.as_str()).element(snippet)];
        let renderer = if styled { Renderer::styled() } else { Renderer::plain() };
        renderer.decor_style(DecorStyle::Ascii).render(&report)
    }
}

/// The exit code for a wrong flag, value, combination or file.
pub(crate) const WRONG_USAGE: u8 = 2;

/// Prints problems, and returns the exit code: 1 if the system failed, otherwise that of a refused command.
pub(crate) fn refuse(problems: &[Problem]) -> ExitCode {
    complain(problems);
    if problems.iter().any(|problem| problem.failure) {
        ExitCode::FAILURE
    } else {
        ExitCode::from(WRONG_USAGE)
    }
}

/// Prints problems, each with its lines of the file.
pub(crate) fn complain(problems: &[Problem]) {
    for problem in problems {
        match problem.is_placed() {
            true => diagnostics::lines(
                diagnostics::Level::Error,
                &format!("{}\n\n", problem.render(diagnostics::coloured())),
            ),
            false => error!("{problem}"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}
