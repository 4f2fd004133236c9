//! A database that is gone, locked or full: members are told so, files never notice, and it comes back by itself.

use std::fs;
use std::path::PathBuf;

use tenfold_engine::Engine;
use tenfold_tests::config::Config;
use tenfold_tests::databases::{Database, Held, Kind, fresh};
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::site::Folder;
use tenfold_tests::strace::{Fault, Tracer};
use tenfold_tests::time::{SOON, becomes_true, eventually};
use tenfold_tests::visitor::Visitor;

use super::outage::{LONG, accounts_process};
use super::{GOOD, launch, site, stop};

/// A server with one member, whose database is its own where it is a server's.
struct Troubled {
    kind: Kind,
    database: Option<Database>,
    url: String,
    server: Server,
}

impl Troubled {
    fn new(kind: Kind, folder: &Folder) -> Troubled {
        let database = (kind != Kind::Sqlite).then(|| Database::start(kind));
        let url = database.as_ref().map_or_else(|| fresh(kind, folder), Database::create);
        let launch = launch(&Config::of(Engine::Epoll), folder, &url).flag("--login-throttle", "off");
        let server = launch.start();
        assert_eq!(Visitor::new(&server).register("ann", GOOD).status, 303);
        Troubled { kind, database, url, server }
    }

    fn member(&self) -> Visitor<'_> {
        let mut member = Visitor::new(&self.server);
        assert_eq!(member.log_in("ann", GOOD).status, 303, "{:?}", self.kind);
        member
    }

    fn file(&self) -> PathBuf {
        self.url.strip_prefix("sqlite:").expect("it is a file").into()
    }

    #[track_caller]
    fn nobody_can_log_in(&self) {
        let refused = Visitor::new(&self.server).log_in("ann", GOOD);
        assert_eq!(refused.status, 503, "{:?}", self.kind);
        assert!(refused.field("retry-after").is_some());
        self.files_never_notice();
    }

    #[track_caller]
    fn files_never_notice(&self) {
        for _ in 0..10 {
            assert_eq!(self.server.get("/").status, 200, "{:?}", self.kind);
        }
    }

    #[track_caller]
    fn comes_back(self) {
        let logs_in = || Visitor::new(&self.server).log_in("ann", GOOD).status == 303;
        becomes_true(LONG, &format!("the login comes back with {:?}", self.kind), logs_in);
        stop(self.server);
    }
}

pub(super) fn h69_a_database_that_goes_and_comes_back() {
    let folder = site();
    for kind in Kind::ALL {
        let troubled = Troubled::new(kind, &folder);
        let mut member = troubled.member();
        let aside = folder.at("aside.db");
        match &troubled.database {
            Some(database) => database.stop(),
            None => fs::rename(troubled.file(), &aside).expect("our own file"),
        }
        let refused = member.get("/members/");
        assert_eq!(refused.status, 503, "{kind:?}");
        assert!(refused.field("retry-after").is_some());
        troubled.nobody_can_log_in();
        match &troubled.database {
            Some(database) => database.begin(),
            None => {
                assert!(!troubled.file().exists(), "an empty one would be taken for the database");
                fs::rename(&aside, troubled.file()).expect("our own file");
            }
        }
        becomes_true(LONG, "the members' pages come back", || member.get("/members/").status == 200);
        troubled.comes_back();
    }
}

pub(super) fn h69_a_database_that_is_locked() {
    let folder = site();
    for kind in Kind::ALL {
        let troubled = Troubled::new(kind, &folder);
        let mut member = troubled.member();
        let held = Held::tables(&troubled.url, troubled.database.as_ref());
        troubled.nobody_can_log_in();
        // Who writes an SQLite database keeps nobody from reading it.
        let status = member.get("/members/").status;
        assert_eq!(status, if kind == Kind::Sqlite { 200 } else { 503 }, "{kind:?}");
        drop(held);
        troubled.comes_back();
    }
}

pub(super) fn h69_a_database_that_is_full() {
    let folder = site();
    // MariaDB gives up where its log can not be written, and nobody starts it again here: that is one that is gone.
    for kind in [Kind::Sqlite, Kind::Postgres] {
        let troubled = Troubled::new(kind, &folder);
        let writer = match &troubled.database {
            None => accounts_process(&troubled.server),
            Some(database) => backend(database),
        };
        let full = Fault { calls: "pwrite64", error: "ENOSPC", when: "1+" };
        let tracer = Tracer::inject(&[writer], &[full]);
        troubled.nobody_can_log_in();
        assert!(tracer.failed(&full) > 0, "{kind:?}");
        drop(tracer);
        troubled.comes_back();
    }
}

/// The process of PostgreSQL that serves our one connection. It names what it does in place of its words.
fn backend(database: &Database) -> Process {
    let postmaster = database.process().expect("it runs");
    eventually(SOON, "PostgreSQL has our connection", || {
        let serves = |process: &Process| process.words().concat().starts_with("postgres: tenfold members");
        postmaster.children().into_iter().find(serves)
    })
}
