//! Translates Apache's `httpd.conf` and `.htaccess`.

mod directives;
mod rewrites;
mod rules;
mod sections;
mod state;

use crate::draft::{Draft, Scope};
use crate::tree::{self};
use state::Apache;

pub(crate) fn translate(text: &str, folder: &str, draft: &mut Draft<'_>) -> Result<(), String> {
    let tree = tree::apache(text)?;
    let is_server = tree.iter().any(|directive| {
        matches!(
            directive.name.to_ascii_lowercase().as_str(),
            "listen" | "documentroot" | "<virtualhost" | "serverroot"
        )
    });
    if !is_server {
        draft.root(&Scope::of(0), folder, 0);
    }
    let contents = tree.iter().filter(|directive| match directive.name.as_str() {
        "<virtualhost" => rewrites::has_content(directive),
        name => name.eq_ignore_ascii_case("DocumentRoot"),
    });
    let several = contents.count() > 1;
    let listens = tree.iter().any(|directive| directive.name.eq_ignore_ascii_case("Listen"));
    let mut apache = Apache {
        draft,
        is_server,
        several,
        listens,
        conditions: Vec::new(),
        base: "/".into(),
        has_log: false,
    };
    apache.prepare(&tree);
    apache.block(&tree, &Scope::of(0));
    apache.end_conditions();
    if is_server && !apache.has_log {
        draft.set("access-log", &["off"], 0);
    }
    Ok(())
}
