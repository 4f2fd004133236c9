//! Reads lighttpd's syntax: assignments, lists, and blocks with a condition.

use std::collections::BTreeMap;

/// The deepest nesting of blocks and lists.
const DEEPEST: usize = 32;
/// The most statements and values.
const MOST: usize = 100_000;

/// A value of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    List(Vec<(Option<String>, Value)>),
}

impl Value {
    /// The text; empty for a list.
    pub(super) fn text(&self) -> &str {
        match self {
            Value::Text(text) => text,
            Value::List(_) => "",
        }
    }

    /// The entries of a list; the text itself is a list of one.
    pub(super) fn texts(&self) -> Vec<&str> {
        match self {
            Value::Text(text) => vec![text],
            Value::List(entries) => entries.iter().map(|(_, value)| value.text()).collect(),
        }
    }

    /// The entries with keys.
    pub(super) fn pairs(&self) -> Vec<(&str, &Value)> {
        match self {
            Value::Text(_) => Vec::new(),
            Value::List(entries) => {
                entries.iter().filter_map(|(key, value)| Some((key.as_deref()?, value))).collect()
            }
        }
    }

    /// Returns the value of a key.
    pub(super) fn get(&self, key: &str) -> &str {
        self.pairs().into_iter().find(|(name, _)| *name == key).map_or("", |(_, value)| value.text())
    }
}

/// A statement of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    Set { line: usize, key: String, value: Value },
    Include { line: usize, name: String },
    When { line: usize, field: String, operator: String, value: String, block: Vec<Statement> },
    Else { line: usize, block: Vec<Statement> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Quoted(String),
    Word(String),
    Mark(&'static str),
}

const MARKS: [&str; 17] =
    ["==", "=~", "=^", "=$", "!=", "!~", "+=", ":=", "=>", "=", "+", "(", ")", "{", "}", ",", "\n"];

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, String> {
    let (mut found, mut rest, mut line) = (Vec::new(), text, 1);
    while let Some(first) = rest.chars().next() {
        if found.len() > MOST {
            return Err(format!("there are more than {MOST} words"));
        }
        if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            rest = &rest[mark.len()..];
            if *mark == "\n" {
                line += 1;
            } else {
                found.push((line, Token::Mark(mark)));
            }
        } else if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
        } else if first == '#' {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if first == '"' || first == '\'' {
            let (mut word, mut end) = (String::new(), None);
            let mut inner = rest.char_indices().skip(1);
            while let Some((at, character)) = inner.next() {
                match character {
                    '\\' if first == '"' => match inner.next() {
                        Some((_, quote @ ('"' | '\\'))) => {
                            if quote == '\\' {
                                word.push('\\');
                            }
                            word.push(quote);
                        }
                        Some((_, other)) => word.extend(['\\', other]),
                        None => break,
                    },
                    _ if character == first => {
                        end = Some(at + 1);
                        break;
                    }
                    _ => word.push(character),
                }
            }
            let end = end.ok_or(format!("line {line}: the quote {first} has no end"))?;
            found.push((line, Token::Quoted(word.replace("\\\\", "\\"))));
            line += rest[..end].matches('\n').count();
            rest = &rest[end..];
        } else {
            let is_end = |next: char| next.is_whitespace() || "=+(){},#\"':!~".contains(next);
            let end = rest.find(is_end).filter(|end| *end > 0).unwrap_or(if is_end(first) {
                first.len_utf8()
            } else {
                rest.len()
            });
            found.push((line, Token::Word(rest[..end].to_owned())));
            rest = &rest[end..];
        }
    }
    Ok(found)
}

/// Reads the statements of a file.
pub(super) fn read(text: &str) -> Result<Vec<Statement>, String> {
    let mut reader = Reader { tokens: tokens(text)?, at: 0, variables: BTreeMap::new() };
    let statements = reader.block(0)?;
    match reader.tokens.get(reader.at) {
        Some((line, _)) => Err(format!("line {line}: no block is open here")),
        None => Ok(statements),
    }
}

struct Reader {
    tokens: Vec<(usize, Token)>,
    at: usize,
    variables: BTreeMap<String, Value>,
}

