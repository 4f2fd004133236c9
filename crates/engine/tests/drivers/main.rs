//! Every driver over loopback: each statement about connections is a test of every model. With
//! `TENFOLD_TEST_CONFIGURATIONS=all` it is a test of each of the model's triggers and topologies, plain and through TLS;
//! with `other`, of all but the default ones. `TENFOLD_TEST_TURN=17` selects a third of these.
//!
//! A test is named `theme::configuration::statement`, and any part of the name selects it, from all configurations. Each
//! test has its own server, another process of this program. So a model can fork, run out of descriptors or exit without
//! an effect on other tests.

/// Lists statements after their filters: `statements![any: first, second; at_once: third]`.
macro_rules! statements {
    ($($concerns:ident: $($name:ident),+ $(,)?);+ $(;)?) => {
        &[$($((stringify!($name), $concerns, $name)),+),+]
    };
}

mod answers;
mod bounds;
mod cold;
mod configuration;
mod duplex;
mod endings;
mod faults;
mod idle;
mod launch;
mod leaving;
mod mux;
mod pattern;
mod server;
mod tls;
mod turns;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

use crate::configuration::Configuration;

/// A statement: its name, the configurations that it applies to, and its test.
pub(crate) type Statement = (&'static str, fn(&Configuration) -> bool, fn(&Configuration));

const THEMES: &[(&str, &[Statement])] = &[
    ("answers", answers::STATEMENTS),
    ("endings", endings::STATEMENTS),
    ("bounds", bounds::STATEMENTS),
    ("turns", turns::STATEMENTS),
    ("leaving", leaving::STATEMENTS),
    ("duplex", duplex::STATEMENTS),
    ("idle", idle::STATEMENTS),
    ("faults", faults::STATEMENTS),
    ("tls", tls::STATEMENTS),
    ("cold", cold::STATEMENTS),
];

/// Each configuration through TLS tests one of this many statements, and the choice differs between configurations.
/// `TENFOLD_TEST_ALL` or a filter selects all statements.
const TLS_SAMPLE: usize = 3;

/// The number of concurrent tests. It exceeds the processors, because tests mostly wait.
const AT_ONCE: usize = 16;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some(server::ROLE) {
        return server::main(words);
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let is = |variable, value: &str| std::env::var_os(variable).is_some_and(|set| set == value);
    let whole = is("TENFOLD_TEST_ALL", "1") || arguments.filter.is_some();
    let other = !whole && is("TENFOLD_TEST_CONFIGURATIONS", "other");
    let every = whole || other || is("TENFOLD_TEST_CONFIGURATIONS", "all");
    let mut configurations = if every { Configuration::all() } else { Configuration::defaults() };
    if other {
        let defaults: Vec<String> = Configuration::defaults().iter().map(ToString::to_string).collect();
        configurations.retain(|configuration| !defaults.contains(&configuration.to_string()));
    }
    let turn = std::env::var("TENFOLD_TEST_TURN").ok().and_then(|turn| turn.parse::<usize>().ok());
    let (turn, share) = turn.map_or((0, 1), |turn| (turn, 3));
    let mut trials = Vec::new();
    for (number, configuration) in configurations.into_iter().enumerate() {
        for (theme, statements) in THEMES {
            for (place, &(name, concerns, holds)) in statements.iter().enumerate() {
                let share = if configuration.tls { TLS_SAMPLE * share } else { share };
                let is_sampled = whole || !every || (number + place + turn) % share == 0;
                if !is_sampled || !concerns(&configuration) {
                    continue;
                }
                let configuration = configuration.clone();
                trials.push(Trial::test(format!("{theme}::{configuration}::{name}"), move || {
                    holds(&configuration);
                    Ok(())
                }));
            }
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    tenfold_testkit::seal::remove_certificate();
    conclusion.exit_code()
}
