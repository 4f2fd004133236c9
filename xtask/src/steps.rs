//! The steps of `cargo xtask test`: a table, and the commands of each step.

use std::path::Path;

use crate::checks;
use crate::fuzz::FuzzLength;
use crate::scope::{self, Scope};
use crate::shell::{self, Failed};
use crate::{fuzz, house, package, path};

/// A step of the tests.
pub(crate) struct TestStep {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// The tools without which it does not run.
    pub(crate) needs: &'static [&'static str],
    /// The packages whose change requires it; empty: it always runs.
    packages: &'static [&'static str],
    pub(crate) run: fn(&Scope) -> Result<(), Failed>,
}

impl TestStep {
    /// Whether it runs only for changed packages.
    pub(crate) fn depends_on_changes(&self) -> bool {
        !self.packages.is_empty()
    }

    /// Whether it has something to do.
    pub(crate) fn concerns(&self, scope: &Scope) -> bool {
        self.packages.is_empty() || self.packages.iter().any(|package| scope.has(package))
    }
}

/// The tools for the floor programs.
const BENCH_TOOLS: &[&str] = &[
    "gcc",
    "g++",
    "libc6-dev",
    "make",
    "liburing-dev",
    "libssl-dev",
    "libevent-dev",
    "libasio-dev",
    "python3",
];

/// The tools for the tests that `cargo test --workspace` ignores. The tests of `tls` obtain certificates, and the tests of
/// `wire` compare HPACK.
const UNIT_TOOLS: &[&str] =
    &["curl", "gcc", "libnghttp2-dev", "patch", "pebble", "pebble-challtestsrv", "python3-hpack"];

/// The tools for the whole-server tests in a browser. The Chromium of Ubuntu is a snap, which cannot read the folders of
/// tests, so only this step needs it.
const BROWSER_TOOLS: &[&str] = &["chromium", "fonts-liberation", "axe-core"];

/// The tools for the whole-server tests.
const SERVER_TOOLS: &[&str] = &[
    "gcc",
    "g++",
    "libc6-dev",
    "make",
    "liburing-dev",
    "libssl-dev",
    "libevent-dev",
    "libasio-dev",
    "patch",
    "strace",
    "wrk",
    "iproute2",
    "curl",
    "nghttp2-client",
    "golang-go",
    "wget",
    "aria2",
    "git",
    "ffmpeg",
    "python3",
    "python3-pip",
    "prometheus",
    "apt",
    "postgresql",
    "mariadb-server",
    "nginx-light",
    "haproxy",
    "caddy",
    "util-linux",
    "pebble",
    "pebble-challtestsrv",
    "h2spec",
];

/// The tools of `packaging/kubernetes/check.sh`. It fetches the schemas by go.
const KUBERNETES_TOOLS: &[&str] = &["golang-go", "kubeconform", "kustomize", "python3"];

/// The packages that the address sanitizer tests.
const SANITIZED: &[&str] = &["tenfold-http", "tenfold-sys", "tenfold-engine", "tenfold-accounts"];

/// The packages with threads or with shared memory.
const THREADED: &[&str] = &["tenfold-sys", "tenfold-engine"];

