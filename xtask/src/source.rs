//! A Rust file by lines: code, comments and tests. The source must be formatted by rustfmt.

/// The lines of a file, and its test modules in other files.
#[derive(Debug, Default)]
pub(crate) struct Source {
    pub(crate) lines: Vec<Line>,
    /// The names in `#[cfg(test)] mod NAME;`.
    pub(crate) test_modules: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Line {
    /// The line without comments. Quotes replace the content of literals.
    pub(crate) code: String,
    /// Whether the line has a comment and no code.
    pub(crate) is_comment: bool,
    /// Whether the line belongs to an item under `#[cfg(test)]`.
    pub(crate) is_test: bool,
}

impl Source {
    pub(crate) fn of(text: &str) -> Source {
        let masked = masked(text);
        let mut source = Source::default();
        // The indentation of the test item that contains the present line, and the open brackets in this item.
        let mut item: Option<(usize, i32)> = None;
        for (line, code) in text.lines().zip(masked.lines().map(str::trim_end)) {
            let indentation = code.len() - code.trim_start().len();
            let is_comment = code.is_empty() && !line.trim().is_empty();
            if item.is_none()
                && ["#[cfg(test)]", "#[cfg(all(test"].iter().any(|mark| code[indentation..].starts_with(mark))
            {
                item = Some((indentation, 0));
            }
            let is_test = item.is_some();
            if let Some((of_item, depth)) = &mut item {
                *depth += brackets(code);
                let name = code.split_once("mod ").and_then(|(_, name)| name.strip_suffix(';'));
                source.test_modules.extend(name.map(str::to_owned));
                // A comma ends a field or a variant; a bound of a `where` clause is indented.
                let ends = code.ends_with([';', '}']) || (code.ends_with(',') && indentation == *of_item);
                if ends && *depth == 0 {
                    item = None;
                }
            }
            source.lines.push(Line { code: code.to_owned(), is_comment, is_test });
        }
        source
    }
}

/// The opened brackets minus the closed brackets.
fn brackets(code: &str) -> i32 {
    let one = |c| i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
    code.chars().map(one).sum()
}

/// The text with spaces for comments, and with quotes for each character of a literal.
fn masked(text: &str) -> String {
    let (mut masked, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(['/', '"', '\'']) {
        masked.push_str(&rest[..at]);
        rest = &rest[at..];
        let (length, mask) = match comment(rest) {
            Some(length) => (length, ' '),
            None => (literal(rest, &masked).unwrap_or(1), '"'),
        };
        let (token, after) = rest.split_at(length);
        match token {
            // A division or the start of a lifetime.
            "/" | "'" => masked.push_str(token),
            _ => masked.extend(token.chars().map(|c| if c.is_whitespace() { c } else { mask })),
        }
        rest = after;
    }
    masked + rest
}

/// The length of a comment at the start of the text.
fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    let (mut at, mut depth) = (2, 1);
    text.starts_with("/*").then_some(())?;
    while depth > 0 && at < text.len() {
        let rest = &text[at..];
        let step = if rest.starts_with("/*") { 1 } else { -i32::from(rest.starts_with("*/")) };
        depth += step;
        at += if step == 0 { rest.chars().next().map_or(1, char::len_utf8) } else { 2 };
    }
    Some(at)
}

/// The length of a string or a character at the start of the text, without its prefix, which ends `before`.
fn literal(text: &str, before: &str) -> Option<usize> {
    let prefix = before.trim_end_matches('#');
    if prefix.ends_with('r') && text.starts_with('"') {
        let end = format!("\"{}", &before[prefix.len()..]);
        return Some(text[1..].find(&end).map_or(text.len(), |at| 1 + at + end.len()));
    }
    let quote = text.chars().next()?;
    let (mut count, mut escaped) = (0, false);
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let is_end = *c == quote && !escaped;
        escaped = *c == '\\' && !escaped;
        count += usize::from(!is_end);
        is_end
    });
    // `'a` is a lifetime, `'a'` is a character.
    let is_lifetime = quote == '\'' && count != 1 && !text[1..].starts_with('\\');
    let is_literal = ['"', '\''].contains(&quote) && !is_lifetime;
    is_literal.then_some(end.map_or(text.len(), |(at, _)| at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kind of each line: `c` code, `t` test code, `/` comment, `-` blank.
    fn kinds(text: &str) -> String {
        let kind = |line: &Line| match line {
            Line { is_comment: true, .. } => '/',
            Line { code, .. } if code.is_empty() => '-',
            Line { is_test: true, .. } => 't',
            _ => 'c',
        };
        Source::of(text).lines.iter().map(kind).collect()
    }

    #[test]
    fn blank_lines_and_comments_are_not_code() {
        assert_eq!(kinds("//! a\n\n/// b\nfn f() {} // c\n    // d\n"), "/-/c/");
        assert_eq!(kinds("/* a /* b */\n\n c */\nf(); /* d */\n"), "/-/c");
    }

    #[test]
    fn literals_contain_no_comments_brackets_and_attributes() {
        assert_eq!(kinds("f(\"\n// a\n#[cfg(test)]\n\\\" {\n\");\ng();\n"), "cccccc");
        assert_eq!(kinds("f(r#\"\n// \"\n/* {\"#, b\"//\", '\"', '\\'');\n// a\n"), "ccc/");
        assert_eq!(kinds("fn f<'a>(x: &'a str) {} // '\nlet bar = b'\\\\'; // a\n// b\n"), "cc/");
        assert_eq!(Source::of("x(\"ab\") // b").lines[0].code, "x(\"\"\"\")");
    }

    #[test]
    fn an_item_under_the_test_configuration_is_test_code_to_its_end() {
        let kept = "f();\n";
        let of = |item: &str| kinds(&format!("{item}\n{kept}"));
        assert_eq!(of("#[cfg(test)]\nmod tests {\n    f(r\"\n}\n\");\n}"), "ttttttc");
        assert_eq!(of("#[cfg(all(test, loom))]\n#[path = \"a.rs\"]\nmod a;"), "tttc");
        assert_eq!(of("    #[cfg(test)]\n    // why\n    steps: u64,"), "t/tc");
        assert_eq!(
            of("#[cfg(test)]\nfn f<T>(\n    x: T,\n)\nwhere\n    T: A,\n{\n    g();\n}"),
            "tttttttttc"
        );
        assert_eq!(of("#[cfg(test)]\nconst A: &[B] =\n    &[B { c }];"), "tttc");
        assert_eq!(of("#[cfg(any(test, feature = \"a\"))]\nmod a;"), "ccc");
    }

    #[test]
    fn modules_of_tests_are_named() {
        let source = Source::of("mod a;\n#[cfg(test)]\npub(crate) mod b;\n#[cfg(test)]\nmod c {\n}\n");
        assert_eq!(source.test_modules, ["b"]);
    }
}
