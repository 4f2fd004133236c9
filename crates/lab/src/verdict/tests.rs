use std::collections::BTreeMap;

use super::*;
use crate::experiment::file;
use crate::machine::environment::LabEnvironment;
use crate::plan::profile::Profile;
use crate::plan::{RunPlan, Wishes};
use crate::record::Trial;

fn planned(claims: &str) -> PlannedExperiment {
    let cells = "[cells.a]\n[cells.b]\n[cells.c]\n[cells.d]\n";
    let text = format!(
        "name = \"x\"\ntitle = \"X\"\nsource = \"s\"\nsetting = \"s\"\nscaled = \"s\"\n{cells}{claims}"
    );
    let experiment = file::read("x.toml", &text).unwrap_or_else(|problem| panic!("{problem}"));
    let wishes = Wishes { profile: Profile::Quick, seed: 1, ..Wishes::default() };
    let environment = LabEnvironment { processors: vec![0, 1], ..LabEnvironment::default() };
    RunPlan::new(vec![experiment], &wishes, &environment).experiments.remove(0)
}

fn claim(rule: &str, more: &str) -> String {
    format!("[[claims]]\nsays = \"A sentence.\"\nmeasure = \"cpu\"\nrule = {{ {rule} }}\n{more}\n")
}

/// Blocks in which each cell has its value with some noise.
fn trials(blocks: usize, values: &[(&str, f64)]) -> Vec<Trial> {
    let mut all = Vec::new();
    for block in 0..blocks {
        for (place, (cell, value)) in values.iter().enumerate() {
            let wave = 1.0 + 0.01 * ((block * 7 + place * 3) % 5) as f64;
            let values = BTreeMap::from([(Measure::Cpu, value * wave)]);
            all.push(Trial {
                experiment: "x".into(),
                cell: (*cell).into(),
                block,
                values,
                ..Trial::default()
            });
        }
    }
    all
}

fn ruling(claims: &str, trials: &[Trial]) -> (Ruling, String) {
    let found = judge(&planned(claims), &Blocks::of(trials, "x")).remove(0);
    (found.ruling, found.because)
}

#[test]
fn a_ratio_holds_reverses_or_makes_no_difference() {
    let greater = claim("ratio = [\"a\", \"b\"], is = \"greater\"", "value = 3.35");
    let (found, because) = ruling(&greater, &trials(8, &[("a", 1.3), ("b", 1.0)]));
    assert_eq!(found, Ruling::Holds);
    assert!(because.contains("smaller than published"), "{because}");
    assert_eq!(ruling(&greater, &trials(8, &[("a", 0.5), ("b", 1.0)])).0, Ruling::Reversed);
    assert_eq!(ruling(&greater, &trials(8, &[("a", 1.0), ("b", 1.0)])).0, Ruling::NoDifference);
    let (found, because) = ruling(&greater, &trials(7, &[("a", 1.3), ("b", 1.0)]));
    assert_eq!(found, Ruling::Inconclusive);
    assert!(because.contains("7 blocks"), "{because}");
}

#[test]
fn a_confound_that_flips_a_ratio_makes_an_artefact() {
    let text = claim(
        "ratio = [\"a\", \"b\"], is = \"greater\"",
        "confound = { name = \"completion by length\", ratio = [\"c\", \"d\"] }",
    );
    let flips = trials(8, &[("a", 5.0), ("b", 1.0), ("c", 1.0), ("d", 1.0)]);
    let (found, because) = ruling(&text, &flips);
    assert_eq!(found, Ruling::Artefact);
    assert!(because.contains("completion by length"), "{because}");
    let stays = trials(8, &[("a", 5.0), ("b", 1.0), ("c", 4.0), ("d", 1.0)]);
    assert_eq!(ruling(&text, &stays).0, Ruling::Holds);
}

#[test]
fn noise_does_not_hide_a_confound_that_explains_a_large_ratio() {
    let text = claim(
        "ratio = [\"a\", \"b\"], is = \"greater\"",
        "confound = { name = \"completion by length\", ratio = [\"c\", \"d\"] }",
    );
    // The interval of c to d is about 0.9 to 1.2: not inside the margin, but negligible compared with a ratio of 200.
    let noisy = |ratio: f64| -> Vec<Trial> {
        let mut all = trials(8, &[("a", ratio), ("b", 1.0), ("c", 1.0), ("d", 1.0)]);
        for trial in all.iter_mut().filter(|trial| trial.cell == "c" && trial.block % 2 == 0) {
            trial.values.insert(Measure::Cpu, 1.2);
        }
        all
    };
    assert_eq!(ruling(&text, &noisy(200.0)).0, Ruling::Artefact);
    assert_eq!(ruling(&text, &noisy(2.0)).0, Ruling::Holds, "a tenth of 2 is less than the noise");
}

