//! `tenfold check`: checks the configuration and everything that it refers to, and changes nothing.

use std::path::PathBuf;
use std::process::ExitCode;

use tenfold_sys::limits;

use super::output::{end, print};
use super::status::source::StatusSource;
use crate::config::parse::given::{GivenSettings, warn_of_slips};
use crate::config::parse::problem::{Problem, refuse};
use crate::config::parse::schema;
use crate::config::resolve::{ResolvedConfig, warn};
use crate::config::values::{Control, Settings};
use crate::diagnostics::error;
use crate::status::place;
use crate::supervisor::children::privileges;
use crate::supervisor::examine;

/// Reports every error in the configuration, and everything that would keep a server from using it.
pub(crate) fn check(config: Option<PathBuf>) -> ExitCode {
    let mut given = GivenSettings { config, ..GivenSettings::default() };
    given.take_variables();
    given.take_usual_file();
    warn_of_slips();
    let settings = match given.resolve() {
        Ok(settings) => settings,
        Err(problems) => return refuse(&problems),
    };
    let descriptors = limits::raise_descriptors().unwrap_or(u64::MAX);
    let config =
        privileges::allowed(&settings).and_then(|()| ResolvedConfig::resolve(&settings, descriptors));
    let mut config = match config {
        Ok(config) => config,
        Err(why) => return refuse(&[Problem::new(why)]),
    };
    warn(&settings, &config);
    given.warn_of_readable_password(&settings);
    // The certificates and keys were checked. The child process that opens the database must not have them.
    (config.certificates, config.keys) = (None, None);
    let problems = examine::examine(&settings, &config, &running(&settings));
    if !problems.is_empty() {
        problems.iter().for_each(|why| error!("{why}"));
        return ExitCode::FAILURE;
    }
    end(print(
        match &given.config {
            Some(path) => format!("{}: OK\n", path.display()),
            None => {
                "no file was named, and this folder has no tenfold.toml; the variables and defaults are OK\n"
                    .to_owned()
            }
        }
        .as_bytes(),
    ))
}

/// The addresses of the running server of this configuration.
fn running(settings: &Settings) -> Vec<String> {
    let control = match (&settings.control, settings.addresses().next()) {
        (Control::At(path), _) => path.clone(),
        (Control::Usual, Some(first)) => place::usual(first),
        _ => return Vec::new(),
    };
    StatusSource::Control(control).ask().map(|(_, report)| report.listen).unwrap_or_default()
}

/// `tenfold check --schema`: prints the schema of the configuration file.
pub(crate) fn print_schema() -> ExitCode {
    end(print(schema::text().as_bytes()))
}
