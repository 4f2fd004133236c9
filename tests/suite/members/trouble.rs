//! A database that is unreachable, locked or full: members are informed, files are unaffected, and it recovers by
//! itself.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tenfold_engine::Engine;
use tenfold_tests::binary;
use tenfold_tests::config::Config;
use tenfold_tests::databases::{Database, DatabaseProduct, Disk, TableLock, fresh};
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::site::TempFolder;
use tenfold_tests::strace::{CallFailure, Tracer};
use tenfold_tests::time::{SOON, becomes_true, eventually};
use tenfold_tests::visitor::{Visitor, text};

use super::outage::{LONG, accounts_process};
use super::{GOOD, launch, site, stop};

/// A server with one member, and its own database server.
struct Troubled {
    kind: DatabaseProduct,
    database: Option<Database>,
    url: String,
    server: Server,
}

impl Troubled {
    fn new(kind: DatabaseProduct, folder: &TempFolder) -> Troubled {
        let database = (kind != DatabaseProduct::Sqlite).then(|| Database::start(kind));
        let url = database.as_ref().map_or_else(|| fresh(kind, folder), Database::create);
        let launch = launch(&Config::of(Engine::Epoll), folder, &url).flag("--login-throttle", "off");
        let server = launch.start();
        assert_eq!(Visitor::new(&server).register("ann", GOOD).status, 303);
        Troubled { kind, database, url, server }
    }

    fn member(&self) -> Visitor {
        let mut member = Visitor::new(&self.server);
        assert_eq!(member.log_in("ann", GOOD).status, 303, "{:?}", self.kind);
        member
    }

    fn file(&self) -> PathBuf {
        self.url.strip_prefix("sqlite:").expect("it is a file").into()
    }

    #[track_caller]
    fn no_visitor_can_log_in(&self) {
        let refused = Visitor::new(&self.server).log_in("ann", GOOD);
        assert_eq!(refused.status, 503, "{:?}", self.kind);
        assert!(refused.field("retry-after").is_some());
        self.files_are_served_without_the_database();
    }

    #[track_caller]
    fn files_are_served_without_the_database(&self) {
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

pub(super) fn h69_a_database_outage_and_recovery() {
    let folder = site();
    for kind in DatabaseProduct::ALL {
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
        troubled.no_visitor_can_log_in();
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

pub(super) fn h69_a_locked_database() {
    let folder = site();
    for kind in DatabaseProduct::ALL {
        let troubled = Troubled::new(kind, &folder);
        let mut member = troubled.member();
        let held = TableLock::tables(&troubled.url, troubled.database.as_ref());
        troubled.no_visitor_can_log_in();
        // A writer of an SQLite database does not block readers.
        let status = member.get("/members/").status;
        assert_eq!(status, if kind == DatabaseProduct::Sqlite { 200 } else { 503 }, "{kind:?}");
        drop(held);
        troubled.comes_back();
    }
}

pub(super) fn h69_a_full_database() {
    let folder = site();
    // MariaDB exits if its log cannot be written, and does not restart here, which equals an unreachable database. On a
    // full disk its log has preallocated room: `h69_a_full_disk_loses_no_account`.
    for kind in [DatabaseProduct::Sqlite, DatabaseProduct::Postgres] {
        let troubled = Troubled::new(kind, &folder);
        let writer = match &troubled.database {
            None => accounts_process(&troubled.server),
            Some(database) => backend(database),
        };
        let full = CallFailure { calls: "pwrite64", error: "ENOSPC", when: "1+" };
        let tracer = Tracer::inject(&[writer], &[full]);
        troubled.no_visitor_can_log_in();
        assert!(tracer.failed(&full) > 0, "{kind:?}");
        drop(tracer);
        troubled.comes_back();
    }
}

/// The process of PostgreSQL that serves our only connection. It shows its activity in its command line.
fn backend(database: &Database) -> Process {
    let postmaster = database.process().expect("it runs");
    eventually(SOON, "PostgreSQL has our connection", || {
        let serves = |process: &Process| process.words().concat().starts_with("postgres: tenfold members");
        postmaster.children().into_iter().find(serves)
    })
}

/// Kilobytes of a disk that is little larger than a new database.
const SMALL: u32 = 192 * 1024;
/// The most accounts that fit into the reserve of a database on a full disk.
const SET_ASIDE: usize = 5000;

pub(super) fn h69_a_full_disk_loses_no_account() {
    let folder = site();
    for kind in DatabaseProduct::ALL {
        let database = (kind != DatabaseProduct::Sqlite).then(|| Database::start_on_disk(kind, SMALL));
        let own = database.is_none().then(|| Disk::new(&folder.make("disk"), SMALL));
        let disk = own.as_ref().or(database.as_ref().map(Database::disk)).expect("it is one or the other");
        let url = database
            .as_ref()
            .map_or_else(|| format!("sqlite:{}", folder.at("disk/members.db").display()), Database::create);
        let words = disk.words();
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let launch = launch(&Config::of(Engine::Epoll), &folder, &url).flag("--login-throttle", "off");
        let server = launch.through("nsenter", &words).start();
        let register = |name: &str| Visitor::new(&server).register(name, GOOD);
        assert_eq!(register("ann").status, 303);

        disk.fill();
        if let (DatabaseProduct::Postgres, Some(database)) = (kind, &database) {
            // Autovacuum does this at times. It frees pages of the disk, often an odd number: then PostgreSQL writes
            // half of its next block, and reports another error.
            database.query("VACUUM pg_class").expect("it needs no room");
        }
        let mut acknowledged = vec!["ann".to_owned()];
        let (refused, response) = loop {
            let name = format!("member-{}", acknowledged.len());
            let response = register(&name);
            if response.status != 303 {
                break (name, response);
            }
            acknowledged.push(name);
            assert!(acknowledged.len() < SET_ASIDE, "{kind:?} needs no room");
        };
        assert_eq!(response.status, 503, "{kind:?}: {}", text(&response));
        assert!(response.field("retry-after").is_some());
        assert!(text(&response).contains("Please try again soon."), "{kind:?}: {}", text(&response));
        assert_eq!(server.get("/").status, 200, "{kind:?}");
        let why = match kind {
            DatabaseProduct::Sqlite => "accounts: database or disk is full",
            DatabaseProduct::Postgres => "(Check free disk space.)",
            DatabaseProduct::Mariadb => "accounts: The table 'tenfold_users' is full",
        };
        server.expect_report(why);

        disk.make_room();
        // A rejected registration leaves no partial account behind.
        becomes_true(LONG, &format!("{kind:?} goes on"), || register(&refused).status == 303);
        acknowledged.push(refused);
        stop(server);
        if let Some(database) = &database {
            database.stop();
            database.begin();
        }
        let list = listed(own.as_ref(), &url);
        for name in &acknowledged {
            assert!(list.contains(&format!("\"{name}\"")), "{kind:?}: {name} was acknowledged and is lost");
        }
    }
}

/// All members of the database with this URL, which is on `disk` if it is a file.
fn listed(disk: Option<&Disk>, url: &str) -> String {
    let binary = binary::server().unwrap_or_else(|why| panic!("{why}"));
    let mut command = Command::new(&binary.path);
    command.args(["users", "--accounts", url, "list", "--json"]);
    if let Some(disk) = disk {
        command = disk.joined_by(&command);
    }
    let output = command.output().unwrap_or_else(|error| panic!("run {command:?}: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
