//! Real database servers, each with its data in a folder of its own, on a port of its own, as a user without
//! privileges; started when the first case asks, stopped at the end.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

use crate::launch::free_address;
use crate::process::Process;
use crate::site::Folder;
use crate::time::eventually;
use crate::tools;

/// Whom database servers run as where the tests run as root: they refuse to be it.
const NOBODY: &str = "nobody";
/// How long one may take to begin, on a machine that does ten other things.
const PATIENCE: Duration = Duration::from_secs(120);

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    Sqlite,
    /// PostgreSQL.
    Postgres,
    /// MariaDB, which stands for MySQL, too.
    Mariadb,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Sqlite, Kind::Postgres, Kind::Mariadb];
}

/// A server that runs until its value goes.
#[derive(Debug)]
pub struct Database {
    /// What it is.
    pub kind: Kind,
    /// Where it listens.
    pub address: SocketAddr,
    folder: Folder,
    child: Mutex<Option<Child>>,
}

static SHARED: [OnceLock<Database>; 2] = [const { OnceLock::new() }; 2];

/// The URL of a new and empty database of this kind; `folder` is for one that is a file.
#[track_caller]
pub fn fresh(kind: Kind, folder: &Folder) -> String {
    match kind {
        Kind::Sqlite => {
            folder.allow(".", 0o777);
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            format!("sqlite:{}", folder.at(&format!("members-{number}.db")).display())
        }
        Kind::Postgres => SHARED[0].get_or_init(|| Database::start(kind)).create(),
        Kind::Mariadb => SHARED[1].get_or_init(|| Database::start(kind)).create(),
    }
}

/// Makes the tables of an SQLite database look as if they were of another version.
#[track_caller]
pub fn set_version(url: &str, version: u32) {
    let file = url.strip_prefix("sqlite:").expect("it is a file");
    let script = format!(
        "import sqlite3; c = sqlite3.connect({file:?}); \
         c.execute('UPDATE tenfold_facts SET content = {version} WHERE name = ?', ('version',)); c.commit()"
    );
    run(Command::new(tools::program("python3")).args(["-c", &script]));
}

/// Stops those that cases have shared.
pub fn close() {
    SHARED.iter().filter_map(OnceLock::get).for_each(Database::stop);
}

impl Database {
    /// Starts one of its own.
    ///
    /// # Panics
    /// When it is not installed or does not start.
    #[track_caller]
    pub fn start(kind: Kind) -> Database {
        let (folder, address) = (Folder::new("database"), free_address());
        folder.allow(".", 0o777);
        let data = folder.at("data").display().to_string();
        match kind {
            Kind::Sqlite => panic!("SQLite has no server"),
            Kind::Postgres => {
                let secret = folder.write("secret", "secret\n").display().to_string();
                let words =
                    ["-D", &data, "-U", "tenfold", "-A", "scram-sha-256", "-N", "-E", "UTF8", "--locale=C"];
                let mut init = words.iter().fold(as_nobody(&postgres("initdb")), with);
                run(init.arg("--pwfile").arg(secret));
            }
            Kind::Mariadb => {
                let words = ["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"];
                let mut install = words.iter().fold(as_nobody(&tools::program("mariadb-install-db")), with);
                run(install.arg(format!("--datadir={data}")));
            }
        }
        let database = Database { kind, address, folder, child: Mutex::new(None) };
        database.begin();
        database
    }

