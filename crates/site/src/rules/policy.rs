//! The policy of a path: of each rule, and of all rules combined.

use std::sync::Arc;

use tenfold_http::{FieldName, FieldValue, HeaderLines};

use crate::rules::cache_control::CacheControl;
use crate::rules::cors::Cors;
use crate::rules::fields::{FieldEdit, ResponseFields};
use crate::rules::media_types::MediaTypes;
use crate::rules::path::SitePath;
use crate::rules::pattern::Pattern;
use crate::rules::realm::Realm;
use crate::rules::try_files::TryFile;

/// The policy of a part of the configuration. A key that it does not mention is `None` and keeps its earlier
/// value; `Some(None)` switches a key off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Edits of the response fields. The edits of several rules are applied in order.
    pub fields: Vec<FieldEdit>,
    /// The preset of `Cache-Control`.
    pub cache: Option<CacheControl>,
    /// The charset of text. UTF-8 by default.
    pub charset: Option<Option<String>>,
    /// Media types by the names of files. The types of several rules add up.
    pub types: MediaTypes,
    /// The origins whose pages may read responses.
    pub cors: Option<Option<Arc<Cors>>>,
    /// The realm whose users may get the files.
    pub auth: Option<Option<Arc<Realm>>>,
    /// Values of `Link` that are sent before a response.
    pub early_hints: Option<Vec<String>>,
    /// The files that are tried for a path, in order.
    pub try_files: Option<Vec<TryFile>>,
    /// A file beneath the root for paths without a file.
    pub fallback: Option<Option<String>>,
    /// The listing of a folder without an index.
    pub listing: Option<Listing>,
}

impl Policy {
    /// Overrides keys by those that `later` sets.
    fn overlay(&mut self, later: &Policy) {
        self.fields.extend_from_slice(&later.fields);
        self.types.extend(&later.types);
        set(&mut self.cache, &later.cache);
        set(&mut self.charset, &later.charset);
        set(&mut self.cors, &later.cors);
        set(&mut self.auth, &later.auth);
        set(&mut self.early_hints, &later.early_hints);
        set(&mut self.try_files, &later.try_files);
        set(&mut self.fallback, &later.fallback);
        set(&mut self.listing, &later.listing);
    }
}

fn set<T: Clone>(key: &mut Option<T>, later: &Option<T>) {
    if later.is_some() {
        key.clone_from(later);
    }
}

/// The response to a request for a folder without an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listing {
    /// Nothing: 404.
    #[default]
    Off,
    /// A page, or JSON if the client prefers it by `Accept`.
    Html,
    /// Always JSON.
    Json,
}

/// A policy for some paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyRule {
    /// The paths it applies to.
    pub paths: Pattern,
    /// Their policy.
    pub policy: Policy,
}

/// The policy of a whole site: a default, and rules for some paths. Later rules win.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    everywhere: Effective,
    rules: Vec<PolicyRule>,
    /// The default and the rules for every path.
    unknown: Effective,
}

impl Policies {
    /// Combines the default `everywhere` with the `rules` that override it.
    pub fn new(everywhere: Policy, rules: Vec<PolicyRule>) -> Policies {
        let mut unknown = everywhere.clone();
        let for_all = rules.iter().filter(|rule| rule.paths == Pattern::all());
        for_all.for_each(|rule| unknown.overlay(&rule.policy));
        Policies { everywhere: Effective::of(everywhere), rules, unknown: Effective::of(unknown) }
    }

    /// Returns the policy of `path` by all rules. If a rewrite replaces the path, a rule applies if it
    /// matches either path.
    pub(crate) fn at(&self, path: &SitePath, rewritten: Option<&SitePath>) -> Effective {
        let fits = |rule: &&PolicyRule| {
            let fits = |path: &SitePath| rule.paths.matches(path.relative());
            fits(path) || rewritten.is_some_and(fits)
        };
        let mut fitting = self.rules.iter().filter(fits).peekable();
        if fitting.peek().is_none() {
            return self.everywhere.clone();
        }
        let mut policy = Policy::clone(&self.everywhere.policy);
        fitting.for_each(|rule| policy.overlay(&rule.policy));
        Effective::of(policy)
    }

    /// Returns `here`, the policy of a requested path, with the caching of `file`, which serves any path. The
    /// requested path may get a file of its own later, so its own caching could be too long.
    pub(crate) fn caching_of(&self, here: &Effective, file: &SitePath) -> Effective {
        if self.rules.is_empty() {
            return here.clone();
        }
        let own = self.at(file, None);
        let mut policy = Policy { cache: own.policy.cache, ..Policy::clone(&here.policy) };
        policy.fields.retain(|edit| !edit.is_of(FieldName::CACHE_CONTROL));
        policy
            .fields
            .extend(own.policy.fields.iter().filter(|edit| edit.is_of(FieldName::CACHE_CONTROL)).cloned());
        Effective { fields: ResponseFields::of(&policy.fields), policy: Arc::new(policy), ..here.clone() }
    }

