//! The command line, and the commands. [`serve`] only reads the flags of its command.

mod advice;
mod agent;
mod bench;
mod book;
mod check;
pub(crate) mod cli;
mod engines;
mod lab;
mod manual;
mod migrate;
pub(crate) mod next;
mod output;
mod serve;
mod status;
mod upgrade;
mod users;
