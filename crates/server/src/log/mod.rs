//! The access log: the format of lines, the time of writing, and the destination.
//!
//! [`combined`], [`json`] and [`template`] format a line, and [`writer::Writer`] holds the lines of a thread. The
//! threads of a process write to its [`outlet::Outlet`] in one of three ways: immediately, from a buffer of each
//! thread, or through the [`queue`] to a separate thread. The supervisor opens the [`open::Log`]. On USR1 the
//! supervisor creates the new file, and processes open that file by its path. The laboratory measures lines through
//! [`measured`].

pub(crate) mod combined;
mod file;
mod json;
pub(crate) mod line;
pub(crate) mod measured;
pub(crate) mod open;
pub(crate) mod outlet;
mod queue;
mod sink;
mod template;
pub(crate) mod writer;
