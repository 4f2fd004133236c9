//! The listing of a folder without an index page.

use std::os::unix::fs::symlink;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tenfold_tests::cases;
use tenfold_tests::config::Config;
use tenfold_tests::harness::Theme;
use tenfold_tests::launch::Launch;
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::site::{MODIFIED, TempFolder};

pub(crate) const THEME: Theme = Theme {
    name: "listings",
    cases: cases![
        Own on DRIVERS: h58_a_folder_is_a_page_for_people_and_json_for_programs;
        Own on EPOLL: the_page_of_the_book_holds, a_folder_is_listed_by_default_and_a_configured_site_is_not,
            the_first_index_that_exists_stands_for_its_folder, unread_pages_share_their_memory;
        Own on FORK: listings_of_processes_are_bounded;
    ],
};

fn h58_a_folder_is_a_page_for_people_and_json_for_programs(config: &Config) {
    let folder = TempFolder::new("listed");
    folder.write("docs/<b>&\"x.txt", "12345");
    folder.write("docs/more/deep.txt", "deep");
    folder.write("docs/.hidden", "nobody sees this");
    symlink("/etc", folder.at("docs/out")).expect("our own folder");
    let server = Launch::new(config, folder.path()).flag("--listing", "html").start();
    let page = server.get("/docs/");
    assert_eq!((page.status, page.need("Content-Type")), (200, "text/html; charset=utf-8"));
    let text = String::from_utf8_lossy(&page.body).into_owned();
    let (_, shown) = text.split_once("<main>").expect("the page has content");
    let (shown, _) = shown.split_once("</main>").expect("it ends before the script");
    assert!(!shown.contains("<b>") && !shown.contains("hidden") && !shown.contains("out"), "{text}");
    for link in ["./more/", "./%3Cb%3E&#38;%22x.txt", "?sort=size", "../"] {
        assert!(text.contains(&format!("href=\"{link}\"")), "{link} is missing in {text}");
    }
    assert_eq!(server.get("/docs/%3Cb%3E&%22x.txt").body, b"12345", "its link leads to it");
    assert_eq!(server.get("/docs").need("Location"), "/docs/");
    let tag = page.need("ETag");
    assert_eq!(server.ask("GET", "/docs/", &[("If-None-Match", tag)]).status, 304);
    assert_eq!(server.ask("HEAD", "/docs/", &[]).promised(), page.body.len());

    let filtered = server.get("/docs/?order=desc&filter=MO");
    let text = String::from_utf8_lossy(&filtered.body).into_owned();
    assert!(text.contains("./more/?sort=name&#38;order=desc") && !text.contains("x.txt"), "{text}");

    let json = server.ask("GET", "/docs/?sort=date", &[("Accept", "application/json")]);
    assert_eq!((json.need("Content-Type"), json.need("Vary")), ("application/json", "Accept"));
    let value: Value = serde_json::from_slice(&json.body).expect("it is JSON");
    assert_eq!(value["entries"].as_array().map(Vec::len), Some(2), "{value}");
    let file = &value["entries"][1];
    assert_eq!((&file["name"], &file["size"]), (&"<b>&\"x.txt".into(), &5.into()));
    assert_eq!(file["modified"], MODIFIED);
}

/// The example of `docs/how-to/listing.md`.
fn the_page_of_the_book_holds(config: &Config) {
    let folder = TempFolder::new("book-listing");
    folder.write("site/downloads/old/setup.iso", "12345");
    folder.write("site/other/page.txt", "other");
    let example = super::codings::example(include_str!("../../docs/how-to/listing.md"));
    let file = folder.write("tenfold.toml", example);
    let server = Launch::bare(config).flag("--config", file.display()).start();
    for (target, status) in [("/", 404), ("/other/", 404), ("/downloads/", 200), ("/downloads/old/", 200)] {
        assert_eq!(server.get(target).status, status, "{target}");
    }
}

