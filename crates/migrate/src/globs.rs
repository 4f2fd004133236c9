//! Patterns of Tenfold from regular expressions and from paths of other servers.
//!
//! A small part of regular expressions has an equivalent: literal text, `.*`, `[^/]+`, groups with alternatives,
//! optional parts and sets of a few characters. Every other expression is refused.

/// The most patterns for one expression.
const MOST: usize = 256;
/// The longest expression.
const LONGEST: usize = 1024;
/// The deepest nesting of groups.
const DEEPEST: usize = 16;

/// The text that an expression is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A path with its first slash.
    Path,
    /// A path without its first slash, beneath a folder.
    Relative,
    /// The name of a file in any folder.
    Name,
}

/// A pattern, with the parts of it that groups matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Glob {
    pub(crate) pattern: String,
    captures: Vec<String>,
}

impl Glob {
    /// Returns the target with the captures in their places: `$1` with `mark` `$`. `None` if it has no equivalent.
    pub(crate) fn fill(&self, target: &str, mark: char) -> Option<(String, String)> {
        let (mut filled, mut rest) = (String::new(), target.chars().peekable());
        while let Some(character) = rest.next() {
            match (character, rest.peek().and_then(|next| next.to_digit(10))) {
                (first, Some(0)) if first == mark => {
                    rest.next();
                    filled.push_str(&self.pattern);
                }
                (first, Some(digit)) if first == mark => {
                    rest.next();
                    filled.push_str(self.captures.get(digit as usize - 1)?);
                }
                (first, None) if first == mark => return None,
                ('*', _) => return None,
                _ => filled.push(character),
            }
        }
        let (mut from, mut to) = (self.pattern.clone(), filled);
        if let Some(stem) = to.strip_suffix("**") {
            let front = from.strip_suffix("**")?;
            if stem.contains('*') || front.contains('*') {
                return None;
            }
            // The rest of a path begins after a slash.
            let (front, stem) = (front.trim_end_matches('/'), stem.trim_end_matches('/'));
            (from, to) = (format!("{front}/**"), format!("{stem}/**"));
        }
        (!to.trim_end_matches("/**").contains('*')).then_some((from, to))
    }
}

/// Whether the expression matches only names that begin with a dot, or end with a tilde: hidden files.
pub(crate) fn is_hidden(expression: &str) -> bool {
    let plain = expression.replace("\\/", "/").replace("?:", "");
    ["/\\.", "(^|/)\\.", "^\\.", "^/\\.", "(/|^)\\.", "^(.*/)?\\.", "^/?\\.", "^.*/\\.", "/[.]", "\"/\\."]
        .iter()
        .any(|front| plain.starts_with(front))
        || plain == "~$"
}

/// Returns the patterns for the paths that match the expression.
pub(crate) fn of(expression: &str, subject: Subject) -> Option<Vec<Glob>> {
    if expression.len() > LONGEST {
        return None;
    }
    let expression = expression.strip_prefix("(?i)").unwrap_or(expression);
    let expression = if expression == "." { ".*" } else { expression };
    let mut reader = Reader { rest: expression.chars().collect(), at: 0, groups: 0 };
    let alternatives = reader.alternatives(0)?;
    if reader.at < reader.rest.len() {
        return None;
    }
    let mut globs: Vec<Glob> = Vec::new();
    for parts in alternatives {
        globs.extend(anchored(&parts, reader.groups, subject)?);
    }
    // "/a" is a part of "/a/**".
    let all: Vec<String> = globs.iter().map(|glob| glob.pattern.clone()).collect();
    globs.retain(|glob| !all.contains(&format!("{}/**", glob.pattern.trim_end_matches('/'))));
    let mut seen: Vec<String> = Vec::new();
    globs.retain(|glob| {
        let is_new = !seen.contains(&glob.pattern);
        seen.push(glob.pattern.clone());
        is_new
    });
    (!globs.is_empty() && globs.len() <= MOST).then_some(globs)
}

/// A part of an alternative.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(char),
    /// Any characters.
    Any,
    /// Any characters without a slash.
    Name,
    Start,
    End,
    Open(usize),
    Close(usize),
}

struct Reader {
    rest: Vec<char>,
    at: usize,
    groups: usize,
}

type Alternatives = Vec<Vec<Part>>;

impl Reader {
    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn eat(&mut self, text: &str) -> bool {
        let fits =
            text.chars().enumerate().all(|(nth, character)| self.rest.get(self.at + nth) == Some(&character));
        self.at += if fits { text.chars().count() } else { 0 };
        fits
    }

    fn alternatives(&mut self, depth: usize) -> Option<Alternatives> {
        let mut all: Alternatives = Vec::new();
        let mut current: Alternatives = vec![Vec::new()];
        while let Some(character) = self.peek() {
            if character == ')' {
                break;
            }
            if self.eat("|") {
                all.append(&mut current);
                current = vec![Vec::new()];
                continue;
            }
            let mut piece = self.piece(depth)?;
            if self.eat("?") {
                piece.push(Vec::new());
            }
            if self.peek().is_some_and(|next| "*+{?".contains(next)) {
                return None;
            }
            current = product(&current, &piece)?;
        }
        all.append(&mut current);
        (all.len() <= MOST).then_some(all)
    }

