//! Translates nginx's configuration.

mod blocks;
mod content;
mod files;
mod limits;
mod servers;
mod state;

use std::collections::BTreeMap;

use crate::draft::{Draft, Scope};
use crate::tree::{self};
use state::{Context, Level, Nginx};

pub(crate) fn translate(text: &str, draft: &mut Draft<'_>) -> Result<(), String> {
    let tree = tree::nginx(text)?;
    let mut nginx = Nginx {
        draft,
        formats: BTreeMap::new(),
        rates: BTreeMap::new(),
        by_address: Vec::new(),
        proxies: false,
        plans: Vec::new(),
        has_hosts: false,
    };
    nginx.collect(&tree);
    servers::prepare(&mut nginx, &tree);
    let whole =
        Context { scope: Scope::of(0), level: Level::Http, server: &tree, block: &tree, hidden: false };
    nginx.block(&tree, &whole);
    if nginx.draft.settings.contains_key("compress") && !nginx.draft.settings.contains_key("compress-types") {
        nginx.draft.set("compress-types", &["text/html"], 0);
    }
    Ok(())
}
