//! The schema of the configuration file for editors (JSON Schema, draft 7), from the definitions that read the file.

use serde_json::{Map, Value, json};

use super::file::EXPERIMENT;
use super::row::SettingRow;
use super::rows::rows;
use super::tables::reader::{Keyed, Shape};
use super::tables::top::TOP;

/// The whole schema, as the text of a file.
pub(crate) fn text() -> String {
    let mut text = serde_json::to_string_pretty(&schema()).expect("strings and numbers can be serialized");
    text.push('\n');
    text
}

fn schema() -> Value {
    let of_rows = |experiments: bool| {
        let those = rows().filter(move |row| row.is_experiment() == experiments);
        those.map(|row| (row.name.to_owned(), of_row(row)))
    };
    let experiments: Map<String, Value> = of_rows(true).collect();
    let experiments = json!({
        "type": "object",
        "additionalProperties": false,
        "description": "settings for people who compare",
        "properties": experiments,
    });
    let tables = TOP.keys().into_iter().map(of_key);
    let properties: Map<String, Value> =
        of_rows(false).chain([(EXPERIMENT.to_owned(), experiments)]).chain(tables).collect();
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "The configuration of Tenfold",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    })
}

/// The schema of a setting: its text form, and the other forms that the file accepts.
fn of_row(row: &SettingRow) -> Value {
    let mut kinds = vec![json!({"type": "string"})];
    if row.takes_numbers() {
        kinds.push(json!({"type": "integer"}));
    }
    match row.value {
        "on|off" => kinds = vec![json!({"type": "boolean"}), json!({"enum": ["on", "off"]})],
        value if value.starts_with("on|") => kinds.push(json!({"type": "boolean"})),
        value if value.ends_with("|off") => kinds.push(json!({"const": false})),
        _ => {}
    }
    if row.is_many() {
        let items = if row.takes_numbers() { json!(["string", "integer"]) } else { json!("string") };
        kinds.push(json!({"type": "array", "items": {"type": items}}));
    }
    let mut schema = any_of(kinds);
    describe(&mut schema, &format!("{} (default: {})", row.about, row.shown_initial()));
    schema
}

fn of_key((name, shape, about): (&'static str, &'static Shape, &'static str)) -> (String, Value) {
    let mut schema = of_shape(shape);
    describe(&mut schema, about);
    (name.to_owned(), schema)
}

fn of_shape(shape: &Shape) -> Value {
    match shape {
        Shape::Text(example) => json!({"type": "string", "examples": [example]}),
        Shape::Word(words) => json!({"enum": words}),
        Shape::Switch => json!({"type": "boolean"}),
        Shape::Off => json!({"const": false}),
        Shape::Number(least, most) => json!({"type": "integer", "minimum": least, "maximum": most}),
        Shape::Many(one) => any_of(vec![of_shape(one), json!({"type": "array", "items": of_shape(one)})]),
        Shape::Map(example, value) => {
            json!({"type": "object", "additionalProperties": of_shape(value), "examples": [example]})
        }
        Shape::Either(shapes) => any_of(shapes.iter().map(of_shape).collect()),
        Shape::Table(keys) => of_table(*keys),
        Shape::Tables(keys) => json!({"type": "array", "items": of_table(*keys)}),
    }
}

fn of_table(keys: &dyn Keyed) -> Value {
    let properties: Map<String, Value> = keys.keys().into_iter().map(of_key).collect();
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

fn any_of(mut kinds: Vec<Value>) -> Value {
    match kinds.len() {
        1 => kinds.remove(0),
        _ => json!({"anyOf": kinds}),
    }
}

fn describe(schema: &mut Value, about: &str) {
    schema["description"] = about.into();
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn examples() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples")
    }

    /// Whether a schema made of the kinds above permits a value.
    fn accepts(schema: &Value, value: &Value) -> bool {
        let kind = match schema["type"].as_str() {
            None => true,
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => value.is_u64(),
            Some(other) => panic!("the schema has a type {other}"),
        };
        let constant = schema.get("const").is_none_or(|constant| constant == value);
        let word = schema["enum"].as_array().is_none_or(|words| words.contains(value));
        let any = schema["anyOf"].as_array().is_none_or(|all| all.iter().any(|one| accepts(one, value)));
        let least = schema["minimum"].as_u64().is_none_or(|least| value.as_u64() >= Some(least));
        let most = schema["maximum"].as_u64().is_none_or(|most| value.as_u64() <= Some(most));
        let items = value.as_array().is_none_or(|values| match schema.get("items") {
            Some(item) => values.iter().all(|value| accepts(item, value)),
            None => true,
        });
        let entries = value.as_object().is_none_or(|entries| {
            entries.iter().all(|(name, value)| {
                match (schema["properties"].get(name), &schema["additionalProperties"]) {
                    (Some(known), _) => accepts(known, value),
                    (None, Value::Bool(false)) => false,
                    (None, other @ Value::Object(_)) => accepts(other, value),
                    (None, _) => true,
                }
            })
        });
        kind && constant && word && any && least && most && items && entries
    }

    fn read(toml: &str) -> Value {
        toml::from_str(toml).expect(toml)
    }

    #[test]
    fn the_committed_schema_is_current() {
        let path = examples().join("tenfold.schema.json");
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        let mend = "run: cargo run -- check --schema > examples/tenfold.schema.json";
        assert!(committed == text(), "{} is not current; {mend}", path.display());
    }

    #[test]
    fn the_schema_accepts_the_examples() {
        for file in std::fs::read_dir(examples()).expect("our own folder").flatten() {
            if file.path().extension().is_some_and(|extension| extension == "toml") {
                let text = std::fs::read_to_string(file.path()).expect("our own file");
                assert!(accepts(&schema(), &read(&text)), "{}", file.path().display());
            }
        }
    }

    #[test]
    fn the_schema_accepts_legal_files_and_refuses_illegal_files() {
        let schema = schema();
        for legal in [
            "listen = [\"[::]:80\"]\nbacklog = 5\naccess-log = false\nidle-timeout = \"5s\"\n[experiment]\ntcp-nodelay = true",
            "[site]\ncache = \"hashed\"\n[[site.path]]\nmatch = \"/a/**\"\nauth = false",
            "[[host]]\nname = [\"a\", \"*.b\"]\nroot = \"x\"\nerror-pages = { 404 = \"/x\", 5xx = false }",
            "[site]\ncors = { origins = \"*\" }\n[[site.redirect]]\nfrom = \"/a\"\nto = \"/b\"\nstatus = 308",
            "[site.headers.set]\nX-A = \"b\"",
        ] {
            assert!(accepts(&schema, &read(legal)), "{legal}");
        }
        for wrong in [
            "enigne = \"auto\"",
            "[experiment]\ntcp-nodelay = \"maybe\"",
            "tcp-nodelay = true",
            "[site]\ncahce = \"1h\"",
            "[site]\ntrailing-slash = \"sometimes\"",
            "[[site.redirect]]\nfrom = \"/a\"\nto = \"/b\"\nstatus = 200",
            "[[site.path]]\nmatch = 5",
            "host = \"example.org\"",
            "[site]\ncors = { origin = \"*\" }",
        ] {
            assert!(!accepts(&schema, &read(wrong)), "{wrong}");
        }
    }
}
