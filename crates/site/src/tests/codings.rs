//! Content codings: siblings on disk, and encodings made on the fly.

use std::sync::atomic::AtomicU64;

use tenfold_http::semantics::negotiate::ContentCoding::{self, Brotli, Gzip, Zstd};

use super::*;
use crate::representation::compress::tests::decode;
use crate::{Codings, FieldEdit, Policies, Policy, Remarks, stale_files};

fn with_siblings(folder: &Folder) -> Site {
    let codings = Codings { siblings: vec![Brotli, Zstd, Gzip], ..Codings::default() };
    folder.site(Settings { codings, ..Settings::default() })
}

fn compressing() -> Settings {
    let codings = Codings { made: vec![Zstd, Brotli, Gzip], ..Codings::default() };
    Settings { codings, ..Settings::default() }
}

/// Returns a text that is worth compressing.
fn text(about: &str) -> String {
    format!("{about}, a line that is said again and again\n").repeat(200)
}

fn accepting(site: &Site, target: &str, codings: &str, fields: &[&str]) -> Response {
    let accept = format!("Accept-Encoding: {codings}");
    let fields: Vec<_> = fields.iter().copied().chain([&accept[..]]).collect();
    ask(site, "GET", target, &fields)
}

fn coding(response: &Response) -> Option<&str> {
    response.field("Content-Encoding")
}

#[track_caller]
fn etag(response: &Response) -> String {
    response.field("ETag").expect("a file has an entity tag").to_owned()
}

#[test]
fn siblings_are_served_to_clients_that_accept_them() {
    let folder = Folder::new();
    for (name, content) in [("page.html", "as it is"), ("page.html.br", "brotli"), ("page.html.gz", "gzip")] {
        folder.write(name, content);
    }
    let site = with_siblings(&folder);
    for (accepted, expected, name) in [
        ("br, gzip", "brotli", Some("br")),
        ("gzip, br;q=0.5", "gzip", Some("gzip")),
        ("zstd", "as it is", None),
        ("*", "brotli", Some("br")),
        ("identity;q=0, gzip", "gzip", Some("gzip")),
    ] {
        let response = accepting(&site, "/page.html", accepted, &[]);
        assert_eq!((response.text(), coding(&response)), (expected, name), "{accepted}");
        assert_eq!(response.field("Vary"), Some("Accept-Encoding"), "{accepted}");
        assert_eq!(response.field("Content-Type"), Some("text/html; charset=utf-8"), "{accepted}");
    }
    let refused = accepting(&site, "/page.html", "identity;q=0, *;q=0", &[]);
    assert_eq!((refused.status(), refused.field("Vary")), (406, Some("Accept-Encoding")));
    assert_eq!(get(&site, "/page.html").text(), "as it is");
    let itself = get(&site, "/page.html.br");
    assert_eq!((itself.text(), coding(&itself), itself.field("Vary")), ("brotli", Some("br"), None));
}

#[test]
fn a_406_has_the_fields_that_are_set() {
    let folder = Folder::of(&[("page.html", "as it is"), ("page.html.gz", "gzip")]);
    let codings = Codings { siblings: vec![Gzip], ..Codings::default() };
    let policy = Policy { fields: vec![FieldEdit::set("X-A", "b").expect("legal")], ..Policy::default() };
    let policies = Policies::new(policy, Vec::new());
    let site = folder.site(Settings { codings, policies, ..Settings::default() });
    let refused = accepting(&site, "/page.html", "identity;q=0", &[]);
    assert_eq!((refused.status(), refused.field("X-A")), (406, Some("b")));
}

#[test]
fn files_without_siblings_are_not_negotiated() {
    let folder = Folder::new();
    folder.write("page.html", text("page"));
    fs::create_dir(folder.at("page.html.gz")).expect("the directory is ours");
    let site = with_siblings(&folder);
    let response = accepting(&site, "/page.html", "br, gzip, identity;q=0", &[]);
    assert_eq!((response.status(), coding(&response), response.field("Vary")), (200, None, None));
    folder.write("other.html", text("other"));
    folder.write("other.html.gz", "gzip");
    let plain = folder.site(Settings::default());
    let response = accepting(&plain, "/other.html", "gzip", &[]);
    assert_eq!((coding(&response), response.field("Vary")), (None, None), "encodings are off by default");
}

