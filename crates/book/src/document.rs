//! A page of the book as an HTML document, with its head, its navigation, and the links to its neighbours.

use std::collections::BTreeMap;

use crate::escape::html;
use crate::page::{BookPage, CONTENTS, Group};
use crate::text::relative;

/// The pages before and after this one.
pub(crate) struct Around<'a> {
    pub(crate) previous: Option<&'a String>,
    pub(crate) next: Option<&'a String>,
}

/// The title of the book.
pub(crate) const BOOK: &str = "The Tenfold book";

/// The start of a document, with the style and the script of every page. `up` is the path to the first page.
pub(crate) fn head(title: &str, up: &str) -> String {
    format!(
        r##"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="{up}favicon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{up}site.css">
<script src="{up}site.js"></script>
"##
    )
}

/// The class of a link from the manual to another page of the demonstration. Each such link has its own line, because a
/// server of another site leaves these lines out.
const ASIDE: &str = "aside";

/// The whole document. A strict Content-Security-Policy allows no inline script and no inline style.
pub(crate) fn document(
    path: &str,
    page: &BookPage,
    body: &str,
    groups: &[Group],
    pages: &BTreeMap<String, BookPage>,
    around: &Around<'_>,
) -> String {
    let up = "../".repeat(path.matches('/').count());
    let title = if path == CONTENTS { BOOK.to_owned() } else { format!("{} · {BOOK}", html(&page.title)) };
    let head = head(&title, &up);
    let contents = navigation(path, groups, pages);
    let turn = turn_the_page(path, pages, around);
    format!(
        r##"{head}<script src="{up}search.js" defer></script>
</head>
<body class="book">
<a class="skip" href="#text">Skip to the text</a>
<header class="bar">
<a class="mark" href="{up}../"><img src="{up}favicon.svg" alt="" width="28" height="28"> Tenfold</a>
<nav class="places" aria-label="Site">
<a href="{up}index.html" aria-current="true">Book</a>
<a class="{ASIDE}" href="{up}../side-by-side.html">Side by side</a>
<a class="{ASIDE}" href="{up}../media.html">Media</a>
<a class="{ASIDE}" href="{up}../members/">Members</a>
</nav>
<button class="theme" type="button" hidden>Theme</button>
</header>
<div class="pages">
<aside class="contents">
<form class="search" role="search" hidden>
<label for="find">Search <kbd>/</kbd></label>
<input id="find" type="search" autocomplete="off" spellcheck="false" maxlength="80">
<p role="status"></p>
<ul></ul>
</form>
<button class="unfold" type="button" aria-expanded="false" aria-controls="contents" hidden>Contents</button>
<nav id="contents" aria-label="Contents">
{contents}</nav>
</aside>
<main id="text">
<article>
{body}</article>
{turn}</main>
</div>
</body>
</html>
"##
    )
}

fn navigation(path: &str, groups: &[Group], pages: &BTreeMap<String, BookPage>) -> String {
    let mut out = String::new();
    for group in groups {
        out.push_str(&format!("<{0}>{1}</{0}>\n", group.level, html(&group.title)));
        if group.pages.is_empty() {
            continue;
        }
        out.push_str("<ul>\n");
        for to in &group.pages {
            let current = if to == path { " aria-current=\"page\"" } else { "" };
            let title = pages.get(to).map_or(to.as_str(), |page| &page.title);
            let link = relative(path, to);
            out.push_str(&format!("<li><a href=\"{link}\"{current}>{}</a></li>\n", html(title)));
        }
        out.push_str("</ul>\n");
    }
    out
}

fn turn_the_page(path: &str, pages: &BTreeMap<String, BookPage>, around: &Around<'_>) -> String {
    let mut out = String::from("<nav class=\"turn\" aria-label=\"Pages\">\n");
    for (to, rel, word) in [(around.previous, "prev", "Previous"), (around.next, "next", "Next")] {
        if let Some(to) = to {
            let title = pages.get(to).map_or(to.as_str(), |page| &page.title);
            let link = relative(path, to);
            out.push_str(&format!(
                "<a rel=\"{rel}\" href=\"{link}\"><small>{word}</small> {}</a>\n",
                html(title)
            ));
        }
    }
    out.push_str("</nav>\n");
    out
}
