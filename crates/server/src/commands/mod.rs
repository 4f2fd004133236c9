//! The command line, and the commands. [`serve`] only reads the flags of its command.

mod advice;
pub(crate) mod bench;
pub(crate) mod book;
pub(crate) mod check;
pub(crate) mod cli;
pub(crate) mod engines;
pub(crate) mod lab;
pub(crate) mod manual;
pub(crate) mod next;
pub(crate) mod output;
mod serve;
pub(crate) mod status;
pub(crate) mod upgrade;
pub(crate) mod users;
