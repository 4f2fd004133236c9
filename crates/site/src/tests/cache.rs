//! Cached entries: their lifetime and their bounds.

use std::sync::{Arc, Weak};

use tenfold_http::OpenFile;
use tenfold_http::semantics::negotiate::ContentCoding;

use super::*;
use crate::Codings;

#[test]
fn a_response_cached_within_a_second_needs_no_file_call() {
    let folder = Folder::of(&[("index.html", "home"), ("a b.txt", "text"), ("docs/page", "page")]);
    for site in [folder.in_memory(), folder.by_handle()] {
        let all = || {
            for target in [
                "/",
                "/index.html",
                "/a%20b.txt",
                "/%61%20b.txt",
                "/docs",
                "/docs/page",
                "//docs//page",
                "/nothing",
                "/.env",
                "/%zz",
            ] {
                get(&site, target);
                ask(&site, "HEAD", target, &["Range: bytes=0-0"]);
            }
        };
        assert!(visits(all) > 0);
        assert_eq!(visits(all), 0);
        pass(Duration::from_millis(999));
        assert_eq!(visits(all), 0);
        pass(Duration::from_millis(1));
        // A lookup for each file, for the directory, for the absent file, and for the error page.
        assert_eq!(visits(all), 7);
        assert_eq!(visits(all), 0);
    }
}

#[test]
fn a_change_of_a_file_is_served_after_a_second() {
    let folder = Folder::new();
    for site in [folder.in_memory(), folder.by_handle()] {
        let see = |target: &str| {
            pass(Duration::from_secs(1));
            let response = get(&site, target);
            (response.status(), String::from_utf8(response.body).expect("text"))
        };
        assert_eq!(see("/page").0, 404);
        folder.write("page", "one");
        assert_eq!(see("/page"), (200, "one".to_owned()));
        folder.write("page", "three");
        assert_eq!(see("/page"), (200, "three".to_owned()));
        folder.replace("page", "other");
        assert_eq!(see("/page"), (200, "other".to_owned()));
        fs::remove_file(folder.at("page")).expect("the file is ours");
        assert_eq!(see("/page").0, 404);
        folder.write("page/index.html", "directory");
        assert_eq!(see("/page").0, 301);
        assert_eq!(see("/page/"), (200, "directory".to_owned()));
        fs::remove_dir_all(folder.at("page")).expect("the directory is ours");
        assert_eq!(see("/page/").0, 404);
    }
}

#[test]
fn a_file_that_was_changed_a_moment_ago_is_read_again() {
    let folder = Folder::of(&[("page", "one")]);
    let site = folder.in_memory();
    clock::set(Instant(1000), unix_now());
    get(&site, "/page");
    clock::set(Instant(2000), unix_now());
    // A lookup at the first check; a lookup, and another with an open, to load it again.
    assert_eq!(visits(|| drop(get(&site, "/page"))), 3);
    clock::set(Instant(3000), unix_now() + 10);
    assert_eq!(visits(|| drop(get(&site, "/page"))), 3);
    clock::set(Instant(4000), unix_now() + 10);
    assert_eq!(visits(|| drop(get(&site, "/page"))), 1);
}

#[test]
fn h36_names_that_are_not_there_push_out_no_file() {
    let folder = Folder::of(&[("good", "good")]);
    let site = folder.site(Settings { cache_entries: 4, ..Settings::default() });
    get(&site, "/good");
    for at in 0..1000 {
        assert_eq!(get(&site, &format!("/scan/{at}")).status(), 404);
    }
    assert_eq!(visits(|| drop(get(&site, "/good"))), 0);
}

#[test]
fn h36_spellings_of_one_file_are_one_entry() {
    let folder = Folder::of(&[("other", "other"), ("good", "good")]);
    let site = folder.site(Settings { cache_entries: 2, ..Settings::default() });
    get(&site, "/other");
    get(&site, "/good");
    let spellings =
        ["/%67ood", "/g%6fod", "/go%6Fd", "/goo%64", "//good", "/%67%6f%6f%64", "/good?1", "/good?2"];
    let again = || spellings.iter().for_each(|spelling| assert_eq!(get(&site, spelling).text(), "good"));
    assert_eq!(visits(again), 0);
    assert_eq!(visits(|| drop(get(&site, "/other"))), 0);
}

/// Requests a file, and returns a weak reference to the open file.
fn handle(site: &Site, target: &str) -> Weak<OpenFile> {
    let mut out = Out::new();
    let outcome = stage(site, &format!("GET {target} HTTP/1.0\r\n\r\n"), &mut out);
    out.advance(out.len() - outcome.body);
    let handle = Arc::downgrade(out.file().expect("a file follows its head").0);
    out.clear(0);
    handle
}

/// Whether the body of a file of this size is read from the file instead of memory.
fn is_sent_from_file(site: &Site, folder: &Folder, bytes: u64) -> bool {
    folder.write("sized", vec![b'x'; bytes as usize]);
    let mut out = Out::new();
    let outcome = stage(site, "GET /sized HTTP/1.0\r\n\r\n", &mut out);
    assert_eq!(outcome.body, bytes);
    let from_file = out.next_file().is_some();
    out.clear(0);
    from_file
}

#[test]
fn a_file_at_the_bound_is_sent_from_memory_and_a_larger_file_from_disk() {
    let folder = Folder::new();
    let asked = |bytes| is_sent_from_file(&folder.site(Settings::default()), &folder, bytes);
    assert_eq!([MEMORY_UP_TO, MEMORY_UP_TO + 1].map(asked), [false, true]);
}

