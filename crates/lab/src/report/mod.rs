//! The report of a run, computed from its folder.

pub mod advice;
pub mod compare;
mod costs;
mod curves;
mod html;
mod models;
pub mod results;
mod tables;
mod topology;

use std::path::Path;

use crate::record;
use crate::report::results::RunResults;

/// The files of a report.
pub const FILES: [&str; 4] = ["report.html", "verdicts.json", "trials.csv", "summary.md"];

/// Writes every file of the report into the folder of a run.
pub fn write(results: &RunResults, folder: &Path) -> Result<(), String> {
    let texts =
        [html::page(results), tables::verdicts(results), tables::csv(results), tables::summary(results)];
    for (name, text) in FILES.iter().zip(texts) {
        record::write(&folder.join(name), text)?;
    }
    Ok(())
}
