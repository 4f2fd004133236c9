//! The command line, and the commands. [`serve`] only reads the flags of its command.

mod advice;
mod agent;
mod bench;
mod book;
mod check;
pub(crate) mod cli;
mod engines;
mod help;
mod init;
mod lab;
mod manual;
mod migrate;
pub(crate) mod next;
mod output;
mod reload;
mod running;
mod serve;
mod status;
mod stop;
mod upgrade;
mod users;
