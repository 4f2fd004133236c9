//! Conditions and ranges.

use super::*;

fn site() -> (Folder, Site) {
    let folder = Folder::of(&[("page", "0123456789")]);
    let site = folder.in_memory();
    (folder, site)
}

fn etag(response: &Response) -> String {
    response.field("ETag").expect("a file has an entity tag").to_owned()
}

#[test]
fn h52_head_and_304_have_no_body_and_the_right_length() {
    let (_folder, site) = site();
    let whole = get(&site, "/page");
    let head = ask(&site, "HEAD", "/page", &[]);
    assert_eq!((&head.head, head.body.len()), (&whole.head, 0));

    let etag = etag(&whole);
    let modified = whole.field("Last-Modified").expect("a file has a date").to_owned();
    for method in ["GET", "HEAD"] {
        for condition in [
            format!("If-None-Match: {etag}"),
            format!("If-None-Match: \"a\", W/{etag}"),
            "If-None-Match: *".to_owned(),
            format!("If-Modified-Since: {modified}"),
        ] {
            let response = ask(&site, method, "/page", &[&condition, "Range: bytes=0-1"]);
            assert_eq!((response.status(), response.body.len()), (304, 0), "{condition}");
            assert_eq!(response.field("ETag"), Some(&etag[..]));
            assert!(response.field("Date").is_some());
            for absent in ["Content-Length", "Content-Type", "Content-Range"] {
                assert_eq!(response.field(absent), None, "{condition}");
            }
        }
    }
    assert_eq!(ask(&site, "GET", "/page", &["If-None-Match: \"other\""]).status(), 200);
    let failed = ask(&site, "GET", "/page", &["If-Match: \"other\""]);
    assert_eq!((failed.status(), failed.text()), (412, "412 Precondition Failed\n"));
    assert_eq!(ask(&site, "GET", "/page", &[&format!("If-Match: {etag}")]).status(), 200);
}

#[test]
fn a_single_range_is_a_part() {
    let (_folder, site) = site();
    let whole = get(&site, "/page");
    for (range, expected) in [
        ("bytes=0-0", 0..1),
        ("bytes=3-5", 3..6),
        ("bytes=8-", 8..10),
        ("bytes=-3", 7..10),
        ("bytes=5-18446744073709551615", 5..10),
    ] {
        let (body, last) = (&"0123456789"[expected.clone()], expected.end - 1);
        let response = ask(&site, "GET", "/page", &[&format!("Range: {range}")]);
        assert_eq!((response.status(), response.text()), (206, body), "{range}");
        assert_eq!(response.field("Content-Range"), Some(&*format!("bytes {}-{last}/10", expected.start)));
        assert_eq!(response.field("Content-Length"), Some(&body.len().to_string()[..]));
        for same in ["Content-Type", "Last-Modified", "ETag", "Accept-Ranges", "X-Content-Type-Options"] {
            assert_eq!(response.field(same), whole.field(same), "{range}");
        }
    }
    for range in ["bytes=10-", "bytes=-0"] {
        let response = ask(&site, "GET", "/page", &[&format!("Range: {range}")]);
        assert_eq!(
            (response.status(), response.field("Content-Range")),
            (416, Some("bytes */10")),
            "{range}"
        );
    }
    for range in ["bytes=5-2", "bytes=a-b", "lines=0-1"] {
        assert_eq!(ask(&site, "GET", "/page", &[&format!("Range: {range}")]), whole, "{range}");
    }
    assert_eq!(ask(&site, "HEAD", "/page", &["Range: bytes=0-0"]).head, whole.head);
}