    /// Reads one part, with the star or plus after it.
    fn piece(&mut self, depth: usize) -> Option<Alternatives> {
        for (text, part) in [
            (".*?", Part::Any),
            (".*", Part::Any),
            (".+?", Part::Any),
            (".+", Part::Any),
            ("[^/]*", Part::Name),
            ("[^/]+", Part::Name),
            ("^", Part::Start),
            ("$", Part::End),
        ] {
            if self.eat(text) {
                return Some(vec![vec![part]]);
            }
        }
        if self.eat("(") {
            return self.group(depth + 1);
        }
        if self.eat("[") {
            return self.set();
        }
        let literal = match (self.eat("\\"), self.peek()?) {
            (true, escaped) if escaped.is_ascii_alphanumeric() => return None,
            (false, special) if "*+?{}".contains(special) => return None,
            // A dot without a star means the dot of a name.
            (_, literal) => literal,
        };
        self.at += 1;
        // A star of the text would be one of the pattern.
        (literal != '*').then(|| vec![vec![Part::Text(literal)]])
    }

    fn group(&mut self, depth: usize) -> Option<Alternatives> {
        if depth > DEEPEST {
            return None;
        }
        let number = if self.eat("?:") {
            None
        } else if self.peek() == Some('?') {
            return None;
        } else {
            self.groups += 1;
            Some(self.groups)
        };
        let mut inner = self.alternatives(depth)?;
        if !self.eat(")") {
            return None;
        }
        if let Some(number) = number {
            for parts in &mut inner {
                parts.insert(0, Part::Open(number));
                parts.push(Part::Close(number));
            }
        }
        Some(inner)
    }

    fn set(&mut self) -> Option<Alternatives> {
        let mut found = Vec::new();
        loop {
            let character = match self.peek()? {
                ']' => break,
                '\\' => {
                    self.at += 1;
                    self.peek().filter(|escaped| !escaped.is_ascii_alphanumeric())?
                }
                '^' | '-' | '*' => return None,
                character => character,
            };
            self.at += 1;
            found.push(vec![Part::Text(character)]);
        }
        self.at += 1;
        (!found.is_empty() && found.len() <= 8).then_some(found)
    }
}

fn product(first: &Alternatives, second: &Alternatives) -> Option<Alternatives> {
    if first.len() * second.len() > MOST {
        return None;
    }
    let joined =
        first.iter().flat_map(|front| second.iter().map(|back| [front.clone(), back.clone()].concat()));
    Some(joined.collect())
}

/// Returns the patterns of one alternative: several if the expression may begin at any place.
fn anchored(parts: &[Part], groups: usize, subject: Subject) -> Option<Vec<Glob>> {
    let is_marker = |part: &&Part| !matches!(part, Part::Open(_) | Part::Close(_));
    let (starts, ends) = (
        parts.iter().find(is_marker) == Some(&Part::Start),
        parts.iter().rev().find(is_marker) == Some(&Part::End),
    );
    let inner: Vec<Part> =
        parts.iter().filter(|part| !matches!(part, Part::Start | Part::End)).cloned().collect();
    if parts.iter().filter(|part| **part == Part::Start).count() > usize::from(starts)
        || parts.iter().filter(|part| **part == Part::End).count() > usize::from(ends)
    {
        return None;
    }
    let first = inner.iter().find(is_marker);
    let fronts: &[&str] = match (subject, starts, first) {
        (Subject::Path, true, _) => &[""],
        (Subject::Path, false, Some(Part::Text('/'))) => &["", "/**"],
        (Subject::Path, false, Some(Part::Any) | None) => &["/"],
        (Subject::Path, false, _) => &["/**"],
        (Subject::Relative, true, _) | (Subject::Relative, false, Some(Part::Any) | None) => &["/"],
        (Subject::Relative, false, Some(Part::Text('/'))) => &["/**"],
        (Subject::Relative, false, _) => &["/**"],
        (Subject::Name, true, _) => &["/", "/**/"],
        (Subject::Name, false, _) => &["/**"],
    };
    fronts.iter().map(|front| glob(front, &inner, ends, groups, subject)).collect()
}

