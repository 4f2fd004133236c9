//! Writes listings as HTML pages that need no script, and as JSON.

use std::fmt::{self, Write};

use base64ct::{Base64, Encoding};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tenfold_http::clock;

use crate::files::media_type;
use crate::respond::listing::folder::{FolderEntries, ListedEntry, Readme};
use crate::respond::listing::view::{By, SortOrder, View};
use crate::rules::policy::Policy;

/// The page, with placeholders for its title and content.
const PAGE: &str = include_str!("../../../templates/listing.html");

/// The columns in order.
const BY: [By; 3] = [By::Name, By::Size, By::Date];

/// Returns the `Content-Security-Policy` of the page: it loads only images and media of the same site, and
/// only its own style and script apply.
pub(super) fn policy() -> String {
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src 'self'; media-src 'self'; \
         base-uri 'none'; form-action 'self'",
        inline_digest(PAGE, "style"),
        inline_digest(PAGE, "script")
    )
}

/// Returns the SHA-256 of the only element `tag` of a page, in Base64, for its `Content-Security-Policy`. Panics if
/// the page lacks the element.
pub fn inline_digest(page: &str, tag: &str) -> String {
    let (_, rest) = page.split_once(&format!("<{tag}>")).expect("the template has the element");
    let (content, _) = rest.split_once(&format!("</{tag}>")).expect("the element ends");
    Base64::encode_string(&Sha256::digest(content))
}

/// Returns the listing as an HTML page, with a link to an archive if the site has `archives`. The root has the name `top`.
pub(super) fn html(folder: &FolderEntries, archives: bool, top: &str) -> String {
    let title = match folder.links.requested.relative() {
        "" => top.to_owned(),
        path => format!("{top} / {}", path.trim_end_matches('/').replace('/', " / ")),
    };
    let (before, rest) = PAGE.split_once("{title}").expect("the template has a title");
    let (between, after) = rest.split_once("{content}").expect("the template has a content");
    let mut page = format!("{before}{}{between}", Escaped(&title));
    write_content(&mut page, folder, archives, top).expect("writing to a String does not fail");
    page + after
}

fn write_content(page: &mut String, folder: &FolderEntries, archives: bool, top: &str) -> fmt::Result {
    let path = folder.links.requested.relative();
    let names: Vec<_> = path.split('/').filter(|name| !name.is_empty()).collect();
    // Other folders are shown in the same order.
    let query = View { filter: String::new(), ..folder.view.clone() }.query();
    page.push_str("<h1>");
    for (at, name) in std::iter::once(top).chain(names.iter().copied()).enumerate().take(names.len()) {
        let link = folder.links.above(names.len() - at);
        write!(page, "<a href=\"{}{}\">{}</a> / ", Escaped(&link), Escaped(&query), Escaped(name))?;
    }
    writeln!(page, "{}</h1>", Escaped(names.last().copied().unwrap_or(top)))?;
    if !folder.entries.is_empty() || folder.filtered > 0 {
        write_form(page, &folder.view, archives)?;
    }
    match folder.view.grid {
        true => write_grid(page, folder, &query, names.is_empty())?,
        false => write_table(page, folder, &query, names.is_empty())?,
    }
    if let Some(most) = folder.cut {
        write!(page, "\n<p>There is more here than is shown: the first {most} names were read.</p>")?;
    }
    match folder.nameless {
        0 => {}
        1 => page.push_str("\n<p>1 name is not shown, because no URL can contain it.</p>"),
        count => {
            write!(page, "\n<p>{count} names are not shown, because no URL can contain them.</p>")?;
        }
    }
    let Some(Readme { name, text, is_cut }) = &folder.readme else { return Ok(()) };
    write!(page, "\n<h2>{}</h2>\n<pre>{}</pre>", Escaped(name), Escaped(text))?;
    if *is_cut {
        page.push_str("\n<p>The file is longer.</p>");
    }
    Ok(())
}

/// Writes the entries as a table. Links to folders have this query. The root has no link to its parent.
fn write_table(page: &mut String, folder: &FolderEntries, query: &str, is_root: bool) -> fmt::Result {
    page.push_str("<table>\n<thead><tr>");
    for by in BY {
        let (class, aria, link) = column(by, &folder.view);
        write!(page, "\n<th class=\"{class}\"{aria}>{link}</th>")?;
    }
    page.push_str("\n</tr></thead>\n<tbody>");
    if !is_root {
        page.push_str("\n<tr><td>");
        write_parent(page, folder, query)?;
        page.push_str("</td><td class=\"size\"></td><td class=\"modified\"></td></tr>");
    }
    for shown in &folder.entries {
        write_row(page, shown, if shown.is_folder() { query } else { "" })?;
    }
    write!(page, "\n</tbody>\n<tfoot><tr><td colspan=\"3\">{}</td></tr></tfoot>\n</table>", total(folder))
}