#[test]
fn siblings_older_than_their_file_are_not_served() {
    let folder = Folder::of(&[("page.html", "new"), ("page.html.gz", "gzip of the old")]);
    let set = |name, second| {
        let file = fs::File::options().write(true).open(folder.at(name)).expect("the file is ours");
        file.set_modified(UNIX_EPOCH + Duration::from_secs_f64(second)).expect("the file is ours");
    };
    let site = with_siblings(&folder);
    for (original, compressed, expected) in [
        (2000.0, 1997.9, "new"),
        (2000.0, 2000.0, "gzip of the old"),
        (2008.256, 2008.0, "gzip of the old"),
        (2008.256, 2006.256, "gzip of the old"),
        (2008.256, 2006.255, "new"),
        (2003.0, 2000.999, "new"),
    ] {
        set("page.html", original);
        set("page.html.gz", compressed);
        pass(Duration::from_secs(1));
        let response = accepting(&site, "/page.html", "gzip", &[]);
        assert_eq!(response.text(), expected, "{original} and {compressed}");
    }
}

thread_local! {
    static REMARKED: std::cell::RefCell<Vec<String>> = const { std::cell::RefCell::new(Vec::new()) };
}

#[test]
fn a_stale_compressed_file_is_named_once() {
    let folder = Folder::new();
    for name in ["page.html", "deep/other.html"] {
        folder.write(name, "new");
        folder.write(&format!("{name}.br"), "brotli of the old");
        folder.write(&format!("{name}.gz"), "gzip of the new");
        let old = fs::File::options().write(true).open(folder.at(&format!("{name}.br")));
        old.and_then(|file| file.set_modified(UNIX_EPOCH)).expect("the file is ours");
    }
    folder.link("deep/up", "..");
    let said = Box::leak(Box::new([const { AtomicU64::new(0) }; Remarks::WORDS]));
    let remarks = Remarks::new(said, |remark| REMARKED.with_borrow_mut(|all| all.push(remark.to_owned())));
    for _ in 0..2 {
        let mut site = with_siblings(&folder);
        site.remarks = Some(remarks);
        for name in ["/page.html", "/deep/other.html", "/page.html"] {
            assert_eq!(accepting(&site, name, "br, gzip", &[]).text(), "gzip of the new");
            pass(Duration::from_secs(1));
        }
    }
    let root = Root::open(&folder.root()).expect("it is there");
    let codings = Codings { siblings: vec![Brotli, Gzip], ..Codings::default() };
    let checked = stale_files(&root, &codings);
    let mut remarked = REMARKED.take();
    remarked.sort();
    assert_eq!(checked, remarked);
    assert_eq!(checked.len(), 2, "{checked:?}");
    assert!(checked[1].contains("page.html.br is older than "), "{checked:?}");
    assert!(stale_files(&root, &Codings::default()).is_empty(), "no siblings are configured");
}

#[test]
fn changes_of_siblings_are_seen_within_a_second() {
    let folder = Folder::of(&[("page.html", "as it is")]);
    let site = with_siblings(&folder);
    let see = || {
        pass(Duration::from_secs(1));
        accepting(&site, "/page.html", "gzip, zstd", &[]).text().to_owned()
    };
    assert_eq!(see(), "as it is");
    folder.write("page.html.gz", "gzip");
    assert_eq!(see(), "gzip");
    folder.replace("page.html.gz", "gzip, again");
    assert_eq!(see(), "gzip, again");
    folder.write("page.html.zst", "zstd");
    assert_eq!(see(), "zstd");
    fs::remove_file(folder.at("page.html.zst")).expect("the file is ours");
    assert_eq!(see(), "gzip, again");
    fs::remove_file(folder.at("page.html")).expect("the file is ours");
    pass(Duration::from_secs(1));
    assert_eq!(accepting(&site, "/page.html", "gzip", &[]).status(), 404, "the original is gone");
}