pub(crate) const STEPS: &[TestStep] = &[
    step("format", "the sources are formatted", &["rustfmt"], format),
    step("house", "the rules of the house that no compiler knows", &[], rules),
    step("book", "docs/ renders, its links lead somewhere, and the path of models is whole", &[], book),
    step("deny", "bans, licences and sources of dependencies", &["cargo-deny"], |scope| {
        checks::deny(&scope.root)
    }),
    step("bench", "the floor programs compile, the measuring tools parse", BENCH_TOOLS, bench),
    step("clippy", "no warning, in any target", &["clippy"], clippy),
    step("workspace", "`cargo test --workspace`, as in README", &[], workspace),
    step("unit", "ignored tests of crates, and other configurations of the drivers", UNIT_TOOLS, unit),
    step("server", "the whole server", SERVER_TOOLS, server),
    step("browser", "the whole server in a browser", BROWSER_TOOLS, browser),
    for_changed(
        &["tenfold"],
        step("features", "a server without database clients", &["clippy"], |scope| {
            checks::files_only(&scope.root)
        }),
    ),
    for_changed(&["tenfold"], step("rustdoc", "no warning in the documentation", &[], rustdoc)),
    for_changed(
        &["tenfold"],
        step("binary", "the built server has the protections of its compilers", &["gcc", "g++"], |scope| {
            checks::protections(&scope.root, scope.all)
        }),
    ),
    for_changed(
        SANITIZED,
        step(
            "sanitizer",
            "http, sys, engine and accounts under the address sanitizer",
            &["nightly"],
            |scope| checks::address_sanitizer(&scope.root, &scope.select(SANITIZED), scope.all),
        ),
    ),
    for_changed(
        &["tenfold-http", "tenfold-wire", "tenfold-accounts"],
        step(
            "fuzz",
            "the harnesses of http, wire and accounts briefly, guided by coverage",
            &["nightly", "g++"],
            fuzz_step,
        ),
    ),
    for_changed(
        &["tenfold-http"],
        step("miri", "http in the interpreter", &["nightly", "miri", "rust-src"], |scope| {
            checks::miri(&scope.root)
        }),
    ),
    for_changed(
        THREADED,
        step("threads", "sys and engine under the thread sanitizer", &["nightly", "rust-src"], |scope| {
            checks::thread_sanitizer(&scope.root, &scope.select(THREADED))
        }),
    ),
    step(
        "kubernetes",
        "the objects of packaging/kubernetes conform to their schemas",
        KUBERNETES_TOOLS,
        |scope| shell::run(&scope.root, "sh", &["packaging/kubernetes/check.sh"], &[]),
    ),
    step("units", "systemd accepts the units, and they confine the server", &["systemd"], |scope| {
        package::units::check(&scope.root)
    }),
];

const fn step(
    name: &'static str,
    about: &'static str,
    needs: &'static [&'static str],
    run: fn(&Scope) -> Result<(), Failed>,
) -> TestStep {
    TestStep { name, about, needs, packages: &[], run }
}

/// A step that runs only if one of these packages changed.
const fn for_changed(packages: &'static [&'static str], step: TestStep) -> TestStep {
    TestStep { packages, ..step }
}

/// The default number of cases per property of `cargo xtask fuzz`: some minutes.
pub(crate) const FUZZ_CASES: u32 = 200_000;

/// The default number of requests of `cargo xtask compare`.
pub(crate) const COMPARED: u32 = 100_000;

fn format(scope: &Scope) -> Result<(), Failed> {
    shell::run(&scope.root, "cargo", &["fmt", "--all", "--check"], &[])
}

fn clippy(scope: &Scope) -> Result<(), Failed> {
    shell::run(&scope.root, "cargo", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])
}

fn rules(scope: &Scope) -> Result<(), Failed> {
    Ok(house::check(&scope.root)?)
}

fn book(scope: &Scope) -> Result<(), Failed> {
    tenfold_book::check(&scope.root)?;
    path::check(&scope.root)?;
    Ok(tenfold_book::check_charts(&scope.root)?)
}

fn bench(scope: &Scope) -> Result<(), Failed> {
    make_bench(&scope.root)?;
    const PARSE: &str = "import ast, glob; [ast.parse(open(f).read(), f) for f in glob.glob('bench/*.py')]";
    shell::run(&scope.root, "python3", &["-c", PARSE], &[])
}

/// Builds the floor programs of `bench/`; warnings of the C compiler are errors.
pub(crate) fn make_bench(root: &Path) -> Result<(), Failed> {
    shell::run(root, "make", &["--silent", "-C", "bench", "CFLAGS=-O2 -Wall -Wextra -Werror"], &[])
}

