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
    let unbraced =
        sites.len() > 1 && sites.iter().all(|site| site.block.is_none() || is_directive(&site.name));
    // One site without braces: its first line has the addresses.
    let single = unbraced.then(|| {
        let (first, rest) = tree.split_at(tree.len() - sites.len() + 1);
        let head = first.last().cloned().unwrap_or_else(|| tree[0].clone());
        Directive { block: Some(rest.to_vec()), ..head }
    });
    let sites = single.as_ref().map_or(sites, |site| vec![site]);
    let usual = global.iter().find_map(|block| block.find("default_bind"));
    caddy.global.bound = addresses::bound_by_all(&sites, usual);
    global.iter().for_each(|block| addresses::global(&mut caddy, block));
    let several = sites.iter().filter(|site| !only_redirects(site)).count() > 1;
    sites.iter().for_each(|site| caddy.site(site, several));
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
