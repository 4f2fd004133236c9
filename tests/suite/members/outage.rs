//! Outages of the server and of the database.

use std::fs::{self, DirEntry};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use tenfold_engine::Engine;
use tenfold_tests::address::ReservedAddress;
use tenfold_tests::config::{Config, everything};
use tenfold_tests::databases::{Database, DatabaseProduct, execute, fresh};
use tenfold_tests::harness::Named;
use tenfold_tests::launch::{tenfold, tenfold_slowly};
use tenfold_tests::process::Process;
use tenfold_tests::server::Server;
use tenfold_tests::strace::Tracer;
use tenfold_tests::time::{SOON, becomes_true, eventually};
use tenfold_tests::visitor::Visitor;

use super::{GOOD, launch, new_member, site, stop};

pub(super) const LONG: Duration = Duration::from_secs(60);

/// One test for each database, because a hundred rounds of one take minutes.
pub(super) fn h71_acknowledged_accounts_survive_a_kill() -> Vec<Named> {
    let rounds = if everything() { 100 } else { 4 };
    let test = |kind: DatabaseProduct| Named {
        name: format!("{kind:?}").to_lowercase(),
        run: Box::new(move || nothing_acknowledged_is_lost(kind, rounds)),
    };
    DatabaseProduct::ALL.map(test).into()
}

/// In each round the server is killed while three visitors register accounts in sequence.
fn nothing_acknowledged_is_lost(kind: DatabaseProduct, rounds: u64) {
    let folder = site();
    let config = Config::of(Engine::Epoll);
    let url = fresh(kind, &folder);
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..rounds {
        let server = launch(&config, &folder, &url).flag("--login-throttle", "off").start();
        let done = AtomicUsize::new(0);
        let accounts = thread::scope(|scope| {
            let (server, done) = (&server, &done);
            let clients =
                ["p", "q", "t"].map(|client| scope.spawn(move || registered(server, client, round, done)));
            // Each round kills the server at another time.
            thread::sleep(Duration::from_millis(40 + 37 * (round % 11)));
            if round == 0 {
                becomes_true(SOON, "somebody gets through", || done.load(Ordering::Relaxed) > 0);
            }
            for process in server.process.with_descendants() {
                process.signal(Signal::KILL);
            }
            clients.map(|client| client.join().expect("it ends")).concat()
        });
        acknowledged.extend(accounts);
    }
    let output = tenfold(&["users", "--accounts", &url, "list", "--json"]);
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    for name in &acknowledged {
        assert!(list.contains(&format!("\"{name}\"")), "{kind:?}: {name} was acknowledged and is lost");
    }
    assert!(!acknowledged.is_empty(), "{kind:?}: somebody got through");
}

/// Registers accounts in sequence until the server has ended; returns the acknowledged ones, and counts them in `all`.
fn registered(server: &Server, client: &str, round: u64, all: &AtomicUsize) -> Vec<String> {
    let names = (0..100).map(|number| format!("{client}-{round}x{number}"));
    let answers = names.map_while(|name| try_register(server, &name).map(|done| (name, done)));
    let acknowledged = answers.filter_map(|(name, done)| done.then_some(name));
    acknowledged.inspect(|_| _ = all.fetch_add(1, Ordering::Relaxed)).collect()
}

/// Registers; returns whether it was acknowledged, or `None` if the server has ended.
fn try_register(server: &Server, name: &str) -> Option<bool> {
    let quietly = std::panic::AssertUnwindSafe(|| Visitor::new(server).register(name, GOOD));
    let response = std::panic::catch_unwind(quietly).ok()?;
    Some(response.status == 303)
}

