//! The model that served a response, for the tools of a browser (`server-timing`).

use tenfold_engine::{MODELS, Model, Plan, Steps};
use tenfold_http::{FieldName, FieldValue, ResponseWriter};

/// The values of `Server-Timing` (W3C Server Timing §3) that all threads of a worker have in common: the engine, and
/// the system calls that the table of models names for it.
#[derive(Debug)]
pub(super) struct ServerTiming {
    values: String,
    /// The row of the first worker: a thread that accepts for the others comes before it.
    first: usize,
}

impl ServerTiming {
    pub(super) fn new(plan: &Plan) -> ServerTiming {
        let model = MODELS.iter().find(|model| model.engine == plan.engine);
        ServerTiming {
            values: model.map(values).unwrap_or_default(),
            first: plan.counted_threads() - plan.workers,
        }
    }

    /// Adds the field to the next head, with the number that `tenfold status` has for the worker that counts in `row`.
    #[cold]
    pub(super) fn describe(&self, row: usize, response: &mut ResponseWriter<'_>) {
        let worker = (row + 1).saturating_sub(self.first);
        let value = format!("{}, worker;desc=\"{worker}\"", self.values);
        if let Some(value) = FieldValue::new(value.as_bytes()) {
            response.replace_field(FieldName::constant("Server-Timing"), value);
        }
    }
}

fn values(model: &Model) -> String {
    format!("engine;desc=\"{}\", calls;desc=\"{}\"", model.name, Steps(model.calls))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_makes_a_field() {
        for model in MODELS {
            let value = values(model);
            // Each description is one quoted string (RFC 9110 §5.6.4).
            assert_eq!(value.matches('"').count(), 4, "{value}");
            assert!(FieldValue::new(value.as_bytes()).is_some() && !value.contains('\\'), "{value}");
        }
    }
}
