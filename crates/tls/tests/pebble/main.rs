//! Certificates from Pebble, the authority that Let's Encrypt's developers test clients with.
//!
//! Pebble validates over real sockets: by this program's own TLS and HTTP, and by TXT records that a program sets.

mod authority;
mod cases;
mod responder;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    // A child that a case ends in the middle of its work.
    if let Some(result) = cases::interrupted::child() {
        return result;
    }
    let trials = cases::ALL.iter().map(|&(name, case)| {
        Trial::test(name, move || {
            case();
            Ok(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
