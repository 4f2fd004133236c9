//! The beginning and the end of sessions, and forged cookies.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenfold_engine::Engine;
use tenfold_tests::binary;
use tenfold_tests::config::Config;
use tenfold_tests::databases::{DatabaseProduct, fresh};
use tenfold_tests::harness::each_at_once;
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::time::{EndOnDrop, SOON, becomes_true, eventually};
use tenfold_tests::visitor::Visitor;
use tenfold_tests::wire::{Wire, request};

use super::outage::{LONG, accounts_process};
use super::{GOOD, launch, launch_costing, new_member, site, stop};

const BETTER: &str = "another violet tractor";
/// Attempts to hit the time of a running login.
const ATTEMPTS: usize = 20;

/// Runs `tenfold users` with `input` on standard input and cheap hashes.
fn users(url: &str, words: &[&str], input: &str) {
    let binary = binary::server().unwrap_or_else(|why| panic!("{why}"));
    let mut command = Command::new(&binary.path);
    command.args(["users", "--accounts", url]).args(words);
    command.env("TENFOLD_PASSWORD_MEMORY", "64k").env("TENFOLD_PASSWORD_PASSES", "1");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it can be started");
    let sent = child.stdin.take().expect("its standard input is a pipe").write_all(input.as_bytes());
    sent.expect("it reads, or its input fits into the pipe");
    assert!(child.wait().expect("our own child").success(), "{command:?}");
}

pub(super) fn h80_a_login_in_flight_does_not_survive_a_change_of_the_member() {
    let folder = site();
    for kind in DatabaseProduct::ALL {
        let url = fresh(kind, &folder);
        // The hash is slow enough for a concurrent change.
        let server = launch_costing(&Config::of(Engine::Epoll), &folder, &url, "64 MiB", 6)
            .flag("--login-throttle", "off")
            .start();
        for change in ["passwd", "disable", "remove"] {
            change_in_flight(&server, &url, change, false);
        }
        // A cheap hash is verified quickly and then renewed, which must not restore the former password.
        change_in_flight(&server, &url, "passwd", true);
        stop(server);
    }
}

/// A session is checked after the earlier responses were sent, which may be long after its request.
pub(super) fn h80_a_session_that_ends_behind_unread_responses_shows_nothing(config: &Config) {
    const EARLIER: usize = 8;
    let folder = site();
    folder.write("site/4k.txt", "x".repeat(4000));
    let url = fresh(DatabaseProduct::Sqlite, &folder);
    let server = launch(config, &folder, &url).flag("--notsent-lowat", "16k").start();
    let mut member = Visitor::new(&server);
    assert_eq!(member.register("ann", GOOD).status, 303);
    assert_eq!(member.log_in("ann", GOOD).status, 303);
    let cookie = format!("session={}", member.cookies["session"]);
    let mut wire = Wire::connect_with_buffer(4096, server.address);
    let mut requests = request("GET", "/4k.txt", &[]).repeat(EARLIER);
    requests.extend(request("GET", "/members/", &[("Cookie", &cookie)]));
    wire.send(requests);
    // Bytes come when all heads were answered, or wait for the accounts process.
    let mut first = [0];
    assert_eq!(wire.socket().peek(&mut first).expect("a response begins"), 1);
    users(&url, &["disable", "ann"], "");
    for _ in 0..EARLIER {
        assert_eq!(wire.response().body.len(), 4000);
    }
    let after = wire.response();
    let was_in_time = config.submits() && after.status == 200;
    assert!(was_in_time || matches!(after.status, 303 | 401), "{}", after.head);
    stop(server);
}

/// Changes a member during a login, until the change has completed before the login.
fn change_in_flight(server: &Server, url: &str, change: &str, cheap: bool) {
    let accounts = accounts_process(server);
    for attempt in 0..ATTEMPTS {
        let name = format!("{change}{}{attempt}", if cheap { "cheap" } else { "dear" });
        let mut visitor = Visitor::new(server);
        match cheap {
            true => users(url, &["add", &name], &format!("{GOOD}\n")),
            false => assert_eq!(visitor.register(&name, GOOD).status, 303),
        }
        let token = visitor.token("/account/login");
        let fields = [("token", token.as_str()), ("name", &name), ("password", GOOD)];
        let (in_time, status) = thread::scope(|scope| {
            let before = accounts.processor_time();
            let login = scope.spawn(|| visitor.post("/account/login", &fields).status);
            becomes_true(SOON, "the password is hashed", || {
                accounts.processor_time() >= before + Duration::from_millis(50) || login.is_finished()
            });
            users(url, &[change, &name], &format!("{BETTER}\n"));
            (!login.is_finished(), login.join().expect("it is answered"))
        });
        assert_eq!(visitor.get("/members/").status, 303, "{change} {name}: a session");
        if change == "disable" {
            users(url, &["enable", &name], "");
            assert_eq!(visitor.get("/members/").status, 303, "{name}: a session, once enabled again");
        }
        if change == "passwd" {
            let mut again = Visitor::new(server);
            assert_eq!(again.log_in(&name, GOOD).status, 422, "{name}: the former password");
            assert_eq!(again.log_in(&name, BETTER).status, 303, "{name}: the new password");
        }
        // The response to a login before the change may arrive after the change.
        if in_time && status == 422 {
            return;
        }
    }
    panic!("{change}: no login took long enough");
}

