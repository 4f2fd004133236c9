//! Attacks on the accounts by code that runs as the user of the workers.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Output;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::net::{SendFlags, send};
use rustix::process::Signal;
use tenfold_engine::Engine;
use tenfold_tests::config::Config;
use tenfold_tests::databases::{DatabaseProduct, fresh};
use tenfold_tests::harness::each_at_once;
use tenfold_tests::launch::{ANY_PORT, Launch, tenfold};
use tenfold_tests::process::{Process, send_message};
use tenfold_tests::server::Server;
use tenfold_tests::site::TempFolder;
use tenfold_tests::time::{SOON, becomes_true};
use tenfold_tests::tools;
use tenfold_tests::visitor::Visitor;
use tenfold_tests::wire::request;

use super::outage::{LONG, accounts_process};
use super::{GOOD, launch, new_member, site, stop};

/// Users of every system: one for the accounts process, and that of the workers.
const KEEPER: (&str, u32) = ("daemon", 1);
const WORKER: (&str, u32) = ("nobody", 65534);

/// Creates a folder of this user in another one.
fn folder_of(folder: &TempFolder, name: &str, (_, user): (&str, u32)) -> PathBuf {
    let path = folder.make(name);
    chown(&path, Some(user), None).expect("this is root");
    path
}

/// A server on epoll whose database is this file.
fn launch_on(folder: &TempFolder, database: &Path) -> Launch {
    launch(&Config::of(Engine::Epoll), folder, &url(database))
}

fn url(database: &Path) -> String {
    format!("sqlite:{}", database.display())
}

fn error_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn joins(server: &Server) -> Visitor {
    new_member(server, "ann")
}

pub(super) fn h75_root_never_opens_files_planted_at_the_database() {
    let folder = site();
    let own = folder_of(&folder, "data", WORKER);
    let (database, target, missing) = (own.join("members.db"), folder.at("target"), folder.at("missing"));
    let plant: [(&str, &dyn Fn()); 4] = [
        ("symbolic link", &|| symlink(&target, &database).expect("our own folder")),
        ("symbolic link", &|| symlink(&missing, &database).expect("our own folder")),
        ("hard links", &|| fs::hard_link(&target, &database).expect("our own folder")),
        ("not a regular file", &|| {
            mknodat(CWD, &database, FileType::Fifo, Mode::from_raw_mode(0o666), 0).expect("our own folder");
        }),
    ];
    for (words, plant) in plant {
        folder.write("target", "root's");
        folder.allow("target", 0o600);
        plant();
        for said in [
            error_of(&launch_on(&folder, &database).refused()),
            error_of(&launch_on(&folder, &database).flag("--accounts-user", KEEPER.0).refused()),
            error_of(&tenfold(&["users", "--accounts", &url(&database), "list"])),
        ] {
            let facts = fs::metadata(&target).expect("it is still there");
            assert_eq!((facts.uid(), facts.mode() & 0o777), (0, 0o600), "{words}");
            assert_eq!(fs::read(&target).expect("it is still there"), b"root's", "{words}");
            assert!(!missing.exists(), "nothing is made through a link");
            assert!(said.contains(words) || said.contains("daemon cannot write in the folder"), "{said}");
        }
        fs::remove_file(&database).expect("our own file");
    }
}

pub(super) fn h75_root_follows_no_link_on_the_way_to_the_database() {
    let folder = site();
    let (own, real) = (folder_of(&folder, "data", WORKER), folder_of(&folder, "real", KEEPER));
    let (link, target) = (own.join("link"), real.join("members.db"));
    folder.write("real/members.db", "another program's");
    chown(&target, Some(WORKER.1), None).expect("this is root");
    symlink(&real, &link).expect("this is root");
    lchown(&link, Some(WORKER.1), None).expect("this is root");
    let database = link.join("members.db");
    for said in [
        error_of(&launch_on(&folder, &database).flag("--accounts-user", KEEPER.0).refused()),
        error_of(&tenfold(&["users", "--accounts", &url(&database), "list"])),
    ] {
        assert_eq!(fs::metadata(&target).expect("it is still there").uid(), WORKER.1, "{said}");
        // Without a user for the accounts, `tenfold users` switches to the user who planted the link.
        let expected = ["link is a link of user 65534", "cannot write in the folder"];
        assert!(expected.iter().any(|words| said.contains(words)), "{said}");
    }
}

