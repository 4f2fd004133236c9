//! Directives as a tree, and the readers of nginx's, Caddy's and Apache's syntax.

use std::iter::Peekable;
use std::str::CharIndices;

/// The deepest nesting of blocks.
const DEEPEST: usize = 32;
/// The most directives of a file.
const MOST: usize = 20_000;

/// A directive, with the directives of its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Directive {
    pub(crate) line: usize,
    pub(crate) name: String,
    pub(crate) args: Vec<String>,
    pub(crate) block: Option<Vec<Directive>>,
}

impl Directive {
    /// Returns the argument at this place, or an empty text.
    pub(crate) fn arg(&self, at: usize) -> &str {
        self.args.get(at).map_or("", String::as_str)
    }

    /// The directives of the block.
    pub(crate) fn inner(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }

    /// Returns the first directive of the block with this name.
    pub(crate) fn find(&self, name: &str) -> Option<&Directive> {
        self.inner().iter().find(|inner| inner.name == name)
    }
}

/// Builds a tree from words, ends of directives, and braces.
#[derive(Default)]
struct Builder {
    done: Vec<Directive>,
    open: Vec<Directive>,
    words: Vec<String>,
    line: usize,
    taken: usize,
}

impl Builder {
    fn word(&mut self, line: usize, word: String) {
        if self.words.is_empty() {
            self.line = line;
        }
        self.words.push(word);
    }

    /// Ends the directive of the words so far, if there are any.
    fn end(&mut self) {
        if !self.words.is_empty() {
            let directive = self.take(None);
            self.add(directive);
        }
    }

    fn open(&mut self, line: usize) -> Result<(), String> {
        if self.words.is_empty() {
            self.line = line;
        }
        if self.open.len() >= DEEPEST {
            return Err(format!("line {line}: blocks are nested more than {DEEPEST} times"));
        }
        let directive = self.take(Some(Vec::new()));
        self.open.push(directive);
        Ok(())
    }

    fn close(&mut self, line: usize) -> Result<Directive, String> {
        self.end();
        self.open.pop().ok_or_else(|| format!("line {line}: no block is open here"))
    }

    fn add(&mut self, directive: Directive) {
        match self.open.last_mut().and_then(|open| open.block.as_mut()) {
            Some(block) => block.push(directive),
            None => self.done.push(directive),
        }
    }

    fn take(&mut self, block: Option<Vec<Directive>>) -> Directive {
        self.taken += 1;
        let mut words = std::mem::take(&mut self.words).into_iter();
        Directive { line: self.line, name: words.next().unwrap_or_default(), args: words.collect(), block }
    }

    fn finish(mut self) -> Result<Vec<Directive>, String> {
        self.end();
        match self.open.last() {
            Some(open) => Err(format!("line {}: the block {} has no end", open.line, open.name)),
            None if self.taken > MOST => Err(format!("there are more than {MOST} directives")),
            None => Ok(self.done),
        }
    }
}

/// The characters of a text, with the number of the line.
struct Characters<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
    line: usize,
}

impl<'a> Characters<'a> {
    fn new(text: &'a str) -> Characters<'a> {
        Characters { text, rest: text.char_indices().peekable(), line: 1 }
    }

    fn next(&mut self) -> Option<char> {
        let (_, character) = self.rest.next()?;
        self.line += usize::from(character == '\n');
        Some(character)
    }

    fn peek(&mut self) -> Option<char> {
        self.rest.peek().map(|(_, character)| *character)
    }

    fn remaining(&mut self) -> &'a str {
        self.rest.peek().map_or("", |(at, _)| &self.text[*at..])
    }

    fn skip_line(&mut self) {
        while self.peek().is_some_and(|character| character != '\n') {
            self.next();
        }
    }

    /// Reads to the closing `quote`. A backslash escapes the quote; other backslashes stay.
    fn quoted(&mut self, quote: char, escapes: bool) -> Result<String, String> {
        let (line, mut word) = (self.line, String::new());
        loop {
            match self.next() {
                None => return Err(format!("line {line}: the quote {quote} has no end")),
                Some(end) if end == quote => return Ok(word),
                Some('\\') if escapes && self.peek() == Some(quote) => word.extend(self.next()),
                Some('\\') if escapes => {
                    word.push('\\');
                    word.extend(self.next());
                }
                Some(character) => word.push(character),
            }
        }
    }
}

/// Reads directives of nginx.
pub(crate) fn nginx(text: &str) -> Result<Vec<Directive>, String> {
    let (mut input, mut tree) = (Characters::new(text), Builder::default());
    while let Some(character) = input.peek() {
        let line = input.line;
        match character {
            _ if character.is_whitespace() => drop(input.next()),
            '#' => input.skip_line(),
            ';' => {
                input.next();
                tree.end();
            }
            '{' => {
                input.next();
                let is_code = tree.words.first().is_some_and(|name| name.ends_with("_by_lua_block"));
                tree.open(line)?;
                if is_code {
                    skip_code(&mut input)?;
                }
            }
            '}' => {
                input.next();
                let block = tree.close(line)?;
                tree.add(block);
            }
            '"' | '\'' => {
                input.next();
                let word = input.quoted(character, true)?;
                tree.word(line, word);
            }
            _ => {
                let word = nginx_word(&mut input);
                tree.word(line, word);
            }
        }
    }
    tree.finish()
}

