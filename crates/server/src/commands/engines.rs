//! `tenfold engines`: the models and senders of this build, a line for each, or one model or sender in detail.

use std::process::ExitCode;

use serde_json::{Value, json};
use tenfold_engine::{
    Bounds, Dispatch, Engine, Facility, MODELS, Model, Plan, SENDERS, Sender, SenderRow, Steps, Topology,
    Triggers, libevent_method,
};

use super::output::{end, print};
use crate::config::check::{missing, shown};
use crate::config::resolve::automatic;

/// Prints all models, one model or sender in detail, or the legal combinations.
pub(crate) fn show(name: Option<&str>, matrix: bool, as_json: bool) -> ExitCode {
    let asked = |model: &&Model| name.is_none_or(|name| model.name == name);
    let models = MODELS.iter().filter(asked);
    let text = match (name, matrix, as_json) {
        (_, true, false) => combinations_table(),
        (_, true, true) => pretty(combinations().iter().map(combination_value).collect()),
        (_, false, true) => {
            pretty(models.map(|model| as_value(model, missing(model.engine).as_ref())).collect())
        }
        (None, false, false) => table(),
        (Some(name), false, false) => {
            let senders = SENDERS.iter().filter(|row| row.sender.to_string() == name);
            let models = models.map(|model| described(model, missing(model.engine).as_ref()));
            models.chain(senders.map(described_sender)).collect()
        }
    };
    end(print(text.as_bytes()))
}

/// The names of models and senders that the command describes.
pub(crate) fn names() -> Vec<&'static str> {
    let models = MODELS.iter().map(|model| model.name);
    models.chain(SENDERS.iter().map(|row| row.sender.name())).collect()
}

fn table() -> String {
    let (auto, _) = automatic(None);
    let mut text = format!("{:<14} {:<4} {:<10} take it when\n", "engine", "runs", "waits");
    for model in MODELS {
        let runs = if missing(model.engine).is_none() { "yes" } else { "no" };
        let mark = if model.engine == auto { " *" } else { "" };
        let name = format!("{}{mark}", model.name);
        text += &format!("{name:<14} {runs:<4} {:<10} {}\n", model.driver.name(), model.take_it_when);
    }
    text += "\nsender\n";
    for row in SENDERS {
        text += &format!("{:<14} {}\n", row.sender.name(), row.summary);
    }
    text + "\n* `auto`, the default, takes this engine. `tenfold engines NAME` shows the\n  \
            reason, the system calls, and why an engine does not run here.\n"
}

fn described(model: &Model, missing: Option<&(Facility, String)>) -> String {
    let runs = missing.map_or("yes".to_owned(), |missing| format!("no: {}", shown(missing)));
    let auto = auto(model).map_or(String::new(), |why| format!("\n  auto        takes it: {why}"));
    let triggers = match model.triggers {
        true => format!("\n  triggers    {}", joined(&Triggers::ALL)),
        false => String::new(),
    };
    let method = match method(model) {
        Some(method) => format!("\n  method      {method}"),
        None => String::new(),
    };
    let rearms = match model.rearms {
        Some(rearms) => format!("\n  dispatch    {} (reactor re-arms {rearms})", joined(model.dispatches)),
        None => String::new(),
    };
    format!(
        "{}: {}\n  take it     when {}\n  runs here   {runs}{auto}{method}\n  calls       {}\n  connections \
         {}\n  topologies  {}\n  senders     {}{triggers}{rearms}\n  code        {}\n\n",
        model.name,
        model.summary,
        model.take_it_when,
        Steps(model.calls),
        model.connections,
        joined(model.topologies),
        joined(model.senders),
        model.file,
    )
}

/// The reason why `auto` takes this model here, if it does.
fn auto(model: &Model) -> Option<&'static str> {
    let (engine, why) = automatic(None);
    why.filter(|_| engine == model.engine)
}

/// The method that libevent chose here.
fn method(model: &Model) -> Option<&'static str> {
    if model.engine == Engine::Libevent { libevent_method() } else { None }
}

fn described_sender(row: &SenderRow) -> String {
    let begun = if row.begun.is_empty() { "unavailable" } else { row.begun };
    format!(
        "sender {}: {}\n  calls       {}\n  on a ring   {}\n  proactor    {begun}\n  code        {}\n\n",
        row.sender, row.summary, row.calls, row.operations, row.file
    )
}

fn joined<T: ToString>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

fn as_value(model: &Model, missing: Option<&(Facility, String)>) -> Value {
    let words = |all: Vec<String>| Value::from(all);
    json!({
        "name": model.name,
        "summary": model.summary,
        "take_it_when": model.take_it_when,
        "auto": auto(model),
        "runs": missing.is_none(),
        "missing": missing.iter().map(|(facility, said)| json!({
            "facility": facility.name(),
            "said": said,
        })).collect::<Vec<_>>(),
        "calls": Steps(model.calls).to_string(),
        "needs": model.needs.iter().map(|facility| facility.name()).collect::<Vec<_>>(),
        "connections": model.connections,
        "topologies": words(model.topologies.iter().map(Topology::to_string).collect()),
        "senders": words(model.senders.iter().map(Sender::to_string).collect()),
        "sender_calls": model.senders.iter().map(|sender| {
            (sender.to_string(), Value::from(sender.row().calls_of(model.engine)))
        }).collect::<serde_json::Map<_, _>>(),
        "triggers": words(if model.triggers { Triggers::ALL.iter().map(Triggers::to_string).collect() } else { Vec::new() }),
        "dispatches": words(model.dispatches.iter().map(Dispatch::to_string).collect()),
        "rearms": model.rearms.map(|rearms| rearms.to_string()),
        "method": method(model),
        "code": model.file,
    })
}