pub(super) fn h75_targets_of_links_planted_beside_the_database_stay_roots() {
    let folder = site();
    let own = folder_of(&folder, "data", WORKER);
    fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).expect("our own folder");
    let database = own.join("members.db");
    let server = launch_on(&folder, &database).flag("--accounts-user", WORKER.0).start();
    joins(&server);
    stop(server);
    let target = folder.at("target");
    for ending in ["-journal", "-shm", "-wal"] {
        let beside = own.join(format!("members.db{ending}"));
        let plant: [&dyn Fn(); 2] = [&|| symlink(&target, &beside).expect("our own folder"), &|| {
            fs::hard_link(&target, &beside).expect("our own folder")
        }];
        for plant in plant {
            folder.write("target", "root's");
            folder.allow("target", 0o600);
            let _ = fs::remove_file(&beside);
            plant();
            let _ = tenfold(&["users", "--accounts", &url(&database), "list"]);
            if ending == "-wal" {
                // SQLite reads this file in any case, so the start fails.
                let _ = launch_on(&folder, &database).flag("--accounts-user", KEEPER.0).refused();
            }
            assert_eq!(fs::metadata(&target).expect("it is still there").uid(), 0, "{ending}");
            assert_eq!(fs::read(&target).expect("it is still there"), b"root's", "{ending}");
            fs::remove_file(&beside).expect("nobody has removed it");
        }
    }
}

pub(super) fn h75_only_a_database_of_the_workers_user_changes_its_owner() {
    let folder = site();
    folder.allow(".", 0o777);
    let database = folder.at("members.db");
    let owner = || fs::metadata(&database).map(|facts| (facts.uid(), facts.mode() & 0o777)).ok();
    let server = launch_on(&folder, &database).flag("--accounts-user", WORKER.0).start();
    joins(&server);
    // A killed server leaves the journal behind.
    for process in server.process.with_descendants() {
        process.signal(Signal::KILL);
    }
    drop(server);
    assert!(folder.at("members.db-wal").exists(), "the journal is there");
    folder.allow("members.db", 0o644);
    let server = launch_on(&folder, &database).flag("--accounts-user", KEEPER.0).start();
    assert_eq!(owner(), Some((KEEPER.1, 0o600)));
    assert_eq!(Visitor::new(&server).log_in("ann", GOOD).status, 303);
    let warned = server.errors();
    assert!(
        warned.contains("nobody serves and can write in") && warned.contains("replace the database"),
        "{warned}"
    );
    stop(server);
    let said = error_of(&launch_on(&folder, &database).flag("--accounts-user", "games").refused());
    assert!(said.contains("belongs to user number 1") && said.contains("accounts-user"), "{said}");
    assert_eq!(owner(), Some((KEEPER.1, 0o600)), "a third user's stays the third user's");
    let listed = tenfold(&["users", "--accounts", &url(&database), "list"]);
    assert!(listed.status.success() && listed.stdout.starts_with(b"ann "), "{}", error_of(&listed));
}

pub(super) fn an_unwritable_database_folder_is_named_and_stays_empty() {
    let folder = site();
    let own = folder_of(&folder, "data", ("root", 0));
    let database = own.join("members.db");
    for user in [KEEPER.0, WORKER.0] {
        let said = error_of(&launch_on(&folder, &database).flag("--accounts-user", user).refused());
        let words = format!("user {user} cannot write in the folder {}", own.display());
        assert!(said.contains(&words) && said.lines().count() == 1, "{said}");
        assert!(!database.exists(), "an empty file would be left for later");
    }
}

pub(super) fn the_user_of_the_accounts_is_checked_and_a_shared_one_is_a_warning() {
    let folder = site();
    folder.allow(".", 0o777);
    let database = folder.at("members.db");
    let said = error_of(&launch_on(&folder, &database).flag("--accounts-user", "no-such-user").refused());
    assert!(said.contains("there is no user no-such-user") && said.contains("accounts-user"), "{said}");
    let said = error_of(&launch_on(&folder, &database).flag("--accounts-user", "root").refused());
    assert!(said.contains("accounts-user is root, which is root"), "{said}");
    let server = launch_on(&folder, &database).start();
    let said = server.errors();
    match fs::read_to_string("/etc/passwd").expect("it can be read").contains("\ntenfold-accounts:") {
        true => assert!(said.contains("tenfold-accounts keeps the accounts"), "{said}"),
        false => {
            assert!(said.contains("warning: there is no user tenfold-accounts"), "{said}");
            assert!(said.contains("run as nobody; set accounts-user to separate them"), "{said}");
        }
    }
    stop(server);
    let plain = Launch::new(&Config::of(Engine::Epoll), &folder.at("site"));
    let said = error_of(&plain.flag("--accounts-user", KEEPER.0).refused());
    assert!(said.contains("accounts-user is for a server that has members"), "{said}");
}

/// The workers' socket to the accounts process, taken from a worker as an attacker in it could use it.
fn asking_end(server: &Server) -> OwnedFd {
    let accounts = accounts_process(server);
    let workers = server.workers().into_iter().filter(|worker| *worker != accounts);
    workers.flat_map(Process::message_sockets).next().expect("a worker has one")
}

