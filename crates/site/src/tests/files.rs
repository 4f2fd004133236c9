//! Responses for files, directories, and special files.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::sync::atomic::AtomicBool;

use rustix::fs::{CWD, FileType, Mode};

use super::*;
use crate::{Codings, FieldEdit, Pattern, Policies, Policy, PolicyRule};

#[test]
fn a_file_has_its_content_and_fields() {
    let folder = Folder::of(&[("page.html", "<p>hello")]);
    let at = SystemTime::UNIX_EPOCH + Duration::new(784_111_777, 5);
    let file = fs::File::options().write(true).open(folder.at("page.html")).expect("it was just written");
    file.set_modified(at).expect("the file is ours");
    let response = get(&folder.in_memory(), "/page.html");
    let date = clock::with_date(|date| String::from_utf8(date.to_vec()).expect("a date is text"));
    let etag = response.field("ETag").expect("a file has an entity tag");
    assert_eq!(
        response.head,
        format!(
            "HTTP/1.1 200 OK\r\nServer: tenfold\r\nDate: {date}\r\nContent-Type: text/html; charset=utf-8\r\n\
             Content-Length: 8\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nETag: {etag}\r\n\
             Accept-Ranges: bytes\r\nX-Content-Type-Options: nosniff\r\n\r\n"
        )
    );
    assert_eq!(etag, "\"2ebc98a1.5-8\"");
    assert_eq!(response.text(), "<p>hello");
}

#[test]
fn the_answer_is_the_same_bytes_from_memory_and_through_a_handle() {
    let folder = Folder::new();
    for size in [0, 1, 4095, 4096, 4097, 65536, 65537, 300_000] {
        let content: Vec<u8> = (0..size).map(|at: u32| (at % 251) as u8).collect();
        folder.write("file.bin", &content);
        let (memory, handle) = (folder.in_memory(), folder.by_handle());
        let etag = get(&memory, "/file.bin").field("ETag").expect("a file has an entity tag").to_owned();
        for method in ["GET", "HEAD"] {
            for fields in [
                &[][..],
                &["Connection: close"],
                &["Range: bytes=0-0"],
                &["Range: bytes=1-4000"],
                &["Range: bytes=1-5000"],
                &["Range: bytes=-7"],
                &["Range: bytes=999999-"],
                &["Range: bytes=0-1,5-6"],
                &["If-Range: \"other\"", "Range: bytes=0-0"],
                &[&format!("If-None-Match: {etag}")],
                &["If-Match: \"other\""],
            ] {
                // First with a cold store, then with a warm store.
                for _ in 0..2 {
                    let one = ask(&memory, method, "/file.bin", fields);
                    let two = ask(&handle, method, "/file.bin", fields);
                    assert_eq!(one, two, "{size} bytes, {method} {fields:?}");
                    assert!(method == "GET" || one.body.is_empty());
                }
            }
        }
        assert_eq!(get(&memory, "/file.bin").body, content);
    }
}

#[test]
fn large_bodies_are_shared_and_not_copied() {
    let folder = Folder::new();
    folder.write("joined", vec![b'x'; 4096]);
    folder.write("shared", vec![b'x'; 4097]);
    let site = folder.in_memory();
    let mut out = Out::new();
    stage(&site, "GET /joined HTTP/1.0\r\n\r\n", &mut out);
    assert!(out.staged_alone().is_some());
    stage(&site, "GET /shared HTTP/1.0\r\n\r\n", &mut out);
    assert!(out.staged_alone().is_none());
}

