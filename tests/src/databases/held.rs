//! A second client that locks the tables of the members.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use super::{Database, DatabaseProduct};
use crate::tools;

/// A Python script, because the program of SQLite is not installed everywhere.
const SQLITE: &str = "import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute('BEGIN EXCLUSIVE')
print('held', flush=True)
sys.stdin.read()";

/// Locked tables, until this value is dropped.
#[derive(Debug)]
pub struct TableLock(Child);

impl TableLock {
    /// Locks the tables of the database with this URL, which belongs to `server` unless it is a file.
    #[track_caller]
    pub fn tables(url: &str, server: Option<&Database>) -> TableLock {
        let name = url.rsplit('/').next().unwrap_or_default();
        let (mut command, order) = match server {
            None => {
                let mut python = Command::new(tools::program("python3"));
                python.args(["-c", SQLITE, url.strip_prefix("sqlite:").expect("it is a file")]);
                (python, "")
            }
            Some(server) if server.kind == DatabaseProduct::Postgres => {
                let order = "BEGIN; LOCK TABLE tenfold_users IN ACCESS EXCLUSIVE MODE; SELECT 'held';\n";
                (server.client(name), order)
            }
            Some(server) => (server.client(name), "LOCK TABLES tenfold_users WRITE; SELECT 'held';\n"),
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("run {command:?}: {error}"));
        let input = child.stdin.as_mut().expect("its standard input is a pipe");
        input.write_all(order.as_bytes()).expect("it reads");
        let mut said = String::new();
        let output = child.stdout.as_mut().expect("its standard output is a pipe");
        BufReader::new(output).read_line(&mut said).expect("it says so");
        assert_eq!(said.trim(), "held", "{command:?}");
        TableLock(child)
    }
}

impl Drop for TableLock {
    fn drop(&mut self) {
        // An end of input closes the connection in order, so the server notices immediately.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