fn rustdoc(scope: &Scope) -> Result<(), Failed> {
    let args = ["doc", "--workspace", "--features", "tenfold/full", "--no-deps", "--document-private-items"];
    // This documentation includes private items, so links to them work.
    let flags = "-D warnings -A rustdoc::private-intra-doc-links";
    shell::run(&scope.root, "cargo", &args, &[("RUSTDOCFLAGS", flags)])
}

fn workspace(scope: &Scope) -> Result<(), Failed> {
    shell::run(&scope.root, "cargo", &["test", "--workspace"], &[])
}

/// Runs the tests that the step `workspace` omits. Cargo builds a dependency again if the selected crates need other
/// features of it, so tests of few crates select the whole workspace, too.
fn unit(scope: &Scope) -> Result<(), Failed> {
    // Concurrently: these tests mostly wait for the authority.
    let ignored = ["test", "--workspace", "--tests", "--", "--ignored", "--test-threads", "16"];
    shell::run(&scope.root, "cargo", &ignored, &[])?;
    let turn = scope::turn(&scope.root);
    let other = [("TENFOLD_TEST_CONFIGURATIONS", "other"), ("TENFOLD_TEST_TURN", turn.as_str())];
    let vars = if scope.all { &[ALL][..] } else { &other };
    shell::run(&scope.root, "cargo", &["test", "--workspace", "--test", "drivers"], vars)
}

fn fuzz_step(scope: &Scope) -> Result<(), Failed> {
    if scope.all {
        return Ok(fuzz::fuzz(&scope.root, FuzzLength::Minutes(5), |_| true)?);
    }
    let is_wanted =
        |harness: &fuzz::Harness| fuzz::BRIEF.contains(&harness.name) && scope.has(harness.package);
    Ok(fuzz::fuzz(&scope.root, FuzzLength::Seconds(5), is_wanted)?)
}

/// Requests the long suites.
const ALL: (&str, &str) = ("TENFOLD_TEST_ALL", "1");

/// Words in the names of whole-server tests that need a browser.
const IN_A_BROWSER: &[&str] = &["browser", "accessibility::"];

/// The suites of `tests/`, except in a browser; they compare system calls with the floor programs.
fn server(scope: &Scope) -> Result<(), Failed> {
    make_bench(&scope.root)?;
    let mut others: Vec<&str> = IN_A_BROWSER.iter().flat_map(|word| ["--skip", *word]).collect();
    others.extend(scope.tier.iter().flat_map(|tier| tier.cases));
    gate(scope, &others)
}

fn browser(scope: &Scope) -> Result<(), Failed> {
    IN_A_BROWSER.iter().try_for_each(|word| gate(scope, &[word]))
}

/// Runs whole-server tests. Without the long suites, the commit selects a fifth of the configurations of each case.
fn gate(scope: &Scope, args: &[&str]) -> Result<(), Failed> {
    let turn = scope::turn(&scope.root);
    let var = if scope.all { ALL } else { ("TENFOLD_TEST_TURN", turn.as_str()) };
    suite(&scope.root, &[], args, &[var])
}

/// Runs the whole-server tests, with `cargo` for cargo and `args` for the suite itself.
fn suite(root: &Path, cargo: &[&str], args: &[&str], vars: &[(&str, &str)]) -> Result<(), Failed> {
    let all = [&["test", "--workspace"], cargo, &["--test", "suite", "--"], args].concat();
    shell::run(root, "cargo", &all, vars)
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
    let args = [
        "test",
        "--release",
        "-p",
        "tenfold-http",
        "-p",
        "tenfold-wire",
        "-p",
        "tenfold-site",
        "--lib",
        "--tests",
    ];
    let cases = cases.to_string();
    // Each harness has its own variable.
    shell::run(root, "cargo", &args, &[("PROPTEST_CASES", &cases), ("BOLERO_RANDOM_ITERATIONS", &cases)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools;

    #[test]
    fn setup_knows_every_tool_of_a_step() {
        for step in STEPS {
            for tool in step.needs {
                assert!(tools::knows(tool), "{} needs {tool}", step.name);
            }
        }
    }
}
