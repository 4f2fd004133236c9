//! Passwords of basic authentication: no route leads around them, and guesses are throttled.

use std::os::unix::fs::symlink;
use std::thread;

use data_encoding::BASE64;
use tenfold_tests::config::Config;

use super::{MEMBERS, RIGHT, WRONG, end, folder, start};

pub(super) fn h83_no_route_leads_to_a_file_behind_a_password(config: &Config) {
    let folder = folder(&[
        ("site/private/index.html", "private\n"),
        ("site/private/open/index.html", "open\n"),
        ("site/private/plan.txt", "plan\n"),
        ("members.htpasswd", MEMBERS),
    ]);
    symlink("private/plan.txt", folder.at("site/link.txt")).expect("our own folder");
    let text = r#"
        root = "site"
        listing = "json"
        [site]
        error-pages = { 404 = "/private/index.html" }
        [[site.path]]
        match = "/private/**"
        auth = { users = "members.htpasswd" }
        [[site.path]]
        match = "/private/open/**"
        auth = false
        [[site.path]]
        match = "/app/**"
        fallback = "/private/index.html"
        [[site.path]]
        match = "/fixed/**"
        try-files = ["/private/plan.txt"]
        [[host]]
        name = "inner.example"
        root = "site/private"
        [[host]]
        name = "outer.example"
        root = "."
        [[host]]
        name = "open.example"
        root = "site/private"
        auth = false
    "#;
    let server = start(config, &folder, text);
    for _ in 0..2 {
        for target in [
            "/app/x",
            "/fixed/x",
            "/link.txt",
            "http://inner.example/plan.txt",
            "http://inner.example/",
            "http://outer.example/site/private/plan.txt",
            "http://outer.example/site/private/",
        ] {
            let refused = server.get(target);
            assert_eq!(refused.status, 401, "{target}: {}", refused.head);
            assert_eq!(refused.need("WWW-Authenticate"), "Basic realm=\"private\", charset=\"UTF-8\"");
            assert_eq!(server.ask("GET", target, &[WRONG]).status, 401, "{target}");
            assert_eq!(server.ask("GET", target, &[RIGHT]).status, 200, "{target}");
        }
        for target in ["/private/open/", "http://inner.example/open/", "http://open.example/plan.txt", "/"] {
            assert_eq!(server.get(target).status, 200, "{target}");
        }
        assert_eq!(server.get("/none").body, b"404 Not Found\n", "the page is behind the password");
    }
    end(server);
}

pub(super) fn h85_wrong_passwords_are_throttled_and_delay_no_other_work(config: &Config) {
    let folder = folder(&[
        ("site/private/index.html", "private\n"),
        ("site/list/file.txt", "listed\n"),
        // The hash takes long enough for a queue to form before it.
        ("members.htpasswd", "alice:$2y$10$abcdefghijklmnopqrstuuqflPDzB6gcMhKa1rZqKiun2YGL5sa2u\n"),
    ]);
    let text = "root = \"site\"\nlisting = \"json\"\nwork-threads = 1\n[[site.path]]\nmatch = \"/private/**\"\n\
                auth = { users = \"members.htpasswd\" }\n";
    let server = start(config, &folder, text);
    // One connection: a process of `fork` counts for its own.
    let mut wire = server.connect();
    let mut guess = |number: usize| {
        let pair = format!("Basic {}", BASE64.encode(format!("alice:guess {number}").as_bytes()));
        wire.send(tenfold_tests::wire::request("GET", "/private/", &[("Authorization", &pair)]));
        wire.response()
    };
    let answers: Vec<_> = (0..12).map(&mut guess).collect();
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert!(statuses.starts_with(&[401; 10]) && statuses.contains(&429), "{statuses:?}");
    let throttled = answers.iter().find(|answer| answer.status == 429).expect("it was just seen");
    let seconds = throttled.need("Retry-After").parse::<u64>();
    assert!(seconds.is_ok_and(|seconds| (1..=30).contains(&seconds)), "{}", throttled.head);
    drop(wire);
    // Many at once, each from a connection of its own, while folders are listed.
    thread::scope(|scope| {
        for number in 0..80 {
            let server = &server;
            scope.spawn(move || {
                let pair = format!("Basic {}", BASE64.encode(format!("user {number}:guess").as_bytes()));
                let status = server.ask("GET", "/private/", &[("Authorization", &pair)]).status;
                assert!(matches!(status, 401 | 429 | 503), "{status}");
            });
        }
        for _ in 0..19 {
            let listed = server.get("/list/");
            assert_eq!(listed.status, 200, "{}", listed.head);
        }
    });
    end(server);
}