pub(super) fn h71_acknowledged_accounts_were_synced() {
    let folder = site();
    let config = Config::of(Engine::Epoll);
    for kind in DatabaseProduct::ALL {
        let database = (kind != DatabaseProduct::Sqlite).then(|| Database::start_syncing(kind));
        let url = database.as_ref().map_or_else(|| fresh(kind, &folder), Database::create);
        let server = launch(&config, &folder, &url).start();
        let mut visitor = Visitor::new(&server);
        let token = visitor.token("/account/register");
        // One strace sees both processes, so the order of its lines shows that the sync precedes the acknowledgement.
        let mut processes = vec![accounts_process(&server)];
        processes.extend(database.iter().filter_map(Database::process).flat_map(Process::with_descendants));
        let trace = Tracer::attach(&processes);
        let fields = [("token", token.as_str()), ("name", "ann"), ("password", GOOD), ("again", GOOD)];
        assert_eq!(visitor.post("/account/register", &fields).status, 303, "{kind:?}");
        let lines = trace.detach().lines;
        let at = |words: &str| lines.iter().position(|line| line.contains(words));
        let (question, answer) = (at(r#"{\"Register\":"#), at(r#"\"Done\""#));
        let (Some(question), Some(answer)) = (question, answer) else {
            panic!("{kind:?}: it was not seen: {lines:#?}");
        };
        let synced = lines.get(question..answer).is_some_and(|between| {
            between.iter().any(|line| line.contains("fdatasync(") || line.contains("fsync("))
        });
        assert!(synced, "{kind:?}: {lines:#?}");
        stop(server);
    }
}

/// The accounts process: the child of the supervisor with threads that hash. These start after the report that it
/// serves.
pub(super) fn accounts_process(server: &Server) -> Process {
    let hashes = |process: &Process| process.threads().iter().any(|name| name.starts_with("hashing"));
    eventually(SOON, "one process has the accounts", || server.process.children().into_iter().find(hashes))
}

pub(super) fn a_dead_accounts_process_is_replaced() {
    let folder = site();
    for engine in [Engine::Epoll, Engine::Fork] {
        let server = launch(&Config::of(engine), &folder, &fresh(DatabaseProduct::Sqlite, &folder)).start();
        let mut member = new_member(&server, "ann");
        accounts_process(&server).signal(Signal::KILL);
        becomes_true(SOON, "another process answers", || member.get("/members/").status == 200);
        stop(server);
    }
}

/// A separate process checks the database. It ends within its time, and leaves nothing.
pub(super) fn h69_a_silent_database_holds_up_no_check() {
    let folder = site();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let at = silent.local_addr().expect("it is bound");
    let text = format!(
        "root = \"site\"\naccounts = \"postgres://tenfold:secret@{at}/x\"\nprotect = [\"/members/\"]\n"
    );
    let file = folder.write("tenfold.toml", text).display().to_string();
    let output = tenfold_slowly(&["check", &file]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot check the members' database as user"), "{said}");
    assert!(said.contains(": no result within 8s"), "{said}");
    let names_it = |entry: &DirEntry| {
        fs::read_to_string(entry.path().join("cmdline")).is_ok_and(|line| line.contains(&file))
    };
    let left = fs::read_dir("/proc").expect("every system has it").flatten().filter(names_it).count();
    assert_eq!(left, 0, "processes of the check");
}

pub(super) fn an_unusable_database_is_a_one_line_error() {
    let folder = site();
    let config = Config::of(Engine::Epoll);
    let nowhere = ReservedAddress::new();
    let postgres = fresh(DatabaseProduct::Postgres, &folder);
    let mariadb = fresh(DatabaseProduct::Mariadb, &folder);
    let newer = fresh(DatabaseProduct::Sqlite, &folder);
    drop(launch(&config, &folder, &newer).start());
    execute(
        DatabaseProduct::Sqlite,
        &newer,
        "UPDATE tenfold_facts SET content = '99' WHERE name = 'version'",
    );
    for (url, words) in [
        (format!("postgres://tenfold:secret@{nowhere}/x"), "cannot use the database postgres://tenfold@"),
        (format!("mysql://tenfold:secret@{nowhere}/x"), "cannot use the database mysql://tenfold@"),
        (postgres.replace("secret", "wrong"), "password authentication failed"),
        (mariadb.replace("secret", "wrong"), "Access denied"),
        ("sqlite:/nonexistent/members.db".into(), "/nonexistent/members.db"),
        (newer, "its schema version is 99"),
    ] {
        let output = launch(&config, &folder, &url).refused();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{url}: {said}");
        assert!(said.contains(words) && said.lines().count() == 1, "{url}: {said}");
        assert!(!said.contains("secret") && !said.contains("wrong@"), "{said}");
    }
}
