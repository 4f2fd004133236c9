//! Members: one process with the accounts, and a client of it in every worker.
//!
//! Every engine and topology has the accounts process. So database connections, the queue of hashes and the counts of
//! attempts belong to the whole server. Threads begin after the last fork, hashing has a lower priority than serving, and
//! a failing database client ends no visitor's connection. [`channel`] carries queries and replies, [`client`] is the part
//! of a worker, [`process`] replies, and [`database`] prepares the file of an SQLite database.

pub(crate) mod channel;
pub(crate) mod client;
pub(crate) mod database;
pub(crate) mod process;
