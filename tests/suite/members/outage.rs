//! What happens when something stops.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenfold_engine::Engine;
use tenfold_tests::config::Config;
use tenfold_tests::databases::{Database, Kind, Redis, fresh, set_version};
use tenfold_tests::launch::{free_address, tenfold};
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::strace::Tracer;
use tenfold_tests::time::{SOON, becomes_true, eventually};
use tenfold_tests::visitor::Visitor;

use super::{GOOD, launch, site, stop};

const LONG: Duration = Duration::from_secs(60);

pub(super) fn h69_a_database_that_goes_and_comes_back() {
    let folder = site();
    let config = Config::of(Engine::Epoll);
    for kind in [Kind::Postgres, Kind::Mariadb] {
        let database = Database::start(kind);
        let server = launch(&config, &folder, &database.create()).start();
        let mut member = Visitor::new(&server);
        assert_eq!((member.register("ann", GOOD).status, member.log_in("ann", GOOD).status), (303, 303));
        database.stop();
        let refused = member.get("/members/");
        assert_eq!(refused.status, 503, "{kind:?}");
        assert!(refused.field("retry-after").is_some());
        assert_eq!(Visitor::new(&server).log_in("ann", GOOD).status, 503, "{kind:?}");
        for _ in 0..10 {
            assert_eq!(server.get("/").status, 200, "{kind:?}: files never notice");
        }
        database.begin();
        becomes_true(LONG, "the members' pages come back", || member.get("/members/").status == 200);
        stop(server);
    }
    // A file that is locked by somebody who does not let go.
    let url = fresh(Kind::Sqlite, &folder);
    let server = launch(&config, &folder, &url).start();
    assert_eq!(Visitor::new(&server).register("ann", GOOD).status, 303);
    let path = url.strip_prefix("sqlite:").expect("it is a file").to_owned();
    let aside = format!("{path}.aside");
    fs::rename(&path, &aside).expect("our own file");
    fs::create_dir(&path).expect("our own folder");
    assert_eq!(server.get("/").status, 200);
    fs::remove_dir(&path).expect("our own folder");
    fs::rename(&aside, &path).expect("our own file");
    becomes_true(LONG, "the login comes back", || Visitor::new(&server).log_in("ann", GOOD).status == 303);
    stop(server);
}

pub(super) fn h71_what_was_acknowledged_is_there_after_a_kill() {
    let folder = site();
    let config = Config::of(Engine::Epoll);
    let rounds = if std::env::var_os("TENFOLD_TEST_ALL").is_some() { 100 } else { 4 };
    for kind in Kind::ALL {
        let url = fresh(kind, &folder);
        let mut acknowledged: Vec<String> = Vec::new();
        for round in 0..rounds {
            let server = launch(&config, &folder, &url).flag("--login-throttle", "off").start();
            let accounts = thread::scope(|scope| {
                let server = &server;
                let clients: Vec<_> = (0..3)
                    .map(|client| {
                        scope.spawn(move || {
                            let mut done = Vec::new();
                            for number in 0..100 {
                                let name = format!("{}-{round}x{client}x{number}", ["p", "q", "t"][client]);
                                match try_register(server, &name) {
                                    Some(true) => done.push(name),
                                    Some(false) => {}
                                    None => break,
                                }
                            }
                            done
                        })
                    })
                    .collect();
                thread::sleep(Duration::from_millis(40 + 37 * (round % 11)));
                for process in server.process.with_descendants() {
                    process.signal(Signal::KILL);
                }
                clients.into_iter().flat_map(|client| client.join().expect("it ends")).collect::<Vec<_>>()
            });
            acknowledged.extend(accounts);
            drop(server);
        }
        let output = tenfold(&["users", "--accounts", &url, "list", "--json"]);
        let list = String::from_utf8_lossy(&output.stdout).into_owned();
        for name in &acknowledged {
            assert!(list.contains(&format!("\"{name}\"")), "{kind:?}: {name} was acknowledged and is lost");
        }
        assert!(!acknowledged.is_empty(), "{kind:?}: somebody got through");
    }
}

/// Registers; says whether it was acknowledged, or nothing where the server is gone.
fn try_register(server: &Server, name: &str) -> Option<bool> {
    let quietly = std::panic::AssertUnwindSafe(|| Visitor::new(server).register(name, GOOD));
    let response = std::panic::catch_unwind(quietly).ok()?;
    Some(response.status == 303)
}

