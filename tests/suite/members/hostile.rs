//! Attacks by visitors.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenfold_tests::config::Config;
use tenfold_tests::databases::{DatabaseProduct, fresh};
use tenfold_tests::server::Server;
use tenfold_tests::site::TempFolder;
use tenfold_tests::visitor::{Visitor, text};

use super::outage::accounts_process;
use super::{GOOD, launch, launch_costing, launch_on, on_each_database, site, start, stop};

const SQL: &[&str] = &[
    "' OR '1'='1",
    "'; DROP TABLE tenfold_users; --",
    "\\' OR 1=1 -- ",
    "\" OR \"\"=\"",
    "ann'/*",
    "ann\0",
    "$1",
    "?",
    "%' OR name LIKE '%",
];

pub(super) fn h61_sql_in_every_field_is_text() {
    let folder = site();
    for kind in DatabaseProduct::ALL {
        let server = start(&folder, kind);
        let mut visitor = Visitor::new(&server);
        assert_eq!(visitor.register("ann", GOOD).status, 303);
        for sql in SQL {
            assert_eq!(visitor.log_in(sql, GOOD).status, 422, "{kind:?} {sql}");
            assert_eq!(visitor.log_in("ann", sql).status, 422, "{kind:?} {sql}");
            let fields =
                [("name", *sql), ("password", *sql), ("again", *sql), ("next", *sql), ("invitation", *sql)];
            let status = visitor.submit("/account/register", "/account/register", &fields).status;
            assert_eq!(status, 422, "{kind:?} {sql}: no name has such characters");
            let mut forged = Visitor::new(&server);
            forged.cookies.insert("session".into(), sql.replace(['\0', ';', ' '], ""));
            assert_eq!(forged.get("/members/").status, 303, "{kind:?} {sql}");
            // In a password it is ordinary text.
            let password = format!("violet {sql} tractor");
            let name = format!("n{}", SQL.iter().position(|other| other == sql).unwrap_or_default());
            assert_eq!(visitor.register(&name, &password).status, 303, "{kind:?} {sql}");
            assert_eq!(Visitor::new(&server).log_in(&name, &password).status, 303, "{kind:?} {sql}");
        }
        assert_eq!(visitor.log_in("ann", GOOD).status, 303, "{kind:?}: everything is still there");
        stop(server);
    }
}

pub(super) fn h62_an_unknown_name_and_a_wrong_password_are_answered_alike() {
    let folder = site();
    for kind in DatabaseProduct::ALL {
        let config = Config::of(tenfold_engine::Engine::Epoll);
        // Hashes so expensive that they are measurable.
        let server = launch_costing(&config, &folder, &fresh(kind, &folder), "1 MiB", 64);
        let server = server.flag("--login-throttle", "off").start();
        let mut visitor = Visitor::new(&server);
        assert_eq!(visitor.register("ann", GOOD).status, 303);
        let accounts = accounts_process(&server);
        let mut ask = |name: &str| {
            let token = visitor.token("/account/login");
            let before = accounts.processor_time();
            let response = visitor
                .post("/account/login", &[("token", &token), ("name", name), ("password", "violet 1")]);
            (
                accounts.processor_time() - before,
                response.status,
                text(&response).replace(&format!("value=\"{name}\""), ""),
            )
        };
        let (mut known, mut unknown) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..9 {
            let (one, other) = (ask("ann"), ask("bob"));
            assert_eq!((one.1, &one.2), (other.1, &other.2), "{kind:?}");
            (known, unknown) = (known + one.0, unknown + other.0);
        }
        // Processor time does not depend on other programs, but its unit is a tick. The bound would still detect a
        // missing hash.
        assert!(unknown * 3 > known && known * 3 > unknown, "{kind:?}: {known:?} and {unknown:?}");
        stop(server);
    }
}

/// A server that trusts the forwarded addresses of its visitors.
fn behind_a_proxy(folder: &TempFolder, kind: DatabaseProduct) -> Server {
    launch_on(folder, kind).flag("--trusted-proxy", "127.0.0.1").start()
}

