//! Passwords of basic authentication: no route avoids them, and guesses are throttled.

use std::os::unix::fs::symlink;

use data_encoding::BASE64;
use rustix::process::Signal;
use tenfold_tests::config::Config;
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::wire::{Wire, request};

use super::{MEMBERS, RIGHT, WRONG, end, folder, start};

pub(super) fn h83_no_route_leads_to_a_file_behind_a_password(config: &Config) {
    let folder = folder(&[
        ("site/private/index.html", "private\n"),
        ("site/private/open/index.html", "open\n"),
        ("site/private/plan.txt", "plan\n"),
        ("site/team/SECRET/plan.txt", "plan\n"),
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
        match = "/*/secret/**"
        auth = { users = "members.htpasswd" }
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
            // On a file system without case, this is `secret`.
            "/team/SECRET/plan.txt",
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

/// The configuration of both cases: a folder with a password, and a listed one.
const GUESSED: &str = "root = \"site\"\nlisting = \"json\"\nwork-threads = 1\n[[site.path]]\n\
                       match = \"/private/**\"\nauth = { users = \"members.htpasswd\" }\n";

fn guess(number: usize) -> Vec<u8> {
    let pair = format!("Basic {}", BASE64.encode(format!("alice:guess {number}").as_bytes()));
    request("GET", "/private/", &[("Authorization", &pair)])
}

pub(super) fn h85_wrong_passwords_are_throttled(config: &Config) {
    let folder = folder(&[("site/private/index.html", "private\n"), ("members.htpasswd", MEMBERS)]);
    let server = start(config, &folder, GUESSED);
    // One connection, because each process of `fork` has its own count.
    let mut wire = server.connect();
    wire.send(request("GET", "/private/", &[RIGHT]));
    assert_eq!(wire.response().status, 200);
    let answers: Vec<_> = (0..12)
        .map(|number| {
            wire.send(guess(number));
            wire.response()
        })
        .collect();
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert!(statuses.starts_with(&[401; 10]) && statuses.contains(&429), "{statuses:?}");
    let throttled = answers.iter().find(|answer| answer.status == 429).expect("it was just seen");
    let seconds = throttled.need("Retry-After").parse::<u64>();
    assert!(seconds.is_ok_and(|seconds| (1..=30).contains(&seconds)), "{}", throttled.head);
    wire.send(request("GET", "/private/", &[RIGHT]));
    assert_eq!(wire.response().status, 200, "the owner is not locked out");
    end(server);
}

pub(super) fn h85_guesses_delay_no_other_work(config: &Config) {
    let folder = folder(&[
        ("site/private/index.html", "private\n"),
        ("site/list/file.txt", "listed\n"),
        // Slow enough for a queue to form before it.
        ("members.htpasswd", "alice:$2y$06$FBaBFZTCEBWvr.8wyNdvjecnB1aKWbCE0gGkl5cPKSJZqY9zba7gy\n"),
    ]);
    let server = start(config, &folder, GUESSED);
    let mut guesses: Vec<_> = (0..40).map(|_| server.connect()).collect();
    guesses.iter_mut().enumerate().for_each(|(number, wire)| wire.send(guess(number)));
    for _ in 0..3 {
        let listed = server.get("/list/");
        assert_eq!(listed.status, 200, "{}", listed.head);
    }
    let statuses: Vec<_> = guesses.iter_mut().map(|wire| wire.response().status).collect();
    assert!(statuses.iter().all(|status| matches!(status, 401 | 429 | 503)), "{statuses:?}");
    end(server);
}

pub(super) fn h85_one_address_does_not_fill_a_queue_of_work(config: &Config) {
    let folder = folder(&[
        ("site/private/index.html", "private\n"),
        ("site/list/file.txt", "listed\n"),
        // Slow enough for a queue to form before it.
        ("members.htpasswd", "alice:$2y$06$FBaBFZTCEBWvr.8wyNdvjecnB1aKWbCE0gGkl5cPKSJZqY9zba7gy\n"),
    ]);
    for number in 0..2_000 {
        folder.write(&format!("site/many/{number}"), "");
    }
    let server = start(config, &folder, GUESSED);
    let refused = || server.status()["responses"]["503"].as_u64().unwrap_or(0);
    // Half of the queue, the threads, and five more.
    let guesses = (0..48).map(guess).collect();
    let listings = vec![request("GET", "/many/", &[]); 48];
    for (work, own) in [(guesses, guess(99)), (listings, request("GET", "/list/", &[]))] {
        let (before, mut strangers) = (refused(), Vec::new());
        // A slow client would leave time for the work.
        let workers = server.workers();
        workers.iter().for_each(|worker| worker.signal(Signal::STOP));
        for bytes in work {
            let mut wire = Wire::connect_from("127.0.0.2", server.address);
            wire.send(bytes);
            strangers.push(wire);
        }
        workers.iter().for_each(|worker| worker.signal(Signal::CONT));
        becomes_true(SOON, "there is no room for so many", || refused() >= before + 5);
        let mut wire = server.connect();
        wire.send(own);
        let response = wire.response();
        assert_ne!(response.status, 503, "{}", response.head);
    }
    end(server);
}
