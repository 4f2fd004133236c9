//! Parts of tests that start a program and talk to it over sockets: the client and its side of TLS, the program and its
//! processes, temporary folders, and waits with a bound.
//!
//! The users are the whole-server suite, the driver tests of `engine`, and the tests of `server`.

#![forbid(unsafe_code)]

pub mod address;
pub mod experiment;
pub mod folder;
pub mod http2;
pub mod process;
pub mod program;
pub mod random;
pub mod response;
pub mod seal;
pub mod time;
pub mod tools;
pub mod visitor;
pub mod wire;