pub(super) fn h63_guessing_is_throttled_and_the_owner_is_not_locked_out() {
    let folder = site();
    for kind in DatabaseProduct::ALL {
        let server = behind_a_proxy(&folder, kind);
        let from = |address: &str| Visitor::new(&server).saying("X-Forwarded-For", address);
        let mut owner = from("192.0.2.1");
        assert_eq!((owner.register("ann", GOOD).status, owner.log_in("ann", GOOD).status), (303, 303));
        owner.cookies.remove("session");
        let guess =
            |number: usize| from(&format!("198.51.100.{number}")).log_in("ann", "violet guess").status;
        // Ten, and five for addresses that have not failed.
        let answers: Vec<_> = (0..19).map(guess).collect();
        assert!(answers.starts_with(&[422; 15]) && answers.contains(&429), "{kind:?}: {answers:?}");
        let stranger = from("203.0.113.1").log_in("ann", GOOD);
        assert_eq!(stranger.status, 429);
        assert!(stranger.need("retry-after").parse::<u64>().is_ok_and(|seconds| (1..=30).contains(&seconds)));
        assert_eq!(owner.log_in("ann", GOOD).status, 303, "{kind:?}: the browser is known");
        stop(server);
    }
}

/// A compromised worker may query a session by any spelling that the database considers equal.
pub(super) fn h63_the_sessions_of_a_member_share_their_guesses() {
    let folder = site();
    for kind in DatabaseProduct::ALL {
        let server = behind_a_proxy(&folder, kind);
        let from = |address: &str| Visitor::new(&server).saying("X-Forwarded-For", address);
        let (mut one, mut other) = (from("192.0.2.1"), from("192.0.2.2"));
        assert_eq!((one.register("ann", GOOD).status, one.log_in("ann", GOOD).status), (303, 303));
        assert_eq!(other.log_in("ann", GOOD).status, 303);
        let fields =
            [("old", "violet guess"), ("new", "another violet tractor"), ("again", "another violet tractor")];
        let guess =
            |visitor: &mut Visitor| visitor.submit("/account/password", "/account/password", &fields).status;
        let answers: Vec<_> = (0..10).map(|_| guess(&mut one)).collect();
        assert_eq!(answers, [422; 10], "{kind:?}");
        assert_eq!(guess(&mut other), 429, "{kind:?}: another session");
        stop(server);
    }
}

pub(super) fn h64_a_flood_of_logins_does_not_delay_files() {
    on_each_database(flood);
}

fn flood(folder: &TempFolder, kind: DatabaseProduct) {
    let config = Config::of(tenfold_engine::Engine::Epoll);
    let url = fresh(kind, folder);
    let server = launch_costing(&config, folder, &url, "16 MiB", 4);
    // Without the throttle, only the whole queue has a bound: 64 forms, and one whose password is being hashed.
    let server = server.flag("--login-throttle", "off").start();
    let mut visitor = Visitor::new(&server);
    let large = "x".repeat(1 << 20);
    let token = visitor.token("/account/login");
    let refused = visitor.post("/account/login", &[("token", &token), ("name", "ann"), ("password", &large)]);
    assert_eq!(refused.status, 413);
    // All visitors load the form before the first submits it.
    let mut ready: Vec<_> = (0..80).map(|_| Visitor::new(&server)).collect();
    let tokens: Vec<_> = ready.iter_mut().map(|visitor| visitor.token("/account/login")).collect();
    // The stopped process hashes no password, so files cannot wait for it. It finds all forms when it continues.
    let accounts = accounts_process(&server);
    accounts.signal(Signal::STOP);
    let answers = thread::scope(|scope| {
        let flood: Vec<_> = ready
            .into_iter()
            .zip(tokens)
            .map(|(mut visitor, token)| {
                let fields = [("token", token), ("name", "ann".into()), ("password", "violet guess".into())];
                scope.spawn(move || {
                    let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
                    visitor.post("/account/login", &fields)
                })
            })
            .collect();
        let begin = Instant::now();
        for _ in 0..20 {
            assert_eq!(server.get("/").status, 200);
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "files took {:?}", begin.elapsed());
        accounts.signal(Signal::CONT);
        flood.into_iter().map(|one| one.join().expect("it is answered")).collect::<Vec<_>>()
    });
    let busy: Vec<_> = answers.iter().filter(|answer| answer.status == 503).collect();
    assert!(!busy.is_empty() && answers.iter().all(|answer| matches!(answer.status, 422 | 503)));
    assert!(busy.iter().all(|answer| answer.field("retry-after").is_some()));
    stop(server);
}