#[test]
fn each_coding_has_a_tag_and_conditions_and_ranges_apply_to_it() {
    let folder = Folder::new();
    let page = text("page");
    folder.write("page.html", &page);
    let stored = "0123456789".repeat(20);
    folder.write("page.html.br", &stored);
    let codings = Codings { siblings: vec![Brotli], made: vec![Gzip], ..Codings::default() };
    let site = folder.site(Settings { codings, ..Settings::default() });
    let tags: Vec<_> =
        ["br", "gzip", ""].map(|accepted| etag(&accepting(&site, "/page.html", accepted, &[]))).into();
    assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2], "{tags:?}");
    for (at, accepted) in ["br", "gzip", ""].into_iter().enumerate() {
        for (other, tag) in tags.iter().enumerate() {
            let same = at == other;
            let (none, any) = (format!("If-None-Match: {tag}"), format!("If-Match: {tag}"));
            let response = accepting(&site, "/page.html", accepted, &[&none]);
            assert_eq!(response.status(), if same { 304 } else { 200 }, "{accepted} {none}");
            assert_eq!(response.field("Vary"), Some("Accept-Encoding"), "{accepted} {none}");
            let response = accepting(&site, "/page.html", accepted, &[&any]);
            assert_eq!(response.status(), if same { 200 } else { 412 }, "{accepted} {any}");
            let range = format!("If-Range: {tag}");
            let response = accepting(&site, "/page.html", accepted, &["Range: bytes=2-4", &range]);
            assert_eq!(response.status(), if same { 206 } else { 200 }, "{accepted} {range}");
        }
    }
    let part = accepting(&site, "/page.html", "br", &["Range: bytes=2-4"]);
    assert_eq!((part.text(), part.field("Content-Range")), ("234", Some("bytes 2-4/200")));
    assert_eq!((coding(&part), part.field("Vary")), (Some("br"), Some("Accept-Encoding")));
    let past = accepting(&site, "/page.html", "br", &["Range: bytes=200-"]);
    assert_eq!((past.status(), past.field("Content-Range")), (416, Some("bytes */200")));
    assert_eq!(past.field("Vary"), Some("Accept-Encoding"));
    let several = accepting(&site, "/page.html", "br", &["Range: bytes=0-0,199-199"]);
    assert_eq!((several.status(), several.text()), (200, &stored[..]));
    let date = part.field("Last-Modified").expect("a file has a date");
    let by_date = accepting(&site, "/page.html", "br", &["Range: bytes=2-4", &format!("If-Range: {date}")]);
    assert_eq!(by_date.status(), 200, "the date does not identify the client's coding");
    for (field, status) in [("If-Modified-Since", 304), ("If-Unmodified-Since", 200)] {
        let response = accepting(&site, "/page.html", "br", &[&format!("{field}: {date}")]);
        assert_eq!(response.status(), status, "{field}");
    }
}

#[test]
fn compressed_bodies_decode_to_the_file() {
    let folder = Folder::new();
    let (short, long) = (text("short"), text("long").repeat(20));
    folder.write("short.html", &short);
    folder.write("long.html", &long);
    for site in [folder.site(compressing()), folder.site(Settings { memory_up_to: 0, ..compressing() })] {
        for (target, content) in [("/short.html", &short), ("/long.html", &long)] {
            for (name, coding_of) in [("zstd", Zstd), ("br", Brotli), ("gzip", Gzip)] {
                for _ in 0..2 {
                    let response = accepting(&site, target, name, &[]);
                    assert_eq!((response.status(), coding(&response)), (200, Some(name)), "{target}");
                    assert!(response.body.len() * 5 < content.len(), "{} bytes", response.body.len());
                    assert!(decode(&response.body, coding_of) == content.as_bytes(), "{target} in {name}");
                    assert_eq!(response.field("Vary"), Some("Accept-Encoding"));
                }
            }
            assert_eq!(get(&site, target).text(), content);
        }
    }
}

