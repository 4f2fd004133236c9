//! Real database servers, each with its own data folder and port, as an unprivileged user. Each starts on first use and
//! stops at the end.

mod disk;
mod encrypted;
mod held;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use rustix::process::Signal;

use crate::address::ReservedAddress;
use crate::process::Process;
use crate::server::lock;
use crate::site::TempFolder;
use crate::time::eventually;
use crate::tools;

pub use disk::Disk;
pub use held::TableLock;

/// The longest wait for a start, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseProduct {
    /// A file.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MariaDB, which also represents MySQL.
    Mariadb,
}

impl DatabaseProduct {
    /// All kinds.
    pub const ALL: [DatabaseProduct; 3] =
        [DatabaseProduct::Sqlite, DatabaseProduct::Postgres, DatabaseProduct::Mariadb];
}

/// Settings that keep a MariaDB small. By default its log and its file growth take 96 and 64 MB.
const SMALL_MARIADB: [&str; 7] = [
    "--innodb-log-file-size=4M",
    "--innodb-log-buffer-size=1M",
    "--innodb-data-file-path=ibdata1:5M:autoextend",
    "--innodb-autoextend-increment=1",
    "--innodb-temp-data-file-path=ibtmp1:5M:autoextend",
    "--innodb-buffer-pool-size=16M",
    "--aria-log-file-size=8M",
];

/// A server that runs until this value is dropped.
#[derive(Debug)]
pub struct Database {
    /// The kind of database.
    pub kind: DatabaseProduct,
    /// Its address.
    pub address: ReservedAddress,
    /// Whether commits are synced. Most tests need no sync.
    syncs: bool,
    folder: TempFolder,
    /// Its own disk, if it has one.
    disk: Option<Disk>,
    child: Mutex<Option<Child>>,
}

static SHARED: [OnceLock<Database>; 2] = [const { OnceLock::new() }; 2];

/// The URL of a new and empty database of this kind; `folder` is for SQLite.
#[track_caller]
pub fn fresh(kind: DatabaseProduct, folder: &TempFolder) -> String {
    match kind {
        DatabaseProduct::Sqlite => {
            folder.allow(".", 0o777);
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            format!("sqlite:{}", folder.at(&format!("members-{number}.db")).display())
        }
        DatabaseProduct::Postgres | DatabaseProduct::Mariadb => shared(kind).create(),
    }
}

/// The URL of a new and empty database of this kind, by the Unix socket of its server.
#[track_caller]
pub fn fresh_by_socket(kind: DatabaseProduct) -> String {
    let server = shared(kind);
    let (own, port) = (server.folder.path().display().to_string(), server.address.port());
    let url = server.create();
    let name = url.rsplit('/').next().unwrap_or_default();
    match kind {
        DatabaseProduct::Postgres => {
            format!("postgres://tenfold:secret@{}:{port}/{name}", own.replace('/', "%2F"))
        }
        _ => format!("mysql://tenfold:secret@localhost/{name}?socket={own}/socket"),
    }
}

fn shared(kind: DatabaseProduct) -> &'static Database {
    let place = if kind == DatabaseProduct::Postgres { 0 } else { 1 };
    SHARED[place].get_or_init(|| Database::start(kind))
}

/// Runs SQL in a database of [`fresh`].
#[track_caller]
pub fn execute(kind: DatabaseProduct, url: &str, sql: &str) {
    let Some(file) = url.strip_prefix("sqlite:") else {
        let mut command = shared(kind).client(url.rsplit('/').next().unwrap_or_default());
        return run(command.args([if kind == DatabaseProduct::Postgres { "-c" } else { "-e" }, sql]));
    };
    let script = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])";
    run(Command::new(tools::program("python3")).args(["-c", script, file, sql]));
}

/// Stops shared servers and removes their data, because shared values are never dropped.
pub fn close() {
    for database in SHARED.iter().filter_map(OnceLock::get) {
        database.stop();
        let _ = fs::remove_dir_all(database.folder.path());
    }
}

impl Database {
    /// Starts a server that is not shared.
    #[track_caller]
    pub fn start(kind: DatabaseProduct) -> Database {
        Database::start_as(kind, false, None)
    }

