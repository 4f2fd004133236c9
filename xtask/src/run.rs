//! The loop of `cargo xtask test`: it provides the tools of the selected steps, runs the steps, and prints a table.

use std::path::Path;
use std::time::Instant;

use crate::scope::{self, Scope, Tier};
use crate::setup;
use crate::shell::{self, Failed};
use crate::steps::{STEPS, TestStep};
use crate::tools::{self, Tool};

/// The selected steps and suites.
#[derive(Default)]
pub(crate) struct Selection {
    /// Steps by name. If empty, every step is selected.
    pub(crate) names: Vec<String>,
    /// Steps that the caller has run already.
    pub(crate) skipped: Vec<String>,
    /// Whether to run the long suites.
    pub(crate) all: bool,
    /// The only tier; its steps are in `names`.
    pub(crate) tier: Option<&'static Tier>,
    /// Whether a step without its tools is a failure.
    pub(crate) complete: bool,
    /// Whether to leave missing tools to the user.
    pub(crate) no_setup: bool,
    /// Whether to write the commit of passed steps into [`scope::PASSED`].
    pub(crate) record: bool,
}

impl Selection {
    pub(crate) fn only(names: &[&str]) -> Self {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Selection { names, no_setup: true, ..Selection::default() }
    }

    /// The first name without a step.
    pub(crate) fn unknown(&self) -> Option<&str> {
        let names = self.names.iter().chain(&self.skipped).map(String::as_str);
        names.into_iter().find(|name| STEPS.iter().all(|step| step.name != *name))
    }

    fn has(&self, step: &TestStep) -> bool {
        let is = |name: &String| name == step.name;
        !self.skipped.iter().any(is) && (self.names.is_empty() || self.names.iter().any(is))
    }

    /// The scope of a step. Steps that are selected by name run for every crate.
    fn scope(&self, root: &Path, step: &TestStep) -> Scope {
        if self.all || !self.names.is_empty() {
            Scope::everything(root, self.all).of(self.tier)
        } else {
            Scope::since_passed(root, step.name)
        }
    }
}

enum Outcome {
    Passed,
    Failed(Failed),
    /// These tools are missing.
    NotRun(Vec<&'static Tool>),
    /// The step concerns no crate that changed since it last passed.
    Unchanged,
}

impl Outcome {
    /// Whether the step passed for every crate, now or before.
    fn is_success(&self) -> bool {
        matches!(self, Outcome::Passed | Outcome::Unchanged)
    }

    fn word(&self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Failed(_) => "FAILED",
            Outcome::NotRun(_) => "NOT RUN",
            Outcome::Unchanged => "unchanged",
        }
    }
}

/// A row of the table.
struct Row {
    step: &'static TestStep,
    outcome: Outcome,
    seconds: f64,
    cases: u64,
}

/// The names of all steps, for errors.
pub(crate) fn names() -> String {
    STEPS.iter().map(|step| step.name).collect::<Vec<_>>().join(", ")
}

/// Prints the table of steps.
pub(crate) fn list() {
    for step in STEPS {
        println!("{:<11}{}", step.name, step.about);
    }
}

