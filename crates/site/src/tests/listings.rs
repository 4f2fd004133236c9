//! Listings of folders without an index page.

use std::sync::Arc;

use base64ct::{Base64, Encoding};
use sha2::{Digest, Sha256};
use tenfold_http::Memory;

use super::*;
use crate::rules::policy::{Policies, Policy, PolicyRule};
use crate::{Listing, Pattern, Redirect, Rewrite, Routes, Slash};

fn listing(folder: &Folder, listing: Listing) -> Site {
    folder.site(Settings { listing, ..Settings::default() })
}

/// Returns the links of a page in order, without the links of its head.
fn links(page: &Response) -> Vec<String> {
    let body = page.text().split("<tbody>").nth(1).expect("a page has a table");
    body.split("href=\"").skip(1).filter_map(|rest| Some(rest.split('"').next()?.to_owned())).collect()
}

/// Returns the page without its style and script, which are the same on every page.
fn content(page: &Response) -> &str {
    let (_, rest) = page.text().split_once("<main>").expect("a page has content");
    rest.split_once("</main>").expect("it ends").0
}

fn set_time(folder: &Folder, name: &str, seconds: u64) {
    let file = fs::File::open(folder.at(name)).expect("it is there");
    file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).expect("it is ours");
}

fn several() -> Folder {
    let folder = Folder::new();
    for (name, size, seconds) in [("b.txt", 5, 3), ("A.txt", 2000, 2), ("c.txt", 70, 1)] {
        folder.write(&format!("docs/{name}"), "x".repeat(size));
        set_time(&folder, &format!("docs/{name}"), seconds);
    }
    folder.write("docs/z/deep.txt", "deep");
    folder
}