#[test]
fn the_best_beats_each_other_cell() {
    let text = claim("best = \"a\", among = [\"b\", \"c\"]", "");
    assert_eq!(ruling(&text, &trials(8, &[("a", 1.0), ("b", 1.4), ("c", 1.3)])).0, Ruling::Holds);
    assert_eq!(ruling(&text, &trials(8, &[("a", 1.0), ("b", 1.01), ("c", 1.0)])).0, Ruling::NoDifference);
    let (found, because) = ruling(&text, &trials(8, &[("a", 1.0), ("b", 1.4), ("c", 0.7)]));
    assert_eq!((found, because.as_str()), (Ruling::Reversed, "c is better"));
    let tied = ruling(&text, &trials(8, &[("a", 1.0), ("b", 1.4), ("c", 1.0)]));
    assert_eq!(tied.0, Ruling::Inconclusive, "{tied:?}");
}

#[test]
fn a_bound_is_on_one_side_of_its_limit() {
    let text = claim("bound = \"a\", at-least = 30", "");
    assert_eq!(ruling(&text, &trials(8, &[("a", 40.0)])).0, Ruling::Holds);
    assert_eq!(ruling(&text, &trials(8, &[("a", 20.0)])).0, Ruling::Reversed);
    assert_eq!(ruling(&text, &trials(8, &[("a", 29.4)])).0, Ruling::Inconclusive);
    let text = claim("bound = \"a\", to = \"b\", at-most = 1.1", "");
    assert_eq!(ruling(&text, &trials(8, &[("a", 1.0), ("b", 1.0)])).0, Ruling::Holds);
}

#[test]
fn a_count_needs_one_trial_and_agreement() {
    let text = claim("count = \"a\", at-most = 0", "");
    assert_eq!(ruling(&text, &trials(1, &[("a", 0.0)])).0, Ruling::Holds);
    assert_eq!(ruling(&text, &trials(2, &[("a", 3.0)])).0, Ruling::Reversed);
    let mixed = [trials(1, &[("a", 0.0)]), trials(2, &[("a", 3.0)]).split_off(1)].concat();
    assert_eq!(ruling(&text, &mixed).0, Ruling::Inconclusive);
    assert_eq!(ruling(&text, &[]).0, Ruling::Inconclusive);
}

#[test]
fn the_first_level_that_fails_is_found() {
    let text = claim("first-failure = [\"a\", \"b\", \"c\"], at = \"b\", limit = 0", "");
    assert_eq!(ruling(&text, &trials(2, &[("a", 0.0), ("b", 9.0), ("c", 9.0)])).0, Ruling::Holds);
    assert_eq!(ruling(&text, &trials(2, &[("a", 1.0), ("b", 9.0), ("c", 9.0)])).0, Ruling::Reversed);
    assert_eq!(ruling(&text, &trials(2, &[("a", 0.0), ("b", 0.0), ("c", 0.0)])).0, Ruling::Reversed);
}

#[test]
fn a_claim_that_cannot_be_tested_has_a_reason() {
    let text = claim("ratio = [\"a\", \"b\"], is = \"greater\"", "needs = [\"cores 4\"]");
    let (found, because) = ruling(&text, &[]);
    assert_eq!(found, Ruling::NotTestableHere);
    assert!(because.contains("4 cores"), "{because}");
}

#[test]
fn failed_trials_are_named_and_never_counted() {
    let text = claim("ratio = [\"a\", \"b\"], is = \"greater\"", "");
    let mut all = trials(8, &[("a", 1.3), ("b", 1.0)]);
    all[0].failed = Some("the server ended".to_owned());
    let (found, because) = ruling(&text, &all);
    assert_eq!(found, Ruling::Inconclusive);
    assert!(because.contains("trials of a failed: the server ended"), "{because}");
}

#[test]
fn holms_correction_is_shared_by_primary_claims() {
    let one = claim("ratio = [\"a\", \"b\"], is = \"greater\"", "");
    let all = trials(8, &[("a", 1.3), ("b", 1.0), ("c", 1.0), ("d", 1.0)]);
    let alone = judge(&planned(&one), &Blocks::of(&all, "x")).remove(0).p.expect("a ratio has one");
    let others = claim("ratio = [\"c\", \"d\"], is = \"greater\"", "").repeat(3);
    let together = judge(&planned(&(one + &others)), &Blocks::of(&all, "x")).remove(0);
    assert!((together.p.expect("a ratio has one") / alone - 4.0).abs() < 1e-9);
}