/// The accounts process, which does not run until it is continued.
fn stopped_accounts(server: &Server) -> Process {
    let accounts = accounts_process(server);
    accounts.signal(Signal::STOP);
    becomes_true(SOON, "the accounts are stopped", || !accounts.is_running() || accounts.is_stopped());
    accounts
}

/// Forged cookies: without a MAC, and with a wrong one.
fn invented() -> [String; 2] {
    ["a".repeat(43), format!("{}.{}", "a".repeat(43), "b".repeat(43))]
}

pub(super) fn h81_a_forged_cookie_is_rejected_in_the_worker(config: &Config) {
    let folder = site();
    let server = launch(config, &folder, &fresh(DatabaseProduct::Sqlite, &folder)).start();
    let mut member = new_member(&server, "ann");
    let cookie = &member.cookies["session"];
    let (nonce, mac) = cookie.split_once('.').expect("a cookie has a MAC");
    let other = if mac.starts_with('A') { "B" } else { "A" };
    let changed = format!("{nonce}.{other}{}", &mac[1..]);
    let accounts = stopped_accounts(&server);
    let begun = Instant::now();
    for cookie in invented().into_iter().chain([changed, nonce.to_owned()]) {
        let mut stranger = Visitor::new(&server);
        stranger.cookies.insert("session".into(), cookie.clone());
        assert_eq!(stranger.ask("GET", "/members/film.bin", &[], b"").status, 401, "{cookie}");
        assert_eq!(
            stranger.get("/account/").need("location"),
            "/account/login?next=%2Faccount%2F",
            "{cookie}"
        );
    }
    // The timeout for the accounts is 20 s.
    assert!(begun.elapsed() < Duration::from_secs(20), "it took {:?}", begun.elapsed());
    accounts.signal(Signal::CONT);
    becomes_true(LONG, "a member is let in", || member.get("/members/").status == 200);
    stop(server);
}

/// Connections with forged cookies, more than the queue of a worker holds.
const MANY: usize = 400;

pub(super) fn h81_forged_cookies_do_not_block_members(config: &Config) {
    let folder = site();
    let server = launch(config, &folder, &fresh(DatabaseProduct::Sqlite, &folder)).start();
    let mut member = new_member(&server, "ann");
    let session = format!("session={}", member.cookies["session"]);
    let mut strangers: Vec<Wire> = (0..MANY).map(|_| server.connect()).collect();
    let mut flood = || {
        for (wire, cookie) in strangers.iter_mut().zip(invented().iter().cycle()) {
            let cookie = format!("session={cookie}");
            wire.send(request("GET", "/members/film.bin", &[("Cookie", &cookie)]));
        }
        for wire in &mut strangers {
            assert_eq!(wire.response().status, 401, "an invented cookie");
        }
    };
    // While the accounts process is stopped, each query occupies the queue.
    let accounts = stopped_accounts(&server);
    flood();
    let mut wire = server.connect();
    wire.send(request("GET", "/members/", &[("Cookie", &session)]));
    accounts.signal(Signal::CONT);
    assert_eq!(wire.response().status, 200, "a member who waited");
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let at_end = EndOnDrop(&over);
        let flood = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                flood();
            }
        });
        for _ in 0..67 {
            assert_eq!(member.get("/members/").status, 200, "a member");
        }
        drop(at_end);
        flood.join().expect("each is answered");
    });
    stop(server);
}

