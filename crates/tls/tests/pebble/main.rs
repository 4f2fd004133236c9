//! Certificates from Pebble, the ACME server for tests of Let's Encrypt.
//!
//! Pebble validates over real sockets: by the TLS and HTTP of this program, and by TXT records that a program
//! sets.

mod authority;
mod cases;
mod responder;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    // The child that a case kills.
    if let Some(result) = cases::interrupted::child() {
        return result;
    }
    let trials = cases::ALL.iter().map(|&(name, case)| {
        Trial::test(name, move || {
            case();
            Ok(())
        })
    });
    let mut arguments = Arguments::from_args();
    // Concurrently: the cases mostly wait for the authority.
    arguments.test_threads.get_or_insert(cases::ALL.len());
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