    /// Starts a server whose data is on a disk of its own with `kilobytes`. It syncs.
    #[track_caller]
    pub fn start_on_disk(kind: DatabaseProduct, kilobytes: u32) -> Database {
        Database::start_as(kind, true, Some(kilobytes))
    }

    /// Starts a server that syncs commits, as by default.
    #[track_caller]
    pub fn start_syncing(kind: DatabaseProduct) -> Database {
        Database::start_as(kind, true, None)
    }

    #[track_caller]
    fn start_as(kind: DatabaseProduct, syncs: bool, kilobytes: Option<u32>) -> Database {
        let (folder, address) = (TempFolder::new("database"), ReservedAddress::new());
        folder.allow(".", 0o777);
        let disk = kilobytes.map(|kilobytes| Disk::new(&folder.make("disk"), kilobytes));
        let database = Database { kind, address, syncs, folder, disk, child: Mutex::new(None) };
        database.install();
        database.begin();
        database
    }

    /// Initialises the data folder.
    #[track_caller]
    fn install(&self) {
        let data = self.data();
        match self.kind {
            DatabaseProduct::Sqlite => panic!("SQLite has no server"),
            DatabaseProduct::Postgres => {
                let secret = self.folder.write("secret", "secret\n").display().to_string();
                let words =
                    ["-D", &data, "-U", "tenfold", "-A", "scram-sha-256", "-N", "-E", "UTF8", "--locale=C"];
                // Megabytes: the default is 16 per segment, and several are kept.
                let words = [&words[..], &["--wal-segsize=1"]].concat();
                let mut init = words.iter().fold(self.program(&postgres("initdb")), with);
                // Without room for its log it would restart, and report nothing else.
                init.arg("--waldir").arg(self.folder.at("wal"));
                run(init.arg("--pwfile").arg(secret));
            }
            DatabaseProduct::Mariadb => {
                let words = ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"];
                let mut install =
                    words.iter().fold(self.program(&tools::program("mariadb-install-db")), with);
                // A starting MariaDB removes all temporary tables in its temporary folder.
                let own = self.folder.path().display().to_string();
                install.args(SMALL_MARIADB).arg(format!("--datadir={data}"));
                run(install.arg(format!("--tmpdir={own}")));
            }
        }
    }

    /// The data folder.
    fn data(&self) -> String {
        let place = if self.disk.is_some() { "disk/data" } else { "data" };
        self.folder.at(place).display().to_string()
    }

    /// A program as an unprivileged user who can access the data.
    #[track_caller]
    fn program(&self, program: &Path) -> Command {
        let plain = tools::as_nobody(program);
        match &self.disk {
            Some(disk) => disk.joined_by(&plain),
            None => plain,
        }
    }