impl Reader {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn eat(&mut self, mark: &str) -> bool {
        let fits = matches!(self.peek(), Some(Token::Mark(found)) if *found == mark);
        self.at += usize::from(fits);
        fits
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |(line, _)| *line)
    }

    fn word(&mut self) -> Result<String, String> {
        let line = self.line();
        match self.tokens.get(self.at).map(|(_, token)| token.clone()) {
            Some(Token::Word(word) | Token::Quoted(word)) => {
                self.at += 1;
                Ok(word)
            }
            _ => Err(format!("line {line}: a word is missing")),
        }
    }

    fn block(&mut self, depth: usize) -> Result<Vec<Statement>, String> {
        let mut statements = Vec::new();
        if depth > DEEPEST {
            return Err(format!("line {}: blocks are nested more than {DEEPEST} times", self.line()));
        }
        while let Some(token) = self.peek() {
            let line = self.line();
            match token {
                Token::Mark("}") => break,
                Token::Mark(_) | Token::Quoted(_) => return Err(format!("line {line}: a key is missing")),
                Token::Word(word) if word.starts_with('$') => statements.push(self.condition(depth)?),
                Token::Word(word) if word == "else" || word == "elseif" => {
                    self.at += 1;
                    if self.peek() == Some(&Token::Word("if".into())) {
                        self.at += 1;
                    }
                    let block = match self.peek() {
                        Some(Token::Word(_)) => vec![self.condition(depth)?],
                        _ => self.braces(depth)?,
                    };
                    statements.push(Statement::Else { line, block });
                }
                Token::Word(word) if word.starts_with("include") => {
                    let name = word.clone();
                    self.at += 1;
                    self.value(depth)?;
                    statements.push(Statement::Include { line, name });
                }
                Token::Word(_) => {
                    let key = self.word()?;
                    let adds = self.eat("+=");
                    if !adds && !self.eat(":=") && !self.eat("=") {
                        return Err(format!("line {line}: = is missing after {key}"));
                    }
                    let value = self.value(depth)?;
                    let value = match (adds, self.variables.get(&key)) {
                        (true, Some(former)) => join(former.clone(), value),
                        _ => value,
                    };
                    self.variables.insert(key.clone(), value.clone());
                    statements.push(Statement::Set { line, key, value });
                }
            }
        }
        Ok(statements)
    }

    fn braces(&mut self, depth: usize) -> Result<Vec<Statement>, String> {
        let line = self.line();
        if !self.eat("{") {
            return Err(format!("line {line}: a block is missing"));
        }
        let block = self.block(depth + 1)?;
        if !self.eat("}") {
            return Err(format!("line {line}: the block has no end"));
        }
        Ok(block)
    }

    /// `$HTTP["host"] == "example.org" { ... }`
    fn condition(&mut self, depth: usize) -> Result<Statement, String> {
        let line = self.line();
        let mut field = self.word()?;
        // The name in brackets is a quoted text between words.
        while matches!(self.peek(), Some(Token::Word(_) | Token::Quoted(_))) {
            field.push_str(&self.word()?);
        }
        let operator = match self.peek() {
            Some(Token::Mark(mark)) if ["==", "=~", "=^", "=$", "!=", "!~"].contains(mark) => {
                (*mark).to_owned()
            }
            _ => return Err(format!("line {line}: a comparison is missing")),
        };
        self.at += 1;
        let value = self.value(depth)?.text().to_owned();
        let block = self.braces(depth)?;
        Ok(Statement::When { line, field, operator, value, block })
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        let mut value = self.term(depth)?;
        while self.eat("+") {
            value = join(value, self.term(depth)?);
        }
        Ok(value)
    }

    fn term(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEEPEST {
            return Err(format!("line {}: lists are nested more than {DEEPEST} times", self.line()));
        }
        if self.eat("(") {
            let (line, mut entries) = (self.line(), Vec::new());
            while !self.eat(")") {
                let first = self.value(depth + 1)?;
                match self.eat("=>") {
                    true => entries.push((Some(first.text().to_owned()), self.value(depth + 1)?)),
                    false => entries.push((None, first)),
                }
                if !self.eat(",") && self.peek() != Some(&Token::Mark(")")) {
                    return Err(format!("line {line}: the list has no end"));
                }
            }
            return Ok(Value::List(entries));
        }
        let is_word = matches!(self.peek(), Some(Token::Word(_)));
        let word = self.word()?;
        // A name without a dot is one of `var`.
        let full = if word.contains('.') { word.clone() } else { format!("var.{word}") };
        match is_word.then(|| self.variables.get(&full)).flatten() {
            Some(value) => Ok(value.clone()),
            None => Ok(Value::Text(word)),
        }
    }
}

fn join(first: Value, second: Value) -> Value {
    match (first, second) {
        (Value::Text(mut first), Value::Text(second)) if first.len() + second.len() < 1 << 16 => {
            first.push_str(&second);
            Value::Text(first)
        }
        (Value::List(mut first), Value::List(second)) if first.len() + second.len() < 1 << 12 => {
            first.extend(second);
            Value::List(first)
        }
        (first, _) => first,
    }
}
