//! What holds for the answers at a path: as rules say it, and as it comes out of all of them.

use std::sync::Arc;

use crate::cache_control::CacheControl;
use crate::fields::{FieldEdit, Fields};
use crate::path::SitePath;
use crate::pattern::Pattern;

/// What one place of the configuration says. A key that it does not mention is `None`, and holds as the rules
/// before say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// What is done to the fields of the answers; those of several rules are done one after the other.
    pub fields: Vec<FieldEdit>,
    /// What caches may do with an answer.
    pub cache: Option<CacheControl>,
}

impl Policy {
    /// Lets `later` say something else.
    fn overlay(&mut self, later: &Policy) {
        self.fields.extend_from_slice(&later.fields);
        set(&mut self.cache, &later.cache);
    }
}

fn set<T: Clone>(key: &mut Option<T>, later: &Option<T>) {
    if later.is_some() {
        key.clone_from(later);
    }
}

/// A policy for some paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Which paths.
    pub paths: Pattern,
    /// What holds there.
    pub policy: Policy,
}

/// The policy of a whole site: what holds everywhere, and rules for some paths, of which later ones win.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    everywhere: Arc<Policy>,
    /// The fields that `everywhere` adds, and those of each path without a rule.
    fields: Fields,
    rules: Vec<Rule>,
}

impl Policies {
    /// What holds `everywhere`, and where `rules` say something else.
    pub fn new(everywhere: Policy, rules: Vec<Rule>) -> Policies {
        let fields = Fields::of(&everywhere.fields);
        Policies { everywhere: Arc::new(everywhere), fields, rules }
    }

    /// What holds at `path`, all rules taken together.
    pub(crate) fn at(&self, path: &SitePath) -> Effective {
        let mut fitting = self.rules.iter().filter(|rule| rule.paths.matches(path.relative())).peekable();
        if fitting.peek().is_none() {
            return Effective { policy: Arc::clone(&self.everywhere), fields: self.fields.clone() };
        }
        let mut policy = Policy::clone(&self.everywhere);
        fitting.for_each(|rule| policy.overlay(&rule.policy));
        let fields = Fields::of(&policy.fields);
        Effective { policy: Arc::new(policy), fields }
    }
}

/// What holds at a path, all rules taken together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effective {
    pub(crate) policy: Arc<Policy>,
    /// What comes of all the edits of fields.
    pub(crate) fields: Fields,
}