/// Writes the entries as a grid: images, which the browser loads when they come into view, and players.
fn write_grid(page: &mut String, folder: &FolderEntries, query: &str, is_root: bool) -> fmt::Result {
    page.push_str("<nav aria-label=\"Order\">");
    for by in BY {
        let (_, _, link) = column(by, &folder.view);
        write!(page, "{link} ")?;
    }
    page.push_str("</nav>\n<ul>");
    if !is_root {
        page.push_str("\n<li>");
        write_parent(page, folder, query)?;
        page.push_str("</li>");
    }
    for shown in &folder.entries {
        let (kind, link, name) = (Kind::of(shown), Escaped(&shown.link), Escaped(&shown.entry.name));
        page.push_str("\n<li>");
        if let Some(player) = kind.player() {
            write!(page, "<{player} controls preload=\"none\" src=\"{link}\"></{player}>")?;
        }
        let image = match kind {
            Kind::Image => format!("<img loading=\"lazy\" decoding=\"async\" alt=\"\" src=\"{link}\">"),
            _ => String::new(),
        };
        let (slash, query) = if shown.is_folder() { ("/", query) } else { ("", "") };
        let query = Escaped(query);
        write!(page, "<a class=\"{}\" href=\"{link}{query}\">{image}{name}{slash}</a></li>", kind.icon())?;
    }
    write!(page, "\n</ul>\n<p>{}</p>", total(folder))
}

fn write_parent(page: &mut String, folder: &FolderEntries, query: &str) -> fmt::Result {
    let (link, query) = (folder.links.above(1), Escaped(query));
    write!(page, "<a class=\"up\" href=\"{}{query}\" aria-label=\"Parent folder\">..</a>", Escaped(&link))
}

/// Writes the form of the filter, which keeps the rest of the query, and the links to the views and
/// to the archive.
fn write_form(page: &mut String, view: &View, archives: bool) -> fmt::Result {
    page.push_str("<form role=\"search\">");
    for (name, value) in view.pairs().filter(|(name, _)| *name != "filter") {
        write!(page, "<input type=\"hidden\" name=\"{name}\" value=\"{value}\">")?;
    }
    writeln!(
        page,
        "<input type=\"search\" name=\"filter\" value=\"{}\" placeholder=\"Filter names\" \
         aria-label=\"Filter names\" autocomplete=\"off\"><button>Filter</button></form>",
        Escaped(&view.filter)
    )?;
    page.push_str("<nav aria-label=\"View\">");
    for (grid, name) in [(false, "List"), (true, "Grid")] {
        let current = if grid == view.grid { " aria-current=\"true\"" } else { "" };
        let link = View { grid, ..view.clone() }.link();
        write!(page, "<a href=\"{}\"{current}>{name}</a> ", Escaped(&link))?;
    }
    if archives {
        page.push_str("<a href=\"?archive=tar\">Download\u{a0}all</a>");
    }
    page.push_str("</nav>\n");
    Ok(())
}

/// Returns the class of a column, its attribute of order, and its link. The link sorts by the column, in descending
/// order if the listing is already in ascending order.
fn column(by: By, view: &View) -> (&'static str, &'static str, String) {
    let (name, class) = match by {
        By::Name => ("Name", "name"),
        By::Size => ("Size", "size"),
        By::Date => ("Modified (UTC)", "modified"),
    };
    let (descending, aria, mark) = match (view.order.by == by, view.order.descending) {
        (false, _) => (false, "", ""),
        (true, false) => (true, " aria-sort=\"ascending\"", " \u{2191}"),
        (true, true) => (false, " aria-sort=\"descending\"", " \u{2193}"),
    };
    let link = View { order: SortOrder { by, descending }, ..view.clone() }.link();
    (class, aria, format!("<a href=\"{}\">{name}{mark}</a>", Escaped(&link)))
}

/// Writes the row of an entry. Its link has this query.
fn write_row(page: &mut String, shown: &ListedEntry, query: &str) -> fmt::Result {
    let facts = &shown.entry.facts;
    let (slash, bytes, size) = match shown.is_folder() {
        true => ("/", String::new(), String::new()),
        false => ("", format!("{} bytes", facts.size), short(facts.size)),
    };
    let modified = u64::try_from(facts.modified.seconds).map(date).unwrap_or_default();
    let (kind, link, name) = (Kind::of(shown), Escaped(&shown.link), Escaped(&shown.entry.name));
    let (icon, query) = (kind.icon(), Escaped(query));
    write!(page, "\n<tr><td><a class=\"{icon}\" href=\"{link}{query}\">{name}{slash}</a>")?;
    if let Some(player) = kind.player() {
        write!(
            page,
            "<details><summary aria-label=\"Play {name}\">Play</summary>\
             <{player} controls preload=\"none\" src=\"{link}\"></{player}></details>"
        )?;
    }
    write!(
        page,
        "</td><td class=\"size\" title=\"{bytes}\">{size}</td><td class=\"modified\">{modified}</td></tr>"
    )
}

/// Text, escaped for HTML content and quoted attributes.
struct Escaped<'t>(&'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['<', '>', '&', '"', '\'']) {
            write!(f, "{}&#{};", &rest[..at], rest.as_bytes()[at])?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

/// The kind of an entry, by its media type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    /// An image that browsers show.
    Image,
    /// An image that some browsers lack.
    OtherImage,
    Audio,
    Video,
    Text,
    Archive,
    Other,
}