pub(super) fn h71_what_is_acknowledged_was_synced() {
    let folder = site();
    let config = Config::of(Engine::Epoll);
    let server = launch(&config, &folder, &fresh(Kind::Sqlite, &folder)).start();
    let mut visitor = Visitor::new(&server);
    let token = visitor.token("/account/register");
    let accounts = accounts_process(&server);
    let trace = Tracer::attach(&[accounts]);
    let fields = [("token", token.as_str()), ("name", "ann"), ("password", GOOD), ("again", GOOD)];
    assert_eq!(visitor.post("/account/register", &fields).status, 303);
    let lines = trace.detach().lines;
    let sync = lines.iter().rposition(|line| line.contains("sync("));
    let answer = lines.iter().rposition(|line| line.contains(r#"\"Done\""#));
    assert!(matches!((sync, answer), (Some(sync), Some(answer)) if sync < answer), "{lines:#?}");
    stop(server);
}

/// The process of the accounts: the child of the supervisor that listens on nothing.
fn accounts_process(server: &Server) -> Process {
    let threads = |process: &Process| {
        let tasks =
            fs::read_dir(format!("/proc/{}/task", process.0)).into_iter().flatten().filter_map(Result::ok);
        let names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
        names.collect::<Vec<_>>()
    };
    let found = server
        .process
        .children()
        .into_iter()
        .find(|process| threads(process).iter().any(|name| name.starts_with("hashing")));
    found.expect("one process has the accounts")
}

pub(super) fn the_accounts_are_replaced_when_they_die() {
    let folder = site();
    for engine in [Engine::Epoll, Engine::Fork] {
        let server = launch(&Config::of(engine), &folder, &fresh(Kind::Sqlite, &folder)).start();
        let mut member = Visitor::new(&server);
        assert_eq!((member.register("ann", GOOD).status, member.log_in("ann", GOOD).status), (303, 303));
        accounts_process(&server).signal(Signal::KILL);
        becomes_true(SOON, "another process answers", || member.get("/members/").status == 200);
        stop(server);
    }
}

pub(super) fn a_database_that_can_not_be_used_is_one_line() {
    let folder = site();
    let config = Config::of(Engine::Epoll);
    let nowhere = free_address();
    let postgres = fresh(Kind::Postgres, &folder);
    let mariadb = fresh(Kind::Mariadb, &folder);
    let newer = fresh(Kind::Sqlite, &folder);
    drop(launch(&config, &folder, &newer).start());
    set_version(&newer, 99);
    for (url, words) in [
        (format!("postgres://tenfold:secret@{nowhere}/x"), "can not use the database postgres://tenfold@"),
        (format!("mysql://tenfold:secret@{nowhere}/x"), "can not use the database mysql://tenfold@"),
        (postgres.replace("secret", "wrong"), "password authentication failed"),
        (mariadb.replace("secret", "wrong"), "Access denied"),
        ("sqlite:/nonexistent/members.db".into(), "/nonexistent/members.db"),
        (newer, "its tables are of version 99"),
    ] {
        let begin = Instant::now();
        let output = launch(&config, &folder, &url).refused();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{url}: {said}");
        assert!(said.contains(words) && said.lines().count() == 1, "{url}: {said}");
        assert!(!said.contains("secret") && !said.contains("wrong@"), "{said}");
        assert!(begin.elapsed() < LONG);
    }
}

pub(super) fn two_nodes_share_a_login() {
    let folder = site();
    let (url, redis) = (fresh(Kind::Postgres, &folder), Redis::start());
    let config = Config::of(Engine::Epoll);
    let node = || launch(&config, &folder, &url).flag("--sessions", &redis.url).start();
    let (one, other) = (node(), node());
    let mut member = Visitor::new(&one);
    assert_eq!((member.register("ann", GOOD).status, member.log_in("ann", GOOD).status), (303, 303));
    let mut there = Visitor::new(&other);
    there.cookies = member.cookies.clone();
    assert_eq!(there.get("/members/").status, 200, "a login on one is one on the other");
    assert_eq!(there.submit("/account/logout", "/account/logout", &[]).status, 303);
    eventually(SOON, "it ends on both", || (member.get("/members/").status == 303).then_some(()));
    stop(one);
    stop(other);
}
