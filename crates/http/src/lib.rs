//! HTTP, written once, as `async` code over the [`Io`] trait.
//!
//! This crate makes no system calls and does not depend on an I/O model. Files are handles ([`OpenFile`])
//! that a driver sends, [`clock`] has the time, and a connection is an implementation of [`Io`]. A
//! [`Service`] implements the meaning of requests.
//!
//! `message` has requests and responses without wire bytes, and `semantics` interprets their fields. `h1` is the wire
//! format of HTTP/1.0 and 1.1. `response` has the writer that encodes a response in the version of its request. Begin
//! with [`serve_connection`], the whole life of a connection.

#![forbid(unsafe_code)]

pub mod clock;
pub mod h1;
pub mod io;
pub mod limits;
pub mod message;
mod mux;
pub mod out;
pub mod response;
pub mod semantics;
pub mod serve;
pub mod service;

#[cfg(any(test, feature = "test-hooks"))]
#[path = "../tests/script/mod.rs"]
pub mod script;

pub use clock::Instant;
pub use io::{Finish, Flushed, Io, IoError, Patience, Received, SealedOutput};
pub use limits::{Limits, WriteMode};
pub use message::connection::{Connection, Local, Peer, Scheme, TlsFacts, covers_name, without_port};
pub use message::decimal::Decimal;
pub use message::field::{FieldName, FieldValue};
pub use message::header_lines::HeaderLines;
pub use message::owned::OwnedRequest;
pub use message::refusal::Refusal;
pub use message::request::{Body, Method, Request, RequestSummary, Target, Version, encode_path};
pub use message::request_id::RequestId;
pub use message::server_field::show_server;
pub use message::status::{PLAIN_TEXT, reason};
pub use message::trust::TrustedProxy;
pub use out::{Memory, OpenFile, Out, Part, PartSource, SendObserver, SendReport};
pub use response::echo::echo;
pub use response::template::Template;
pub use response::value::Response;
pub use response::writer::{ResponseHead, ResponseWriter};
pub use serve::http1::serve_connection;
pub use serve::http2::parked::ParkedHttp2;
pub use serve::layer;
pub use serve::proxy;
pub use serve::session::{Next, Session};
pub use service::{Answer, DeferredResponse, GoAwayClass, Http2Counts, Service};
