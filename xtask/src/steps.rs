//! The steps of `cargo xtask test`: a table, and the loop that runs them. A step fails if its tool is missing.

use std::path::Path;
use std::time::Instant;

use crate::fuzz::FuzzLength;
use crate::shell::Failed;
use crate::{checks, fuzz, house, package, setup, shell};

/// A step, which passes, fails, or is reported as not run.
struct TestStep {
    name: &'static str,
    about: &'static str,
    /// The tools of [`setup`] without which it fails.
    needs: &'static [&'static str],
    /// The tools of [`setup`] without which it does not run, because `setup` does not install them.
    only_with: &'static [&'static str],
    run: fn(&Path, &Selection) -> Result<(), Failed>,
}

/// The tools for the floor programs.
const BENCH_TOOLS: &[&str] =
    &["gcc", "g++", "libc6-dev", "make", "liburing-dev", "libevent-dev", "libasio-dev", "python3"];

/// The tools for the tests of crates. The tests of `tls` obtain certificates.
const UNIT_TOOLS: &[&str] = &["curl", "pebble", "pebble-challtestsrv"];

/// The tools for the whole-server tests.
const SERVER_TOOLS: &[&str] = &[
    "gcc",
    "g++",
    "libc6-dev",
    "make",
    "liburing-dev",
    "libevent-dev",
    "libasio-dev",
    "strace",
    "wrk",
    "iproute2",
    "curl",
    "wget",
    "aria2",
    "git",
    "ffmpeg",
    "python3",
    "python3-pip",
    "apt",
    "chromium",
    "fonts-liberation",
    "axe-core",
    "postgresql",
    "mariadb-server",
    "nginx-light",
    "haproxy",
    "caddy",
    "util-linux",
    "python3",
    "pebble",
    "pebble-challtestsrv",
];

const STEPS: &[TestStep] = &[
    step("format", "the sources are formatted", &["rustfmt"], format),
    step("house", "the rules of the house that no compiler knows", &[], rules),
    step("book", "docs/ renders, and its links lead somewhere", &[], book),
    step("deny", "bans, licences and sources of dependencies", &["cargo-deny"], |root, _| checks::deny(root)),
    step("bench", "the floor programs compile, the measuring tools parse", BENCH_TOOLS, |root, _| {
        bench(root)
    }),
    step("clippy", "no warning, in any target and in the server by itself", &["clippy"], clippy),
    step("files-only", "a server without any database client builds", &["clippy"], |root, _| {
        checks::files_only(root)
    }),
    step("rustdoc", "no warning in the documentation", &[], rustdoc),
    step("unit", "the tests of every crate but engine, properties briefly", UNIT_TOOLS, unit),
    step(
        "sanitizer",
        "http, sys, engine and accounts under the address sanitizer",
        &["nightly"],
        |root, selection| checks::address_sanitizer(root, selection.all),
    ),
    step(
        "fuzz",
        "the harnesses of http and accounts briefly, guided by coverage",
        &["nightly", "g++"],
        |root, selection| {
            let (length, only) = match selection.all {
                true => (FuzzLength::Minutes(5), &[][..]),
                false => (FuzzLength::Seconds(5), fuzz::BRIEF),
            };
            Ok(fuzz::fuzz(root, length, only)?)
        },
    ),
    TestStep {
        only_with: &["miri", "rust-src"],
        ..step("miri", "http in the interpreter", &["nightly"], |root, _| checks::miri(root))
    },
    TestStep {
        only_with: &["rust-src"],
        ..step("threads", "sys and engine under the thread sanitizer", &["nightly"], |root, _| {
            checks::thread_sanitizer(root)
        })
    },
    step(
        "binary",
        "the built server has the protections of its compilers",
        &["gcc", "g++"],
        |root, selection| checks::protections(root, selection.all),
    ),
    TestStep {
        only_with: &["systemd"],
        ..step("units", "systemd accepts the units, and they confine the server", &[], |root, _| {
            package::units::check(root)
        })
    },
    step("server", "the whole server, on every engine", SERVER_TOOLS, server),
];

