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
    let mut arguments = Arguments::from_args();
    // All at once: they wait for the authority more than they work.
    arguments.test_threads.get_or_insert(cases::ALL.len());
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