#[test]
fn a_folder_is_listed_where_that_is_asked_for_and_nowhere_else() {
    let folder = several();
    assert_eq!(get(&folder.site(Settings::default()), "/docs/").status(), 404);
    let site = listing(&folder, Listing::Html);
    let page = get(&site, "/docs/");
    assert_eq!((page.status(), page.field("Content-Type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(links(&page), ["../", "./z/", "./A.txt", "./b.txt", "./c.txt"]);
    assert_eq!(page.field("Vary"), Some("Accept"));
    assert_eq!(links(&get(&site, "/")), ["./docs/"], "the root has a link to its parent");
    assert_eq!(get(&site, "/docs").field("Location"), Some("/docs/"));
    assert_eq!(get(&site, "/none/").status(), 404);
    assert_eq!(get(&site, "/docs/b.txt/").status(), 404);
    folder.write("docs/index.html", "a page of its own");
    assert_eq!(get_later(&site, "/docs/").text(), "a page of its own");
}

/// HTTP/2 has many responses in one connection, and bounds the bodies that are copied.
#[test]
fn unsent_listings_of_the_same_content_share_their_memory() {
    let folder = several();
    (0..100).for_each(|number| folder.write(&format!("docs/many/{number}"), ""));
    let site = listing(&folder, Listing::Json);
    let shared = |out: &mut Out| {
        stage(&site, "GET /docs/many/ HTTP/1.1\r\nHost: here\r\n\r\n", out);
        match (out.pop_memory(Vec::new()), out.pop_memory(Vec::new())) {
            (_, Some(Memory::Shared(content, _))) => content,
            _ => panic!("the body is copied"),
        }
    };
    let (mut first, mut second) = (Out::new(), Out::new());
    let (content, again) = (shared(&mut first), shared(&mut second));
    assert!(content.len() < 16 << 10, "{} bytes", content.len());
    assert!(Arc::ptr_eq(&content, &again));
}

/// The guard of a folder is checked first, and a thread reads the folder later.
#[test]
fn a_folder_that_replaced_a_guarded_folder_is_not_listed() {
    for exchanged in [false, true] {
        let folder = several();
        folder.write("others/private.txt", "private");
        let site = listing(&folder, Listing::Html);
        let mut out = Out::new();
        let mut request = b"GET /docs/ HTTP/1.1\r\nHost: a.example\r\n\r\n".to_vec();
        let outcome = parse_request(&mut request, |request| {
            let request = request.expect("the request is well-formed");
            let Answered::Work(work) = site.respond(&request, &mut writer(&mut out)) else {
                panic!("a folder is read by a thread");
            };
            if exchanged {
                fs::rename(folder.at("docs"), folder.at("former")).expect("the directory is ours");
                folder.link("docs", "others");
            }
            match work.split().0().answer(&site, &request, &mut writer(&mut out)) {
                Answered::Staged(outcome) => outcome,
                Answered::Work(_) => panic!("the folder has been read"),
            }
        });
        let response = Response::of(outcome, &mut out);
        assert_eq!(response.status(), if exchanged { 404 } else { 200 });
        assert!(!response.text().contains("private.txt"));
    }
}

#[test]
fn a_rule_permits_listings_below_a_path() {
    let folder = several();
    let paths = Pattern::new("/docs/**").expect("it is a pattern");
    let policy = Policy { listing: Some(Listing::Json), ..Policy::default() };
    let policies = Policies::new(Policy::default(), vec![PolicyRule { paths, policy }]);
    let site = folder.site(Settings { policies, ..Settings::default() });
    assert_eq!(get(&site, "/").status(), 404);
    assert_eq!(get(&site, "/docs/z/").field("Content-Type"), Some("application/json"));
}

#[test]
fn a_query_sorts_and_folders_stay_in_front() {
    let folder = several();
    folder.write("docs/y/x", "");
    let site = listing(&folder, Listing::Html);
    for (query, expected) in [
        ("sort=name&order=desc", ["./z/", "./y/", "./c.txt", "./b.txt", "./A.txt"]),
        ("sort=size", ["./y/", "./z/", "./b.txt", "./c.txt", "./A.txt"]),
        ("sort=size&order=desc", ["./y/", "./z/", "./A.txt", "./c.txt", "./b.txt"]),
        ("sort=nonsense", ["./y/", "./z/", "./A.txt", "./b.txt", "./c.txt"]),
    ] {
        let found = links(&get(&site, &format!("/docs/?{query}")));
        let paths: Vec<_> =
            found[1..].iter().map(|link| link.split('?').next().unwrap_or_default()).collect();
        assert_eq!(paths, expected, "{query}");
    }
    let by_date = links(&get(&site, "/docs/?sort=date"));
    assert_eq!(by_date[3..], ["./c.txt", "./A.txt", "./b.txt"]);
    let page = get(&site, "/docs/?sort=size");
    assert!(page.text().contains("aria-sort=\"ascending\"><a href=\"?sort=size&#38;order=desc\">Size"));
}

#[test]
fn names_are_in_natural_order_on_the_page_and_in_json() {
    let folder = Folder::new();
    for name in ["IMG_10.jpg", "IMG_2.jpg", "img_1.jpg", "10/x", "9/x"] {
        folder.write(name, "");
    }
    let site = listing(&folder, Listing::Html);
    let natural = ["./9/", "./10/", "./img_1.jpg", "./IMG_2.jpg", "./IMG_10.jpg"];
    assert_eq!(links(&get(&site, "/")), natural);
    let reversed = [
        "./10/?sort=name&#38;order=desc",
        "./9/?sort=name&#38;order=desc",
        "./IMG_10.jpg",
        "./IMG_2.jpg",
        "./img_1.jpg",
    ];
    assert_eq!(links(&get(&site, "/?order=desc")), reversed);
    assert_eq!(links(&get(&site, "/?sort=size&order=desc"))[2..], natural[2..], "equal sizes");
    let json = ask(&site, "GET", "/", &["Accept: application/json"]);
    let at = |name: &str| json.text().find(name).expect(name);
    assert!(at("img_1.jpg") < at("IMG_2.jpg") && at("IMG_2.jpg") < at("IMG_10.jpg"));
}

#[test]
fn a_filter_shows_matching_names_and_the_links_keep_it() {
    let folder = several();
    folder.write("docs/a&\"<1>.txt", "");
    let site = listing(&folder, Listing::Html);
    let page = get(&site, "/docs/?sort=size&order=desc&filter=A");
    assert_eq!(links(&page)[1..], ["./A.txt", "./a&#38;%22%3C1%3E.txt"]);
    assert!(content(&page).contains("2 files, 2.0 KiB (the filter hides 3 more)"), "{}", content(&page));
    for kept in [
        "href=\"?sort=date&#38;filter=a\"",
        "href=\"?sort=size&#38;filter=a\"",
        "<input type=\"hidden\" name=\"sort\" value=\"size\">",
        "<input type=\"hidden\" name=\"order\" value=\"desc\">",
        "name=\"filter\" value=\"a\"",
    ] {
        assert!(content(&page).contains(kept), "{kept}: {}", content(&page));
    }
    let page = get(&site, "/docs/?filter=%26%22%3C");
    assert_eq!(links(&page)[1..], ["./a&#38;%22%3C1%3E.txt"]);
    assert!(content(&page).contains("name=\"filter\" value=\"&#38;&#34;&#60;\""), "{}", content(&page));
    assert!(content(&page).contains("href=\"?sort=size&#38;filter=%26%22%3C\""), "{}", content(&page));
    let sorted = get(&site, "/docs/?sort=date&filter=z");
    assert_eq!(links(&sorted), ["../?sort=date", "./z/?sort=date"], "other folders keep the order");
    let none = get(&site, "/docs/?filter=%3Cnone%3E");
    assert_eq!(links(&none), ["../"]);
    assert!(
        content(&none).contains("No name contains \u{201c}&#60;none&#62;\u{201d}."),
        "{}",
        content(&none)
    );
    let json = ask(&site, "GET", "/docs/?filter=z", &["Accept: application/json"]);
    let value: serde_json::Value = serde_json::from_slice(&json.body).expect("it is JSON");
    assert_eq!(value["entries"].as_array().map(Vec::len), Some(1), "{value}");
}

/// A digest that differs from its element disables the style or the script in a browser.
#[test]
fn the_policy_of_the_page_permits_only_its_own_style_and_script() {
    let folder = several();
    let page = get(&listing(&folder, Listing::Html), "/docs/");
    let digest = |tag: &str| {
        let parts: Vec<_> = page.text().split(&format!("<{tag}>")).collect();
        assert_eq!(parts.len(), 2, "a page has one {tag}");
        let (content, _) = parts[1].split_once(&format!("</{tag}>")).expect("it ends");
        Base64::encode_string(&Sha256::digest(content))
    };
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src 'self'; \
         media-src 'self'; base-uri 'none'; form-action 'self'",
        digest("style"),
        digest("script")
    );
    assert_eq!(page.field("Content-Security-Policy"), Some(&policy[..]));
    assert!(!page.text().contains(" style="), "the policy ignores inline attributes");
}

#[test]
fn h58_names_are_escaped_and_lead_to_what_they_name() {
    let folder = Folder::new();
    let names =
        ["<script>alert(1)</script>".replace('/', "|"), "a\"b'c&d".into(), "x?y#z %41".into(), "é:ü".into()];
    for name in &names {
        folder.write(name, name);
    }
    folder.write(".hidden", "");
    folder.write("backup~", "");
    folder.write("line\nbreak", "");
    folder.link("out", "../secret");
    folder.link("in", "é:ü");
    let site = listing(&folder, Listing::Html);
    let page = get(&site, "/");
    assert!(!page.text().contains("<script>alert"), "{}", page.text());
    let found = links(&page);
    assert_eq!(found.len(), names.len() + 1, "{found:?}");
    for link in found {
        let target = link.replace("&#38;", "&").replace("&#39;", "'").replacen("./", "/", 1);
        let file = get(&site, &target);
        assert!(file.status() == 200 && names.iter().any(|name| name == file.text()), "{target}");
    }
    for absent in ["hidden", "backup", "break", "secret", ">out"] {
        assert!(!content(&page).contains(absent), "{absent} is shown");
    }
}

#[test]
fn programs_get_json() {
    let folder = several();
    let site = listing(&folder, Listing::Html);
    let json = ask(&site, "GET", "/docs/", &["Accept: application/json"]);
    assert_eq!((json.field("Content-Type"), json.field("Vary")), (Some("application/json"), Some("Accept")));
    let value: serde_json::Value = serde_json::from_slice(&json.body).expect("it is JSON");
    assert_eq!((&value["path"], &value["truncated"]), (&"/docs/".into(), &false.into()));
    let entry = &value["entries"][1];
    assert_eq!((&entry["name"], &entry["type"]), (&"A.txt".into(), &"file".into()));
    assert_eq!((&entry["size"], &entry["modified"]), (&2000.into(), &2.into()));
    assert_eq!(value["entries"][0]["type"], "folder");
    for accept in ["text/html, application/json;q=0.9", "*/*", "image/png"] {
        let page = ask(&site, "GET", "/docs/", &[&format!("Accept: {accept}")]);
        assert_eq!(page.field("Content-Type"), Some("text/html; charset=utf-8"), "{accept}");
    }
    let always = get(&listing(&folder, Listing::Json), "/docs/");
    assert_eq!((always.field("Content-Type"), always.field("Vary")), (Some("application/json"), None));
}

#[test]
fn configured_fields_occur_once_on_a_listing() {
    let folder = several();
    let own =
        [("Content-Security-Policy", "default-src 'self'"), ("Cache-Control", "no-store"), ("X-A", "b")];
    let fields = own.iter().map(|(name, value)| crate::FieldEdit::set(name, value).expect(name)).collect();
    let policies = Policies::new(Policy { fields, ..Policy::default() }, Vec::new());
    let site = folder.site(Settings { policies, listing: Listing::Html, ..Settings::default() });
    let page = get(&site, "/docs/");
    let tag = format!("If-None-Match: {}", page.field("ETag").expect("a page has one"));
    for (answer, status) in [
        (&page, 200),
        (&ask(&site, "GET", "/docs/", &[&tag]), 304),
        (&ask(&site, "GET", "/docs/", &["If-Match: \"x\""]), 412),
    ] {
        assert_eq!((answer.status(), answer.field("Vary")), (status, Some("Accept")));
        for (name, value) in own {
            let lines: Vec<_> = answer.head.lines().filter(|line| line.starts_with(name)).collect();
            assert_eq!(lines, [format!("{name}: {value}")], "{status}");
        }
    }
}

#[test]
fn listings_are_bounded_and_report_it() {
    let folder = Folder::new();
    for name in 0..5 {
        folder.write(&name.to_string(), "");
    }
    let settings = |most| Settings { listing: Listing::Html, listing_entries: most, ..Settings::default() };
    let page = get(&folder.site(settings(5)), "/");
    assert!(links(&page).len() == 5 && !page.text().contains("more here"));
    let page = get(&folder.site(settings(4)), "/");
    assert!(links(&page).len() == 4 && page.text().contains("the first 4 names were read"));
}

#[test]
fn a_listing_counts_the_names_that_no_url_can_contain() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let folder = several();
    let site = listing(&folder, Listing::Html);
    assert!(!get(&site, "/docs/").text().contains("not shown"));
    for (names, note) in [
        (
            &[&b"back\\slash"[..], b".hid\\den", b".\xff"][..],
            "1 name is not shown, because no URL can contain it.",
        ),
        (&[&b"latin\xe9"[..], b"line\nbreak", b"old\xff~"], "3 names are not shown"),
    ] {
        for name in names {
            fs::write(folder.at("docs").join(OsStr::from_bytes(name)), "").expect("our own folder");
        }
        let page = get(&site, "/docs/");
        assert!(page.text().contains(note), "{}", page.text());
        assert_eq!(links(&page).len(), 5);
    }
    let json = ask(&site, "GET", "/docs/", &["Accept: application/json"]);
    let value: serde_json::Value = serde_json::from_slice(&json.body).expect("it is JSON");
    assert_eq!(value["unshown"], 3);
}

#[test]
fn listings_are_current_and_conditional() {
    let folder = several();
    let site = listing(&folder, Listing::Html);
    let page = get(&site, "/docs/");
    let head = ask(&site, "HEAD", "/docs/", &[]);
    assert_eq!((&head.head, head.body.len()), (&page.head, 0));
    let condition = format!("If-None-Match: {}", page.field("ETag").expect("a listing has a tag"));
    let same = ask(&site, "GET", "/docs/", &[&condition]);
    assert_eq!((same.status(), same.field("Vary"), same.body.len()), (304, Some("Accept"), 0));
    folder.write("docs/new.txt", "");
    let changed = ask(&site, "GET", "/docs/", &[&condition]);
    assert!(changed.status() == 200 && links(&changed).contains(&"./new.txt".to_owned()));
    assert!(ask(&site, "POST", "/docs/", &[]).status() == 405);
}

#[test]
fn a_folder_that_is_not_listed_explains_listings_only_if_configured() {
    let folder = several();
    let silent = get(&folder.site(Settings::default()), "/docs/");
    assert_eq!((silent.status(), silent.text()), (404, "404 Not Found\n"));
    let site = folder.site(Settings { explain_listing: true, ..Settings::default() });
    let advice = "404 Not Found\n\nThis folder has no index.html. To list its files, start the server with --listing html.\n";
    for round in ["first", "cached"] {
        let page = get(&site, "/docs/");
        assert_eq!((page.status(), page.text()), (404, advice), "{round}");
    }
    assert_eq!(get(&site, "/none/").text(), "404 Not Found\n");
    folder.write("404.html", "a page of its own");
    assert_eq!(get_later(&site, "/docs/").text(), "a page of its own");
}

#[test]
fn a_page_has_icons_units_and_totals() {
    let folder = several();
    for name in ["photo.JPG", "song.ogg", "all.tar.gz", "data.bin"] {
        folder.write(&format!("docs/{name}"), "1");
    }
    let site = listing(&folder, Listing::Html);
    let text = get(&site, "/docs/").text().to_owned();
    for (class, link) in [
        ("up", "../"),
        ("dir", "./z/"),
        ("text", "./A.txt"),
        ("image", "./photo.JPG"),
        ("media", "./song.ogg"),
        ("archive", "./all.tar.gz"),
        ("file", "./data.bin"),
    ] {
        assert!(text.contains(&format!("<a class=\"{class}\" href=\"{link}\"")), "{link}: {text}");
    }
    assert!(text.contains("<td class=\"size\" title=\"2000 bytes\">2.0 KiB</td>"), "{text}");
    assert!(text.contains("<td class=\"size\" title=\"5 bytes\">5 B</td>"), "{text}");
    assert!(text.contains("<td colspan=\"3\">1 folder, 7 files, 2.0 KiB</td>"), "{text}");
    assert!(!content(&get(&site, "/docs/")).contains("<script"), "{text}");
    folder.write("empty/.hidden", "");
    let empty = get(&site, "/empty/").text().to_owned();
    assert!(empty.contains("<td colspan=\"3\">This folder is empty.</td>"), "{empty}");
}

#[test]
fn the_first_index_that_exists_stands_for_its_folder() {
    let folder = several();
    folder.write("docs/index.htm", "second");
    let index = vec!["index.html".to_owned(), "index.htm".to_owned()];
    let site = folder.site(Settings { index, explain_listing: true, ..Settings::default() });
    assert_eq!(get(&site, "/docs/").text(), "second");
    assert_eq!(get(&site, "/docs").field("Location"), Some("/docs/"));
    assert!(get(&site, "/docs/z/").text().contains("no index.html or index.htm."));
    folder.write("docs/index.html", "first");
    assert_eq!(get_later(&site, "/docs/").text(), "first");
    fs::remove_file(folder.at("docs/index.html")).expect("it is ours");
    assert_eq!(get_later(&site, "/docs/").text(), "second");
}

/// Returns the target of a link on the page at `url`.
fn resolved(url: &str, link: &str) -> String {
    let mut folder: Vec<_> = url.split('/').collect();
    folder.pop();
    for step in link.split('/').filter(|_| !link.starts_with('/')) {
        match step {
            "." => {}
            ".." => drop(folder.pop()),
            name => folder.push(name),
        }
    }
    if link.starts_with('/') { link.to_owned() } else { folder.join("/") }
}

#[test]
fn a_listing_has_the_right_links_for_each_spelling_of_a_folder() {
    let folder = several();
    folder.write("docs/z/in/er.txt", "deeper");
    let rewrite = |from: &str, to: &str| Rewrite::new(Pattern::new(from).expect(from), to).expect(to);
    for (slash, url, expected) in [
        (Slash::Add, "/docs/", &["../", "./z/", "./A.txt"][..]),
        (Slash::Either, "/docs/", &["../", "./z/", "./A.txt"]),
        (Slash::Either, "/docs", &["./", "./docs/z/", "./docs/A.txt"]),
        (Slash::Either, "/docs/z", &["./", "./z/in/", "./z/deep.txt"]),
        (Slash::Either, "/", &["./docs/"]),
        (Slash::Remove, "/docs", &["./", "./docs/z", "./docs/A.txt"]),
        (Slash::Remove, "/docs/z", &["../docs", "./z/in", "./z/deep.txt"]),
        (Slash::Remove, "/docs/z/in", &["../z", "./in/er.txt"]),
        (Slash::Remove, "/", &["./docs"]),
        (Slash::Add, "/dl/", &["../", "./z/", "./A.txt"]),
        (Slash::Add, "/dl", &["./", "./dl/z/", "./dl/A.txt"]),
        (Slash::Add, "/dl/z/", &["../", "./in/", "./deep.txt"]),
        (Slash::Add, "/latest", &["./", "/docs/z/", "/docs/A.txt"]),
        (Slash::Remove, "/latest", &["./", "/docs/z", "/docs/A.txt"]),
        (Slash::Either, "/dl", &["./", "./dl/z/", "./dl/A.txt"]),
    ] {
        let rewrites = vec![rewrite("/dl/**", "/docs/**"), rewrite("/latest", "/docs/")];
        let routes = Routes { slash, rewrites, ..Routes::default() };
        let site = folder.site(Settings { routes, listing: Listing::Html, ..Settings::default() });
        for round in ["first", "cached"] {
            let page = get(&site, url);
            assert_eq!(page.status(), 200, "{slash:?} {url} {round}");
            let found = links(&page);
            assert_eq!(found[..expected.len()], *expected, "{slash:?} {url} {round}");
            for link in found {
                let target = resolved(url, &link);
                let status = get(&site, &target).status();
                assert_eq!(status, 200, "{slash:?} {url}: {link} is {target}");
            }
        }
        let json = ask(&site, "GET", "/latest", &["Accept: application/json"]);
        assert!(json.text().starts_with("{\"path\":\"/docs/\""), "{}", json.text());
        assert_eq!(get(&site, "/none").status(), 404);
    }
    let routes = Routes { slash: Slash::Remove, ..Routes::default() };
    let site = folder.site(Settings { routes, listing: Listing::Html, ..Settings::default() });
    assert_eq!(get(&site, "/docs/").field("Location"), Some("/docs"));
    let text = get(&site, "/docs/z/in").text().to_owned();
    assert!(text.contains("<a href=\"../../\">Files</a>"), "{text}");
    assert!(
        text.contains("<a href=\"../../docs\">docs</a>") && text.contains("<a href=\"../z\">z</a>"),
        "{text}"
    );
}

#[test]
fn a_grid_shows_images_lazily_and_players_that_load_nothing() {
    let folder = several();
    for name in ["a&b.JPG", "raw.tiff", "song.ogg", "film.mp4"] {
        folder.write(&format!("media/{name}"), "1");
    }
    folder.write("media/more/x", "");
    let site = listing(&folder, Listing::Html);
    let grid = get(&site, "/media/?view=grid&sort=date");
    let grid = content(&grid);
    for shown in [
        "<li><a class=\"up\" href=\"../?sort=date&#38;view=grid\"",
        "<li><a class=\"dir\" href=\"./more/?sort=date&#38;view=grid\">more/</a></li>",
        "<li><a class=\"image\" href=\"./a&#38;b.JPG\"><img loading=\"lazy\" decoding=\"async\" alt=\"\" \
         src=\"./a&#38;b.JPG\">a&#38;b.JPG</a></li>",
        "<li><a class=\"image\" href=\"./raw.tiff\">raw.tiff</a></li>",
        "<li><audio controls preload=\"none\" src=\"./song.ogg\"></audio><a class=\"media\"",
        "<li><video controls preload=\"none\" src=\"./film.mp4\"></video><a class=\"media\"",
        "<a href=\"?sort=size&#38;view=grid\">Size</a>",
        "<a href=\"?sort=date\">List</a> <a href=\"?sort=date&#38;view=grid\" aria-current=\"true\">Grid</a>",
        "<input type=\"hidden\" name=\"view\" value=\"grid\">",
        "1 folder, 4 files",
    ] {
        assert!(grid.contains(shown), "{shown}: {grid}");
    }
    let list = get(&site, "/media/?view=unknown");
    let list = content(&list);
    let player = "<details><summary aria-label=\"Play song.ogg\">Play</summary>\
                  <audio controls preload=\"none\" src=\"./song.ogg\"></audio></details>";
    assert!(list.contains(player) && !list.contains("<img"), "{list}");
}

#[test]
fn a_readme_is_escaped_text_below_the_list() {
    let folder = several();
    let below = |folder: &Folder| {
        let page = get(&listing(folder, Listing::Html), "/docs/");
        content(&page).split_once("</table>").expect("a list").1.to_owned()
    };
    assert!(!below(&folder).contains("<pre>"));
    for (name, text, shown) in [
        ("README", "plain", "<h2>README</h2>\n<pre>plain</pre>"),
        ("ReadMe.txt", "# <script>&", "<h2>ReadMe.txt</h2>\n<pre># &#60;script&#62;&#38;</pre>"),
        ("README.md", "\u{fc}", "<h2>README.md</h2>\n<pre>\u{fc}</pre>"),
    ] {
        folder.write(&format!("docs/{name}"), text);
        assert!(below(&folder).contains(shown), "{name}: {}", below(&folder));
    }
    // The bound divides a character.
    let long = format!("{}\u{fc}{}", "x".repeat((64 << 10) - 1), "y".repeat(9));
    folder.write("docs/README.md", &long);
    let cut = below(&folder);
    assert!(cut.contains("x</pre>\n<p>The file is longer.</p>") && !cut.contains('y'), "{}", cut.len());
    let json = ask(&listing(&folder, Listing::Html), "GET", "/docs/", &["Accept: application/json"]);
    assert!(!json.text().contains("xxx"));
    fs::remove_file(folder.at("docs/README.md")).expect("it is ours");
    fs::remove_file(folder.at("docs/ReadMe.txt")).expect("it is ours");
    fs::remove_file(folder.at("docs/README")).expect("it is ours");
    folder.link("docs/README", "../../secret");
    assert!(!below(&folder).contains("<pre>"), "it is outside the root");
}

#[test]
fn a_readme_that_a_rule_leads_elsewhere_is_not_shown() {
    let folder = several();
    folder.write("docs/README", "old text");
    let redirects =
        vec![Redirect::new(Pattern::new("/docs/README").expect("legal"), "/", 301).expect("legal")];
    let routes = Routes { redirects, ..Routes::default() };
    let site = folder.site(Settings { routes, listing: Listing::Html, ..Settings::default() });
    assert!(!get(&site, "/docs/").text().contains("old text"));
}
