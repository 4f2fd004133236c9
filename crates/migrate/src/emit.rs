//! Prints a draft as TOML, with the lines of the input in comments.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::draft::{Address, CLOSED, Draft, Gate, Rules, Site, Way};
use crate::input::Input;
use crate::outcome::Outcome;
use crate::toml::{key, list, quote};

/// The most characters of a message in a comment.
const LONGEST_COMMENT: usize = 200;

/// Returns a text that can be part of a comment.
fn comment(text: &str) -> String {
    let shown = |character: char| if character.is_control() { ' ' } else { character };
    text.chars().map(shown).take(LONGEST_COMMENT).collect()
}

/// Prints the configuration.
pub(crate) fn toml(input: Input<'_>, draft: &mut Draft<'_>) -> String {
    add_dependent_settings(draft);
    draft.refuse_blocked();
    let mut text = format!(
        "# Translated from {} ({}) by `tenfold migrate`. Check it: tenfold check FILE\n",
        comment(input.name),
        input.format.name()
    );
    refused(&mut text, draft);
    text.push('\n');
    server(&mut text, draft);
    for at in 0..draft.sites.len() {
        site(&mut text, draft, at);
    }
    text
}

/// Lists the directives without an equivalent.
fn refused(text: &mut String, draft: &Draft<'_>) {
    let mut entries: Vec<_> = draft.entries().iter().collect();
    entries.sort_by_key(|entry| entry.line);
    let mut is_first = true;
    for entry in entries {
        if let Outcome::Refused(why) = &entry.outcome {
            if std::mem::take(&mut is_first) {
                text.push_str("# Not translated:\n");
            }
            let _ = writeln!(
                text,
                "#   line {}: {}",
                entry.line,
                comment(&format!("{}: {why}", entry.directive))
            );
        }
    }
}

/// Removes settings without effect, which Tenfold refuses.
fn add_dependent_settings(draft: &mut Draft<'_>) {
    if !draft.settings.contains_key("compress") {
        draft.settings.remove("compress-types");
        draft.settings.remove("compress-from");
    }
    if !draft.settings.contains_key("max-requests-per-address") {
        draft.settings.remove("request-burst");
    }
    let is_off = |setting: &crate::draft::Setting| setting.values == ["off"];
    if draft.settings.get("access-log").is_some_and(is_off) {
        ["log-format", "log-rotate", "log-keep"].iter().for_each(|name| drop(draft.settings.remove(name)));
    }
    if draft.settings.get("access-log").is_none_or(|log| log.values == ["-"]) {
        draft.settings.remove("log-rotate");
    }
    if !draft.settings.contains_key("log-rotate") {
        draft.settings.remove("log-keep");
    }
    if !draft.uses_tls() {
        ["tls-preset", "https-redirect", "hsts"].iter().for_each(|name| drop(draft.settings.remove(name)));
    }
}

/// Prints the settings of the server.
fn server(text: &mut String, draft: &Draft<'_>) {
    if !draft.addresses.is_empty() {
        let addresses: Vec<String> =
            draft.addresses.iter().map(|address| shown(address, draft.uses_tls())).collect();
        line(text, "listen", &list(&addresses), draft.addresses[0].line);
    }
    // Without a root, Tenfold serves the folder of the configuration.
    let first = draft.sites.iter().find_map(|site| site.root.clone());
    let (root, at) = draft.sites[0].root.clone().or(first).unwrap_or_else(|| (".".into(), 0));
    line(text, "root", &quote(&root), at);
    if let Some((index, at)) = &draft.sites[0].index {
        line(text, "index", &list(index), *at);
    }
    for (name, setting) in &draft.settings {
        line(text, name, &list(&setting.values), setting.line);
    }
    if !draft.certificates.is_empty() {
        let (certificates, keys): (Vec<String>, Vec<String>) = draft.certificates.iter().cloned().unzip();
        line(text, "tls-certificate", &list(&certificates), 0);
        line(text, "tls-key", &list(&keys), 0);
    }
}

/// Returns an address with its prefix.
fn shown(address: &Address, uses_tls: bool) -> String {
    let is_tcp = !address.text.starts_with("unix:");
    let prefix = match (address.proxied, uses_tls && !address.tls && is_tcp) {
        (true, true) => "proxy+http:",
        (true, false) => "proxy:",
        (false, true) => "http:",
        (false, false) => "",
    };
    format!("{prefix}{}", address.text)
}

/// Prints a line with its origin.
fn line(text: &mut String, name: &str, value: &str, at: usize) {
    let origin = if at > 0 { format!("  # line {at}") } else { String::new() };
    let _ = writeln!(text, "{name} = {value}{origin}");
}

