//! `tenfold check`: reads the configuration and says what is wrong with it, and does nothing else.

use std::process::ExitCode;

use tenfold_sys::limits;

use crate::resolved::config::{ResolvedConfig, warn};
use crate::settings::given::Given;
use crate::settings::problem::{Problem, complain};
use crate::settings::schema;

/// Says what is wrong with what was given, where something is.
pub(crate) fn check(given: &Given) -> ExitCode {
    let settings = match given.resolve() {
        Ok(settings) => settings,
        Err(problems) => {
            complain(&problems);
            return ExitCode::FAILURE;
        }
    };
    let descriptors = limits::raise_descriptors().unwrap_or(u64::MAX);
    if let Err(why) = ResolvedConfig::resolve(&settings, descriptors) {
        complain(&[Problem::new(why)]);
        return ExitCode::FAILURE;
    }
    warn(&settings);
    match &given.config {
        Some(path) => println!("{} is right", path.display()),
        None => println!("the configuration is right; no file was named"),
    }
    ExitCode::SUCCESS
}

/// `tenfold check --schema`: prints the schema of the configuration file.
pub(crate) fn print_schema() -> ExitCode {
    print!("{}", schema::text());
    ExitCode::SUCCESS
}