#[track_caller]
fn send_raw(door: &OwnedFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
    send_message(door, bytes, descriptors, SendFlags::NOSIGNAL).expect("it is open");
}

pub(super) fn h78_workers_share_two_counts_with_the_accounts() {
    let folder = site();
    let launch = launch(&Config::of(Engine::Epoll), &folder, &fresh(DatabaseProduct::Sqlite, &folder));
    // With all kinds of memory that the supervisor shares.
    let launch = launch.flag("--admin", ANY_PORT).flag("--max-connections-per-address", 100);
    let server = launch.start();
    let shared = |process: Process| -> Vec<String> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", process.0)).expect("it runs");
        let anonymous = maps.lines().filter(|line| line.contains("rw-s") && line.contains("/dev/zero"));
        anonymous.filter_map(|line| Some(line.split_whitespace().nth(4)?.to_owned())).collect()
    };
    let is_worker = |process: &Process| {
        let status = server.status();
        let mut workers = status["workers"].as_array().expect("workers").iter();
        workers.any(|worker| worker["process"] == process.0)
    };
    let share_little = |accounts: Process| {
        let theirs = shared(accounts);
        assert!(theirs.len() >= 3, "signs of life, reports, and the count of starts: {theirs:?}");
        let (workers, others): (Vec<_>, Vec<_>) = server.workers().into_iter().partition(is_worker);
        assert_eq!((workers.len(), others.len()), (1, 2), "accounts and admin");
        for other in others {
            // All processes share the latest diagnostics.
            let expected = if other == accounts { 2 } else { 1 };
            let theirs = shared(other);
            let common: Vec<_> =
                shared(workers[0]).into_iter().filter(|inode| theirs.contains(inode)).collect();
            assert_eq!(
                common.len(),
                expected,
                "the latest diagnostics, and with accounts the count of starts: {common:?}"
            );
        }
    };
    let accounts = accounts_process(&server);
    share_little(accounts);
    accounts.signal(Signal::KILL);
    let has_accounts = |process: &Process| process.threads().iter().any(|name| name.starts_with("hashing"));
    becomes_true(SOON, "another one takes its place", || {
        server.workers().iter().any(|process| *process != accounts && has_accounts(process))
    });
    share_little(accounts_process(&server));
    stop(server);
}