#[test]
fn small_and_incompressible_files_are_not_compressed() {
    let folder = Folder::new();
    folder.write("photo.png", text("photo"));
    folder.write("small.html", "x".repeat(1023));
    folder.write("large.html", "x".repeat((2 << 20) + 1));
    let site = folder.site(compressing());
    for target in ["/photo.png", "/small.html", "/large.html"] {
        let response = accepting(&site, target, "gzip", &[]);
        assert_eq!((coding(&response), response.field("Vary")), (None, None), "{target}");
    }
    folder.write("small.html", "x".repeat(1024));
    folder.write("large.html", "x".repeat(2 << 20));
    pass(Duration::from_secs(1));
    for target in ["/small.html", "/large.html"] {
        assert_eq!(coding(&accepting(&site, target, "gzip", &[])), Some("gzip"), "{target}");
    }
}

#[test]
fn a_file_is_compressed_once_and_for_all_stores_and_again_when_it_has_changed() {
    let folder = Folder::new();
    folder.write("page.html", text("one"));
    let site = folder.site(compressing());
    let see = || decode(&accepting(&site, "/page.html", "gzip", &[]).body, Gzip);
    for _ in 0..3 {
        assert_eq!(see(), text("one").as_bytes());
    }
    assert_eq!((WORKED.get(), site.encoded.len()), (1, 1));
    let now = (clock::now(), clock::unix_seconds());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            clock::set(now.0, now.1);
            assert_eq!(see(), text("one").as_bytes());
            assert_eq!((WORKED.get(), site.encoded.len()), (1, 1), "the encoding was not cached");
        });
    });
    folder.replace("page.html", &text("two"));
    pass(Duration::from_secs(1));
    for _ in 0..2 {
        assert_eq!(see(), text("two").as_bytes());
    }
    assert_eq!((WORKED.get(), site.encoded.len()), (2, 2));
}

#[test]
fn nothing_is_compressed_without_need_for_content() {
    let folder = Folder::new();
    folder.write("page.html", text("page"));
    let site = folder.site(compressing());
    let head = ask(&site, "HEAD", "/page.html", &["Accept-Encoding: gzip"]);
    assert_eq!((head.status(), coding(&head), head.field("Content-Length")), (200, Some("gzip"), None));
    let tag = etag(&head);
    let same = accepting(&site, "/page.html", "gzip", &[&format!("If-None-Match: {tag}")]);
    assert_eq!((same.status(), etag(&same)), (304, tag.clone()));
    assert_eq!(accepting(&site, "/page.html", "gzip", &["If-Match: \"other\""]).status(), 412);
    assert_eq!(WORKED.get(), 0);
    let whole = accepting(&site, "/page.html", "gzip", &[]);
    assert_eq!((etag(&whole), WORKED.get()), (tag, 1));
    let head = ask(&site, "HEAD", "/page.html", &["Accept-Encoding: gzip"]);
    assert_eq!(head.head, whole.head, "the length of a cached encoding is known");
}

#[test]
fn where_there_is_too_much_to_do_a_file_goes_as_it_is() {
    let folder = Folder::new();
    folder.write("page.html", text("page"));
    let site = folder.site(compressing());
    let mut request = b"GET /page.html HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n".to_vec();
    parse_request(&mut request, |request| {
        let (request, mut out) = (request.expect("the request is good"), Out::new());
        let Answered::Work(work) = site.respond(&request, &mut writer(&mut out)) else {
            panic!("it is not compressed")
        };
        let otherwise = work.split().1.expect("the file can be sent without an encoding");
        let response = Response::of(otherwise.answer(&site, &request, &mut writer(&mut out)), &mut out);
        assert_eq!((response.text(), coding(&response)), (&text("page")[..], None));
        assert_eq!(response.field("Vary"), Some("Accept-Encoding"));
    });
}

#[test]
fn a_file_that_changes_before_it_is_compressed_is_never_served_half() {
    let folder = Folder::new();
    folder.write("page.html", text("one"));
    let site = folder.site(Settings { memory_up_to: 0, ..compressing() });
    assert_eq!(get(&site, "/page.html").text(), text("one"));
    // Changed in place: the open file is another version than the cached version.
    folder.write("page.html", text("longer than it was"));
    let response = accepting(&site, "/page.html", "gzip", &[]);
    assert_eq!(coding(&response), None);
    pass(Duration::from_secs(1));
    let response = accepting(&site, "/page.html", "gzip", &[]);
    assert_eq!(decode(&response.body, Gzip), text("longer than it was").as_bytes());
}