const fn step(
    name: &'static str,
    about: &'static str,
    needs: &'static [&'static str],
    run: fn(&Path, &Selection) -> Result<(), Failed>,
) -> TestStep {
    TestStep { name, about, needs, only_with: &[], run }
}

/// The default number of cases per property of `cargo xtask fuzz`: some minutes.
pub(crate) const FUZZ_CASES: u32 = 200_000;

/// The default number of requests of `cargo xtask compare`.
pub(crate) const COMPARED: u32 = 100_000;

/// The selected steps and suites.
#[derive(Default)]
pub(crate) struct Selection {
    /// Steps by name. If empty, every step is selected.
    pub(crate) names: Vec<String>,
    /// Whether to run the long suites.
    pub(crate) all: bool,
}

impl Selection {
    pub(crate) fn only(names: &[&str]) -> Self {
        Selection { names: names.iter().map(|name| (*name).to_owned()).collect(), all: false }
    }

    /// The first name without a step.
    pub(crate) fn unknown(&self) -> Option<&str> {
        self.names.iter().map(String::as_str).find(|name| STEPS.iter().all(|step| step.name != *name))
    }

    fn has(&self, step: &TestStep) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| name == step.name)
    }
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

/// Runs the selected steps, even after a failure, and prints how many passed. The last output of failed steps is
/// repeated at the end.
pub(crate) fn test(root: &Path, selection: &Selection) -> Result<(), String> {
    let (mut passed, mut failed, mut not_run) = (0, Vec::new(), Vec::new());
    for step in STEPS.iter().filter(|step| selection.has(step)) {
        println!("\n== {}: {}", step.name, step.about);
        let absent = setup::missing(step.only_with);
        if !absent.is_empty() {
            println!("{}\n== {}: NOT RUN", absent.join("\n"), step.name);
            not_run.push(step.name);
            continue;
        }
        let start = Instant::now();
        let outcome = run_step(step, root, selection);
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => {
                passed += 1;
                println!("== {}: passed in {seconds:.1} s", step.name);
            }
            Err(why) => {
                println!("{}\n== {}: FAILED in {seconds:.1} s", why.why, step.name);
                failed.push((step.name, why));
            }
        }
    }
    for (name, why) in failed.iter().filter(|(_, why)| !why.output.is_empty()) {
        println!("\n== last output of {name}:\n{}", why.output.join("\n"));
    }
    println!("\nsteps: {passed} passed, {} failed, {} not run", failed.len(), not_run.len());
    if !not_run.is_empty() {
        println!("not run, because setup does not install their tools: {}", not_run.join(", "));
    }
    let names: Vec<&str> = failed.iter().map(|(name, _)| *name).collect();
    if names.is_empty() { Ok(()) } else { Err(format!("failed: {}", names.join(", "))) }
}

fn run_step(step: &TestStep, root: &Path, selection: &Selection) -> Result<(), Failed> {
    match setup::missing(step.needs).as_slice() {
        [] => (step.run)(root, selection),
        lines => Err(lines.join("\n").into()),
    }
}

fn format(root: &Path, _: &Selection) -> Result<(), Failed> {
    shell::run(root, "cargo", &["fmt", "--all", "--check"], &[])
}

fn clippy(root: &Path, _: &Selection) -> Result<(), Failed> {
    shell::run(root, "cargo", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])?;
    // Only the default crates, as `cargo run` builds them: features that another crate enables are missing here.
    shell::run(root, "cargo", &["clippy", "--", "-D", "warnings"], &[])
}

fn rules(root: &Path, _: &Selection) -> Result<(), Failed> {
    Ok(house::check(root)?)
}

fn book(root: &Path, _: &Selection) -> Result<(), Failed> {
    tenfold_book::check(root)?;
    Ok(tenfold_book::check_charts(root)?)
}

fn bench(root: &Path) -> Result<(), Failed> {
    make_bench(root)?;
    const PARSE: &str = "import ast, glob; [ast.parse(open(f).read(), f) for f in glob.glob('bench/*.py')]";
    shell::run(root, "python3", &["-c", PARSE], &[])
}