pub(super) fn h76_invalid_messages_and_unread_replies_are_harmless() {
    let folder = site();
    let server =
        launch(&Config::of(Engine::Epoll), &folder, &fresh(DatabaseProduct::Sqlite, &folder)).start();
    let mut member = joins(&server);
    let (accounts, door) = (accounts_process(&server), asking_end(&server));
    // Connections to the database open on demand, and remain open.
    let is_own = |link: &String| !link.starts_with(&folder.path().display().to_string());
    let descriptors = || accounts.descriptors().into_iter().filter(is_own).count();
    let before = descriptors();
    let question = br#"{"Check":{"session":"a"}}"#;
    let (unread, answer) = UnixStream::pair().expect("a pair of sockets");
    let socket = answer.as_fd();
    let long = [&question[..], &vec![b' '; 128 * 1024]].concat();
    let wrong: [(&[u8], &[BorrowedFd<'_>]); 7] = [
        (b"", &[]),
        (b"", &[socket]),
        (question, &[]),
        (&question[..9], &[socket]),
        (&long, &[socket]),
        (b"\xff\xfe", &[socket]),
        (question, &[socket, socket]),
    ];
    for (number, (bytes, descriptors)) in wrong.iter().enumerate() {
        send_raw(&door, bytes, descriptors);
        assert_eq!(member.get("/members/").status, 200, "after message {number}");
        assert_eq!(accounts_process(&server), accounts, "after message {number}: it is the same process");
    }
    // Far more than the number of threads, each with a full response channel that is never read.
    const UNREAD: usize = 64;
    while send(&answer, &[0; 4096], SendFlags::DONTWAIT).is_ok() {}
    for _ in 0..UNREAD {
        send_raw(&door, question, &[socket]);
    }
    assert_eq!(member.get("/members/").status, 200, "no thread is lost");
    assert_eq!(Visitor::new(&server).log_in("ann", GOOD).status, 303);
    assert_eq!(accounts_process(&server), accounts, "it is the same process");
    assert_eq!(server.status()["accounts"]["replaced"], 0);
    becomes_true(LONG, "no descriptor is left", || descriptors() <= before);
    drop((unread, answer));
    stop(server);
}

pub(super) fn h77_the_accounts_process_has_a_bound_of_memory() {
    let folder = site();
    let server =
        launch(&Config::of(Engine::Epoll), &folder, &fresh(DatabaseProduct::Sqlite, &folder)).start();
    let limits = format!("/proc/{}/limits", accounts_process(&server).0);
    let limits = fs::read_to_string(limits).expect("it runs");
    let words = |line: &str| line.strip_prefix("Max data size").map(str::to_owned);
    let of_data = limits.lines().find_map(words).expect("proc(5) names it");
    let most: Vec<u64> = of_data.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(most.len() == 2 && most.iter().all(|bytes| *bytes < 3 << 30), "{limits}");
    stop(server);
}

pub(super) fn h77_an_accounts_process_that_hangs_is_replaced() {
    each_at_once([Engine::Epoll, Engine::Thread], |engine| {
        let folder = site();
        let server = launch(&Config::of(engine), &folder, &fresh(DatabaseProduct::Sqlite, &folder)).start();
        let mut member = joins(&server);
        let first = accounts_process(&server);
        // Until the supervisor continues, the process is not replaced; otherwise the successor would answer most
        // queries.
        for process in [server.process, first] {
            process.signal(Signal::STOP);
            becomes_true(LONG, "it has stopped", || process.is_stopped());
        }
        assert_eq!(server.get("/").status, 200, "{engine:?}: files never notice");
        // A reply may take as long as a test's longest read.
        let mut wire = server.connect();
        wire.socket().set_read_timeout(Some(LONG)).expect("it is open");
        let cookie = format!("session={}", member.cookies["session"]);
        wire.send(request("GET", "/members/", &[("Cookie", &cookie)]));
        let refused = wire.response();
        assert_eq!(refused.status, 503, "{engine:?}");
        assert!(refused.field("retry-after").is_some());
        assert_eq!(server.get("/").status, 200, "{engine:?}: files never notice");
        server.process.signal(Signal::CONT);
        becomes_true(LONG, "another process answers", || member.get("/members/").status == 200);
        assert!(!first.is_running(), "{engine:?}");
        assert!(server.errors().contains("hangs and is killed"), "{}", server.errors());
        assert_eq!(server.status()["accounts"]["replaced"], 1);
        stop(server);
    });
}

/// Runs a program as the user of the workers and returns whether it could read this file.
#[track_caller]
fn worker_reads(path: impl AsRef<Path>) -> bool {
    let output = tools::as_nobody(&tools::program("head")).args(["-c", "1"]).arg(path.as_ref()).output();
    output.expect("it can be run").status.success()
}

pub(super) fn h78_the_user_of_the_workers_reads_neither_the_database_nor_memory(config: &Config) {
    let folder = site();
    let own = folder_of(&folder, "data", KEEPER);
    let database = own.join("members.db");
    let server = launch(config, &folder, &url(&database)).flag("--accounts-user", KEEPER.0).start();
    let mut member = joins(&server);
    assert_eq!(member.get("/members/").status, 200);
    let accounts = accounts_process(&server);
    let user = |process: Process| process.status("Uid").unwrap_or_default();
    assert_eq!(
        user(accounts).split_ascii_whitespace().collect::<Vec<_>>(),
        [KEEPER.1.to_string().as_str(); 4]
    );
    assert!(worker_reads(folder.at("site/index.html")), "the check itself works");
    for ending in ["", "-wal", "-shm"] {
        let file = own.join(format!("members.db{ending}"));
        assert!(fs::metadata(&file).is_ok(), "{} is there", file.display());
        assert!(!worker_reads(&file), "{}", file.display());
    }
    for process in server.process.with_descendants() {
        for name in ["mem", "maps", "environ"] {
            assert!(!worker_reads(format!("/proc/{}/{name}", process.0)), "{name} of {process:?}");
        }
    }
    let said = server.errors();
    assert!(said.contains("nobody serves, daemon keeps the accounts"), "{said}");
    assert!(!said.contains("replace the database"), "{said}");
    stop(server);
}

pub(super) fn h78_without_root_the_memory_of_every_process_is_closed_to_the_same_user() {
    let folder = site();
    // It may write in the folder of the test until it drops its capabilities.
    let words = [
        "--reuid=nobody",
        "--regid=nogroup",
        "--clear-groups",
        "--inh-caps=+dac_override",
        "--ambient-caps=+dac_override",
    ];
    let launch = launch(&Config::of(Engine::Epoll), &folder, &fresh(DatabaseProduct::Sqlite, &folder));
    let server = launch.through("setpriv", &words).start();
    joins(&server);
    let maps = |process: Process| format!("/proc/{}/maps", process.0);
    let mut other =
        tools::as_nobody(&tools::program("sleep")).arg("60").spawn().expect("a program that waits");
    becomes_true(SOON, "the check itself works: it is the same user", || {
        worker_reads(maps(Process(other.id())))
    });
    other.kill().and_then(|()| other.wait()).expect("our own child");
    for process in server.process.with_descendants() {
        assert!(!worker_reads(maps(process)), "{process:?} of {:?}", server.process);
    }
    let said = server.errors();
    assert!(said.contains("run as the user of this process; start as root"), "{said}");
    stop(server);
}
