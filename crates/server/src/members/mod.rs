//! Members: one process with the accounts, and a client of it in every worker.
//!
//! The accounts process exists with every engine and topology. So database connections, the queue of hashes and the
//! counts of attempts belong to the whole server, threads begin after the last fork, hashing can be niced without
//! slowing a worker, and a failing database driver ends no visitor's connection. [`channel`] carries questions and
//! answers between the two, [`client`] is a worker's part of it, [`process`] answers, and [`database`] is the file of an
//! SQLite database.

pub(crate) mod channel;
pub(crate) mod client;
pub(crate) mod database;
pub(crate) mod process;
