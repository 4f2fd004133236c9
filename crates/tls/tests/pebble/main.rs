//! Certificates from Pebble, the ACME server for tests of Let's Encrypt.
//!
//! Pebble validates over real sockets: by the TLS and HTTP of this program, and by TXT records that a program
//! sets.

mod authority;
mod cases;
mod responder;
