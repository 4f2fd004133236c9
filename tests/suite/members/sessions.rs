//! When sessions begin and end.

use std::io::Write;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tenfold_engine::Engine;
use tenfold_tests::binary;
use tenfold_tests::config::Config;
use tenfold_tests::databases::{Kind, Redis, fresh};
use tenfold_tests::server::Server;
use tenfold_tests::time::{SOON, becomes_true, eventually};
use tenfold_tests::visitor::Visitor;

use super::outage::{LONG, accounts_process};
use super::{GOOD, launch, launch_costing, site, stop};

const BETTER: &str = "another violet tractor";
/// Attempts at something that has to happen while a login is under way.
const ATTEMPTS: usize = 20;

/// Runs `tenfold users`, with `input` on its standard input and hashes that cost little.
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

/// A database, and where its sessions are.
struct Place {
    kind: Kind,
    redis: Option<Redis>,
}

impl Place {
    /// Each database, and Redis beside one of them.
    fn all() -> Vec<Place> {
        let databases = Kind::ALL.map(|kind| Place { kind, redis: None });
        databases.into_iter().chain([Place { kind: Kind::Sqlite, redis: Some(Redis::start()) }]).collect()
    }

    fn sessions(&self) -> &str {
        self.redis.as_ref().map_or("database", |redis| &redis.url)
    }
}

pub(super) fn h80_a_login_in_flight_does_not_survive_a_change_of_the_member() {
    let folder = site();
    for place in Place::all() {
        let url = fresh(place.kind, &folder);
        // A hash takes long enough for something else to happen meanwhile.
        let server = launch_costing(&Config::of(Engine::Epoll), &folder, &url, "64 MB", 12)
            .flag("--sessions", place.sessions())
            .flag("--login-throttle", "off")
            .start();
        for change in ["passwd", "disable", "remove"] {
            change_in_flight(&server, &url, change, false);
        }
        // A cheap hash is verified fast, and then renewed: the former password must not come back with it.
        change_in_flight(&server, &url, "passwd", true);
        stop(server);
    }
}

/// Changes a member while a login is under way, until the change has been completed before the login.
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
        if in_time {
            assert_eq!(status, 422, "{change} {name}: the login was refused");
            return;
        }
    }
    panic!("{change}: no login took long enough");
}

pub(super) fn a_session_that_is_used_does_not_end_early() {
    let folder = site();
    for place in Place::all() {
        let url = fresh(place.kind, &folder);
        let server = launch(&Config::of(Engine::Epoll), &folder, &url)
            .flag("--sessions", place.sessions())
            .flag("--session-idle", "1s")
            .flag("--login-throttle", "off")
            .start();
        let mut member = Visitor::new(&server);
        assert_eq!(member.register("ann", GOOD).status, 303);
        // Where the machine takes a second for a request, the session may end: then once more.
        let used = eventually(LONG, "the session is used every 0.4 s", || {
            let mut used = Instant::now();
            assert_eq!(member.log_in("ann", GOOD).status, 303);
            for _ in 0..10 {
                let status = member.get("/members/").status;
                if used.elapsed() >= Duration::from_secs(1) {
                    return None;
                }
                assert_eq!(status, 200, "{:?}: {:?} after the last use", place.kind, used.elapsed());
                used = Instant::now();
                thread::sleep(Duration::from_millis(400));
            }
            Some(used)
        });
        becomes_true(SOON, "a session that is not used ends", || {
            // Each look is a use: the pause has to be longer than the timeout and what uses are not written for.
            thread::sleep(Duration::from_millis(2100));
            member.get("/members/").status == 303
        });
        assert!(used.elapsed() >= Duration::from_secs(1));
        stop(server);
    }
}

pub(super) fn a_fresh_login_works_at_once() {
    let folder = site();
    let server = launch(&Config::of(Engine::Epoll), &folder, &fresh(Kind::Sqlite, &folder))
        .flag("--session-idle", "1s")
        .flag("--session-lifetime", "1s")
        .flag("--login-throttle", "off")
        .start();
    let mut member = Visitor::new(&server);
    assert_eq!(member.register("ann", GOOD).status, 303);
    let mut in_time = 0;
    // Enough to begin shortly before the end of a second.
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
    for place in Place::all() {
        let url = fresh(place.kind, &folder);
        let server = launch(&Config::of(Engine::Epoll), &folder, &url)
            .flag("--sessions", place.sessions())
            .flag("--login-throttle", "off")
            .start();
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
        let alive = |visitor: &mut Visitor<'_>| visitor.get("/members/").status == 200;
        // Ages are compared in seconds.
        thread::sleep(Duration::from_millis(1100));
        let mut others: Vec<_> = (0..30).map(|_| log_in()).collect();
        assert!(alive(&mut oldest) && alive(&mut second), "{:?}: 32 sessions", place.kind);
        others.extend([log_in(), log_in()]);
        assert!(!alive(&mut oldest) && !alive(&mut second), "{:?}: the oldest of 34", place.kind);
        assert!(others.iter_mut().all(alive), "{:?}: 32 sessions", place.kind);
        assert!(alive(&mut another), "{:?}: another member's", place.kind);
        stop(server);
    }
}