#[test]
fn a_directory_is_its_index_and_its_name_leads_to_it() {
    let folder =
        Folder::of(&[("index.html", "home"), ("docs/index.html", "docs"), ("a b/é/index.html", "deep")]);
    fs::create_dir_all(folder.at("empty")).expect("the directory is ours");
    fs::create_dir_all(folder.at("odd/index.html")).expect("the directory is ours");
    for site in [folder.in_memory(), folder.by_handle()] {
        for (target, body) in [
            ("/", "home"),
            ("/docs/", "docs"),
            ("/docs/?x=1", "docs"),
            ("/a%20b/%C3%A9/", "deep"),
            ("//", "home"),
        ] {
            assert_eq!(get(&site, target).text(), body, "{target}");
        }
        for (target, location) in [
            ("/docs", "/docs/"),
            ("/docs?a=b&c=%20d", "/docs/?a=b&c=%20d"),
            ("/docs?", "/docs/?"),
            ("/empty", "/empty/"),
            ("/a%20b/%c3%a9", "/a%20b/%C3%A9/"),
        ] {
            // The second response comes from the store.
            for _ in 0..2 {
                let response = get(&site, target);
                assert_eq!(
                    (response.status(), response.field("Location")),
                    (301, Some(location)),
                    "{target}"
                );
            }
        }
        for target in ["/empty/", "/odd/", "/docs/index.html/", "/docs/nothing", "/index.html/x"] {
            assert_eq!(get(&site, target).status(), 404, "{target}");
        }
        assert_eq!(ask(&site, "HEAD", "/docs", &[]).status(), 301);
    }
}

#[test]
fn h44_a_link_that_leaves_the_root_is_not_there() {
    let folder = Folder::of(&[("page", "page")]);
    folder.link("out", "../secret");
    folder.link("absolute", folder.path.join("secret"));
    folder.link("above", "..");
    folder.link("loop", "loop");
    folder.link("magic", "/proc/self/environ");
    folder.link("inside", "page");
    for site in [folder.in_memory(), folder.by_handle()] {
        for target in ["/out", "/absolute", "/above/secret", "/above/", "/loop", "/magic"] {
            let response = get(&site, target);
            assert_eq!((response.status(), response.text()), (404, "404 Not Found\n"), "{target}");
        }
        assert_eq!(get(&site, "/inside").text(), "page");
    }
}

#[test]
fn h45_a_swap_of_links_shows_nothing_from_outside() {
    let folder = Folder::of(&[("one/secret", "public")]);
    folder.link("two", "..");
    let site = folder.site(Settings { cache_entries: 0, open_files: 0, ..Settings::default() });
    let (one, two) = (folder.at("one"), folder.at("two"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let exchange = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(CWD, &one, CWD, &two, exchange).expect("both are ours");
            }
        });
        let mut outside = 0;
        for _ in 0..1000 {
            for target in ["/one/secret", "/two/secret"] {
                let response = get(&site, target);
                match response.status() {
                    200 => assert_eq!(response.text(), "public"),
                    404 => outside += 1,
                    other => panic!("{target} is answered with {other}"),
                }
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(outside > 0, "the link was never seen");
    });
}

#[test]
fn h46_special_files_are_refused_without_waiting() {
    let folder = Folder::new();
    let fifo = Mode::from_raw_mode(0o644);
    rustix::fs::mknodat(CWD, folder.at("fifo"), FileType::Fifo, fifo, 0).expect("the directory is ours");
    let _listening = UnixListener::bind(folder.at("socket")).expect("the directory is ours");
    for site in [folder.in_memory(), folder.by_handle()] {
        for target in ["/fifo", "/socket", "/fifo"] {
            assert_eq!(get(&site, target).status(), 403, "{target}");
        }
    }
    let devices = Site::new(Root::open(Path::new("/dev")).expect("there are devices"), Settings::default());
    for target in ["/null", "/zero"] {
        assert_eq!(get(&devices, target).status(), 403, "{target}");
    }
}

#[test]
fn a_file_that_can_not_be_read_is_a_failure_and_no_half_of_an_answer() {
    clock::set(Instant(1000), unix_now() + 60);
    // The address 0 of a process has no memory, so reading it fails with EIO.
    let site = Site::new(Root::open(Path::new("/proc/self")).expect("it runs"), Settings::default());
    let mut out = Out::new();
    let outcome = stage(&site, "GET /mem HTTP/1.0\r\n\r\n", &mut out);
    assert_eq!(outcome.failure(), Some(rustix::io::Errno::IO.raw_os_error()));
    let response = Response::of(outcome, &mut out);
    assert_eq!((response.status(), response.text()), (500, "500 Internal Server Error\n"));
}

