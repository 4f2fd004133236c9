//! HTTP/1.0 and 1.1, written once, as `async` code over the [`Io`] trait.
//!
//! Nothing here makes a system call, and nothing here knows an I/O model: files appear as handles
//! ([`OpenFile`]) that somebody else sends, time is what [`clock`] was last told, and a connection is
//! whatever implements [`Io`]. What a request means is the business of a [`Service`].
//!
//! Start with [`serve_connection`]; it is the whole life of a connection.

#![forbid(unsafe_code)]

mod amend;
mod body;
pub mod chunked;
pub mod clock;
pub mod condition;
mod echo;
mod field;
mod framing;
pub mod head;
pub mod io;
mod kept;
pub mod limits;
mod lines;
pub mod multipart;
pub mod negotiate;
pub mod out;
mod pending;
pub mod range;
pub mod response;
pub mod script;
pub mod serve;
pub mod service;
pub mod target;
mod waits;

pub use clock::Instant;
pub use echo::echo;
pub use framing::Body;
pub use head::{Head, Method, Version};
pub use io::{Finish, Io, IoError, Local, Patience, Peer, Received};
pub use kept::KeptHead;
pub use limits::{Limits, Write};
pub use out::{Departure, Memory, OpenFile, Out, Part};
pub use serve::serve_connection;
pub use service::{Answer, Next, Refusal, Reply, Service, Session};
pub use target::Target;