pub(super) fn h65_a_session_changes_at_login_and_password_and_dies_at_logout() {
    let folder = site();
    for kind in DatabaseProduct::ALL {
        let server = start(&folder, kind);
        let mut member = Visitor::new(&server);
        member.register("ann", GOOD);
        // A session number that a client invented is not adopted.
        member.cookies.insert("session".into(), "a".repeat(43));
        let session = |visitor: &Visitor| visitor.cookies["session"].clone();
        let alive = |number: &str| {
            let mut visitor = Visitor::new(&server);
            visitor.cookies.insert("session".into(), number.into());
            visitor.get("/members/").status == 200
        };
        assert_eq!(member.log_in("ann", GOOD).status, 303);
        let first = session(&member);
        assert!(alive(&first) && first != "a".repeat(43) && first.len() == 43 + 1 + 43);
        assert_eq!(member.log_in("ann", GOOD).status, 303);
        let second = session(&member);
        assert!(second != first && alive(&second) && !alive(&first), "{kind:?}: a login ends the one before");
        let mut elsewhere = Visitor::new(&server);
        elsewhere.log_in("ann", GOOD);
        let other = session(&elsewhere);
        let fields = [("old", GOOD), ("new", "another violet tractor"), ("again", "another violet tractor")];
        assert_eq!(member.submit("/account/password", "/account/password", &fields).status, 303);
        let third = session(&member);
        assert!(
            alive(&third) && !alive(&second) && !alive(&other),
            "{kind:?}: a new password ends all others"
        );
        elsewhere.log_in("ann", "another violet tractor");
        assert_eq!(elsewhere.submit("/account/", "/account/sessions", &[]).status, 303);
        assert!(alive(&session(&elsewhere)) && !alive(&third), "{kind:?}: others are ended on demand");
        let fourth = session(&elsewhere);
        elsewhere.submit("/account/logout", "/account/logout", &[]);
        assert!(!alive(&fourth), "{kind:?}: a logout is the end");
        stop(server);
    }
}

pub(super) fn h66_cookies_are_as_safe_as_the_connection() {
    on_each_database(cookies);
}

fn cookies(folder: &TempFolder, kind: DatabaseProduct) {
    let (config, url) = (Config::of(tenfold_engine::Engine::Epoll), fresh(kind, folder));
    let server = launch(&config, folder, &url).flag("--trusted-proxy", "127.0.0.1").start();
    let mut plain = Visitor::new(&server);
    plain.register("ann", GOOD);
    let lines = |head: &str| {
        head.lines().filter(|line| line.starts_with("Set-Cookie: ")).map(str::to_owned).collect::<Vec<_>>()
    };
    for line in lines(&plain.log_in("ann", GOOD).head) {
        assert!(
            line.contains("; HttpOnly; SameSite=Lax")
                && line.contains("; Path=/;")
                && !line.contains("Secure"),
            "{line}"
        );
    }
    let mut secure = Visitor::new(&server).saying("X-Forwarded-Proto", "https");
    let set = lines(&secure.log_in("ann", GOOD).head);
    assert_eq!(set.len(), 2);
    for line in set {
        assert!(
            line.starts_with("Set-Cookie: __Host-") && line.ends_with("; HttpOnly; SameSite=Lax; Secure"),
            "{line}"
        );
    }
    assert_eq!(secure.get("/members/").status, 200);
    stop(server);
    // If the server terminates TLS, fields of proxies do not count.
    let encrypted = launch(&config.over_tls(), folder, &url).start();
    let mut visitor = Visitor::new(&encrypted);
    let set = lines(&visitor.log_in("ann", GOOD).head);
    assert_eq!(set.len(), 2);
    for line in set {
        assert!(line.starts_with("Set-Cookie: __Host-") && line.contains("; Path=/;"), "{line}");
        assert!(line.ends_with("; HttpOnly; SameSite=Lax; Secure") && !line.contains("Domain"), "{line}");
    }
    assert_eq!(visitor.get("/members/").status, 200);
    stop(encrypted);
    let untrusting = launch(&config, folder, &url).start();
    let mut visitor = Visitor::new(&untrusting).saying("X-Forwarded-Proto", "https");
    let plain = format!("Set-Cookie: session-{}=", untrusting.address.port());
    assert!(visitor.log_in("ann", GOOD).head.contains(&plain), "nobody else is believed");
    assert!(untrusting.errors().contains("cookies are plain"), "it is said at the start");
    stop(untrusting);
}

