//! Experiments as data. Each is a TOML file.

pub mod claim;
pub mod file;
pub mod library;
pub mod museum;
pub mod problem;
pub mod served;
pub mod subject;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::experiment::claim::{PublishedClaim, VerdictRule};
use crate::experiment::subject::Cell;

/// The most claims that share the bound on false differences.
pub const MOST_PRIMARY: usize = 4;

/// An experiment: a published comparison and its repetition here.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The name that commands use.
    pub name: String,
    /// A title for people.
    pub title: String,
    /// The publication.
    pub source: String,
    /// The original setting.
    pub setting: String,
    /// The setting here, scaled to one machine.
    pub scaled: String,
    /// Deviations from the original.
    pub deviations: Vec<String>,
    /// Whether the profile `smoke` runs it.
    pub smoke: bool,
    /// The margin of "no difference", instead of the profile's.
    pub margin: Option<f64>,
    /// The cells by name.
    pub cells: BTreeMap<String, Cell>,
    /// The published claims.
    pub claims: Vec<PublishedClaim>,
    /// The text of its file.
    pub text: String,
}

impl Experiment {
    /// The control, which runs twice in each block: the denominator of the first ratio.
    pub fn control(&self) -> Option<&str> {
        self.claims.iter().find_map(|claim| match &claim.rule {
            VerdictRule::Ratio { pair, .. } => Some(pair.to.as_str()),
            _ => None,
        })
    }
}
