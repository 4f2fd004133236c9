//! The access log: what a line says, when lines are written, and where they go.
//!
//! [`combined`] and [`json`] format a line, [`writer::Writer`] has the lines of a thread, and the threads of a process
//! write to its [`outlet::Outlet`]: at once, from a buffer each, or through the [`queue`] to a thread of its own. The
//! supervisor opens the [`open::Log`]; on USR1 it makes the new file, and processes open that by its path.

pub(crate) mod combined;
pub(crate) mod day;
mod file;
mod json;
pub(crate) mod line;
pub(crate) mod open;
pub(crate) mod outlet;
mod queue;
mod sink;
pub(crate) mod writer;
pub(crate) mod written;