pub(super) fn h67_forms_of_other_sites_are_rejected() {
    let folder = site();
    for kind in DatabaseProduct::ALL {
        foreign_forms(&folder, kind);
    }
}

fn foreign_forms(folder: &TempFolder, kind: DatabaseProduct) {
    let server = start(folder, kind);
    let mut member = Visitor::new(&server);
    member.register("ann", GOOD);
    member.log_in("ann", GOOD);
    let token = member.token("/account/logout");
    for form in ["logout", "sessions", "password", "delete", "login", "register"] {
        let target = format!("/account/{form}");
        for fields in [&[][..], &[("token", "")], &[("token", "a")]] {
            assert_eq!(member.post(&target, fields).status, 403, "{form} {fields:?}");
        }
        for (name, value) in
            [("Origin", "http://evil.example"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site")]
        {
            let mut evil = member.clone().saying(name, value);
            assert_eq!(evil.post(&target, &[("token", &token)]).status, 403, "{form} {name}");
        }
    }
    let kind = [("Content-Type", "text/plain")];
    assert_eq!(member.ask("POST", "/account/logout", &kind, b"token=x").status, 415);
    assert_eq!(member.get("/members/").status, 200, "nothing of it had any effect");
    for evil in ["//evil.example", "/\\evil.example", "http://evil.example/", "/\t/evil.example"] {
        let fields = [("name", "ann"), ("password", GOOD), ("next", evil)];
        let response = member.submit("/account/login", "/account/login", &fields);
        assert_eq!(response.need("location"), "/members/", "{evil:?}");
    }
    let script = member.get("/account/login?next=/%22%3E%3Cscript%3E");
    assert!(!text(&script).contains("<script"), "{}", text(&script));
    let typed = member.log_in("\"><script>alert(1)</script>", "x");
    assert!(!text(&typed).contains("<script"), "{}", text(&typed));
    stop(server);
}

pub(super) fn h68_one_name_is_registered_once() {
    let folder = site();
    for kind in DatabaseProduct::ALL {
        let server = start(&folder, kind);
        for names in [
            ["ann"; 8],
            ["Zoe", "ZOE", "zоe", "ｚoe", "zoe", "zo\u{435}", "Zo\u{0435}", "z0e"],
            ["Hans", "hans", "HANS", "\u{41d}ans", "\u{41d}ANS", "\u{41d}anS", "hAns", "\u{41d}aNS"],
            ["Alice", "aIice", "AIice", "alice", "aliсe", "A\u{4c0}ice", "aI\u{456}ce", "Al\u{456}ce"],
        ] {
            let statuses: Vec<_> = thread::scope(|scope| {
                let server = &server;
                let all: Vec<_> = names
                    .iter()
                    .map(|name| scope.spawn(move || Visitor::new(server).register(name, GOOD).status))
                    .collect();
                all.into_iter().map(|one| one.join().expect("it is answered")).collect()
            });
            let won = statuses.iter().filter(|status| **status == 303).count();
            assert!(
                won == 1 && statuses.iter().all(|status| [303, 422].contains(status)),
                "{kind:?}: {statuses:?}"
            );
        }
        stop(server);
    }
}
