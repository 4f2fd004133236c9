//! The suite. A case is named `theme::engine+topology+sender::case`; any part of it selects.
//!
//! `TENFOLD_BIN` names the server to test; without it, one is built. `TENFOLD_TEST_ALL=1` runs the cases
//! that take long on every configuration, too.

mod conditions;
mod connections;
mod files;
mod ranges;
mod refusals;

use std::process::ExitCode;

use tenfold_tests::harness;

fn main() -> ExitCode {
    harness::main(&[files::THEME, ranges::THEME, conditions::THEME, refusals::THEME, connections::THEME])
}
