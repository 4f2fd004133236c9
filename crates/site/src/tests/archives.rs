//! Folders as archives.

use std::collections::BTreeMap;
use std::io::Read;

use super::*;
use crate::rules::policy::{Policies, Policy, PolicyRule};
use crate::{Listing, Pattern, Redirect, Routes};

fn archives(folder: &Folder, settings: Settings) -> Site {
    folder.site(Settings { listing: Listing::Html, archives: true, ..settings })
}

/// Returns the files of an archive; folders have no content.
fn files(archive: &[u8]) -> BTreeMap<String, Option<String>> {
    let mut archive = tar::Archive::new(archive);
    let mut files = BTreeMap::new();
    for entry in archive.entries().expect("it is an archive") {
        let mut entry = entry.expect("it has a header");
        let path = entry.path().expect("it has a path").to_str().expect("it is text").to_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).expect("it has its content");
        let is_file = entry.header().entry_type() == tar::EntryType::Regular;
        assert!(files.insert(path, is_file.then_some(text)).is_none(), "a file is twice in the archive");
    }
    files
}

fn names(archive: &Response) -> Vec<String> {
    assert_eq!(archive.status(), 200, "{}", archive.head);
    files(&archive.body).into_keys().collect()
}

#[test]
fn an_archive_has_the_files_that_listings_show() {
    let folder = Folder::new();
    let (long, long_name) = ("z".repeat(1000), format!("docs/{}", "n".repeat(200)));
    for (name, content) in [
        ("docs/b.txt", "b"),
        ("docs/empty", ""),
        ("docs/sub/deep/x.bin", &long),
        ("docs/sub/block", &"y".repeat(512)),
        (&long_name, "long"),
        ("docs/.hidden", "hidden"),
        ("docs/.git/config", "hidden"),
        ("docs/backup~", "hidden"),
        ("other/x", "elsewhere"),
    ] {
        folder.write(name, content);
    }
    fs::create_dir(folder.at("docs/void")).expect("our own folder");
    folder.link("docs/out", "../../secret");
    folder.link("docs/outside", "../..");
    folder.link("docs/within", "../other");
    folder.link("docs/sub/loop", "..");
    folder.link("docs/sub/again", "deep");
    let fifo = folder.at("docs/fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("our own folder");
    let site = archives(&folder, Settings::default());
    let archive = get(&site, "/docs/?archive=tar");
    let length = archive.body.len().to_string();
    for (name, value) in [
        ("Content-Type", "application/x-tar"),
        ("Content-Length", &length),
        ("Content-Disposition", "attachment; filename=\"docs.tar\"; filename*=UTF-8''docs.tar"),
        ("Cache-Control", "no-cache"),
        ("X-Content-Type-Options", "nosniff"),
    ] {
        assert_eq!(archive.field(name), Some(value));
    }
    let file = |text: &str| Some(text.to_owned());
    let expected = [
        ("docs/b.txt".to_owned(), file("b")),
        ("docs/empty".to_owned(), file("")),
        (long_name, file("long")),
        // The first of the two names in the order of names.
        ("docs/sub/".to_owned(), None),
        ("docs/sub/again/".to_owned(), None),
        ("docs/sub/again/x.bin".to_owned(), file(&long)),
        ("docs/sub/block".to_owned(), file(&"y".repeat(512))),
        ("docs/void/".to_owned(), None),
        ("docs/within/".to_owned(), None),
        ("docs/within/x".to_owned(), file("elsewhere")),
    ];
    assert_eq!(files(&archive.body), BTreeMap::from(expected));
    assert_eq!(archive.body.len() % 512, 0);
    assert!(archive.body.ends_with(&[0; 1024]));
    let head = ask(&site, "HEAD", "/docs/?archive=tar", &[]);
    assert_eq!((&head.head, head.body.len()), (&archive.head, 0));
    assert!(get(&site, "/docs/").text().contains("<a href=\"?archive=tar\">Download"));
    let whole = get(&site, "/?archive=tar");
    assert!(whole.field("Content-Disposition").is_some_and(|value| value.contains("\"Files.tar\"")));
    assert!(names(&whole).contains(&"Files/docs/b.txt".to_owned()));
    folder.write("\u{fc} \"x\"/y", "");
    let spelled = get(&site, "/%C3%BC%20%22x%22/?archive=tar");
    let disposition = "attachment; filename=\"archive.tar\"; filename*=UTF-8''%C3%BC%20%22x%22.tar";
    assert_eq!(spelled.field("Content-Disposition"), Some(disposition));
}

#[test]
fn an_archive_needs_a_setting_and_a_listing() {
    let folder = Folder::of(&[("docs/a", "a"), ("site/index.html", "home"), ("site/b", "b")]);
    let off = folder.site(Settings { listing: Listing::Html, ..Settings::default() });
    let page = get(&off, "/docs/?archive=tar");
    assert_eq!(page.field("Content-Type"), Some("text/html; charset=utf-8"));
    assert!(!page.text().contains("?archive"));
    let unlisted = folder.site(Settings { archives: true, ..Settings::default() });
    assert_eq!(get(&unlisted, "/docs/?archive=tar").status(), 404);
    let site = archives(&folder, Settings::default());
    assert_eq!(get(&site, "/site/?archive=tar").text(), "home", "a folder with an index is not listed");
    assert_eq!(get(&site, "/docs/?archive=zip").field("Content-Type"), Some("text/html; charset=utf-8"));
    let inner = names(&get(&site, "/?archive=tar"));
    assert_eq!(
        inner,
        ["Files/docs/", "Files/docs/a", "Files/site/", "Files/site/b", "Files/site/index.html"]
    );
}

#[test]
fn an_archive_omits_what_rules_hide() {
    let folder = Folder::of(&[("a/x", "x"), ("a/moved", "old"), ("a/unlisted/y", "y"), ("a/z/w", "w")]);
    let pattern = |text| Pattern::new(text).expect("a legal pattern");
    let policy = Policy { listing: Some(Listing::Off), ..Policy::default() };
    let rules = vec![PolicyRule { paths: pattern("/a/unlisted/**"), policy }];
    let redirects = vec![Redirect::new(pattern("/a/moved"), "/", 301).expect("legal")];
    let routes = Routes { redirects, ..Routes::default() };
    let policies = Policies::new(Policy::default(), rules);
    let site = archives(&folder, Settings { policies, routes, ..Settings::default() });
    assert_eq!(names(&get(&site, "/a/?archive=tar")), ["a/x", "a/z/", "a/z/w"]);
}

#[test]
fn archives_are_bounded_in_names_and_depth() {
    let folder = Folder::of(&[("a/1", ""), ("a/b/2", ""), ("a/b/3", "")]);
    for (most, status) in [(4, 200), (3, 403), (1, 403)] {
        let site = archives(&folder, Settings { listing_entries: most, ..Settings::default() });
        let response = get(&site, "/a/?archive=tar");
        assert_eq!(response.status(), status, "of {most}");
        assert!(status == 200 || response.text().contains(&format!("at most {most} names")));
    }
    let deep = |levels: usize| format!("d{levels}{}", "/d".repeat(levels));
    for (levels, status) in [(32, 200), (33, 403)] {
        folder.write(&format!("{}/x", deep(levels)), "");
        let site = archives(&folder, Settings::default());
        assert_eq!(get(&site, &format!("/d{levels}/?archive=tar")).status(), status, "{levels}");
    }
}

/// A response that ends early must not look complete.
#[test]
fn a_file_that_vanished_or_shrank_leaves_bytes_that_no_file_has() {
    for change in ["removed", "replaced", "shorter", "longer"] {
        let folder = Folder::of(&[("a/1", "first"), ("a/2", "second"), ("a/3", "third")]);
        let site = archives(&folder, Settings::default());
        let mut out = Out::new();
        stage(&site, "GET /a/?archive=tar HTTP/1.1\r\nHost: here\r\n\r\n", &mut out);
        let promised = out.len();
        match change {
            "removed" => fs::remove_file(folder.at("a/2")).expect("it is ours"),
            "replaced" => folder.replace("a/2", "SECOND"),
            "shorter" => folder.write("a/2", "sec"),
            _ => folder.write("a/2", "SECOND, and more"),
        }
        let (mut sent, mut missing) = (Vec::new(), 0);
        while missing == 0 && !out.is_empty() {
            let count = match out.file() {
                Some((file, range, _)) => {
                    let mut part = vec![0; usize::try_from(range.end - range.start).expect("it is short")];
                    let read = file.file.read_at(&mut part, range.start).expect("it is open");
                    sent.extend_from_slice(&part[..read]);
                    missing = part.len() - read;
                    part.len()
                }
                None => {
                    let mut slices = [std::io::IoSlice::new(&[])];
                    out.memory(&mut slices);
                    sent.extend_from_slice(&slices[0]);
                    slices[0].len()
                }
            };
            out.advance(count as u64);
        }
        let text = String::from_utf8_lossy(&sent);
        if change == "longer" {
            assert!(missing == 0 && sent.len() as u64 == promised, "{change}");
            assert!(text.contains("SECOND") && !text.contains("more"), "{change}");
        } else {
            assert_eq!(sent.len() as u64 + missing as u64, promised, "{change}");
            assert!(missing > 0 && text.contains("first") && !text.contains("third"), "{change}");
        }
    }
}

/// Each archive that is being sent holds the names of its files.
#[test]
fn archives_that_are_being_sent_are_bounded() {
    let folder = Folder::of(&[("a/1", "first")]);
    let site = archives(&folder, Settings::default());
    let status =
        |out: &mut Out| stage(&site, "GET /a/?archive=tar HTTP/1.1\r\nHost: h\r\n\r\n", out).status();
    let mut sent: Vec<_> = std::iter::repeat_with(Out::new).take(16).collect();
    assert!(sent.iter_mut().all(|out| status(out) == 200));
    assert_eq!(status(&mut Out::new()), 503);
    sent.pop();
    assert_eq!(status(&mut Out::new()), 200, "an archive that ended leaves its place");
}