/// A cookie of an ended session causes a query like any other.
pub(super) fn h81_one_address_does_not_take_all_places_of_members(config: &Config) {
    let folder = site();
    let server = launch(config, &folder, &fresh(DatabaseProduct::Sqlite, &folder)).start();
    let mut member = new_member(&server, "ann");
    let ended = format!("session={}", member.cookies["session"]);
    member.submit("/account/logout", "/account/logout", &[]);
    assert_eq!(member.log_in("ann", GOOD).status, 303);
    let session = format!("session={}", member.cookies["session"]);
    for both in [format!("{ended}; {session}"), format!("{session}; {ended}")] {
        let mut wire = server.connect();
        wire.send(request("GET", "/members/", &[("Cookie", &both)]));
        assert_eq!(wire.response().status, 200, "each cookie of the name is tried");
    }
    let accounts = stopped_accounts(&server);
    let mut strangers: Vec<Wire> =
        (0..MANY).map(|_| Wire::connect_from("127.0.0.2", server.address)).collect();
    for wire in &mut strangers {
        wire.send(request("GET", "/members/", &[("Cookie", &ended)]));
    }
    let refused = || server.status()["responses"]["503"].as_u64().unwrap_or(0);
    becomes_true(SOON, "there is no room for so many", || refused() >= 140);
    let mut wire = server.connect();
    wire.send(request("GET", "/members/", &[("Cookie", &session)]));
    assert_eq!(server.get("/").status, 200, "the loop has had the request");
    accounts.signal(Signal::CONT);
    assert_eq!(wire.response().status, 200, "a member who waited");
    stop(server);
}

pub(super) fn a_session_that_is_used_does_not_end_early() {
    let folder = site();
    // The cases mostly wait.
    each_at_once(DatabaseProduct::ALL, |kind| {
        let url = fresh(kind, &folder);
        let server = launch(&Config::of(Engine::Epoll), &folder, &url)
            .flag("--session-idle", "1s")
            .flag("--login-throttle", "off")
            .start();
        let mut member = Visitor::new(&server);
        assert_eq!(member.register("ann", GOOD).status, 303);
        // If a request takes a second, the session may expire. The case is then repeated.
        becomes_true(LONG, "the session is used every 0.4 s", || {
            let mut used = Instant::now();
            assert_eq!(member.log_in("ann", GOOD).status, 303);
            for _ in 0..6 {
                let asked = Instant::now();
                let status = member.get("/members/").status;
                if used.elapsed() >= Duration::from_secs(1) {
                    return false;
                }
                assert_eq!(status, 200, "{:?}: {:?} after the last use", kind, used.elapsed());
                used = asked;
                // The shortest timeout is a second, and six pauses take longer.
                thread::sleep(Duration::from_millis(400));
            }
            true
        });
        becomes_true(SOON, "a session that is not used ends", || {
            // Each request is a use, so the pause must exceed the timeout and the interval of unwritten uses.
            thread::sleep(Duration::from_millis(2100));
            member.get("/members/").status == 303
        });
        stop(server);
    });
}

pub(super) fn a_fresh_login_works_at_once() {
    let folder = site();
    let server = launch(&Config::of(Engine::Epoll), &folder, &fresh(DatabaseProduct::Sqlite, &folder))
        .flag("--session-idle", "1s")
        .flag("--session-lifetime", "1s")
        .flag("--login-throttle", "off")
        .start();
    let mut member = Visitor::new(&server);
    assert_eq!(member.register("ann", GOOD).status, 303);
    let mut in_time = 0;
    // Enough attempts to begin shortly before the end of a second.
    eventually(LONG, "logins followed by a request within a second", || {
        let begun = Instant::now();
        assert_eq!(member.log_in("ann", GOOD).status, 303);
        let status = member.get("/members/").status;
        if begun.elapsed() < Duration::from_secs(1) {
            assert_eq!(status, 200, "{:?} after the login", begun.elapsed());
            in_time += 1;
        }
        (in_time == 150).then_some(())
    });
    stop(server);
}

pub(super) fn a_member_has_32_sessions_at_most() {
    let folder = site();
    each_at_once(DatabaseProduct::ALL, |kind| {
        let url = fresh(kind, &folder);
        let server =
            launch(&Config::of(Engine::Epoll), &folder, &url).flag("--login-throttle", "off").start();
        let log_in_as = |name: &str| {
            let mut visitor = Visitor::new(&server);
            assert_eq!(visitor.log_in(name, GOOD).status, 303);
            visitor
        };
        let log_in = || log_in_as("ann");
        for name in ["ann", "bob"] {
            assert_eq!(Visitor::new(&server).register(name, GOOD).status, 303);
        }
        let mut another = log_in_as("bob");
        let (mut oldest, mut second) = (log_in(), log_in());
        let alive = |visitor: &mut Visitor| visitor.get("/members/").status == 200;
        // Ages are compared in whole seconds.
        thread::sleep(Duration::from_millis(1100));
        let mut others: Vec<_> = (0..30).map(|_| log_in()).collect();
        assert!(alive(&mut oldest) && alive(&mut second), "{:?}: 32 sessions", kind);
        others.extend([log_in(), log_in()]);
        assert!(!alive(&mut oldest) && !alive(&mut second), "{:?}: the oldest of 34", kind);
        assert!(others.iter_mut().all(alive), "{:?}: 32 sessions", kind);
        assert!(alive(&mut another), "{:?}: another member's", kind);
        stop(server);
    });
}
