//! The format of experiment files, and their conversion to a valid [`Experiment`].

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use crate::experiment::claim::{CellPair, Confound, PublishedClaim, Requirement, Side, VerdictRule};
use crate::experiment::problem;
use crate::experiment::subject::{Cell, Subject, Workload};
use crate::experiment::{Experiment, MOST_PRIMARY};
use crate::measure::Measure;
use crate::statistics::decision::Direction;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawExperiment {
    name: Spanned<String>,
    title: String,
    source: String,
    setting: String,
    scaled: String,
    #[serde(default)]
    deviations: Vec<String>,
    #[serde(default)]
    smoke: bool,
    margin: Option<Spanned<f64>>,
    #[serde(default)]
    base: RawCell,
    #[serde(default)]
    cells: BTreeMap<String, Spanned<RawCell>>,
    claims: Vec<Spanned<RawClaim>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct RawCell {
    about: String,
    subject: Subject,
    settings: BTreeMap<String, String>,
    load: Workload,
    original: BTreeMap<Spanned<String>, f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawClaim {
    says: String,
    #[serde(default)]
    published: String,
    value: Option<f64>,
    measure: Measure,
    rule: Spanned<RawRule>,
    #[serde(default = "yes")]
    primary: bool,
    confound: Option<RawConfound>,
    #[serde(default)]
    needs: Vec<Spanned<String>>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawRule {
    ratio: Option<[Spanned<String>; 2]>,
    best: Option<Spanned<String>>,
    bound: Option<Spanned<String>>,
    count: Option<Spanned<String>>,
    first_failure: Option<Vec<Spanned<String>>>,
    is: Option<Direction>,
    among: Option<Vec<Spanned<String>>>,
    to: Option<Spanned<String>>,
    at: Option<Spanned<String>>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    limit: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawConfound {
    name: String,
    ratio: [Spanned<String>; 2],
}

/// Reads an experiment.
pub fn read(file: &str, text: &str) -> Result<Experiment, String> {
    let raw: RawExperiment = toml::from_str(text).map_err(|error| problem::of_toml(file, text, &error))?;
    ExperimentReader { file, text, cells: raw.cells.keys().cloned().collect() }.experiment(raw)
}

/// Whether an experiment or a cell may have this name, which becomes a part of file names.
pub fn is_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || "-_.+=".contains(c);
    !name.is_empty() && !name.starts_with('.') && name.chars().all(legal)
}

struct ExperimentReader<'a> {
    file: &'a str,
    text: &'a str,
    cells: Vec<String>,
}

type Checked<T> = Result<T, String>;

impl ExperimentReader<'_> {
    fn wrong(&self, span: Range<usize>, what: &str, fix: &str) -> String {
        problem::at(self.file, self.text, span, what, fix)
    }

    fn experiment(&self, raw: RawExperiment) -> Checked<Experiment> {
        let span = raw.name.span();
        let name = raw.name.into_inner();
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(legal) {
            let fix = "use lower-case letters, digits and hyphens, as in `my-site`";
            return Err(self.wrong(span, &format!("`{name}` is not a name"), fix));
        }
        if let Some(margin) = raw.margin.as_ref().filter(|margin| !(0.001..=1.0).contains(margin.get_ref())) {
            let what = "the margin is a fraction from 0.001 to 1";
            return Err(self.wrong(margin.span(), what, "0.05 means that 5 % is no difference"));
        }
        let mut cells = BTreeMap::new();
        for (name, cell) in raw.cells {
            if !is_name(&name) {
                let what = format!("`{name}` is not a name of a cell");
                return Err(self.wrong(span.clone(), &what, "use letters, digits and `-_.+=`"));
            }
            cells.insert(name, self.cell(cell, &raw.base)?);
        }
        let claims: Vec<PublishedClaim> =
            raw.claims.into_iter().map(|claim| self.claim(claim.into_inner())).collect::<Checked<_>>()?;
        let primary = claims.iter().filter(|claim| claim.primary).count();
        if primary > MOST_PRIMARY {
            let what =
                format!("{primary} claims are primary; the bound on false differences allows {MOST_PRIMARY}");
            return Err(self.wrong(span, &what, "add `primary = false` to claims of less weight"));
        }
        Ok(Experiment {
            name,
            title: raw.title,
            source: raw.source,
            setting: raw.setting,
            scaled: raw.scaled,
            deviations: raw.deviations,
            smoke: raw.smoke,
            margin: raw.margin.map(Spanned::into_inner),
            cells,
            claims,
            text: self.text.to_owned(),
        })
    }

    fn cell(&self, raw: Spanned<RawCell>, base: &RawCell) -> Checked<Cell> {
        let span = raw.span();
        let raw = raw.into_inner();
        let mut settings = match raw.subject {
            Subject::Tenfold => base.settings.clone(),
            _ => BTreeMap::new(),
        };
        settings.extend(raw.settings);
        let load = raw.load.over(&base.load);
        if raw.subject.is_in_process() != load.operation.is_some() {
            let what = "an operation needs a subject in process, and the reverse";
            let fix = "as in `subject = \"timers\"` with `load = { operation = \"tick\" }`";
            return Err(self.wrong(span, what, fix));
        }
        let mut original = BTreeMap::new();
        for (name, value) in raw.original {
            let measure = Measure::ALL.iter().find(|measure| measure.name() == name.get_ref());
            let known = || Measure::ALL.iter().map(|measure| measure.name());
            original.insert(*measure.ok_or_else(|| self.unknown(&name, "measure", known()))?, value);
        }
        Ok(Cell { about: raw.about, subject: raw.subject, settings, load, original })
    }

    fn unknown<'k>(
        &self,
        name: &Spanned<String>,
        kind: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> String {
        let word = name.get_ref();
        self.wrong(name.span(), &format!("there is no {kind} `{word}`"), &problem::among(word, known))
    }

    /// The name of a cell that exists.
    fn known(&self, name: &Spanned<String>) -> Checked<String> {
        match self.cells.contains(name.get_ref()) {
            true => Ok(name.get_ref().clone()),
            false => Err(self.unknown(name, "cell", self.cells.iter().map(String::as_str))),
        }
    }

    fn pair(&self, [of, to]: &[Spanned<String>; 2]) -> Checked<CellPair> {
        let (of, to) = (self.known(of)?, self.known(to)?);
        Ok(CellPair { of, to })
    }

    fn claim(&self, raw: RawClaim) -> Checked<PublishedClaim> {
        let confound = match &raw.confound {
            Some(RawConfound { name, ratio }) => {
                Some(Confound { name: name.clone(), pair: self.pair(ratio)? })
            }
            None => None,
        };
        Ok(PublishedClaim {
            rule: self.rule(&raw.rule)?,
            says: raw.says,
            published: raw.published,
            value: raw.value,
            measure: raw.measure,
            primary: raw.primary,
            confound,
            needs: raw.needs.iter().map(|need| self.requirement(need)).collect::<Checked<_>>()?,
        })
    }

    fn rule(&self, spanned: &Spanned<RawRule>) -> Checked<VerdictRule> {
        let raw = spanned.get_ref();
        let wrong = |what: &str, fix: &str| self.wrong(spanned.span(), what, fix);
        let side = |raw: &RawRule| match (raw.at_least, raw.at_most) {
            (Some(limit), None) => Ok((Side::AtLeast, limit)),
            (None, Some(limit)) => Ok((Side::AtMost, limit)),
            _ => Err(wrong("the rule needs one limit", "add `at-least = 2` or `at-most = 2`")),
        };
        let all =
            |names: &[Spanned<String>]| names.iter().map(|name| self.known(name)).collect::<Checked<_>>();
        match (&raw.ratio, &raw.best, &raw.bound, &raw.count, &raw.first_failure) {
            (Some(pair), None, None, None, None) => {
                let is = raw.is.ok_or_else(|| {
                    wrong(
                        "the rule does not state whether the ratio is above or below 1",
                        "add `is = \"greater\"`, \"less\" or \"equal\"",
                    )
                })?;
                Ok(VerdictRule::Ratio { pair: self.pair(pair)?, is })
            }
            (None, Some(of), None, None, None) => match &raw.among {
                Some(among) if !among.is_empty() => {
                    Ok(VerdictRule::Best { of: self.known(of)?, among: all(among)? })
                }
                _ => Err(wrong("the rule has no cells to compare with", "add `among = [\"CELL\"]`")),
            },
            (None, None, Some(of), None, None) => {
                let (side, limit) = side(raw)?;
                let to = raw.to.as_ref().map(|to| self.known(to)).transpose()?;
                Ok(VerdictRule::Bound { of: self.known(of)?, to, side, limit })
            }
            (None, None, None, Some(of), None) => {
                let (side, limit) = side(raw)?;
                Ok(VerdictRule::Count { of: self.known(of)?, side, limit })
            }
            (None, None, None, None, Some(levels)) => {
                let at = raw.at.as_ref().ok_or_else(|| {
                    wrong("the rule does not name the level that fails first", "add `at = \"CELL\"`")
                })?;
                let limit = raw.limit.ok_or_else(|| {
                    wrong("the rule has no limit at which a level fails", "add `limit = 0`")
                })?;
                let levels: Vec<String> = all(levels)?;
                let at_known = self.known(at)?;
                if !levels.contains(&at_known) {
                    return Err(self.unknown(at, "level", levels.iter().map(String::as_str)));
                }
                Ok(VerdictRule::FirstFailure { levels, at: at_known, limit })
            }
            _ => Err(wrong(
                "a rule is one of ratio, best, bound, count and first-failure",
                "as in `rule = { ratio = [\"A\", \"B\"], is = \"greater\" }`",
            )),
        }
    }

    fn requirement(&self, need: &Spanned<String>) -> Checked<Requirement> {
        const KNOWN: [&str; 6] =
            ["second machine", "network", "memory limit", "cores N", "museum: NAME", "instrument: NAME"];
        let text = need.get_ref().as_str();
        let cores = text.strip_prefix("cores ").and_then(|count| count.parse().ok());
        match (text, cores) {
            (_, Some(count)) => Ok(Requirement::Cores(count)),
            ("second machine", _) => Ok(Requirement::SecondMachine),
            ("network", _) => Ok(Requirement::Network),
            ("memory limit", _) => Ok(Requirement::MemoryLimit),
            _ => match text.split_once(": ") {
                Some(("museum", name)) => Ok(Requirement::Museum(name.to_owned())),
                Some(("instrument", name)) => Ok(Requirement::Instrument(name.to_owned())),
                _ => Err(self.unknown(need, "requirement", KNOWN)),
            },
        }
    }
}

/// The required keys of an experiment, for tests.
#[cfg(test)]
pub(crate) fn head(name: &str) -> String {
    let title = "title = \"Mine\"\nsource = \"me\"\nsetting = \"a laptop\"\nscaled = \"the same\"";
    format!("\nname = \"{name}\"\n{title}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = r#"
[base]
settings = { engine = "epoll" }
load = { connections = 16 }

[cells.on]
settings = { tcp-nodelay = "on" }
original = { rate = 263221 }

[cells.off]
settings = { tcp-nodelay = "off" }

[[claims]]
says = "NODELAY is faster."
measure = "rate"
rule = { ratio = ["on", "off"], is = "greater" }
needs = ["cores 4"]
"#;

    fn valid() -> String {
        head("mine") + REST
    }

    fn refused(from: &str, to: &str) -> String {
        let text = valid().replacen(from, to, 1);
        assert_ne!(text, valid(), "{from} is in the file");
        read("mine.toml", &text).expect_err(to)
    }

    #[test]
    fn a_valid_file_is_an_experiment() {
        let found = read("mine.toml", &valid()).unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(found.control(), Some("off"));
        assert_eq!(found.cells["on"].settings["engine"], "epoll");
        assert_eq!(found.cells["on"].original[&Measure::Rate], 263_221.0);
        assert_eq!(found.claims[0].needs, [Requirement::Cores(4)]);
        assert_eq!(found.claims[0].to_string(), "rate of on / off is above 1");
    }

    #[test]
    fn an_error_has_line_column_and_fix() {
        let said = refused("[\"on\", \"off\"]", "[\"on\", \"of\"]");
        assert!(said.starts_with("mine.toml:22:25: there is no cell `of`\n"), "{said}");
        assert!(said.contains("did you mean `off`?") && said.contains("^^^^"), "{said}");
        for (from, to, expected) in [
            ("title", "titel", "did you mean `title`?"),
            ("source = \"me\"\n", "", "missing field `source`"),
            ("measure = \"rate\"", "measure = \"ratte\"", "did you mean `rate`?"),
            ("connections", "conections", "did you mean `connections`?"),
            ("rate = 2", "ratt = 2", "did you mean `rate`?"),
            (", is = \"greater\"", "", "add `is = \"greater\"`"),
            ("ratio = [\"on\", \"off\"]", "among = [\"on\"]", "a rule is one of"),
            ("cores 4", "cores four", "did you mean `cores N`?"),
            ("\"mine\"", "\"My experiment\"", "use lower-case letters"),
            ("[base]", "margin = 5.0\n[base]", "0.05 means"),
            ("connections = 16", "operation = \"tick\"", "a subject in process"),
            ("[base]", "[base", "mine.toml:8:6"),
        ] {
            let said = refused(from, to);
            assert!(said.contains(expected), "{to}: {said}");
        }
    }

    #[test]
    fn five_primary_claims_are_too_many() {
        let claim = &REST[REST.find("[[claims]]").expect("it has one")..];
        let text = valid() + &claim.repeat(4);
        let said = read("mine.toml", &text).expect_err("five");
        assert!(said.contains("5 claims are primary") && said.contains("primary = false"), "{said}");
    }
}