#[test]
fn a_file_that_may_not_be_read_is_refused() {
    let folder = Folder::of(&[("private", "private")]);
    fs::set_permissions(folder.at("private"), fs::Permissions::from_mode(0o000)).expect("the file is ours");
    // Root can read every file.
    let expected = if fs::File::open(folder.at("private")).is_ok() { 200 } else { 403 };
    assert_eq!(get(&folder.in_memory(), "/private").status(), expected);
}

#[test]
fn h49_h50_a_file_that_changes_its_size_keeps_the_promised_length() {
    let folder = Folder::of(&[("log", "0123456789")]);
    let site = folder.by_handle();
    let mut out = Out::new();
    let outcome = stage(&site, "GET /log HTTP/1.0\r\n\r\n", &mut out);
    let file = fs::File::options().append(true).open(folder.at("log"));
    file.and_then(|mut file| file.write_all(b"more")).expect("the file is ours");
    assert_eq!(Response::of(outcome, &mut out).text(), "0123456789");
    // The head and the range are staged together, so the sender detects that the file has become too short.
    let outcome = stage(&site, "GET /log HTTP/1.0\r\n\r\n", &mut out);
    let file = fs::File::options().write(true).open(folder.at("log")).expect("the file is ours");
    file.set_len(4).expect("the file is ours");
    let head = out.staged_alone().is_none().then(|| out.len() - outcome.body).expect("a file follows");
    out.advance(head);
    let (open, range, _) = out.file().expect("the file follows its head");
    assert_eq!((open.size, range), (10, 0..10));
    assert!(open.file.read_exact_at(&mut [0; 10], 0).is_err());
    out.clear(0);
}

#[test]
fn h51_a_file_that_is_replaced_while_it_is_sent_is_one_version() {
    let folder = Folder::new();
    for site in [folder.in_memory(), folder.by_handle()] {
        folder.replace("page", "the first version");
        let mut out = Out::new();
        let outcome = stage(&site, "GET /page HTTP/1.0\r\n\r\n", &mut out);
        folder.replace("page", "another version!!");
        assert_eq!(Response::of(outcome, &mut out).text(), "the first version");
        assert_eq!(get_later(&site, "/page").text(), "another version!!");
    }
}

#[test]
fn a_second_root_has_its_own_name_and_the_rest_stays() {
    let (folder, other) = (Folder::new(), Folder::new());
    folder.write("index.html", "start");
    folder.write("404.html", "own page");
    folder.write("book/index.html", "hidden by the second root");
    folder.write("bookshop/index.html", "another name");
    other.write("book/index.html", "manual");
    other.write("book/models/epoll.html", "epoll");
    other.write("secret.html", "outside the name");
    let [main, second] = [&folder, &other].map(|one| Root::open(&one.root()).expect("it was made"));
    let site = Site::with_second_root(main, Some(("book", second)), Settings::default());
    let found = |target| {
        let response = get(&site, target);
        (response.status(), response.text().to_owned())
    };
    for (target, body) in [
        ("/", "start"),
        ("/book/", "manual"),
        ("/%62ook/models/epoll.html", "epoll"),
        ("/bookshop/", "another name"),
    ] {
        assert_eq!(found(target), (200, body.to_owned()), "{target}");
    }
    for target in ["/book/absent.html", "/secret.html", "/book/../secret.html"] {
        assert_eq!(found(target), (404, "own page".to_owned()), "{target}");
    }
    assert_eq!(get(&site, "/book").field("Location"), Some("/book/"));
}

