//! Members: one process with the accounts, and a client of it in every worker.
//!
//! It is a process of its own on every engine and topology. Connections to the database, the queue of hashes and the
//! counts of attempts are the whole server's, whichever way the workers are made; threads begin after the last fork;
//! hashing is niced without slowing a worker; and an error in the driver of a database takes no connection of a visitor
//! along. [`channel`] carries questions and answers between the two, [`client`] is a worker's part of it, [`process`]
//! answers, and [`database`] is the file of an SQLite database.

pub(crate) mod channel;
pub(crate) mod client;
pub(crate) mod database;
pub(crate) mod process;
