//! Snippets of a Caddyfile, which `import` puts in its place.

use std::collections::BTreeMap;

use crate::draft::Draft;
use crate::outcome::{Outcome, default, refused};
use crate::reasons::INCLUDES;
use crate::tree::Directive;

/// The deepest imports of snippets by snippets.
const DEEPEST: usize = 8;
/// The most directives after all imports.
const MOST: usize = 20_000;

/// Returns the sites and options without snippets and imports of them.
pub(super) fn expand(tree: Vec<Directive>, draft: &mut Draft<'_>) -> Result<Vec<Directive>, String> {
    let name = |directive: &Directive| {
        let inner = directive.name.strip_prefix('(')?.strip_suffix(')')?;
        directive.block.is_some().then(|| inner.to_owned())
    };
    let (definitions, rest): (Vec<_>, Vec<_>) =
        tree.into_iter().partition(|directive| name(directive).is_some());
    let mut snippets = BTreeMap::new();
    for definition in definitions {
        snippets.insert(name(&definition).unwrap_or_default(), definition);
    }
    let mut expander = Expander { snippets, draft, used: Vec::new(), left: MOST };
    let tree = expander.block(rest, 0)?;
    let Expander { snippets, draft, used, .. } = expander;
    for (name, definition) in &snippets {
        match used.contains(name) {
            true => draft.record(definition.line, &definition.name, Outcome::Translated),
            false => unused(std::slice::from_ref(definition), draft),
        }
    }
    Ok(tree)
}

fn unused(directives: &[Directive], draft: &mut Draft<'_>) {
    for directive in directives {
        draft.record(directive.line, &directive.name, default("no site imports this snippet"));
        unused(directive.inner(), draft);
    }
}

struct Expander<'a, 'b> {
    snippets: BTreeMap<String, Directive>,
    draft: &'a mut Draft<'b>,
    used: Vec<String>,
    left: usize,
}

impl Expander<'_, '_> {
    fn block(&mut self, directives: Vec<Directive>, depth: usize) -> Result<Vec<Directive>, String> {
        let mut expanded = Vec::new();
        for mut directive in directives {
            self.left = self
                .left
                .checked_sub(1)
                .ok_or(format!("there are more than {MOST} directives after all imports"))?;
            let snippet = match directive.name.as_str() {
                "import" => self.snippets.get(directive.arg(0)).cloned(),
                _ => None,
            };
            match snippet {
                Some(_) if depth >= DEEPEST => {
                    return Err(format!(
                        "line {}: snippets import each other more than {DEEPEST} times",
                        directive.line
                    ));
                }
                Some(snippet) => {
                    self.draft.record(directive.line, "import", Outcome::Translated);
                    self.used.push(directive.arg(0).to_owned());
                    let inner = fill(snippet.inner(), &directive.args[1..]);
                    expanded.append(&mut self.block(inner, depth + 1)?);
                }
                None if directive.name == "import" => {
                    self.draft.record(directive.line, "import", refused(INCLUDES))
                }
                None => {
                    if let Some(block) = directive.block.take() {
                        directive.block = Some(self.block(block, depth)?);
                    }
                    expanded.push(directive);
                }
            }
        }
        Ok(expanded)
    }
}

/// Returns directives with the arguments of an import in their places.
fn fill(directives: &[Directive], args: &[String]) -> Vec<Directive> {
    let word = |text: &String| {
        let mut text = text.clone();
        if text.contains("{args") {
            for (at, arg) in args.iter().enumerate().take(16) {
                text = text.replace(&format!("{{args[{at}]}}"), arg).replace(&format!("{{args.{at}}}"), arg);
            }
        }
        text
    };
    let filled = directives.iter().map(|directive| Directive {
        line: directive.line,
        name: word(&directive.name),
        args: directive.args.iter().map(word).collect(),
        block: directive.block.as_deref().map(|block| fill(block, args)),
    });
    filled.collect()
}