/// Parses a `multipart/byteranges` body strictly: the `Content-Range` of each part, with its bytes.
fn parts(response: &Response) -> Vec<(String, Vec<u8>)> {
    let media_type = response.field("Content-Type").expect("a body has a type");
    let boundary = media_type.strip_prefix("multipart/byteranges; boundary=").expect("it is in parts");
    let (body, mut parts) = (&response.body[..], Vec::new());
    let mut rest = body.strip_prefix(format!("--{boundary}\r\n").as_bytes()).expect("a first boundary");
    let separator = format!("\r\n--{boundary}");
    loop {
        let end = rest.windows(4).position(|window| window == b"\r\n\r\n").expect("the head of a part ends");
        let head = std::str::from_utf8(&rest[..end]).expect("heads are text");
        let place = head.strip_prefix("Content-Type: application/octet-stream\r\nContent-Range: ");
        let place = place.unwrap_or_else(|| panic!("{head:?} lacks a type or a range"));
        rest = &rest[end + 4..];
        let end = rest.windows(separator.len()).position(|window| window == separator.as_bytes());
        let (content, after) = rest.split_at(end.expect("a boundary follows each part"));
        parts.push((place.to_owned(), content.to_vec()));
        rest = &after[separator.len()..];
        if rest == b"--\r\n" {
            return parts;
        }
        rest = rest.strip_prefix(b"\r\n").expect("a line ends with its boundary");
    }
}

#[test]
fn several_ranges_are_several_parts_wherever_the_bytes_are() {
    let folder = Folder::new();
    for size in [1000, 20_000, 100_000] {
        let content: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        folder.write("file", &content);
        for site in [folder.in_memory(), folder.by_handle(), folder.site(Settings::default())] {
            let whole = get(&site, "/file");
            let response =
                ask(&site, "GET", "/file", &["Range: bytes=-1, 0-9,500-599,20-29,200-9999999,600-"]);
            let found = parts(&response);
            assert_eq!(response.status(), 206);
            // The ranges that reach the end become one part, at the position of the first of them.
            let last = size - 1;
            let expected = [(200, last), (0, 29)];
            assert_eq!(found.len(), expected.len());
            for ((place, bytes), (first, last)) in found.iter().zip(expected) {
                assert_eq!(place, &format!("bytes {first}-{last}/{size}"));
                assert_eq!(bytes, &content[first..=last]);
            }
            let length = response.body.len().to_string();
            assert_eq!(response.field("Content-Length"), Some(&length[..]));
            assert_eq!(response.field("Content-Range"), None);
            for same in ["Last-Modified", "ETag", "Accept-Ranges", "X-Content-Type-Options"] {
                assert_eq!(response.field(same), whole.field(same), "{same}");
            }
            assert_eq!(ask(&site, "HEAD", "/file", &["Range: bytes=0-0,-1"]).head, whole.head);
        }
        pass(Duration::from_secs(2));
    }
}

#[test]
fn h33_a_thousand_overlapping_ranges_are_the_whole_file() {
    let (folder, _) = site();
    folder.write("large", "x".repeat(100_000));
    let site = folder.in_memory();
    let ranges = |count: usize| {
        let ranges: Vec<String> = (0..count).map(|at| format!("{at}-")).collect();
        ask(&site, "GET", "/large", &[&format!("Range: bytes={}", ranges.join(","))])
    };
    assert_eq!((ranges(64).status(), ranges(64).body.len()), (206, 100_000));
    assert_eq!((ranges(65).status(), ranges(65).body.len()), (200, 100_000));
    assert_eq!((ranges(1000).status(), ranges(1000).body.len()), (200, 100_000));
    let site = folder.site(Settings { max_ranges: 2, ..Settings::default() });
    let response = |value: &str| ask(&site, "GET", "/large", &[&format!("Range: bytes={value}")]).status();
    assert_eq!((response("0-0,-1"), response("0-0,500-500,-1")), (206, 200));
}

#[test]
fn several_ranges_with_at_most_one_in_the_file() {
    let (_folder, site) = site();
    let response = ask(&site, "GET", "/page", &["Range: bytes=10-,20-30"]);
    assert_eq!((response.status(), response.field("Content-Range")), (416, Some("bytes */10")));
    let response = ask(&site, "GET", "/page", &["Range: bytes=10-,3-5"]);
    assert_eq!((response.status(), response.field("Content-Range")), (206, Some("bytes 3-5/10")));
    assert_eq!(response.text(), "345");
}

