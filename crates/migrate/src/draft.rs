//! The configuration while it is translated: settings of the server, rules of sites, and the outcome of each directive.

mod parts;

use std::collections::{BTreeMap, BTreeSet};

use crate::outcome::{Entry, Outcome, default, refused};
use crate::toml::{list, quote};
use crate::values;

pub(crate) use parts::{Address, Gate, PathRules, Rules, Scope, Setting, Site, Way};

/// The path of no file. A rewrite to it answers 404.
pub(crate) const CLOSED: &str = "/.closed";

/// The most closed and open paths.
const MOST_GATES: usize = 10_000;

/// The configuration while it is translated.
pub(crate) struct Draft<'a> {
    legal: &'a dyn Fn(&str) -> Result<(), String>,
    pub(crate) settings: BTreeMap<&'static str, Setting>,
    pub(crate) addresses: Vec<Address>,
    pub(crate) certificates: Vec<(String, String)>,
    /// `[site]`, then each `[[host]]`.
    pub(crate) sites: Vec<Site>,
    /// Endings of programs, whose text must not be served.
    pub(crate) programs: BTreeSet<&'static str>,
    entries: Vec<Entry>,
    gates: usize,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(legal: &'a dyn Fn(&str) -> Result<(), String>) -> Draft<'a> {
        Draft {
            legal,
            settings: BTreeMap::new(),
            addresses: Vec::new(),
            certificates: Vec::new(),
            sites: vec![Site::default()],
            programs: BTreeSet::new(),
            entries: Vec::new(),
            gates: 0,
        }
    }

    pub(crate) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Records the outcome of a directive.
    pub(crate) fn record(&mut self, line: usize, directive: &str, outcome: Outcome) {
        self.entries.push(Entry { line, directive: directive.to_owned(), outcome });
    }

    /// Keeps one entry for a directive that several sites import: a refusal, or a translation.
    pub(crate) fn merge_entries(&mut self) {
        let rank = |outcome: &Outcome| match outcome {
            Outcome::Refused(_) => 0,
            Outcome::Translated => 1,
            Outcome::Default(_) => 2,
        };
        self.entries.sort_by(|one, other| {
            let key = |entry: &Entry| (entry.line, entry.directive.clone(), rank(&entry.outcome));
            key(one).cmp(&key(other))
        });
        self.entries
            .dedup_by(|later, first| (later.line, &later.directive) == (first.line, &first.directive));
    }

    /// Checks a piece of a configuration.
    pub(crate) fn check(&self, piece: &str) -> Result<(), Outcome> {
        (self.legal)(piece).map_err(Outcome::Refused)
    }

    pub(crate) fn uses_tls(&self) -> bool {
        !self.certificates.is_empty() || self.settings.contains_key("tls")
    }

    /// Returns the place of the host with these names, which is new or the host that has one of them.
    pub(crate) fn host(&mut self, names: &[String], line: usize) -> Result<usize, Outcome> {
        let same = |site: &Site| names.iter().any(|name| site.names.contains(name));
        if let Some(at) = self.sites.iter().position(same) {
            for name in names {
                let is_known = self.sites.iter().any(|site| site.names.contains(name));
                if !is_known {
                    self.check(&format!("[[host]]\nname = {}\n", quote(name)))?;
                    self.sites[at].names.push(name.clone());
                }
            }
            return Ok(at);
        }
        for name in names {
            self.check(&format!("[[host]]\nname = {}\n", quote(name)))?;
        }
        let mut unique: Vec<String> = Vec::new();
        unique.extend(names.iter().filter(|name| !unique.contains(name)).cloned().collect::<BTreeSet<_>>());
        self.sites.push(Site { names: unique, line, ..Site::default() });
        Ok(self.sites.len() - 1)
    }

    /// Returns the place of a host that has only these names. A host with further names loses them: its other names keep
    /// its rules.
    pub(crate) fn separate_host(&mut self, names: &[String], line: usize) -> Result<usize, Outcome> {
        for site in &mut self.sites {
            if site.names.iter().any(|name| !names.contains(name)) {
                site.names.retain(|name| !names.contains(name));
            }
        }
        self.host(names, line)
    }

    /// Sets a setting of the server.
    pub(crate) fn set(&mut self, name: &'static str, values: &[&str], line: usize) -> Outcome {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        if let Some(other) = self.settings.get(name) {
            return match other.values == values {
                true => Outcome::Translated,
                false => refused(format!(
                    "{name} is a setting of the whole server, and line {} sets it to {}",
                    other.line,
                    other.values.join(" ")
                )),
            };
        }
        if let Err(outcome) = self.check(&format!("{name} = {}\n", list(&values))) {
            return outcome;
        }
        self.settings.insert(name, Setting { values, line });
        Outcome::Translated
    }

    /// Adds values to a list of the server.
    pub(crate) fn extend(&mut self, name: &'static str, values: &[&str], line: usize) -> Outcome {
        for value in values {
            let piece = format!("{name} = {}\n", list(&[(*value).to_owned()]));
            if let Err(outcome) = self.check(&piece) {
                return outcome;
            }
            let setting = self.settings.entry(name).or_insert(Setting { values: Vec::new(), line });
            if !setting.values.iter().any(|known| known == value) {
                setting.values.push((*value).to_owned());
            }
        }
        Outcome::Translated
    }

    /// Adds an address of the server.
    pub(crate) fn listen(&mut self, text: &str, tls: bool, proxied: bool, line: usize) -> Outcome {
        if let Err(outcome) = self.check(&format!("listen = {}\n", quote(text))) {
            return outcome;
        }
        match self.addresses.iter_mut().find(|address| address.text == text) {
            Some(known) if known.tls != tls => {
                return refused(format!("line {} has the same address with other TLS", known.line));
            }
            Some(_) => {}
            None => self.addresses.push(Address { text: text.to_owned(), tls, proxied, line }),
        }
        Outcome::Translated
    }

    /// Sets the folder of a site.
    pub(crate) fn root(&mut self, scope: &Scope, folder: &str, line: usize) -> Outcome {
        if folder.contains(['$', '{', '\0']) {
            return refused(format!("Tenfold has no variables: name the folder instead of {folder}"));
        }
        let site = &mut self.sites[scope.site];
        match &site.root {
            Some((other, _)) if same_folder(other, folder) => Outcome::Translated,
            Some((other, at)) => refused(format!(
                "a host has one folder, and line {at} names {other}: use a folder or a link beneath it"
            )),
            None if !scope.is_whole() => refused(
                "a host has one folder: move this folder beneath the root, or give it a [[host]] of its own",
            ),
            None => {
                site.root = Some((folder.to_owned(), line));
                Outcome::Translated
            }
        }
    }

    /// Sets the index files of a site. Programs are left out.
    pub(crate) fn index(&mut self, scope: &Scope, names: &[&str], line: usize) -> Outcome {
        let is_program = |name: &str| {
            [".php", ".cgi", ".pl", ".py", ".asp", ".aspx", ".jsp"].iter().any(|end| name.ends_with(end))
        };
        if names.iter().any(|name| name.ends_with(".php")) {
            self.programs.insert("php");
        }
        let files: Vec<String> =
            names.iter().filter(|name| !is_program(name)).map(|name| (*name).to_owned()).collect();
        if files.is_empty() {
            return refused(format!("Tenfold runs no programs such as {}", names.join(" ")));
        }
        if !scope.is_whole() {
            return refused("index is for a whole host: use a [[site.rewrite]] from the folder to its file");
        }
        if let Err(outcome) = self.check(&format!("index = {}\n", list(&files))) {
            return outcome;
        }
        let site = &mut self.sites[scope.site];
        match &site.index {
            Some((other, at)) if *other != files => {
                refused(format!("a host has one list of index files, and line {at} has another"))
            }
            _ => {
                site.index = Some((files, line));
                Outcome::Translated
            }
        }
    }

    /// Checks the patterns of a scope.
    pub(crate) fn check_patterns(&self, scope: &Scope) -> Result<(), Outcome> {
        match scope.is_whole() {
            true => Ok(()),
            false => self.check(&format!("[[site.path]]\nmatch = {}\n", list(&scope.patterns))),
        }
    }

    fn rules(&mut self, scope: &Scope, line: usize) -> &mut Rules {
        let site = &mut self.sites[scope.site];
        if scope.is_whole() {
            return &mut site.rules;
        }
        let known = site.paths.iter().position(|path| path.patterns == scope.patterns);
        let at = known.unwrap_or_else(|| {
            let (patterns, weight) = (scope.patterns.clone(), scope.weight);
            site.paths.push(PathRules { patterns, rules: Rules::default(), line, weight });
            site.paths.len() - 1
        });
        &mut site.paths[at].rules
    }

    /// Sets a key of a rule, whose value is TOML.
    pub(crate) fn rule(&mut self, scope: &Scope, key: &'static str, value: String, line: usize) -> Outcome {
        let piece = format!("[site]\n{key} = {value}\n");
        if let Err(outcome) = self.check(&piece).and_then(|()| self.check_patterns(scope)) {
            return outcome;
        }
        self.rule_unchecked(scope, key, value, line)
    }

    /// Sets a key whose value names a file that this machine may lack.
    pub(crate) fn rule_unchecked(
        &mut self,
        scope: &Scope,
        key: &'static str,
        value: String,
        line: usize,
    ) -> Outcome {
        match self.rules(scope, line).keys.get(key) {
            Some((other, at)) if *other != value => {
                refused(format!("line {at} sets {key} to {other} for the same paths"))
            }
            _ => {
                self.rules(scope, line).keys.insert(key, (value, line));
                Outcome::Translated
            }
        }
    }

    /// Whether the rules of exactly this scope have a key.
    pub(crate) fn has_rule(&mut self, scope: &Scope, key: &str) -> bool {
        let site = &self.sites[scope.site];
        match scope.is_whole() {
            true => site.rules.keys.contains_key(key),
            false => site
                .paths
                .iter()
                .any(|path| path.patterns == scope.patterns && path.rules.keys.contains_key(key)),
        }
    }

    /// Sets a key of a whole site, whose value is TOML.
    pub(crate) fn site_key(
        &mut self,
        scope: &Scope,
        key: &'static str,
        value: String,
        line: usize,
    ) -> Outcome {
        if !scope.is_whole() {
            return refused(format!("{key} is for a whole host, not for some of its paths"));
        }
        if let Err(outcome) = self.check(&format!("[site]\n{key} = {value}\n")) {
            return outcome;
        }
        self.sites[scope.site].keys.insert(key, (value, line));
        Outcome::Translated
    }

    /// Sends a field in place of others of its name. `Cache-Control` and `Strict-Transport-Security` have keys of their
    /// own.
    pub(crate) fn field(&mut self, scope: &Scope, name: &str, value: &str, line: usize) -> Outcome {
        if name.eq_ignore_ascii_case("X-Content-Type-Options") && value.eq_ignore_ascii_case("nosniff") {
            return default("nosniff is always sent");
        }
        if name.eq_ignore_ascii_case("Cache-Control")
            && let Some(cache) = values::cache_control(value)
        {
            return self.rule(scope, "cache", quote(&cache), line);
        }
        if name.eq_ignore_ascii_case("Strict-Transport-Security")
            && scope.is_whole()
            && self.uses_tls()
            && self.sites.len() == 1
            && let Some(hsts) = values::hsts(value)
        {
            return self.set("hsts", &[&hsts], line);
        }
        if name.eq_ignore_ascii_case("Vary") {
            return self.add_field(scope, name, value, line);
        }
        let piece = format!("[site.headers.set]\n{} = {}\n", quote(name), quote(value));
        if let Err(outcome) = self.check(&piece).and_then(|()| self.check_patterns(scope)) {
            return outcome;
        }
        let rules = self.rules(scope, line);
        rules.set.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        rules.set.push((name.to_owned(), value.to_owned()));
        Outcome::Translated
    }

    /// Sends a field in addition to others of its name.
    pub(crate) fn add_field(&mut self, scope: &Scope, name: &str, value: &str, line: usize) -> Outcome {
        let piece = format!("[site.headers.add]\n{} = {}\n", quote(name), quote(value));
        if let Err(outcome) = self.check(&piece).and_then(|()| self.check_patterns(scope)) {
            return outcome;
        }
        self.rules(scope, line).add.entry(name.to_owned()).or_default().push(value.to_owned());
        Outcome::Translated
    }

    /// Whether the rules of exactly this scope set a field.
    pub(crate) fn sets_field(&mut self, scope: &Scope, name: &str, line: usize) -> bool {
        self.rules(scope, line).set.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// Sends no field of this name.
    pub(crate) fn remove_field(&mut self, scope: &Scope, name: &str, line: usize) -> Outcome {
        match name.to_ascii_lowercase().as_str() {
            "server" if scope.is_whole() => return self.set("server-field", &["off"], line),
            "server" => return refused("server-field is a setting of the whole server"),
            "x-powered-by" | "pragma" | "expires" | "via" | "alt-svc" | "x-pingback" | "p3p"
            | "set-cookie" => {
                return default(format!("Tenfold sends no field {name}"));
            }
            _ => {}
        }
        let piece = format!("[site.headers]\nremove = [{}]\n", quote(name));
        if let Err(outcome) = self.check(&piece).and_then(|()| self.check_patterns(scope)) {
            return outcome;
        }
        self.rules(scope, line).remove.insert(name.to_owned());
        Outcome::Translated
    }

    /// Sets the media type of an ending, such as `.md`, or of a name.
    pub(crate) fn media_type(&mut self, scope: &Scope, key: &str, media_type: &str, line: usize) -> Outcome {
        let piece = format!("[site.types]\n{} = {}\n", quote(key), quote(media_type));
        if let Err(outcome) = self.check(&piece).and_then(|()| self.check_patterns(scope)) {
            return outcome;
        }
        self.rules(scope, line).types.insert(key.to_owned(), media_type.to_owned());
        Outcome::Translated
    }

    /// Sets the page of an error status.
    pub(crate) fn error_page(&mut self, scope: &Scope, status: &str, page: &str, line: usize) -> Outcome {
        if !scope.is_whole() {
            return refused("error pages are for a whole host, not for some of its paths");
        }
        if page.ends_with(".php") {
            self.programs.insert("php");
            return refused("Tenfold runs no programs: name a file such as /404.html");
        }
        if let Err(outcome) =
            self.check(&format!("[site.error-pages]\n{} = {}\n", quote(status), quote(page)))
        {
            return outcome;
        }
        self.sites[scope.site].error_pages.insert(status.to_owned(), (page.to_owned(), line));
        Outcome::Translated
    }

    /// Requires a password of a file of users.
    pub(crate) fn auth(&mut self, scope: &Scope, realm: &str, users: &str, line: usize) -> Outcome {
        let value = format!("{{ realm = {}, users = {users} }}", quote(realm));
        let mut here = scope.clone();
        for pattern in &scope.patterns {
            // A pattern of a folder protects the folder itself, also through links.
            if let Some(stem) =
                pattern.strip_suffix("**").filter(|stem| !stem.ends_with('/') && !stem.contains('*'))
            {
                here.patterns.push(format!("{stem}/**"));
            }
        }
        if let Err(outcome) = self.check_patterns(&here) {
            return outcome;
        }
        self.rule_unchecked(&here, "auth", value, line)
    }

    /// Redirects a path. The first redirect that matches applies.
    pub(crate) fn redirect(
        &mut self,
        site: usize,
        (from, to): (&str, &str),
        status: u16,
        line: usize,
    ) -> Outcome {
        let piece =
            format!("[[site.redirect]]\nfrom = {}\nto = {}\nstatus = {status}\n", quote(from), quote(to));
        if let Err(outcome) = self.check(&piece) {
            return outcome;
        }
        let target = to.split("://").nth(1).and_then(|rest| rest.split(['/', ':']).next());
        if from == "/**" && target.is_some_and(|host| self.sites[site].names.iter().any(|name| name == host))
        {
            return refused("the target has the same rules, so this redirect would not end");
        }
        let way = Way { from: from.to_owned(), to: to.to_owned(), status: Some(status), line };
        let ways = &mut self.sites[site].redirects;
        if !ways
            .iter()
            .any(|known| (&known.from, &known.to, known.status) == (&way.from, &way.to, way.status))
        {
            ways.push(way);
        }
        Outcome::Translated
    }

    /// Answers a path with the file of another path.
    pub(crate) fn rewrite(&mut self, site: usize, (from, to): (&str, &str), line: usize) -> Outcome {
        if to.ends_with(".php") {
            self.programs.insert("php");
            return refused("Tenfold runs no programs");
        }
        let piece = format!("[[site.rewrite]]\nfrom = {}\nto = {}\n", quote(from), quote(to));
        if let Err(outcome) = self.check(&piece) {
            return outcome;
        }
        self.sites[site].rewrites.push(Way { from: from.to_owned(), to: to.to_owned(), status: None, line });
        Outcome::Translated
    }

    /// Closes the paths of a scope: requests for them get 404.
    pub(crate) fn close(&mut self, scope: &Scope, line: usize) -> Outcome {
        let all = vec!["/**".to_owned()];
        let patterns = if scope.is_whole() { &all } else { &scope.patterns };
        let mut outcome = Outcome::Translated;
        for pattern in patterns.iter().take((MOST_GATES + 1).saturating_sub(self.gates)) {
            let piece = format!("[[site.rewrite]]\nfrom = {}\nto = \"{CLOSED}\"\n", quote(pattern));
            match self.check(&piece) {
                Ok(()) => self.gate(scope, pattern, false, line),
                Err(why) => outcome = why,
            }
        }
        outcome
    }

    /// Opens the paths of a scope if a rule of less weight closes them.
    pub(crate) fn open(&mut self, scope: &Scope, line: usize) {
        for pattern in scope.patterns.iter().take((MOST_GATES + 1).saturating_sub(self.gates)) {
            let inner = pattern.strip_suffix("/**").unwrap_or(pattern);
            let piece = format!("[[site.rewrite]]\nfrom = {0}\nto = {0}\n", quote(pattern));
            let is_blocked = inner.contains('*') || self.check(&piece).is_err();
            self.gate(scope, pattern, true, line);
            if let Some(gate) = self.sites[scope.site].gates.last_mut() {
                gate.is_blocked = is_blocked;
            }
        }
    }

    /// Refuses the directives of open paths that stay closed, because no rewrite can open them.
    pub(crate) fn refuse_blocked(&mut self) {
        let mut lines = BTreeSet::new();
        for gates in self.sites.iter().map(|site| &site.gates) {
            let closed: Vec<&Gate> = gates.iter().filter(|gate| !gate.is_open).collect();
            let blocked = gates.iter().filter(|gate| gate.is_blocked);
            lines.extend(
                blocked.filter(|gate| closed.iter().any(|outer| outer.covers(gate))).map(|gate| gate.line),
            );
        }
        for entry in self.entries.iter_mut().filter(|entry| lines.contains(&entry.line)) {
            if entry.outcome == Outcome::Translated {
                entry.outcome =
                    refused("a rule around these paths closes them, and only /a/** can be an exception");
            }
        }
    }

    /// Whether the input names a folder.
    pub(crate) fn has_root(&self) -> bool {
        self.sites.iter().any(|site| site.root.is_some())
    }

    /// Refuses an input with more paths than are printed.
    pub(crate) fn refuse_excess(&self) -> Result<(), String> {
        match self.gates > MOST_GATES {
            true => Err(format!("there are more than {MOST_GATES} closed or open paths")),
            false => Ok(()),
        }
    }

    fn gate(&mut self, scope: &Scope, pattern: &str, is_open: bool, line: usize) {
        self.gates += 1;
        let gate =
            Gate { pattern: pattern.to_owned(), is_open, is_blocked: false, weight: scope.weight, line };
        self.sites[scope.site].gates.push(gate);
    }
}

/// Whether two texts name one folder.
pub(crate) fn same_folder(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}