/// A folder is listed to this machine, and to others if `--listen` opens it and it has no index. Proxies and
/// configuration files turn the default off.
fn a_folder_is_listed_by_default_and_a_configured_site_is_not(config: &Config) {
    let folder = TempFolder::new("listed-by-default");
    folder.write("site/docs/a.txt", "12345");
    let advice = "This folder has no index.html. To list its files, start the server with --listing html.";
    let page_of = |server: &Server| {
        let page = server.get("/docs/");
        (page.status, String::from_utf8_lossy(&page.body).into_owned())
    };
    let serve = || Launch::new(config, &folder.at("site"));

    let server = serve().start();
    assert!(server.errors().contains("(no index.html: its files are listed)"), "{}", server.errors());
    let (status, page) = page_of(&server);
    assert!(status == 200 && page.contains("href=\"./a.txt\"") && page.contains("1 file, 5 B"), "{page}");

    let server = serve().flag("--listing", "off").start();
    assert!(server.errors().contains("--listing html lists its files"), "{}", server.errors());
    assert_eq!(page_of(&server), (404, format!("404 Not Found\n\n{advice}\n")));

    let file = folder.write("tenfold.toml", "root = \"site\"\n");
    let configured = || Launch::bare(config).flag("--config", file.display());
    assert_eq!(page_of(&configured().start()), (404, format!("404 Not Found\n\n{advice}\n")));

    folder.write("tenfold.toml", "root = \"site\"\n[site]\nlisting = \"html\"\ndotfiles = [\"/.a\"]\n");
    let said = configured().start().errors();
    assert!(said.contains("(no index.html: its files are listed)") && !said.contains("dotfiles"), "{said}");
    folder.write("tenfold.toml", "root = \"site\"\n[site]\nlisting = \"off\"\n");
    let said = configured().flag("--listing", "html").start().errors();
    assert!(said.contains("listing = \"html\" in [site] lists its files"), "{said}");

    let opened = |launch: Launch| launch.flag("--listen", ":0").start_configured();
    let server = opened(serve().word("--qr"));
    assert_eq!((page_of(&server).0, server.get("/").status), (200, 200));
    let said = server.errors().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("its files are listed, also to other machines; --listing off hides them"),
        "{said}"
    );

    // Clients on other machines get no advice about the server.
    let refused = (404, "404 Not Found\n".to_owned());
    assert_eq!(page_of(&serve().flag("--trusted-proxy", "127.0.0.1").start()), refused);
    folder.write("tenfold.toml", "root = \"site\"\n");
    assert_eq!(page_of(&opened(configured())), refused);
    folder.write("site/index.html", "a page");
    assert_eq!(page_of(&opened(serve())), refused);
}

fn the_first_index_that_exists_stands_for_its_folder(config: &Config) {
    let folder = TempFolder::new("indexes");
    for (name, content) in [("site/a/index.html", "a"), ("site/a/start.htm", "x"), ("site/b/start.htm", "b")]
    {
        folder.write(name, content);
    }
    let text = "root = \"site\"\nindex = [\"index.html\", \"start.htm\"]\n[[host]]\nname = \"other.example\"\n\
                index = [\"start.htm\", \"index.html\"]\n";
    let file = folder.write("tenfold.toml", text);
    let server = Launch::bare(config).flag("--config", file.display()).start();
    for (target, body) in [("/a/", "a"), ("/b/", "b"), ("http://other.example/a/", "x")] {
        let response = server.get(target);
        assert_eq!((response.status, response.body.as_slice()), (200, body.as_bytes()), "{target}");
    }
    let none = server.get("/");
    assert!(String::from_utf8_lossy(&none.body).contains("no index.html or start.htm."), "{}", none.head);
}

/// A process that is stopped during its listing keeps its place, and its end frees the place.
fn listings_of_processes_are_bounded(config: &Config) {
    const PAUSES: u64 = 40;
    let folder = TempFolder::new("bounded-listings");
    for number in 0..10_000 {
        folder.write(&format!("all/{number}"), "");
    }
    let launch = Launch::new(config, folder.path()).flag("--listing", "json");
    let server = launch.flag("--work-threads", "1").start();
    let before = server.process.with_descendants();
    // A pause after which the first process has begun its listing and has not finished it.
    let stopped = (1..=PAUSES).find_map(|pause| {
        let mut wire = server.connect();
        wire.get("/all/");
        thread::sleep(Duration::from_millis(5 * pause));
        let descendants = server.process.with_descendants();
        let process = *descendants.iter().find(|process| !before.contains(process))?;
        process.signal(Signal::STOP);
        let is_refused = server.get("/all/").status == 503;
        if !is_refused {
            process.signal(Signal::KILL);
        }
        is_refused.then_some((process, wire))
    });
    let (process, _wire) = stopped.expect("a second process lists while the first one does");
    process.signal(Signal::KILL);
    assert_eq!(server.get("/all/").status, 200, "a process that has ended keeps no place");
}

/// A page of 5 MB is sent slowly, and other clients request it concurrently.
///
/// A single thread makes the pages, because each thread keeps freed memory of its last page.
fn unread_pages_share_their_memory(config: &Config) {
    const CLIENTS: usize = 12;
    let folder = TempFolder::new("unread-pages");
    for number in 0..10_000 {
        folder.write(&format!("all/{number}-{}", "x".repeat(200)), "");
    }
    let launch = Launch::new(config, folder.path()).flag("--listing", "html");
    let server = launch.flag("--work-threads", "1").start();
    let page = server.get("/all/").body.len() as u64;
    assert!(page > 4 << 20, "{page} bytes");
    let private =
        || -> u64 { server.process.with_descendants().into_iter().filter_map(Process::private_memory).sum() };
    let before = private();
    // Each client connects for its request, because a slow machine makes pages for longer than a silent connection may
    // wait.
    let mut wires = Vec::new();
    for _ in 0..CLIENTS {
        let mut wire = server.connect();
        wire.get("/all/");
        assert_eq!(wire.head().status, 200);
        wires.push(wire);
    }
    let grown = private().saturating_sub(before) * 1024;
    assert!(grown < CLIENTS as u64 * page / 2, "{CLIENTS} unread pages of {page} bytes take {grown} bytes");
}
