//! Members in a database server during upgrades.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use tenfold_engine::Engine;
use tenfold_tests::config::Config;
use tenfold_tests::databases::{Database, DatabaseProduct};
use tenfold_tests::harness::Named;
use tenfold_tests::launch::Launch;
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::time::{EndOnDrop, SOON, becomes_true};
use tenfold_tests::visitor::Visitor;

use super::{folder, program, succeeds};

const UPGRADES: usize = 10;

/// One test for each database server.
pub(super) fn members_of_a_database_server_stay_logged_in() -> Vec<Named> {
    let named = |kind: DatabaseProduct| {
        let run = Box::new(move || members_stay_logged_in_beside(kind));
        Named { name: format!("{kind:?}").to_lowercase(), run }
    };
    [DatabaseProduct::Postgres, DatabaseProduct::Mariadb].map(named).into()
}

/// A session stays valid during upgrades, and members can log in after each upgrade.
fn members_stay_logged_in_beside(kind: DatabaseProduct) {
    let (folder, database) = (folder(), Database::start(kind));
    folder.write("site/members/index.html", "for members\n");
    let launch = Launch::new(&Config::of(Engine::Epoll), &folder.at("site")).program(&program(&folder));
    let launch = launch.flag("--accounts", database.create()).flag("--protect", "/members/");
    let server = launch.flag("--password-memory", "64k").flag("--password-passes", 1).start();
    let password = "violet tractor 81";
    let member = || {
        let mut member = Visitor::new(&server);
        let page = member.log_in("ada", password);
        assert_eq!(page.status, 303, "{}\n{}", page.head, server.errors());
        member
    };
    assert_eq!(Visitor::new(&server).register("ada", password).status, 303);
    let mut first = member();
    let before = connections(&database);
    let (end, requests) = (AtomicBool::new(false), AtomicUsize::new(0));
    let ask = |mut member: Visitor| {
        while !end.load(Ordering::Relaxed) {
            let page = member.get("/members/");
            assert_eq!((page.status, &page.body[..]), (200, &b"for members\n"[..]), "{}", page.head);
            // This page is made from the database.
            assert_eq!(member.get("/account/").status, 200);
            requests.fetch_add(1, Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let at_end = EndOnDrop(&end);
        let clients = [member(), member()].map(|member| scope.spawn(|| ask(member)));
        for _ in 0..UPGRADES {
            let accounts = accounts_process(&server);
            succeeds(&server, &folder);
            assert_ne!(accounts_process(&server), accounts, "another process has the accounts");
            let before = requests.load(Ordering::Relaxed);
            becomes_true(SOON, "members are served", || {
                requests.load(Ordering::Relaxed) > before + 5 || clients.iter().any(|it| it.is_finished())
            });
            assert_eq!(first.get("/members/").status, 200, "the session from before the upgrades");
            assert_eq!(member().get("/members/").status, 200, "a session from after the upgrade");
            becomes_true(SOON, "the former accounts process has ended", || !accounts.is_running());
        }
        drop(at_end);
        clients.into_iter().for_each(|client| client.join().expect("no request fails"));
    });
    becomes_true(SOON, "no connection to the database is left over", || connections(&database) <= before + 2);
    assert_eq!(first.submit("/account/logout", "/account/logout", &[]).status, 303);
    assert_eq!(first.get("/members/").status, 303);
    server.stop().unwrap_or_else(|why| panic!("{why}"));
}

fn accounts_process(server: &Server) -> Process {
    Process(server.status()["accounts"]["process"].as_u64().expect("it runs") as u32)
}

/// The number of connections to the database, including the connection of this query.
#[track_caller]
fn connections(database: &Database) -> usize {
    let sql = match database.kind {
        DatabaseProduct::Postgres => {
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
        }
        _ => "SELECT count(*) FROM information_schema.processlist WHERE user = 'tenfold'",
    };
    let rows = database.query(sql).unwrap_or_else(|why| panic!("{why}"));
    rows.trim().parse().unwrap_or_else(|_| panic!("no number: {rows}"))
}
