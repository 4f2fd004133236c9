//! Experiments as data: a TOML file each, read into types that exist only if they are valid.

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

/// Claims that share the bound on false differences, at most.
pub const MOST_PRIMARY: usize = 4;

/// An experiment: a published comparison, and how it is repeated here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// The name that commands use.
    pub name: String,
    /// A title for people.
    pub title: String,
    /// The text that published it.
    pub source: String,
    /// The original setting.
    pub setting: String,
    /// The setting here, scaled to one machine.
    pub scaled: String,
    /// Deviations from the original.
    pub deviations: Vec<String>,
    /// Whether the profile `smoke` has it.
    pub smoke: bool,
    /// A margin of its own for "no difference".
    pub margin: Option<f64>,
    /// The subjects with their load, by name, in the order of names.
    pub cells: BTreeMap<String, Cell>,
    /// The published claims.
    pub claims: Vec<PublishedClaim>,
    /// The text of its file.
    pub text: String,
}

impl Experiment {
    /// The cells that claims need; curves need the others.
    pub fn claimed_cells(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.claims.iter().flat_map(PublishedClaim::cells).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The cell that is run twice in each block, as a control: the reference of the first ratio.
    pub fn control(&self) -> Option<&str> {
        self.claims.iter().find_map(|claim| match &claim.rule {
            VerdictRule::Ratio { pair, .. } => Some(pair.to.as_str()),
            _ => None,
        })
    }
}