#[test]
fn a_file_that_is_compressed_by_its_name_has_its_coding() {
    use tenfold_http::semantics::negotiate::ContentCoding::{Brotli, Gzip};
    let folder = Folder::new();
    let long = "0123456789".repeat(200);
    for name in ["a.svgz", "game.wasm.gz", "app.js.br", "all.tar.gz", "own/app.bin", "app.js.br.gz"] {
        folder.write(name, &long);
    }
    let set = |value: &str| Policy {
        fields: vec![FieldEdit::set("Content-Encoding", value).expect("legal")],
        ..Policy::default()
    };
    let rules = vec![PolicyRule { paths: Pattern::new("/own/**").expect("legal"), policy: set("gzip, br") }];
    let codings = Codings { siblings: vec![Gzip], made: vec![Brotli], ..Codings::default() };
    for codings in [Codings::default(), codings] {
        let policies = Policies::new(Policy::default(), rules.clone());
        let site = folder.site(Settings { policies, codings, ..Settings::default() });
        for (name, media_type, coding) in [
            ("/a.svgz", "image/svg+xml; charset=utf-8", Some("gzip")),
            ("/game.wasm.gz", "application/wasm", Some("gzip")),
            ("/app.js.br", "text/javascript; charset=utf-8", Some("br")),
            ("/all.tar.gz", "application/gzip", None),
            ("/own/app.bin", "application/octet-stream", Some("gzip, br")),
        ] {
            let response = ask(&site, "GET", name, &["Accept-Encoding: br"]);
            assert_eq!((response.status(), response.text()), (200, &long[..]), "{name}");
            assert_eq!(response.field("Content-Encoding"), coding, "{name}");
            assert_eq!(response.field("Content-Type"), Some(media_type), "{name}");
            assert_eq!(response.field("Vary"), None, "{name}");
            let part = ask(&site, "GET", name, &["Range: bytes=1-2"]);
            assert_eq!((part.status(), part.field("Content-Encoding")), (206, coding), "{name}");
            let parts = ask(&site, "GET", name, &["Range: bytes=0-1,1500-1501"]);
            assert_eq!(parts.status(), if coding.is_some() { 200 } else { 206 }, "{name}");
            let tag = format!("If-None-Match: {}", response.field("ETag").expect("a file has one"));
            let same = ask(&site, "GET", name, &[&tag]);
            assert_eq!((same.status(), same.field("Content-Encoding")), (304, None), "{name}");
            let range = ask(&site, "GET", name, &["Range: bytes=9999-"]);
            assert_eq!((range.status(), range.field("Content-Encoding")), (416, None), "{name}");
        }
        assert_eq!(get(&site, "/own/none").field("Content-Encoding"), None, "an error has a coding");
    }
}

#[test]
fn each_cause_of_an_error_has_its_reason() {
    let folder = Folder::of(&[("page.html", "x"), ("docs/a.txt", "x"), ("locked.txt", "x")]);
    folder.link("out", "../secret");
    fs::set_permissions(folder.at("locked.txt"), fs::Permissions::from_mode(0o000))
        .expect("the file is ours");
    let reason = |site: &Site, target: &str| {
        stage(site, &format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"), &mut Out::new()).reason()
    };
    let site = folder.site(Settings::default());
    let either = Some("no such folder, or a folder without an index; listings are off");
    let folder_only = Some("a folder without an index; listings are off");
    for (target, expected) in [
        ("/page.html", None),
        ("/none", Some("no such file")),
        ("/docs/", either),
        ("/none/", either),
        ("/out", Some("a link leaves the root, or is not followed")),
        ("/out/", Some("a link leaves the root, or is not followed")),
        ("/.git", Some("a hidden name")),
        ("/a%2fb", Some("a name that no file can have")),
    ] {
        // The first response caches the absence.
        assert_eq!([(); 2].map(|()| reason(&site, target)), [expected; 2], "{target}");
    }
    // Root may read every file.
    if fs::File::open(folder.at("locked.txt")).is_err() {
        assert_eq!(reason(&site, "/locked.txt"), Some("permission denied"));
    }
    let local = folder.site(Settings { explain_listing: true, ..Settings::default() });
    assert_eq!(reason(&local, "/docs/"), folder_only);
    assert_eq!(reason(&local, "/none/"), Some("no such file"));
    let mut either_slash = Settings::default();
    either_slash.routes.slash = crate::Slash::Either;
    assert_eq!(reason(&folder.site(either_slash), "/docs"), folder_only);
}