/// Runs the selected steps, even after a failure, and prints a table. The last output of failed steps is repeated
/// before it.
pub(crate) fn test(root: &Path, selection: &Selection) -> Result<(), String> {
    if selection.record && !scope::is_clean(root) {
        return Err(format!("cannot record in {}: files differ from the commit; commit them", scope::PASSED));
    }
    let steps: Vec<(&TestStep, Scope)> = STEPS
        .iter()
        .filter(|step| selection.has(step))
        .map(|step| (step, selection.scope(root, step)))
        .collect();
    let needs = steps.iter().filter(|(step, scope)| step.concerns(scope)).flat_map(|(step, _)| step.needs);
    provide(&tools::missing(needs), selection.no_setup);
    let rows: Vec<Row> = steps.into_iter().map(|(step, scope)| run(step, &scope)).collect();
    print(&rows);
    if selection.record {
        let passed = rows.iter().filter(|row| row.step.depends_on_changes() && row.outcome.is_success());
        scope::record(root, &passed.map(|row| row.step.name).collect::<Vec<_>>())?;
    }
    let failures = failures(&rows, selection.complete);
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

/// Installs missing tools if no question is necessary, or prints the command that does it.
fn provide(absent: &[&'static Tool], no_setup: bool) {
    let (by_setup, by_hand): (Vec<&Tool>, Vec<&Tool>) =
        absent.iter().partition(|tool| tool.is_installed_by_setup());
    for tool in by_hand {
        println!("{}", tool.line());
    }
    if by_setup.is_empty() {
        return;
    }
    let names: Vec<&str> = by_setup.iter().map(|tool| tool.name).collect();
    println!("missing tools: {}", names.join(", "));
    if no_setup || !setup::may_install() {
        println!("`cargo xtask setup --no-peers` installs them");
    } else if let Err(why) = setup::install(&by_setup) {
        println!("{why}");
    }
}

fn run(step: &'static TestStep, scope: &Scope) -> Row {
    println!("\n== {}: {}", step.name, step.about);
    let start = Instant::now();
    let outcome = outcome(step, scope);
    let (seconds, cases) = (start.elapsed().as_secs_f64(), shell::take_cases());
    match &outcome {
        Outcome::NotRun(absent) => absent.iter().for_each(|tool| println!("{}", tool.line())),
        Outcome::Failed(why) => println!("{}", why.why),
        Outcome::Passed | Outcome::Unchanged => {}
    }
    println!("== {}: {} in {seconds:.1} s", step.name, outcome.word());
    Row { step, outcome, seconds, cases }
}

fn outcome(step: &TestStep, scope: &Scope) -> Outcome {
    if !step.concerns(scope) {
        return Outcome::Unchanged;
    }
    let absent = tools::missing(step.needs);
    if !absent.is_empty() {
        return Outcome::NotRun(absent);
    }
    match (step.run)(scope) {
        Ok(()) => Outcome::Passed,
        Err(why) => Outcome::Failed(why),
    }
}

fn print(rows: &[Row]) {
    for row in rows {
        let Outcome::Failed(why) = &row.outcome else { continue };
        if !why.output.is_empty() {
            println!("\n== last output of {}:\n{}", row.step.name, why.output.join("\n"));
        }
    }
    println!("\n{:<11}{:<11}{:>8}{:>8}", "step", "outcome", "seconds", "cases");
    for row in rows {
        println!("{:<11}{:<11}{:>8.1}{:>8}", row.step.name, row.outcome.word(), row.seconds, row.cases);
    }
    let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
    let cases: u64 = rows.iter().map(|row| row.cases).sum();
    println!("{:<11}{:<11}{seconds:>8.1}{cases:>8}", "all", "");
    for row in rows {
        let Outcome::NotRun(absent) = &row.outcome else { continue };
        let names: Vec<&str> = absent.iter().map(|tool| tool.name).collect();
        println!("NOT RUN: {}, without {}", row.step.name, names.join(", "));
    }
    let count = |word| rows.iter().filter(|row| row.outcome.word() == word).count();
    println!(
        "steps: {} passed, {} failed, {} not run, {} unchanged since the commit in {}",
        count("passed"),
        count("FAILED"),
        count("NOT RUN"),
        count("unchanged"),
        scope::PASSED
    );
}

/// The failed steps. If the run must be complete, also the steps without a tool that `setup` installs.
fn failures(rows: &[Row], complete: bool) -> Vec<String> {
    let failed = rows.iter().filter(|row| matches!(row.outcome, Outcome::Failed(_)));
    let mut failures: Vec<String> = failed.map(|row| format!("failed: {}", row.step.name)).collect();
    let lacks = |row: &&Row| match &row.outcome {
        Outcome::NotRun(absent) => complete && absent.iter().any(|tool| tool.is_installed_by_setup()),
        _ => false,
    };
    failures.extend(rows.iter().filter(lacks).map(|row| format!("not run: {}", row.step.name)));
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, outcome: Outcome) -> Row {
        let step = STEPS.iter().find(|step| step.name == name).expect("the step is in the table");
        Row { step, outcome, seconds: 0.0, cases: 0 }
    }

    #[test]
    fn a_step_is_selected_by_its_name_and_an_unknown_name_is_found() {
        assert_eq!(Selection::only(&["unit", "house"]).unknown(), None);
        assert_eq!(Selection::only(&["unit", "nonsense"]).unknown(), Some("nonsense"));
        let selected = |selection: &Selection| STEPS.iter().filter(|step| selection.has(step)).count();
        assert_eq!(selected(&Selection::only(&["unit"])), 1);
        assert_eq!(selected(&Selection::default()), STEPS.len());
        let skipped = vec!["workspace".to_owned()];
        assert_eq!(selected(&Selection { skipped, ..Selection::default() }), STEPS.len() - 1);
        let of_tiers = scope::TIERS.iter().flat_map(|tier| tier.steps);
        assert_eq!(Selection::only(&of_tiers.copied().collect::<Vec<_>>()).unknown(), None);
    }

    #[test]
    fn a_step_without_a_tool_of_setup_fails_only_a_complete_run() {
        let tool = |name: &str| tools::TOOLS.iter().find(|tool| tool.name == name).expect("a row");
        let rows = [
            row("house", Outcome::Passed),
            row("server", Outcome::NotRun(vec![tool("wrk"), tool("strace")])),
            row("miri", Outcome::NotRun(vec![tool("miri")])),
            row("fuzz", Outcome::Unchanged),
        ];
        assert!(failures(&rows, false).is_empty());
        assert_eq!(failures(&rows, true), ["not run: server"]);
        assert_eq!(failures(&[row("book", Outcome::Failed("why".to_owned().into()))], false).len(), 1);
    }
}