#[test]
fn no_more_files_are_kept_open_than_the_bound() {
    let folder = Folder::new();
    for at in 0..6 {
        folder.write(&format!("{at}"), "x");
    }
    for bound in [0, 1, 3] {
        let site = folder.site(Settings { memory_up_to: 0, open_files: bound, ..Settings::default() });
        let handles: Vec<_> = (0..6).map(|at| handle(&site, &format!("/{at}"))).collect();
        let kept = handles.iter().filter(|handle| handle.strong_count() > 0).count();
        assert_eq!(kept, bound);
    }
}

#[test]
fn dropping_a_site_frees_its_cache() {
    let folder = Folder::of(&[("page", "first")]);
    let first = folder.by_handle();
    let kept = handle(&first, "/page");
    assert_eq!(kept.strong_count(), 1);
    folder.write("page", "other");
    // Another site has a store of its own, without the entries of the first site.
    let second = folder.in_memory();
    assert_eq!(get(&second, "/page").text(), "other");
    drop(first);
    assert_eq!(kept.strong_count(), 1);
    get(&folder.in_memory(), "/page");
    assert_eq!(kept.strong_count(), 0);
}

#[test]
fn each_thread_has_a_store_of_its_own() {
    let folder = Folder::of(&[("page", "page")]);
    let site = Arc::new(folder.in_memory());
    let here = get(&site, "/page");
    let (now, unix) = (clock::now(), clock::unix_seconds());
    let there = std::thread::spawn({
        let site = Arc::clone(&site);
        move || {
            clock::set(now, unix);
            let mut answer = None;
            assert!(visits(|| answer = Some(get(&site, "/page"))) > 0);
            answer
        }
    });
    assert_eq!(there.join().expect("the thread does not panic"), Some(here));
}

#[test]
fn a_response_larger_than_the_whole_store_is_sent_through_its_handle() {
    let folder = Folder::new();
    folder.write("page", vec![b'x'; 10_000]);
    let site = folder.site(Settings { cache_bytes: 9_999, ..Settings::default() });
    handle(&site, "/page");
    assert_eq!(get(&site, "/page").body.len(), 10_000);
}

/// Repeats a request until the response is as expected. This thread's clock stands still, so no entry
/// expires.
#[track_caller]
fn becomes(site: &Site, target: &str, expected: (u16, &str)) {
    becomes_with(site, target, &[], expected);
}

fn becomes_with(site: &Site, target: &str, fields: &[&str], expected: (u16, &str)) {
    for _ in 0..2000 {
        let response = ask(site, "GET", target, fields);
        if (response.status(), response.text()) == expected {
            return;
        }
        // The kernel reports a change when it likes.
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{target} does not become {expected:?}");
}

#[test]
fn a_change_of_a_watched_file_is_served_within_a_second() {
    let folder = Folder::of(&[("page", "one"), ("docs/index.html", "index"), ("docs/deep/file", "file")]);
    let settings = Settings { watched_folders: 10, ..Settings::default() };
    for site in [folder.site(settings.clone()), folder.site(Settings { memory_up_to: 0, ..settings })] {
        let shows_writes = |name, target, content: &str| {
            folder.write(name, content);
            becomes(&site, target, (200, content));
        };
        shows_writes("page", "/page", "one");
        shows_writes("page", "/page", "three");
        folder.replace("page", "two");
        becomes(&site, "/page", (200, "two"));
        fs::remove_file(folder.at("page")).expect("it is ours");
        becomes(&site, "/page", (404, "404 Not Found\n"));
        shows_writes("page", "/page", "back");
        shows_writes("docs/index.html", "/docs/", "index");
        shows_writes("docs/index.html", "/docs/", "another index");

        becomes(&site, "/docs/deep/file", (200, "file"));
        fs::rename(folder.at("docs"), folder.at("other")).expect("it is ours");
        becomes(&site, "/docs/deep/file", (404, "404 Not Found\n"));
        becomes(&site, "/other/deep/file", (200, "file"));
        fs::rename(folder.at("other"), folder.at("docs")).expect("it is ours");
        becomes(&site, "/docs/deep/file", (200, "file"));
        assert_eq!(visits(|| drop(get(&site, "/docs/deep/file"))), 0, "it is not cached");
    }
}

#[test]
fn a_change_of_a_watched_sibling_is_served_within_a_second() {
    let folder = Folder::of(&[("page", "plain"), ("page.gz", "one")]);
    let codings = Codings { siblings: vec![ContentCoding::Gzip], ..Codings::default() };
    let site = folder.site(Settings { codings, watched_folders: 10, ..Settings::default() });
    let becomes = |expected| becomes_with(&site, "/page", &["Accept-Encoding: gzip"], (200, expected));
    becomes("one");
    folder.replace("page.gz", "another");
    becomes("another");
    fs::remove_file(folder.at("page.gz")).expect("it is ours");
    becomes("plain");
    folder.write("page.gz", "back");
    becomes("back");
}

#[test]
fn folders_past_the_bound_are_looked_at_after_a_second() {
    let folder = Folder::of(&[("a/page", "one"), ("b/page", "one")]);
    let site = folder.site(Settings { watched_folders: 2, ..Settings::default() });
    becomes(&site, "/a/page", (200, "one"));
    becomes(&site, "/b/page", (200, "one"));
    folder.write("b/page", "two");
    folder.write("a/page", "two");
    becomes(&site, "/a/page", (200, "two"));
    assert_eq!(get(&site, "/b/page").text(), "one");
    assert_eq!(get_later(&site, "/b/page").text(), "two");
}

#[test]
fn many_hosts_push_out_no_files_of_each_other() {
    let folder = Folder::of(&[("page", "page")]);
    let hosts: Vec<Site> = (0..100).map(|_| folder.in_memory()).collect();
    let all = || hosts.iter().for_each(|site| assert_eq!(get(site, "/page").text(), "page"));
    assert!(visits(all) > 0);
    assert_eq!(visits(all), 0);
}
