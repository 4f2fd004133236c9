//! The media types that a configuration gives to the names of files: `types`.

use std::path::Path;

use crate::rules::pattern::Pattern;

/// Media types by the name of a file. The keys are in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaTypes(Vec<MediaTypeRule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct MediaTypeRule {
    key: String,
    /// The names of a key with a star.
    pattern: Option<Pattern>,
    media_type: String,
}

impl MediaTypes {
    /// Adds a type, which replaces an earlier type of the same key. `key` is a whole name (`LICENSE`), an ending
    /// with its dot (`.md`), a pattern (`README*`), or empty for names without an extension.
    ///
    /// # Errors
    /// `key` contains a slash, or is not a pattern.
    pub fn insert(&mut self, key: &str, media_type: &str) -> Result<(), String> {
        const KINDS: &str = "it is the ending of a name, such as .md, a name, such as LICENSE, a pattern, such as README*, \
             or \"\" for names without an extension";
        if key.contains('/') {
            return Err(KINDS.to_owned());
        }
        let key = key.to_lowercase();
        let pattern = match key.contains('*') {
            true => Some(Pattern::new(&format!("/{key}"))?),
            false => None,
        };
        self.0.retain(|rule| rule.key != key);
        self.0.push(MediaTypeRule { key, pattern, media_type: media_type.to_owned() });
        Ok(())
    }

    /// Adds the types of `later`, which replace earlier types of the same keys.
    pub(crate) fn extend(&mut self, later: &MediaTypes) {
        self.0.retain(|rule| later.0.iter().all(|other| other.key != rule.key));
        self.0.extend_from_slice(&later.0);
    }

    /// Returns the type of a file with this name, without a folder. The whole name precedes the longest ending or
    /// pattern that matches.
    pub(crate) fn find(&self, file: &str) -> Option<&str> {
        if self.0.is_empty() {
            return None;
        }
        let file = file.to_lowercase();
        let matching = self.0.iter().filter(|rule| rule.matches(&file));
        let best = matching.max_by_key(|rule| (rule.key == file, rule.key.len()))?;
        Some(&best.media_type)
    }
}

impl MediaTypeRule {
    fn matches(&self, file: &str) -> bool {
        match &self.pattern {
            Some(pattern) => pattern.matches(file),
            None if self.key.is_empty() => Path::new(file).extension().is_none(),
            None => self.key == file || self.key.starts_with('.') && file.ends_with(&self.key),
        }
    }
}