    /// Starts it, possibly again after a stop, and waits until it answers.
    #[track_caller]
    pub fn begin(&self) {
        let (data, port) = (self.data(), self.address.port().to_string());
        let own = self.folder.path().display().to_string();
        let mut command = match self.kind {
            DatabaseProduct::Sqlite => panic!("SQLite has no server"),
            DatabaseProduct::Postgres => {
                let place = ["-D", &data, "-p", &port, "-k", &own];
                let fsync = if self.syncs { "fsync=on" } else { "fsync=off" };
                let settings = ["listen_addresses=127.0.0.1", "min_wal_size=2MB", "max_wal_size=4MB", fsync];
                let words = settings.into_iter().flat_map(|setting| ["-c", setting]);
                let words: Vec<_> = place.into_iter().chain(words).collect();
                words.iter().fold(self.program(&postgres("postgres")), with)
            }
            DatabaseProduct::Mariadb => {
                let init = self.folder.write(
                    "init.sql",
                    ["127.0.0.1", "localhost"]
                        .map(|host| {
                            format!(
                                "CREATE USER IF NOT EXISTS 'tenfold'@'{host}' IDENTIFIED BY 'secret';\n\
                                 GRANT ALL ON *.* TO 'tenfold'@'{host}' WITH GRANT OPTION;\n"
                            )
                        })
                        .concat(),
                );
                let mut command = self.program(&tools::program("mariadbd"));
                command.args(["--no-defaults", "--bind-address=127.0.0.1", "--skip-name-resolve"]);
                command.args(SMALL_MARIADB);
                let flush = if self.syncs { 1 } else { 0 };
                command.arg(format!("--innodb-flush-log-at-trx-commit={flush}"));
                command.arg(format!("--datadir={data}")).arg(format!("--port={port}"));
                command.arg(format!("--socket={own}/socket")).arg(format!("--pid-file={own}/pid"));
                command.arg(format!("--tmpdir={own}")).arg(format!("--init-file={}", init.display()));
                if Path::new(&data).join("server.key").exists() {
                    command.arg(format!("--ssl-cert={data}/server.crt"));
                    command.arg(format!("--ssl-key={data}/server.key"));
                }
                command
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("run {command:?}: {error}"));
        *lock(&self.child) = Some(child);
        eventually(PATIENCE, &format!("{:?} answers", self.kind), || self.tell("SELECT 1").ok());
    }

    /// Stops the server as a shutdown of the machine does.
    pub fn stop(&self) {
        if let Some(mut child) = lock(&self.child).take() {
            // On TERM, PostgreSQL would wait for its clients.
            let signal = if self.kind == DatabaseProduct::Postgres { Signal::INT } else { Signal::TERM };
            Process(child.id()).signal(signal);
            let _ = child.wait();
        }
    }

    /// Creates a database and returns its URL.
    #[track_caller]
    pub fn create(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("members{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.tell(&format!("CREATE DATABASE {name}")).unwrap_or_else(|why| panic!("{why}"));
        self.url(&name)
    }

    /// Its own disk.
    #[track_caller]
    pub fn disk(&self) -> &Disk {
        self.disk.as_ref().expect("it was started on one")
    }

    /// Its process, if it runs.
    pub fn process(&self) -> Option<Process> {
        lock(&self.child).as_ref().map(|child| Process(child.id()))
    }

    /// Returns the URL of the database `name` on this server.
    pub fn url(&self, name: &str) -> String {
        let scheme = if self.kind == DatabaseProduct::Postgres { "postgres" } else { "mysql" };
        format!("{scheme}://tenfold:secret@{}/{name}", self.address)
    }

    fn tell(&self, sql: &str) -> Result<(), String> {
        self.query(sql).map(drop)
    }

    /// Runs SQL outside of any particular database. Returns the rows as text.
    pub fn query(&self, sql: &str) -> Result<String, String> {
        let mut command = self.client("");
        command.args([if self.kind == DatabaseProduct::Postgres { "-c" } else { "-e" }, sql]);
        let output =
            command.stdin(Stdio::null()).output().map_err(|error| format!("run {command:?}: {error}"))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// The client program, connected to the database `name`, or to the default database if `name` is empty.
    fn client(&self, name: &str) -> Command {
        let port = self.address.port().to_string();
        match self.kind {
            DatabaseProduct::Postgres => {
                let name = if name.is_empty() { "postgres" } else { name };
                let words = ["-h", "127.0.0.1", "-p", &port, "-U", "tenfold", "-d", name, "-q", "-A", "-t"];
                let mut command = words.iter().fold(Command::new(postgres("psql")), with);
                command.env("PGPASSWORD", "secret").env("PGCONNECT_TIMEOUT", "5");
                command
            }
            _ => {
                let words = [
                    "--no-defaults",
                    "--skip-ssl",
                    "-h",
                    "127.0.0.1",
                    "-P",
                    &port,
                    "-u",
                    "tenfold",
                    "-psecret",
                ];
                let mut command = words.iter().fold(Command::new(tools::program("mariadb")), with);
                // Prints results immediately and without headings.
                command.args(
                    ["--unbuffered", "--skip-column-names", name].iter().filter(|word| !word.is_empty()),
                );
                command
            }
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.stop();
    }
}

fn with(mut command: Command, word: &&str) -> Command {
    command.arg(word);
    command
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("run {command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A program of PostgreSQL: Debian stores server programs by version, outside of the path.
#[track_caller]
fn postgres(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let found =
        versions.map(|version| version.path().join("bin").join(name)).filter(|path| path.is_file()).max();
    found.unwrap_or_else(|| tools::program(name))
}
