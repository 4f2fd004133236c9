//! The supervisor: one thread that owns every listening socket and the counters, forks the workers, and follows signals.
//! It reads nothing from the network.
//!
//! [`open`] starts and opens everything, [`run`] is its loop over the [`state`]. [`sockets`] binds, a [`generation`] is
//! a configuration with its workers, [`child`] is a worker from the fork on, [`reload`] takes up a new configuration,
//! [`roots`] follows the names of the roots, [`leave`] ends, [`rotate`] gives the log new files, [`archive`] removes
//! and compresses old ones, [`control`] answers `tenfold status`, [`accounts`] keeps the process of the accounts,
//! [`admin`] that of the admin listener, [`acme`] the process that obtains certificates, which [`renewal`] gives to
//! workers; [`helpers`] starts these and the signing processes again. [`activation`] takes sockets of a service
//! manager, [`notify`] reports to it, [`book`] is the manual, [`examine`] checks without starting, and [`announce`]
//! prints the start block. [`upgrade`] executes another program in this process.

mod accounts;
mod acme;
mod activation;
mod address_rows;
mod admin;
mod announce;
mod archive;
pub(crate) mod book;
mod child;
mod control;
mod end_bound;
pub(crate) mod examine;
mod forked;
mod generation;
mod heartbeat;
mod helpers;
mod leave;
mod notify;
pub(crate) mod open;
mod pages;
pub(crate) mod privileges;
mod pulses;
mod reload;
mod renewal;
mod retirement;
mod roots;
mod rotate;
mod run;
mod signing;
mod sockets;
pub(crate) mod state;
mod stuck;
mod tickets;
pub(crate) mod upgrade;