impl Kind {
    fn of(shown: &ListedEntry) -> Kind {
        const ARCHIVES: [&str; 8] = [".zip", ".gz", ".xz", ".zst", ".bz2", ".tar", ".7z", ".deb"];
        const IMAGES: [&str; 7] = ["jpeg", "png", "gif", "webp", "avif", "svg+xml", "bmp"];
        if shown.is_folder() {
            return Kind::Folder;
        }
        let name = shown.entry.name.to_ascii_lowercase();
        let essence = media_type::of(&name, &Policy::default());
        let archive = ARCHIVES.iter().any(|ending| name.ends_with(ending));
        match essence.split(';').next().and_then(|essence| essence.split_once('/')) {
            Some(("image", subtype)) if IMAGES.contains(&subtype) => Kind::Image,
            Some(("image", _)) => Kind::OtherImage,
            Some(("audio", _)) => Kind::Audio,
            Some(("video", _)) => Kind::Video,
            Some(("text", _)) => Kind::Text,
            _ if archive => Kind::Archive,
            _ => Kind::Other,
        }
    }

    /// The CSS class of its icon.
    fn icon(self) -> &'static str {
        match self {
            Kind::Folder => "dir",
            Kind::Image | Kind::OtherImage => "image",
            Kind::Audio | Kind::Video => "media",
            Kind::Text => "text",
            Kind::Archive => "archive",
            Kind::Other => "file",
        }
    }

    /// The element that plays it.
    fn player(self) -> Option<&'static str> {
        match self {
            Kind::Audio => Some("audio"),
            Kind::Video => Some("video"),
            _ => None,
        }
    }
}

/// Summarizes the listing, for example `2 folders, 1 file, 3.4 MiB`.
fn total(folder: &FolderEntries) -> String {
    let count = |number: usize, one: &str| match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        several => Some(format!("{several} {one}s")),
    };
    let folders = folder.entries.iter().filter(|shown| shown.is_folder()).count();
    let files = folder.entries.len() - folders;
    let sizes = folder.entries.iter().filter(|shown| !shown.is_folder()).map(|shown| shown.entry.facts.size);
    let size = (files > 0).then(|| short(sizes.fold(0, u64::saturating_add)));
    let parts: Vec<_> =
        [count(folders, "folder"), count(files, "file"), size].into_iter().flatten().collect();
    match (parts.is_empty(), folder.filtered) {
        (true, 0) => "This folder is empty.".to_owned(),
        (true, _) => format!("No name contains \u{201c}{}\u{201d}.", Escaped(&folder.view.filter)),
        (false, 0) => parts.join(", "),
        (false, filtered) => format!("{} (the filter hides {filtered} more)", parts.join(", ")),
    }
}

/// Formats a size in units of powers of 1024: `17 B`, `1.2 KiB`, `340 MiB`.
fn short(bytes: u64) -> String {
    let mut size = bytes as f64;
    for unit in [" B", " KiB", " MiB", " GiB", " TiB"] {
        if size < 999.5 {
            let decimals = usize::from(unit != " B" && size < 9.95);
            return format!("{size:.decimals$}{unit}");
        }
        size /= 1024.0;
    }
    format!("{size:.0} PiB")
}

/// Formats a UTC time to the minute: the part of an HTTP date between the day of the week and the seconds.
fn date(unix_seconds: u64) -> String {
    String::from_utf8_lossy(&clock::format_date(unix_seconds)[5..22]).into_owned()
}

#[derive(Serialize)]
struct Document<'a> {
    path: &'a str,
    /// Whether the folder has more entries than the listing.
    truncated: bool,
    /// Entries with a name that no URL can contain.
    #[serde(skip_serializing_if = "is_zero")]
    unshown: usize,
    entries: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    /// The size in bytes; `None` for a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// Seconds since 1970 (UTC).
    modified: i64,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Returns the listing as JSON.
pub(super) fn json(folder: &FolderEntries) -> String {
    let entries = folder.entries.iter().map(|shown| Item {
        name: &shown.entry.name,
        kind: if shown.is_folder() { "folder" } else { "file" },
        size: (!shown.is_folder()).then_some(shown.entry.facts.size),
        modified: shown.entry.facts.modified.seconds,
    });
    let document = Document {
        path: folder.links.address().canonical(),
        truncated: folder.cut.is_some(),
        unshown: folder.nameless,
        entries: entries.collect(),
    };
    let mut text = serde_json::to_string(&document).expect("strings and numbers are valid JSON");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short_and_never_a_thousand_of_a_unit() {
        for (bytes, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (10 * 1024, "10 KiB"),
            (999 * 1024, "999 KiB"),
            (1000 * 1024, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "16384 PiB"),
        ] {
            assert_eq!(short(bytes), expected, "{bytes}");
        }
    }

    #[test]
    fn dates_are_to_the_minute() {
        assert_eq!(date(784_111_777), "06 Nov 1994 08:49");
    }
}