fn glob(front: &str, parts: &[Part], ends: bool, groups: usize, subject: Subject) -> Option<Glob> {
    let mut pattern = front.to_owned();
    let mut open = vec![None; groups];
    let mut captures = vec![String::new(); groups];
    for part in parts {
        match part {
            Part::Text(character) => pattern.push(*character),
            Part::Any if pattern.is_empty() => pattern.push_str("/**"),
            Part::Any if pattern.ends_with("**") => {}
            Part::Any if pattern.ends_with('*') => pattern.push('*'),
            Part::Any => pattern.push_str(if subject == Subject::Name { "*" } else { "**" }),
            Part::Name if pattern.ends_with('*') => {}
            Part::Name => pattern.push('*'),
            Part::Open(group) => open[*group - 1] = Some(pattern.len()),
            Part::Close(group) => {
                let from = open[*group - 1]?;
                captures[*group - 1] = pattern.get(from..)?.to_owned();
            }
            Part::Start | Part::End => return None,
        }
    }
    if !ends && !pattern.ends_with("**") {
        let is_name = subject == Subject::Name || pattern.ends_with('*');
        pattern.push_str(match (pattern.as_str(), is_name) {
            ("", _) => "/**",
            (_, true) => "*",
            (_, false) => "**",
        });
    }
    pattern.starts_with('/').then_some(Glob { pattern: clean(&pattern), captures })
}

/// Returns the pattern without the slash at its end, which Tenfold ignores.
fn clean(pattern: &str) -> String {
    match pattern.strip_suffix('/') {
        Some("") | None => pattern.to_owned(),
        Some(front) => front.to_owned(),
    }
}

/// Returns the pattern for a path and everything beneath it, by names of folders: `/a` is `/a/**`.
pub(crate) fn beneath(path: &str) -> String {
    format!("{}/**", path.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(expression: &str, subject: Subject) -> Option<Vec<String>> {
        of(expression, subject).map(|globs| globs.into_iter().map(|glob| glob.pattern).collect())
    }

    #[test]
    fn expressions_are_patterns() {
        for (expression, expected) in [
            (r"\.css$", Some(&["/**.css"][..])),
            (r"\.(?:js|css)$", Some(&["/**.js", "/**.css"])),
            (r"\.(jpe?g|svgz?)$", Some(&["/**.jpeg", "/**.jpg", "/**.svgz", "/**.svg"])),
            (r"^/old/(.*)$", Some(&["/old/**"])),
            (r"^/old/?$", Some(&["/old"])),
            (r"^/old(/.*)?$", Some(&["/old/**"])),
            (r"^/(a|b)/", Some(&["/a/**", "/b/**"])),
            (r"/admin", Some(&["/admin**", "/**/admin**"])),
            (r"^(.*)$", Some(&["/**"])),
            (r"^", Some(&["/**"])),
            (r"^/user/[^/]+$", Some(&["/user/*"])),
            (r"sw[op]$", Some(&["/**swo", "/**swp"])),
            (r"^/a[0-9]+$", None),
            (r"^/a\d$", None),
            (r"/\.(?!well-known)", None),
            (r"^/config.json$", Some(&["/config.json"])),
            (r"(a", None),
            (r"a{3}", None),
            (r"*", None),
        ] {
            let expected = expected.map(|all| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
            assert_eq!(patterns(expression, Subject::Path), expected, "{expression}");
        }
        assert_eq!(patterns(r"^old$", Subject::Relative), Some(vec!["/old".into()]));
        assert_eq!(
            patterns(r"^config\.php$", Subject::Name),
            Some(vec!["/config.php".into(), "/**/config.php".into()])
        );
        assert!(patterns(&"(a|b)".repeat(40), Subject::Path).is_none(), "the number of patterns has a bound");
        assert!(patterns(&"(".repeat(500), Subject::Path).is_none(), "the depth has a bound");
    }

    #[test]
    fn captures_are_the_rest_of_a_path() {
        let fill = |expression, subject, target| of(expression, subject)?[0].fill(target, '$');
        let pair = |from: &str, to: &str| Some((from.to_owned(), to.to_owned()));
        assert_eq!(fill("^/old/(.*)$", Subject::Path, "/new/$1"), pair("/old/**", "/new/**"));
        assert_eq!(fill("^/old(.*)$", Subject::Path, "/new$1"), pair("/old/**", "/new/**"));
        assert_eq!(fill("^(.*)$", Subject::Path, "https://a.example$1"), pair("/**", "https://a.example/**"));
        assert_eq!(
            fill("^(.*)$", Subject::Relative, "https://a.example/$1"),
            pair("/**", "https://a.example/**")
        );
        assert_eq!(fill("^/(de|en)/old$", Subject::Path, "/$1/new"), pair("/de/old", "/de/new"));
        assert_eq!(fill("^/old$", Subject::Path, "/new"), pair("/old", "/new"));
        assert_eq!(fill("^/a/(.*)/b$", Subject::Path, "/$1"), None);
        assert_eq!(fill("^/a$", Subject::Path, "/$1"), None);
        assert_eq!(fill("^/a$", Subject::Path, "/$host"), None);
    }

    #[test]
    fn expressions_of_hidden_names_are_known() {
        assert!(
            is_hidden(r"/\.")
                && is_hidden(r"(^|/)\.(?!well-known/)")
                && is_hidden(r"/\.ht")
                && is_hidden("~$")
        );
        assert!(!is_hidden(r"\.php$") && !is_hidden(r"^/a/\.b|/c"));
    }
}
