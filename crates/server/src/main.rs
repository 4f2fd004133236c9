//! The program `tenfold`. Its code is a library, which cargo compiles while it still generates code of the dependencies.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    tenfold::run()
}
