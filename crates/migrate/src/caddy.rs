//! Translates Caddyfiles.

mod addresses;
mod blocks;
mod directives;
mod snippets;
mod state;

use std::collections::BTreeMap;

use crate::draft::Draft;
use crate::tree::{self, Directive};
use state::{Caddy, Global, only_redirects};

pub(crate) fn translate(text: &str, draft: &mut Draft<'_>) -> Result<(), String> {
    let tree = snippets::expand(tree::caddy(text)?, draft)?;
    let mut caddy = Caddy {
        draft,
        matchers: BTreeMap::new(),
        global: Global::default(),
        has_log: false,
        plain: Vec::new(),
        has_tries: false,
    };
    let (global, sites): (Vec<&Directive>, Vec<&Directive>) =
        tree.iter().partition(|directive| directive.name.is_empty() && directive.block.is_some());
    global.iter().for_each(|block| addresses::global(&mut caddy, block));
    match sites.iter().all(|site| site.block.is_none() || is_directive(&site.name)) {
        true if sites.len() > 1 => {
            // One site without braces: its first line has the addresses.
            let (first, rest) = tree.split_at(tree.len() - sites.len() + 1);
            let head = first.last().cloned().unwrap_or_else(|| tree[0].clone());
            let site = Directive { block: Some(rest.to_vec()), ..head };
            caddy.global.bound = addresses::bound_by_all(&[&site]);
            caddy.site(&site, false);
        }
        _ => {
            caddy.global.bound = addresses::bound_by_all(&sites);
            let several = sites.iter().filter(|site| !only_redirects(site)).count() > 1;
            sites.iter().for_each(|site| caddy.site(site, several));
        }
    }
    addresses::finish(&mut caddy);
    if !caddy.has_log {
        caddy.draft.set("access-log", &["off"], 0);
    }
    draft.merge_entries();
    Ok(())
}

/// Whether a name is one of a directive, and not an address.
fn is_directive(name: &str) -> bool {
    !name.contains(['.', ':', '/', '{', '*', ',']) && name != "localhost"
}
