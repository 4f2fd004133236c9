//! Certificates and keys in PEM files: reading, checks, and the choice by the client's server name.

pub mod chain;
pub mod check;
pub mod facts;
pub mod files;
pub mod key;
pub mod resolver;
pub mod roots;
pub mod unverified;

pub(crate) mod file;
mod pem;

#[cfg(test)]
pub(crate) mod generate;