fn pretty(values: Vec<Value>) -> String {
    let mut text = serde_json::to_string_pretty(&values).expect("strings and numbers can be serialized");
    text.push('\n');
    text
}

/// Every combination that forms a legal plan.
fn combinations() -> Vec<Plan> {
    let mut all = Vec::new();
    for model in MODELS {
        for &topology in Topology::ALL {
            for &sender in Sender::ALL {
                let triggers: Vec<_> = match model.triggers {
                    true => Triggers::ALL.iter().copied().map(Some).collect(),
                    false => vec![None],
                };
                let plans = triggers.into_iter().filter_map(|triggers| {
                    let workers = (topology != Topology::Single).then_some(2);
                    Plan::new(model.engine, Some(topology), workers, sender, triggers, Bounds::default()).ok()
                });
                for plan in plans {
                    let dispatched = |dispatch: &Dispatch| plan.clone().with_dispatch(*dispatch).ok();
                    all.extend(Dispatch::ALL.iter().filter_map(dispatched));
                }
            }
        }
    }
    all
}

fn shown_triggers(plan: &Plan) -> String {
    if plan.engine.model().triggers { plan.triggers.to_string() } else { "-".to_owned() }
}

fn combinations_table() -> String {
    let mut text = format!(
        "{:<8} {:<20} {:<10} {:<9} {:<8} {}\n",
        "engine", "topology", "send", "dispatch", "trigger", "runs here"
    );
    let runs: Vec<_> = MODELS.iter().map(|model| (model.engine, missing(model.engine).is_none())).collect();
    for plan in combinations() {
        let able = runs.contains(&(plan.engine, true));
        text += &format!(
            "{:<8} {:<20} {:<10} {:<9} {:<8} {}\n",
            plan.engine.to_string(),
            plan.topology.to_string(),
            plan.sender.to_string(),
            plan.dispatch.to_string(),
            shown_triggers(&plan),
            if able { "yes" } else { "no" }
        );
    }
    text
}

fn combination_value(plan: &Plan) -> Value {
    json!({
        "engine": plan.engine.to_string(),
        "topology": plan.topology.to_string(),
        "send": plan.sender.to_string(),
        "dispatch": plan.dispatch.to_string(),
        "trigger": plan.engine.model().triggers.then(|| plan.triggers.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_is_in_the_matrix_with_every_sender_and_topology_it_has() {
        let all = combinations();
        for model in MODELS {
            let triggers = if model.triggers { Triggers::ALL.len() } else { 1 };
            let expected = model.topologies.len() * model.senders.len() * triggers * model.dispatches.len();
            let found = all.iter().filter(|plan| plan.engine == model.engine).count();
            assert_eq!(found, expected, "{}", model.name);
        }
    }

    #[test]
    fn the_table_fits_a_terminal_and_marks_the_choice_of_auto() {
        let text = table();
        let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{wide:#?}");
        let marked: Vec<_> = text.lines().filter(|line| line.contains(" * ")).collect();
        let (engine, why) = automatic(None);
        assert!(marked.len() == 1 && marked[0].starts_with(engine.name()), "{text}");
        let why = why.expect("auto has a reason");
        for model in MODELS {
            let chosen = model.engine == engine;
            let reason = format!("  auto        takes it: {why}\n");
            assert_eq!(described(model, None).contains(&reason), chosen, "{}", model.name);
            assert_eq!(
                as_value(model, None)["auto"].as_str(),
                Some(why).filter(|_| chosen),
                "{}",
                model.name
            );
        }
    }

    #[test]
    fn the_page_of_models_has_the_words_of_the_table() {
        let page = include_str!("../../../../docs/explanation/models/README.md");
        let text = table();
        for model in MODELS {
            let when = model.take_it_when;
            let begin = format!("| [`{0}`]({0}.md) | {1} | {when} | ", model.name, model.driver.name());
            assert!(page.lines().any(|line| line.starts_with(&begin)), "no row begins with {begin}");
            let ends = |line: &str| line.starts_with(model.name) && line.ends_with(when);
            assert!(!when.is_empty() && text.lines().any(ends), "{when:?} is not in:\n{text}");
            assert!(
                described(model, None).contains(&format!("  take it     when {when}\n")),
                "{}",
                model.name
            );
            assert_eq!(as_value(model, None)["take_it_when"], when);
        }
    }

    #[test]
    fn a_missing_facility_is_reported_with_the_error_of_the_system() {
        let model = Engine::Uring.model();
        let missing = (Facility::Ring, "Operation not permitted (os error 1)".to_owned());
        let text = described(model, Some(&missing));
        assert!(text.contains("runs here   no: io_uring with IORING_SETUP_SINGLE_ISSUER"), "{text}");
        assert!(text.contains("(Linux 6.1): Operation not permitted (os error 1)\n"), "{text}");
        assert_eq!(as_value(model, Some(&missing))["runs"], false);
    }
}