/// Builds the floor programs of `bench/`; warnings of the C compiler are errors.
pub(crate) fn make_bench(root: &Path) -> Result<(), Failed> {
    shell::run(root, "make", &["--silent", "-C", "bench", "CFLAGS=-O2 -Wall -Wextra -Werror"], &[])
}

fn rustdoc(root: &Path, _: &Selection) -> Result<(), Failed> {
    let args = ["doc", "--workspace", "--features", "tenfold/full", "--no-deps", "--document-private-items"];
    // This documentation includes private items, so links to them work.
    let flags = "-D warnings -A rustdoc::private-intra-doc-links";
    shell::run(root, "cargo", &args, &[("RUSTDOCFLAGS", flags)])
}

/// The tests of crates, with those that `cargo test --workspace` ignores.
///
/// Also the tests of few crates select the workspace: cargo builds a dependency again if the selected crates need other
/// features of it.
///
/// The tests of engine take minutes, and the step `sanitizer` runs most of them; here only the long suites run them.
fn unit(root: &Path, selection: &Selection) -> Result<(), Failed> {
    let without: &[&str] = if selection.all { &[] } else { &["--exclude", "tenfold-engine"] };
    let args = [&["test", "--workspace"], without, &["--", "--include-ignored"]].concat();
    shell::run(root, "cargo", &args, &[checks::EVERY_CONFIGURATION])
}

/// The suites of `tests/`; they compare system calls with the floor programs.
fn server(root: &Path, selection: &Selection) -> Result<(), Failed> {
    make_bench(root)?;
    let vars: &[(&str, &str)] = if selection.all { &[("TENFOLD_TEST_ALL", "1")] } else { &[] };
    suite(root, &[], &[], vars)
}

/// Runs the whole-server tests, with `cargo` for cargo and `args` for the suite itself.
fn suite(root: &Path, cargo: &[&str], args: &[&str], vars: &[(&str, &str)]) -> Result<(), Failed> {
    let all = [&["test", "--workspace"], cargo, &["--test", "suite", "--"], args].concat();
    shell::run(root, "cargo", &all, vars)
}

/// Runs only the whole-server tests with a browser.
pub(crate) fn browser(root: &Path) -> Result<(), Failed> {
    match setup::missing(&["chromium", "fonts-liberation", "axe-core"]).as_slice() {
        [] => suite(root, &[], &["browser"], &[]),
        lines => Err(lines.join("\n").into()),
    }
}

/// Compares engines with `requests` requests to each configuration whose name contains `part`. The suite is optimised,
/// because it makes the requests of all servers.
pub(crate) fn compare(root: &Path, requests: u32, part: &str) -> Result<(), Failed> {
    let filter = format!("compare::{part}");
    let args = ["--test-threads", "2", &filter];
    suite(root, &["--profile", "suite"], &args, &[("TENFOLD_TEST_REQUESTS", &requests.to_string())])
}

/// Runs the tests of the crates whose parsers read untrusted input, optimised, with `cases` generated cases per
/// property.
pub(crate) fn fuzz(root: &Path, cases: u32) -> Result<(), Failed> {
    let args = ["test", "--release", "-p", "tenfold-http", "-p", "tenfold-site", "--lib", "--tests"];
    let cases = cases.to_string();
    // Each harness has its own variable.
    shell::run(root, "cargo", &args, &[("PROPTEST_CASES", &cases), ("BOLERO_RANDOM_ITERATIONS", &cases)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_of_a_step_is_one_that_setup_knows() {
        for step in STEPS {
            for tool in step.needs.iter().chain(step.only_with) {
                assert!(setup::knows(tool), "{} needs {tool}", step.name);
            }
        }
    }

    #[test]
    fn a_step_is_selected_by_its_name_and_an_unknown_name_is_found() {
        assert_eq!(Selection::only(&["unit", "house"]).unknown(), None);
        assert_eq!(Selection::only(&["unit", "nonsense"]).unknown(), Some("nonsense"));
        let selected = |selection: &Selection| STEPS.iter().filter(|step| selection.has(step)).count();
        assert_eq!(selected(&Selection::only(&["unit"])), 1);
        assert_eq!(selected(&Selection::default()), STEPS.len());
    }
}