#[test]
fn siblings_are_looked_up_once_a_second() {
    let folder = Folder::new();
    folder.write("page.html", text("page"));
    folder.write("page.html.gz", "gzip");
    let site = with_siblings(&folder);
    let all = || {
        for accepted in ["", "gzip", "br", "identity;q=0"] {
            accepting(&site, "/page.html", accepted, &[]);
        }
    };
    assert!(visits(all) > 0);
    assert_eq!(visits(all), 0);
    pass(Duration::from_secs(1));
    assert_eq!(visits(all), 4);
}

#[test]
fn a_coding_of_a_sibling_file_comes_before_compression() {
    let folder = Folder::new();
    folder.write("page.html", text("page"));
    folder.write("page.html.gz", "by hand");
    let codings = Codings {
        siblings: vec![Gzip],
        made: vec![ContentCoding::Zstd, ContentCoding::Gzip],
        ..Codings::default()
    };
    let site = folder.site(Settings { codings, ..Settings::default() });
    assert_eq!(accepting(&site, "/page.html", "gzip, zstd", &[]).text(), "by hand");
    assert_eq!(coding(&accepting(&site, "/page.html", "zstd", &[])), Some("zstd"));
}

#[test]
fn a_client_that_excludes_identity_does_not_get_it_under_load() {
    let folder = Folder::new();
    folder.write("page.html", text("busy"));
    let site = folder.site(compressing());
    for (accepted, status) in [("gzip", 200), ("gzip, identity;q=0", 503)] {
        let request = format!("GET /page.html HTTP/1.1\r\nHost: a\r\nAccept-Encoding: {accepted}\r\n\r\n");
        let mut out = Out::new();
        let outcome = parse_request(&mut request.into_bytes(), |request| {
            let request = request.expect("the request is well-formed");
            let Answered::Work(work) = site.respond(&request, &mut writer(&mut out)) else {
                panic!("nothing is made yet")
            };
            work.split().1.expect("the file has a response without the work").answer(
                &site,
                &request,
                &mut writer(&mut out),
            )
        });
        let response = Response::of(outcome, &mut out);
        assert_eq!((response.status(), coding(&response)), (status, None), "{accepted}");
    }
}

#[test]
fn h17_clients_that_do_not_read_hold_a_bounded_number_of_encodings() {
    let folder = Folder::new();
    let digits = |seed: u64| {
        let mut state = seed;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            format!("{:08x}", state >> 32)
        };
        std::iter::repeat_with(next).take(25_000).collect::<String>()
    };
    (0..20).for_each(|number| folder.write(&format!("{number}.txt"), digits(number)));
    let codings = Codings { made: vec![Gzip], cache_bytes: 300_000, ..Codings::default() };
    let site = folder.site(Settings { codings, cache_bytes: 300_000, ..Settings::default() });
    let request = |number| {
        let fields = "Host: here\r\nAccept-Encoding: gzip\r\n";
        format!("GET /{number}.txt HTTP/1.1\r\n{fields}\r\n")
    };
    let mut unread: Vec<Out> = Vec::new();
    for number in 0..20 {
        let mut out = Out::new();
        assert_eq!(stage(&site, &request(number), &mut out).status(), 200);
        unread.push(out);
    }
    // Beyond the bound, responses are sent from files.
    let encoded = |out: &Out| out.next_file().is_none();
    let held: u64 = unread.iter().filter(|out| encoded(out)).map(Out::len).sum();
    assert!((500_000..=1 << 20).contains(&held), "{held} bytes are held");
    assert!(unread.iter().any(|out| !encoded(out)));
    let mut out = Out::new();
    stage(&site, &request(0), &mut out);
    assert!(!encoded(&out), "the caches have evicted the first file, so it would be another copy");
    unread.clear();
    let mut out = Out::new();
    stage(&site, &request(0), &mut out);
    assert!(encoded(&out), "other content is still counted as unsent");
}