#[test]
fn h53_if_range_across_a_replacement_is_the_whole_new_file() {
    let (folder, site) = site();
    let etag = etag(&get(&site, "/page"));
    let condition = format!("If-Range: {etag}");
    assert_eq!(ask(&site, "GET", "/page", &[&condition, "Range: bytes=5-"]).text(), "56789");
    folder.replace("page", "abcdefghij");
    pass(Duration::from_secs(1));
    let response = ask(&site, "GET", "/page", &[&condition, "Range: bytes=5-"]);
    assert_eq!((response.status(), response.text()), (200, "abcdefghij"));
}

#[test]
fn a_tag_of_time_is_the_same_on_every_node_and_does_not_tell_the_inode() {
    let (folder, site) = site();
    let set = |name: &str, nanoseconds: u32| {
        let file = std::fs::File::options().write(true).open(folder.at(name));
        let then = SystemTime::UNIX_EPOCH + Duration::new(784_111_777, nanoseconds);
        file.and_then(|file| file.set_modified(then)).expect("the file is ours");
    };
    set("page", 7);
    let before = get(&site, "/page");
    assert_eq!(etag(&before), "\"2ebc98a1.7-a\"");
    folder.write("copy", "0123456789");
    set("copy", 7);
    assert_eq!(etag(&get(&site, "/copy")), "\"2ebc98a1.7-a\"", "the inode changes the tag");
    set("copy", 8);
    std::fs::rename(folder.at("copy"), folder.at("page")).expect("the directory is ours");
    pass(Duration::from_secs(1));
    let after = get(&site, "/page");
    assert_eq!(before.field("Last-Modified"), after.field("Last-Modified"));
    assert_eq!(etag(&after), "\"2ebc98a1.8-a\"", "nanoseconds are ignored");
}

/// OSTree, Nix, ZIP, Gradle and npm give all files the same time.
#[test]
fn a_fixed_time_proves_nothing() {
    let (folder, site) = site();
    for seconds in [0, 1, 315_532_800, 318_211_200, 499_162_500] {
        let write = |content: &str| {
            folder.replace("page", content);
            let file = std::fs::File::options().write(true).open(folder.at("page"));
            let then = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            file.and_then(|file| file.set_modified(then)).expect("the file is ours");
        };
        write("0123456789");
        let before = get_later(&site, "/page");
        assert_eq!(before.field("Last-Modified"), None, "{seconds}");
        let since = "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(ask(&site, "GET", "/page", &[since]).status(), 200, "{seconds}");
        let condition = format!("If-None-Match: {}", etag(&before));
        assert_eq!(ask(&site, "GET", "/page", &[&condition]).status(), 304, "{seconds}");
        write("9876543210");
        // Within a tick of the kernel's clock, the time of change would be the same.
        while file_changed(&folder) == etag(&before) {
            write("9876543210");
        }
        pass(Duration::from_secs(1));
        let after = ask(&site, "GET", "/page", &[&condition]);
        assert_eq!((after.status(), after.text()), (200, "9876543210"), "{seconds}");
    }
}

/// Returns the tag that the file `page` has by its time of change.
fn file_changed(folder: &Folder) -> String {
    use std::os::unix::fs::MetadataExt;
    let facts = std::fs::metadata(folder.at("page")).expect("it is there");
    format!("\"{:x}.{:x}-{:x}\"", facts.ctime(), facts.ctime_nsec(), facts.size())
}

#[test]
fn a_date_in_the_future_is_not_sent() {
    let (folder, site) = site();
    let file = std::fs::File::options().write(true).open(folder.at("page"));
    let future = SystemTime::now() + Duration::from_secs(100_000);
    file.and_then(|file| file.set_modified(future)).expect("the file is ours");
    let response = get(&site, "/page");
    assert_eq!((response.status(), response.field("Last-Modified")), (200, None));
    assert!(response.field("ETag").is_some());
}