/// Prints the tables of a site.
fn site(text: &mut String, draft: &Draft<'_>, at: usize) {
    let site = &draft.sites[at];
    let (head, table) = if at == 0 { ("[site]", "site") } else { ("[[host]]", "host") };
    let mut body = String::new();
    if at > 0 {
        line(&mut body, "name", &list(&site.names), site.line);
        if let Some((root, at)) = &site.root {
            line(&mut body, "root", &quote(root), *at);
        }
        if let Some((index, at)) = &site.index {
            line(&mut body, "index", &list(index), *at);
        }
    }
    for (key, (value, at)) in &site.keys {
        line(&mut body, key, value, *at);
    }
    rules(&mut body, &site.rules);
    if !site.error_pages.is_empty() {
        let pages =
            site.error_pages.iter().map(|(status, (page, _))| format!("{} = {}", key(status), quote(page)));
        let at = site.error_pages.values().next().map_or(0, |(_, at)| *at);
        line(&mut body, "error-pages", &format!("{{ {} }}", pages.collect::<Vec<_>>().join(", ")), at);
    }
    rewrites(&mut body, draft, at);
    if !body.is_empty() {
        let _ = write!(text, "\n{head}\n{body}");
    }
    let mut paths: Vec<_> = site.paths.iter().filter(|path| !path.rules.is_empty()).collect();
    paths.sort_by_key(|path| path.weight);
    for path in paths {
        let _ = writeln!(text, "\n[[{table}.path]]");
        line(text, "match", &list(&path.patterns), path.line);
        rules(text, &path.rules);
    }
    // A closed path has no file, and must not get the page for missing files.
    let tries = |rules: &Rules| rules.keys.contains_key("try-files");
    let may_try = [&draft.sites[0], site]
        .iter()
        .any(|site| tries(&site.rules) || site.paths.iter().any(|path| tries(&path.rules)));
    if may_try && (!site.gates.is_empty() || !draft.programs.is_empty()) {
        let _ = writeln!(text, "\n[[{table}.path]]\nmatch = \"{CLOSED}\"\ntry-files = [\"{{path}}\"]");
    }
    site.redirects.iter().for_each(|redirect| way(text, table, redirect));
}

fn rules(text: &mut String, rules: &Rules) {
    for (key, (value, at)) in &rules.keys {
        line(text, key, value, *at);
    }
    let pairs = |pairs: Vec<String>| format!("{{ {} }}", pairs.join(", "));
    if !rules.types.is_empty() {
        let all =
            rules.types.iter().map(|(name, media_type)| format!("{} = {}", key(name), quote(media_type)));
        line(text, "types", &pairs(all.collect()), 0);
    }
    for (name, value) in &rules.set {
        line(text, &format!("headers.set.{}", key(name)), &quote(value), 0);
    }
    for (name, values) in &rules.add {
        line(text, &format!("headers.add.{}", key(name)), &list(values), 0);
    }
    if !rules.remove.is_empty() {
        let names: Vec<String> = rules.remove.iter().cloned().collect();
        line(text, "headers.remove", &list(&names), 0);
    }
}

fn way(text: &mut String, table: &str, way: &Way) {
    let _ = writeln!(text, "\n[[{table}.redirect]]");
    line(text, "from", &quote(&way.from), way.line);
    let _ = writeln!(text, "to = {}", quote(&way.to));
    if let Some(status) = way.status.filter(|status| *status != 301) {
        let _ = writeln!(text, "status = {status}");
    }
}

/// Prints the rewrites of a site. The first match applies: programs, closed paths with the open paths within them, and
/// the rewrites of the input.
fn rewrites(text: &mut String, draft: &Draft<'_>, at: usize) {
    let site = &draft.sites[at];
    let gates = gates(draft, at);
    let mut rows: Vec<(String, String, usize)> = Vec::new();
    // Rewrites of [site] come after those of a host.
    if at == 0 || !gates.is_empty() || !site.rewrites.is_empty() {
        rows.extend(draft.programs.iter().map(|ending| (format!("/**.{ending}"), CLOSED.to_owned(), 0)));
    }
    for gate in gates {
        let to = if gate.is_open { gate.pattern.clone() } else { CLOSED.into() };
        rows.push((gate.pattern.clone(), to, gate.line));
    }
    rows.extend(site.rewrites.iter().map(|rewrite| (rewrite.from.clone(), rewrite.to.clone(), rewrite.line)));
    if at == 0 && !draft.has_root() {
        text.push_str("# The input names no folder. Name it in root, and remove the rewrite of /**.\n");
        rows.push(("/**".into(), CLOSED.into(), 0));
    }
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let mut first = true;
    for (from, to, at) in &rows {
        if !known.insert(from) {
            continue;
        }
        if std::mem::take(&mut first) {
            let _ = writeln!(text, "# {CLOSED} does not exist, so these paths get 404.\nrewrite = [");
        }
        let origin = if *at > 0 { format!("  # line {at}") } else { String::new() };
        let _ = writeln!(text, "    {{ from = {}, to = {} }},{origin}", quote(from), quote(to));
    }
    if !first {
        text.push_str("]\n");
    }
}

/// Returns the closed paths of a site, and before each the open paths within it.
fn gates<'d>(draft: &'d Draft<'_>, at: usize) -> Vec<&'d Gate> {
    let site: &Site = &draft.sites[at];
    let mut gates: Vec<&Gate> = site.gates.iter().collect();
    // Unknown hosts get the files of this host, and hosts inherit the rewrites of [site]: an error is on the safe side.
    if at == 0 && site.root.is_none() {
        let other = draft.sites.iter().find(|site| site.root.is_some());
        gates.extend(other.iter().flat_map(|host| &host.gates).filter(|gate| !gate.is_open));
    }
    gates.sort_by_key(|gate| std::cmp::Reverse(gate.weight));
    let all = gates.clone();
    let is_needed = |(place, gate): &(usize, &&Gate)| {
        !gate.is_open || all[*place..].iter().any(|outer| outer.covers(gate))
    };
    gates
        .iter()
        .enumerate()
        .filter(is_needed)
        .map(|(_, gate)| *gate)
        .filter(|gate| !gate.is_blocked)
        .collect()
}
