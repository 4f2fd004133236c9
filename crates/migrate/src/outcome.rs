//! The outcome of each directive.

/// A directive of the input, and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The line of the directive, from 1.
    pub line: usize,
    /// The name of the directive, or of a flag.
    pub directive: String,
    /// The result for this directive.
    pub outcome: Outcome,
}

/// The result of the translation of one directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The output has keys with this meaning.
    Translated,
    /// Tenfold does this by default, for this reason.
    Default(String),
    /// The output lacks this, for this reason.
    Refused(String),
}

pub(crate) fn refused(why: impl Into<String>) -> Outcome {
    Outcome::Refused(why.into())
}

pub(crate) fn default(why: impl Into<String>) -> Outcome {
    Outcome::Default(why.into())
}