    /// Starts it, also again where it was stopped, and waits until it answers.
    #[track_caller]
    pub fn begin(&self) {
        let (data, port) = (self.folder.at("data").display().to_string(), self.address.port().to_string());
        let own = self.folder.path().display().to_string();
        let mut command = match self.kind {
            Kind::Sqlite => panic!("SQLite has no server"),
            Kind::Postgres => {
                let words = [
                    "-D",
                    &data,
                    "-p",
                    &port,
                    "-k",
                    &own,
                    "-c",
                    "listen_addresses=127.0.0.1",
                    "-c",
                    "fsync=off",
                ];
                words.iter().fold(as_nobody(&postgres("postgres")), with)
            }
            Kind::Mariadb => {
                let init = self.folder.write(
                    "init.sql",
                    "CREATE USER IF NOT EXISTS 'tenfold'@'127.0.0.1' IDENTIFIED BY 'secret';\n\
                     GRANT ALL ON *.* TO 'tenfold'@'127.0.0.1' WITH GRANT OPTION;\n",
                );
                let mut command = as_nobody(&tools::program("mariadbd"));
                command.args(["--no-defaults", "--bind-address=127.0.0.1", "--skip-name-resolve"]);
                command.args(["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=16M"]);
                command.arg(format!("--datadir={data}")).arg(format!("--port={port}"));
                command.arg(format!("--socket={own}/socket")).arg(format!("--pid-file={own}/pid"));
                command.arg(format!("--tmpdir={own}")).arg(format!("--init-file={}", init.display()));
                command
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("run {command:?}: {error}"));
        *lock(&self.child) = Some(child);
        eventually(PATIENCE, &format!("{:?} answers", self.kind), || self.tell("SELECT 1").ok());
    }

    /// Stops it at once, as a machine does that goes down in order.
    pub fn stop(&self) {
        if let Some(mut child) = lock(&self.child).take() {
            // PostgreSQL waits for its clients on TERM, and not on INT.
            let signal = if self.kind == Kind::Postgres { Signal::INT } else { Signal::TERM };
            Process(child.id()).signal(signal);
            let _ = child.wait();
        }
    }

    /// A new database in it, as a URL.
    #[track_caller]
    pub fn create(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("members{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.tell(&format!("CREATE DATABASE {name}")).unwrap_or_else(|why| panic!("{why}"));
        self.url(&name)
    }

    /// The URL of a database in it.
    pub fn url(&self, name: &str) -> String {
        let scheme = if self.kind == Kind::Postgres { "postgres" } else { "mysql" };
        format!("{scheme}://tenfold:secret@{}/{name}", self.address)
    }

    fn tell(&self, sql: &str) -> Result<(), String> {
        let port = self.address.port().to_string();
        let mut command = match self.kind {
            Kind::Postgres => {
                let words =
                    ["-h", "127.0.0.1", "-p", &port, "-U", "tenfold", "-d", "postgres", "-q", "-c", sql];
                let mut command = words.iter().fold(Command::new(postgres("psql")), with);
                command.env("PGPASSWORD", "secret").env("PGCONNECT_TIMEOUT", "5");
                command
            }
            _ => {
                let words =
                    ["--no-defaults", "-h", "127.0.0.1", "-P", &port, "-u", "tenfold", "-psecret", "-e", sql];
                words.iter().fold(Command::new(tools::program("mariadb")), with)
            }
        };
        let output =
            command.stdin(Stdio::null()).output().map_err(|error| format!("run {command:?}: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A Redis, which stands for Valkey, too.
#[derive(Debug)]
pub struct Redis {
    /// Its URL.
    pub url: String,
    child: Child,
    _folder: Folder,
}

impl Redis {
    /// Starts one.
    ///
    /// # Panics
    /// When it is not installed or does not start.
    #[track_caller]
    pub fn start() -> Redis {
        let (folder, address) = (Folder::new("redis"), free_address());
        folder.allow(".", 0o777);
        let mut command = as_nobody(&tools::program("redis-server"));
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        command.arg("--port").arg(address.port().to_string()).arg("--dir").arg(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("run {command:?}: {error}"));
        let redis = Redis { url: format!("redis://{address}"), child, _folder: folder };
        eventually(PATIENCE, "Redis listens", || TcpStream::connect(address).ok());
        redis
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        Process(self.child.id()).signal(Signal::TERM);
        let _ = self.child.wait();
    }
}

/// A command as somebody without privileges.
fn as_nobody(program: &std::path::Path) -> Command {
    if !tools::is_root() {
        return Command::new(program);
    }
    let mut command = Command::new(tools::program("setpriv"));
    command.args([&format!("--reuid={NOBODY}"), "--regid=nogroup", "--clear-groups"]).arg(program);
    command.current_dir("/");
    command
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

/// A program of PostgreSQL: Debian keeps those of the server by version, and not on the path.
#[track_caller]
fn postgres(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let found =
        versions.map(|version| version.path().join("bin").join(name)).filter(|path| path.is_file()).max();
    found.unwrap_or_else(|| tools::program(name))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
