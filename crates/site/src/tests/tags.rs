//! Entity tags from content.

use tenfold_http::semantics::negotiate::ContentCoding::{Brotli, Gzip};

use super::*;
use crate::{Codings, TagFrom};

fn from_content() -> Settings {
    Settings { tags: TagFrom::Content, ..Settings::default() }
}

#[track_caller]
fn tag(site: &Site, target: &str) -> String {
    get(site, target).field("ETag").expect("a file has an entity tag").to_owned()
}

#[test]
fn the_same_content_has_the_same_tag_wherever_and_whenever_it_was_written() {
    let (here, there) = (Folder::new(), Folder::new());
    let large = "x".repeat(200_000);
    for (folder, second) in [(&here, 784_111_000), (&there, 784_112_000)] {
        for (name, content) in [("small", "content"), ("large", &large), ("empty", "")] {
            folder.write(name, content);
            let file = fs::File::options().write(true).open(folder.at(name)).expect("the file is ours");
            file.set_modified(UNIX_EPOCH + Duration::from_secs(second)).expect("the file is ours");
        }
    }
    let sites = [here.site(from_content()), there.site(Settings { memory_up_to: 0, ..from_content() })];
    for target in ["/small", "/large", "/empty"] {
        let tags = sites.each_ref().map(|site| tag(site, target));
        assert_eq!(tags[0], tags[1], "{target}");
        assert_eq!(tags[0].len(), 34, "{target}");
        let same = ask(&sites[0], "GET", target, &[&format!("If-None-Match: {}", tags[1])]);
        assert_eq!(same.status(), 304, "{target}");
        let by_time = ask(&sites[0], "GET", target, &["If-Modified-Since: Mon, 07 Nov 1994 08:49:37 GMT"]);
        assert_eq!((by_time.status(), by_time.field("Last-Modified")), (200, None), "{target}");
    }
    assert_ne!(tag(&sites[0], "/small"), tag(&sites[0], "/large"));
    assert_eq!(get(&sites[1], "/large").text(), large);
}

#[test]
fn content_is_read_once_and_for_all_threads() {
    let folder = Folder::of(&[("page", "one")]);
    let site = folder.site(from_content());
    let first = tag(&site, "/page");
    pass(Duration::from_secs(5));
    assert_eq!((tag(&site, "/page"), WORKED.get(), site.digests.len()), (first.clone(), 1, 1));
    let now = (clock::now(), clock::unix_seconds());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            clock::set(now.0, now.1);
            assert_eq!((tag(&site, "/page"), site.digests.len()), (first.clone(), 1));
        });
    });
    folder.replace("page", "two");
    pass(Duration::from_secs(1));
    assert_ne!(tag(&site, "/page"), first);
    folder.replace("page", "one");
    pass(Duration::from_secs(1));
    assert_eq!(tag(&site, "/page"), first, "restored content has another tag");
}

#[test]
fn each_coding_has_a_tag_of_its_own_content() {
    let folder = Folder::new();
    folder.write("page.html", "a line\n".repeat(500));
    folder.write("page.html.br", "made by hand");
    let codings = Codings { siblings: vec![Brotli], made: vec![Gzip], ..Codings::default() };
    let site = folder.site(Settings { codings, ..from_content() });
    let coded = |coding: &str| {
        let response = ask(&site, "GET", "/page.html", &[&format!("Accept-Encoding: {coding}")]);
        response.field("ETag").expect("a file has an entity tag").to_owned()
    };
    let plain = coded("");
    assert_eq!(coded("br"), format!("\"{}.br\"", crate::representation::tags::digest(b"made by hand")));
    assert_eq!(coded("gzip"), format!("{}.gz1\"", plain.trim_end_matches('"')));
}

#[test]
fn a_file_that_is_too_large_or_changes_has_the_tag_of_its_time() {
    let folder = Folder::of(&[("page", "12345")]);
    let by_time = tag(&folder.site(Settings::default()), "/page");
    for (most, expected) in [(5, false), (4, true)] {
        let site = folder.site(Settings { tags_up_to: most, ..from_content() });
        assert_eq!(tag(&site, "/page") == by_time, expected, "up to {most}");
    }
    let site = folder.site(Settings { memory_up_to: 0, ..from_content() });
    let mut request = b"GET /page HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
    parse_request(&mut request, |request| {
        let (request, mut out) = (request.expect("the request is good"), Out::new());
        let Answered::Work(work) = site.respond(&request, &mut writer(&mut out)) else {
            panic!("its content is not read")
        };
        folder.write("page", "54321, and more");
        let Answered::Staged(outcome) = work.split().0().answer(&site, &request, &mut writer(&mut out))
        else {
            panic!("it needs more work");
        };
        let response = Response::of(outcome, &mut out);
        assert_eq!(response.field("ETag"), Some(&by_time[..]));
        let Answered::Work(work) = site.respond(&request, &mut writer(&mut out)) else {
            panic!("it was cached")
        };
        let otherwise = work.split().1.expect("the file has a response with the tag of its time");
        let response = Response::of(otherwise.answer(&site, &request, &mut writer(&mut out)), &mut out);
        assert_eq!((response.status(), response.text()), (200, "54321, and more"));
    });
}
