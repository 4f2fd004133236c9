//! The parts of a configuration while it is translated.

use std::collections::{BTreeMap, BTreeSet};

/// A setting of the whole server.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) values: Vec<String>,
    pub(crate) line: usize,
}

/// An address of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) text: String,
    pub(crate) tls: bool,
    pub(crate) proxied: bool,
    pub(crate) line: usize,
}

/// Rules for some paths, or for a whole site.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    /// Values as TOML, by key.
    pub(crate) keys: BTreeMap<&'static str, (String, usize)>,
    pub(crate) set: Vec<(String, String)>,
    pub(crate) add: BTreeMap<String, Vec<String>>,
    pub(crate) remove: BTreeSet<String>,
    pub(crate) types: BTreeMap<String, String>,
}

impl Rules {
    pub(crate) fn is_empty(&self) -> bool {
        let Rules { keys, set, add, remove, types } = self;
        keys.is_empty() && set.is_empty() && add.is_empty() && remove.is_empty() && types.is_empty()
    }
}

/// The rules of a `[[site.path]]` or `[[host.path]]`.
#[derive(Debug)]
pub(crate) struct PathRules {
    pub(crate) patterns: Vec<String>,
    pub(crate) rules: Rules,
    pub(crate) line: usize,
    /// Later rules have precedence.
    pub(crate) weight: usize,
}

/// A redirect or a rewrite.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) status: Option<u16>,
    pub(crate) line: usize,
}

/// Whether requests for a path get its file.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) pattern: String,
    pub(crate) is_open: bool,
    /// Whether the path should be open, and no rewrite can open it.
    pub(crate) is_blocked: bool,
    pub(crate) weight: usize,
    pub(crate) line: usize,
}

impl Gate {
    /// Whether this gate closes the paths of another one, too.
    pub(crate) fn covers(&self, other: &Gate) -> bool {
        let stem = self.pattern.trim_end_matches('*').trim_end_matches('/');
        !self.is_open
            && self.weight < other.weight
            && self.pattern.ends_with('*')
            && other.pattern.starts_with(stem)
            && self.pattern != other.pattern
    }
}

/// `[site]`, or a `[[host]]`.
#[derive(Debug, Default)]
pub(crate) struct Site {
    pub(crate) names: Vec<String>,
    pub(crate) root: Option<(String, usize)>,
    pub(crate) index: Option<(Vec<String>, usize)>,
    pub(crate) rules: Rules,
    /// Keys of a whole site that paths do not have, as TOML.
    pub(crate) keys: BTreeMap<&'static str, (String, usize)>,
    pub(crate) error_pages: BTreeMap<String, (String, usize)>,
    pub(crate) paths: Vec<PathRules>,
    pub(crate) redirects: Vec<Way>,
    pub(crate) rewrites: Vec<Way>,
    pub(crate) gates: Vec<Gate>,
    pub(crate) line: usize,
}

/// The paths of a site that a directive concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The place of the site in the draft.
    pub(crate) site: usize,
    /// Patterns; empty for all paths.
    pub(crate) patterns: Vec<String>,
    pub(crate) weight: usize,
}

impl Scope {
    pub(crate) fn of(site: usize) -> Scope {
        Scope { site, patterns: Vec::new(), weight: 0 }
    }

    /// Returns the scope of these patterns in the same site.
    pub(crate) fn beneath(&self, patterns: Vec<String>, weight: usize) -> Scope {
        Scope { site: self.site, patterns, weight }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.patterns.is_empty()
    }
}