fn nginx_word(input: &mut Characters<'_>) -> String {
    let mut word = String::new();
    while let Some(character) = input.peek() {
        let in_variable = character == '{' && word.ends_with('$');
        match character {
            ';' | '{' if !in_variable => break,
            _ if character.is_whitespace() => break,
            '\\' => {
                word.extend(input.next());
                word.extend(input.next());
            }
            '{' => {
                while let Some(inner) = input.next() {
                    word.push(inner);
                    if inner == '}' || inner == '\n' {
                        break;
                    }
                }
            }
            _ => word.extend(input.next()),
        }
    }
    word
}

/// Skips code of another language up to the end of its block, which stays unread.
fn skip_code(input: &mut Characters<'_>) -> Result<(), String> {
    let (line, mut depth) = (input.line, 0usize);
    while let Some(character) = input.peek() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => return Ok(()),
            '}' => depth -= 1,
            _ => {}
        }
        input.next();
    }
    Err(format!("line {line}: the block has no end"))
}

/// Reads a Caddyfile.
pub(crate) fn caddy(text: &str) -> Result<Vec<Directive>, String> {
    let (mut input, mut tree) = (Characters::new(text), Builder::default());
    while let Some(character) = input.peek() {
        let line = input.line;
        match character {
            '\n' => {
                input.next();
                // Addresses of a site continue on the next line after a comma.
                if !tree.words.last().is_some_and(|word| word.ends_with(',')) {
                    tree.end();
                }
            }
            _ if character.is_whitespace() => drop(input.next()),
            '#' => input.skip_line(),
            '"' | '`' => {
                input.next();
                let word = input.quoted(character, character == '"')?;
                tree.word(line, word);
            }
            _ => {
                let word = caddy_word(&mut input)?;
                match word.as_str() {
                    "" => {}
                    "{" => tree.open(line)?,
                    "}" => {
                        let block = tree.close(line)?;
                        tree.add(block);
                    }
                    _ => tree.word(line, word),
                }
            }
        }
    }
    tree.finish()
}

fn caddy_word(input: &mut Characters<'_>) -> Result<String, String> {
    let mut word = String::new();
    while let Some(character) = input.peek() {
        match character {
            '\\' => {
                input.next();
                match input.next() {
                    Some('\n') | None => {}
                    Some(next) => word.extend(['\\', next]),
                }
            }
            _ if character.is_whitespace() => break,
            _ => word.extend(input.next()),
        }
    }
    let Some(mark) = word.strip_prefix("<<").filter(|mark| !mark.is_empty()) else { return Ok(word) };
    let (line, mut content) = (input.line, String::new());
    input.skip_line();
    input.next();
    loop {
        let rest = input.remaining();
        if rest.is_empty() {
            return Err(format!("line {line}: the text <<{mark} has no end"));
        }
        let next = rest.lines().next().unwrap_or_default();
        if let Some(after) = next.trim_start().strip_prefix(mark)
            && !after.starts_with(|next: char| next.is_alphanumeric())
        {
            let end = next.len() - after.len();
            let mut read = 0;
            while read < end {
                read += input.next().map_or(end, char::len_utf8);
            }
            return Ok(content);
        }
        content.push_str(next.trim());
        content.push('\n');
        input.skip_line();
        input.next();
    }
}

/// Reads directives and sections of Apache. The name of a section begins with `<`.
pub(crate) fn apache(text: &str) -> Result<Vec<Directive>, String> {
    let mut tree = Builder::default();
    let mut lines = text.lines().enumerate();
    while let Some((at, first)) = lines.next() {
        let mut content = first.trim().to_owned();
        if content.starts_with('#') {
            continue;
        }
        while content.ends_with('\\')
            && let Some((_, next)) = lines.next()
        {
            content.pop();
            content.push_str(next.trim());
        }
        let line = at + 1;
        if let Some(name) = content.strip_prefix("</") {
            let name = name.trim_end_matches('>').trim().to_ascii_lowercase();
            let block = tree.close(line)?;
            if block.name != format!("<{name}") {
                return Err(format!("line {line}: </{name}> ends {}> of line {}", block.name, block.line));
            }
            tree.add(block);
            continue;
        }
        let section =
            content.strip_prefix('<').map(|inner| inner.strip_suffix('>').unwrap_or(inner).to_owned());
        for (nth, word) in apache_words(section.as_deref().unwrap_or(&content)).into_iter().enumerate() {
            let word = match (nth, &section) {
                (0, Some(_)) => format!("<{}", word.to_ascii_lowercase()),
                _ => word,
            };
            tree.word(line, word);
        }
        match section {
            Some(_) => tree.open(line)?,
            None => tree.end(),
        }
    }
    tree.finish()
}

/// The words of a line, without their quotes.
pub(crate) fn apache_words(line: &str) -> Vec<String> {
    let (mut words, mut input) = (Vec::new(), line.chars().peekable());
    while let Some(first) = input.next() {
        if first.is_whitespace() {
            continue;
        }
        let quote = (first == '"' || first == '\'').then_some(first);
        let mut word: String = if quote.is_some() { String::new() } else { first.into() };
        while let Some(character) = input.next() {
            match (character, quote) {
                ('\\', Some(end)) if input.peek() == Some(&end) => word.extend(input.next()),
                ('\\', _) => {
                    word.push('\\');
                    word.extend(input.next());
                }
                (character, Some(end)) if character == end => break,
                (character, None) if character.is_whitespace() => break,
                _ => word.push(character),
            }
        }
        words.push(word);
    }
    words
}
