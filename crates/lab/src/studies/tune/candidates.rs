//! The settings that a search tries: single switches, then random combinations, from the tables of the engine.

use std::collections::BTreeMap;

use tenfold_engine::{Bounds, Driver, Engine, MODELS, Model, Plan, Sender, Topology};

/// Settings of Tenfold by name, without default values.
pub type CandidateSettings = BTreeMap<String, String>;

/// The names of the settings that a search tries.
pub const TRIED: [&str; 6] = ["engine", "topology", "workers", "send", "notsent-lowat", "pool-threads"];

/// Values of `notsent-lowat`.
const UNSENT: [&str; 2] = ["64 KiB", "256 KiB"];
/// Values of `pool-threads`.
const THREADS: [&str; 2] = ["64", "256"];

/// Returns at most `most` candidates for a machine with `able` engines. The seed determines them.
pub fn candidates(able: &[&Model], processors: usize, most: usize, seed: u64) -> Vec<CandidateSettings> {
    let mut random = fastrand::Rng::with_seed(seed);
    let workers = worker_counts(processors);
    let mut dimensions = dimensions(able, &workers);
    dimensions.iter_mut().for_each(|all| random.shuffle(all));
    let mut found: Vec<CandidateSettings> = Vec::new();
    // The kinds take turns, so that a short list has candidates of each kind.
    let longest = dimensions.iter().map(Vec::len).max().unwrap_or_default();
    for at in 0..longest {
        found.extend(dimensions.iter().filter_map(|all| all.get(at).cloned()));
    }
    found.truncate(most);
    let combined = combinations(able, &workers);
    let mut order: Vec<usize> = (0..combined.len()).collect();
    random.shuffle(&mut order);
    for number in order {
        if found.len() >= most {
            break;
        }
        if !found.contains(&combined[number]) {
            found.push(combined[number].clone());
        }
    }
    found
}

/// The engines that run on this kernel and serve several connections concurrently.
pub fn able_engines() -> Vec<&'static Model> {
    let serves_many = |model: &&Model| model.engine != Engine::Naive;
    MODELS.iter().filter(serves_many).filter(|model| tenfold_engine::probe(model.engine).is_ok()).collect()
}

/// Numbers of workers above one.
fn worker_counts(processors: usize) -> Vec<usize> {
    let mut all = vec![processors / 2, processors, 2 * processors];
    all.retain(|count| (2..=Plan::MOST_WORKERS).contains(count));
    all.dedup();
    all
}

/// Candidates that differ from the default in one setting, by kind.
fn dimensions(able: &[&Model], workers: &[usize]) -> Vec<Vec<CandidateSettings>> {
    let engines = able.iter().map(|model| settings(&[("engine", model.name)])).collect();
    // The default is an engine with an event loop. These have the same topologies.
    let looping = able.iter().find(|model| model.driver != Driver::Blocking);
    let topologies = looping.map_or(Vec::new(), |model| topologies(model, workers));
    let senders = Sender::ALL.iter().filter(|sender| **sender != Sender::Auto);
    let senders = senders.map(|sender| settings(&[("send", sender.name())])).collect();
    let mut sizes: Vec<_> = UNSENT.iter().map(|bytes| settings(&[("notsent-lowat", bytes)])).collect();
    if able.iter().any(|model| model.engine == Engine::Pool) {
        let pool = |threads: &&str| settings(&[("engine", Engine::Pool.name()), ("pool-threads", threads)]);
        sizes.extend(THREADS.iter().map(pool));
    }
    vec![engines, topologies, senders, sizes]
}

/// The topologies of a model, each with each number of workers.
fn topologies(model: &Model, workers: &[usize]) -> Vec<CandidateSettings> {
    let mut all = Vec::new();
    for topology in model.topologies {
        match topology {
            Topology::Single => all.push(settings(&[("topology", topology.name())])),
            _ => all.extend(
                workers
                    .iter()
                    .map(|count| settings(&[("topology", topology.name()), ("workers", &count.to_string())])),
            ),
        }
    }
    all
}

/// Every legal combination of engine, topology, workers and sender.
fn combinations(able: &[&Model], workers: &[usize]) -> Vec<CandidateSettings> {
    let mut all = Vec::new();
    for model in able {
        for topology in topologies(model, workers) {
            for sender in model.senders {
                let mut one = topology.clone();
                one.insert("engine".to_owned(), model.name.to_owned());
                if *sender != Sender::Auto {
                    one.insert("send".to_owned(), sender.name().to_owned());
                }
                if is_legal(model, &one, *sender) {
                    all.push(one);
                }
            }
        }
    }
    all
}

fn is_legal(model: &Model, one: &CandidateSettings, sender: Sender) -> bool {
    let topology = one.get("topology").and_then(|name| name.parse().ok());
    let workers = one.get("workers").and_then(|count| count.parse().ok());
    Plan::new(model.engine, topology, workers, sender, None, Bounds::default()).is_ok()
}

fn settings(pairs: &[(&str, &str)]) -> CandidateSettings {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Settings as flags.
pub fn flags(settings: &CandidateSettings) -> String {
    let quoted = |value: &str| if value.contains(' ') { format!("\"{value}\"") } else { value.to_owned() };
    let all: Vec<String> =
        settings.iter().map(|(name, value)| format!("--{name} {}", quoted(value))).collect();
    all.join(" ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all() -> Vec<&'static Model> {
        MODELS.iter().collect()
    }

    #[test]
    fn candidates_are_different_legal_and_the_same_for_the_same_seed() {
        let found = candidates(&all(), 4, 200, 7);
        assert_eq!(found.len(), 200);
        assert_eq!(found, candidates(&all(), 4, 200, 7));
        assert_ne!(found, candidates(&all(), 4, 200, 8));
        assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 200);
        assert!(found.iter().all(|one| !one.is_empty()), "the default is not a candidate");
        let names: BTreeSet<&str> = found.iter().flat_map(|one| one.keys().map(String::as_str)).collect();
        assert_eq!(names, BTreeSet::from(TRIED));
    }

    #[test]
    fn a_short_list_has_some_of_each_kind() {
        let found = candidates(&all(), 2, 8, 1);
        for name in ["engine", "topology", "send"] {
            assert!(found.iter().any(|one| one.contains_key(name)), "{name}: {found:?}");
        }
        assert_eq!(found.len(), 8);
    }

    #[test]
    fn a_machine_with_one_processor_tries_two_workers() {
        assert_eq!(worker_counts(1), [2]);
        assert_eq!(worker_counts(2), [2, 4]);
        assert_eq!(worker_counts(8), [4, 8, 16]);
    }

    #[test]
    fn settings_are_flags() {
        let one = settings(&[("send", "copy"), ("notsent-lowat", "64 KiB")]);
        assert_eq!(flags(&one), "--notsent-lowat \"64 KiB\" --send copy");
    }
}
