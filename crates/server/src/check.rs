//! `tenfold check`: reads the configuration and says what is wrong with it, and does nothing else.

use std::process::ExitCode;

use tenfold_sys::limits;

use crate::blueprint::{Blueprint, warnings};
use crate::diagnostics::{self, error};
use crate::settings::given::Given;
use crate::settings::problem::Problem;
use crate::settings::schema;

/// Exit code for wrong usage: a flag, a value, a combination or a file that is not legal.
pub(crate) const WRONG_USAGE: u8 = 2;

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
    if let Err(why) = Blueprint::draw(&settings, descriptors) {
        complain(&[Problem::new(why)]);
        return ExitCode::FAILURE;
    }
    warnings::warn(&settings);
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

/// Says what is wrong.
pub(crate) fn refuse(problems: &[Problem]) -> ExitCode {
    complain(problems);
    ExitCode::from(WRONG_USAGE)
}

/// Says what is wrong, each with the lines it is about.
pub(crate) fn complain(problems: &[Problem]) {
    for problem in problems {
        match problem.is_placed() {
            true => diagnostics::raw(&format!("{}\n\n", problem.render(diagnostics::coloured()))),
            false => error!("{problem}"),
        }
    }
}