    /// Returns the rules about passwords in order: the paths, and the realm, or None if the paths are open.
    pub(crate) fn of_auth(&self) -> impl Iterator<Item = (Pattern, &Option<Arc<Realm>>)> {
        let everywhere = self.everywhere.policy.auth.iter().map(|auth| (Pattern::all(), auth));
        let by_rule =
            self.rules.iter().filter_map(|rule| Some((rule.paths.clone(), rule.policy.auth.as_ref()?)));
        everywhere.chain(by_rule)
    }

    /// Returns the policy of paths that no pattern can match, such as hidden paths.
    pub(crate) fn unknown(&self) -> &Effective {
        &self.unknown
    }

    /// Returns the policy of every path and client, if there is only one.
    pub(crate) fn only_policy(&self) -> Option<&Effective> {
        (self.rules.is_empty() && !self.everywhere.is_guarded()).then_some(&self.everywhere)
    }
}

/// The policy of a path by all rules. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Effective {
    pub(crate) policy: Arc<Policy>,
    /// The result of all edits of fields.
    pub(crate) fields: ResponseFields,
    /// The same for responses without a file.
    pub(crate) of_errors: Arc<HeaderLines>,
    /// The early hints, sent before a response.
    pub(crate) hints: Option<Arc<HeaderLines>>,
}

impl Effective {
    fn of(mut policy: Policy) -> Effective {
        let mut hints = None;
        if let Some(links) = policy.early_hints.as_ref().filter(|links| !links.is_empty()) {
            let mut lines = HeaderLines::default();
            for link in links {
                // Clients that ignore hints find the links in the response (RFC 8297 §2).
                policy.fields.push(FieldEdit::add("Link", link).expect("hints are read as fields"));
                let value = FieldValue::new(link.as_bytes()).expect("hints are read as fields");
                lines.field(FieldName::constant("Link"), value);
            }
            hints = Some(Arc::new(lines));
        }
        let fields = ResponseFields::of(&policy.fields);
        let mut of_errors = HeaderLines::default();
        fields.render(&mut of_errors);
        Effective { policy: Arc::new(policy), fields, of_errors: Arc::new(of_errors), hints }
    }

    pub(crate) fn cors(&self) -> Option<&Cors> {
        self.policy.cors.as_ref()?.as_deref()
    }

    pub(crate) fn realm(&self) -> Option<&Arc<Realm>> {
        self.policy.auth.as_ref()?.as_ref()
    }

    /// Whether responses depend on the client, or an interim response precedes them.
    pub(crate) fn is_guarded(&self) -> bool {
        self.cors().is_some() || self.realm().is_some() || self.hints.is_some()
    }
}

impl Default for Effective {
    fn default() -> Effective {
        Effective::of(Policy::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> SitePath {
        SitePath::parse(text).expect(text)
    }

    fn rule(paths: &str, policy: Policy) -> PolicyRule {
        PolicyRule { paths: Pattern::new(paths).expect(paths), policy }
    }

    #[test]
    fn later_rules_win_key_by_key() {
        let cache = |cache| Policy { cache: Some(cache), ..Policy::default() };
        let charset = Policy { charset: Some(None), ..Policy::default() };
        let policies = Policies::new(
            cache(CacheControl::NoStore),
            vec![
                rule("/a/**", cache(CacheControl::Hashed)),
                rule("/a/b/**", charset),
                rule("/a/b/c", cache(CacheControl::Revalidate)),
            ],
        );
        let at = |text| policies.at(&path(text), None).policy;
        assert_eq!((at("/x").cache, at("/x").charset.clone()), (Some(CacheControl::NoStore), None));
        assert_eq!((at("/a/x").cache, at("/a/x").charset.clone()), (Some(CacheControl::Hashed), None));
        assert_eq!(
            (at("/a/b/x").cache, at("/a/b/x").charset.clone()),
            (Some(CacheControl::Hashed), Some(None))
        );
        assert_eq!(at("/a/b/c").cache, Some(CacheControl::Revalidate));
        assert_eq!(
            policies.at(&path("/x"), Some(&path("/a/b/c"))).policy.cache,
            Some(CacheControl::Revalidate)
        );
        assert!(policies.only_policy().is_none() && Policies::default().only_policy().is_some());
    }

    #[test]
    fn rules_for_every_path_apply_to_hidden_paths() {
        let charset = Policy { charset: Some(None), ..Policy::default() };
        let cache = Policy { cache: Some(CacheControl::NoStore), ..Policy::default() };
        let policies = Policies::new(Policy::default(), vec![rule("/a/**", cache), rule("/**", charset)]);
        let unknown = &policies.unknown().policy;
        assert_eq!((unknown.charset.clone(), unknown.cache), (Some(None), None));
    }

    #[test]
    fn hints_are_sent_ahead_and_stand_in_the_answer() {
        let link = "</site.css>; rel=preload; as=style".to_owned();
        let here = Effective::of(Policy { early_hints: Some(vec![link.clone()]), ..Policy::default() });
        let hints = here.hints.as_deref().expect("there are some");
        let expected = (FieldName::constant("Link"), FieldValue::new(link.as_bytes()).expect("a value"));
        assert!(hints.iter().eq([expected]) && here.of_errors.iter().eq([expected]));
        assert!(here.is_guarded());
        assert!(Effective::of(Policy { early_hints: Some(Vec::new()), ..Policy::default() }).hints.is_none());
    }
}
