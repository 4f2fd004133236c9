//! Combinations of settings: rows that cover every pair of values, or all rows.

use crate::generate::SeededRandom;

/// A setting and its values of interest. The first value is its default.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name of the setting.
    pub name: &'static str,
    /// Its values.
    pub values: Vec<String>,
}

/// A row under construction: the index of each parameter's value, if chosen.
pub type Partial = Vec<Option<usize>>;

/// Rows that cover every pair of values of any legal row (a covering array of strength two). The greedy construction is
/// deterministic and nearly minimal. `legal` returns whether a partial row can become legal.
pub fn pairwise(parameters: &[Parameter], legal: &dyn Fn(&Partial) -> bool) -> Vec<Vec<usize>> {
    let mut missing = pairs(parameters, legal);
    let mut rows = Vec::new();
    while let Some(&[first, second]) = missing.first() {
        let mut row: Partial = vec![None; parameters.len()];
        (row[first.0], row[second.0]) = (Some(first.1), Some(second.1));
        for parameter in 0..parameters.len() {
            if row[parameter].is_none() {
                row[parameter] = best(parameter, &row, parameters, &missing, legal);
            }
        }
        let Some(row) = row.into_iter().collect::<Option<Vec<usize>>>() else {
            // Each value is possible, but not both together.
            missing.remove(0);
            continue;
        };
        missing.retain(|pair| !pair.iter().all(|&(parameter, value)| row[parameter] == value));
        rows.push(row);
    }
    rows
}

/// A value of a parameter, by their indexes.
type ParameterValue = (usize, usize);

fn pairs(parameters: &[Parameter], legal: &dyn Fn(&Partial) -> bool) -> Vec<[ParameterValue; 2]> {
    let mut pairs = Vec::new();
    for first in 0..parameters.len() {
        for second in first + 1..parameters.len() {
            for one in 0..parameters[first].values.len() {
                for other in 0..parameters[second].values.len() {
                    let mut row: Partial = vec![None; parameters.len()];
                    (row[first], row[second]) = (Some(one), Some(other));
                    if legal(&row) {
                        pairs.push([(first, one), (second, other)]);
                    }
                }
            }
        }
    }
    pairs
}

/// The legal value of `parameter` with which `row` covers most missing pairs.
fn best(
    parameter: usize,
    row: &Partial,
    parameters: &[Parameter],
    missing: &[[ParameterValue; 2]],
    legal: &dyn Fn(&Partial) -> bool,
) -> Option<usize> {
    let with = |value| {
        let mut row = row.clone();
        row[parameter] = Some(value);
        row
    };
    let held = |row: &Partial| {
        let holds = |pair: &&[ParameterValue; 2]| {
            pair.iter().all(|&(parameter, value)| row[parameter] == Some(value))
        };
        missing.iter().filter(holds).count()
    };
    let values = (0..parameters[parameter].values.len()).rev().filter(|&value| legal(&with(value)));
    values.max_by_key(|&value| held(&with(value)))
}

/// Completes `row` with pseudo-random values that depend only on `number`. `None` if no value is legal.
pub fn completed(
    row: &[usize],
    number: u64,
    parameters: &[Parameter],
    legal: &dyn Fn(&Partial) -> bool,
) -> Option<Vec<usize>> {
    let mut random = SeededRandom::new(number);
    let mut whole: Partial = row.iter().copied().map(Some).collect();
    whole.resize(parameters.len(), None);
    for place in row.len()..parameters.len() {
        let with = |value| {
            let mut whole = whole.clone();
            whole[place] = Some(value);
            whole
        };
        let values = 0..parameters[place].values.len();
        let mut able: Vec<Partial> = values.map(with).filter(|whole| legal(whole)).collect();
        whole = (!able.is_empty()).then(|| able.swap_remove(random.below(able.len())))?;
    }
    whole.into_iter().collect()
}

/// All legal rows.
pub fn product(parameters: &[Parameter], legal: &dyn Fn(&Partial) -> bool) -> Vec<Vec<usize>> {
    let mut rows: Vec<Partial> = vec![vec![None; parameters.len()]];
    for (place, parameter) in parameters.iter().enumerate() {
        let longer = |row: Partial| {
            (0..parameter.values.len()).map(move |value| {
                let mut row = row.clone();
                row[place] = Some(value);
                row
            })
        };
        rows = rows.into_iter().flat_map(longer).filter(|row| legal(row)).collect();
    }
    rows.into_iter().filter_map(|row| row.into_iter().collect()).collect()
}
