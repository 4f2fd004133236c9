//! `tenfold engines`: the models and senders of this build, a line for each, or one model or sender in detail.

use std::process::ExitCode;

use serde_json::{Value, json};
use tenfold_engine::{
    Bounds, Dispatch, Engine, Facility, MODELS, Model, Plan, SENDERS, Sender, SenderRow, Steps, Topology,
    Triggers, libevent_method,
};

use super::output::{end, print};
use crate::config::check::{missing, shown};

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
    let line = |name: &str, runs: &str, summary: &str| {
        format!("{}\n", format!("{name:<14} {runs:<4} {summary}").trim_end())
    };
    let mut text = line("engine", "runs", "");
    for model in MODELS {
        let runs = if missing(model.engine).is_none() { "yes" } else { "no" };
        text += &line(model.name, runs, model.summary);
    }
    text += "\nsender\n";
    for row in SENDERS {
        text += &line(row.sender.name(), "", row.summary);
    }
    text + "\n`tenfold engines NAME` shows one with its system calls, and the reason if it does not run here.\n"
}

fn described(model: &Model, missing: Option<&(Facility, String)>) -> String {
    let runs = missing.map_or("yes".to_owned(), |missing| format!("no: {}", shown(missing)));
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
        "{}: {}\n  runs here   {runs}{method}\n  calls       {}\n  connections {}\n  topologies  {}\n  senders     \
         {}{triggers}{rearms}\n  code        {}\n\n",
        model.name,
        model.summary,
        Steps(model.calls),
        model.connections,
        joined(model.topologies),
        joined(model.senders),
        model.file,
    )
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
    fn a_missing_facility_is_reported_with_the_error_of_the_system() {
        let model = Engine::Uring.model();
        let missing = (Facility::Ring, "Operation not permitted (os error 1)".to_owned());
        let text = described(model, Some(&missing));
        assert!(text.contains("runs here   no: io_uring with IORING_SETUP_SINGLE_ISSUER"), "{text}");
        assert!(text.contains("(Linux 6.1): Operation not permitted (os error 1)\n"), "{text}");
        assert_eq!(as_value(model, Some(&missing))["runs"], false);
    }
}
