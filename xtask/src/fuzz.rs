//! The fuzz harnesses: properties of the tests that are guided by coverage, for as long as one likes, under the
//! address sanitizer. What `cargo bolero` does, without having to install it.

use std::fs;
use std::path::Path;

use crate::shell;

/// A property, and where it stands.
struct Harness {
    name: &'static str,
    package: &'static str,
    /// The words by which cargo finds the program with the test.
    target: &'static [&'static str],
    test: &'static str,
}

const HARNESSES: &[Harness] = &[
    Harness {
        name: "head",
        package: "tenfold-http",
        target: &["--test", "properties"],
        test: "an_accepted_head_passes_a_strict_check",
    },
    Harness {
        name: "target",
        package: "tenfold-http",
        target: &["--test", "properties"],
        test: "any_target_is_refused_or_holds_only_what_it_may",
    },
    Harness {
        name: "ranges",
        package: "tenfold-http",
        target: &["--test", "selection"],
        test: "a_range_is_within_the_representation",
    },
    Harness {
        name: "chunked",
        package: "tenfold-http",
        target: &["--test", "chunks"],
        test: "chunks_are_read_as_a_slow_reader_reads_them_however_they_are_cut",
    },
    Harness {
        name: "configuration",
        package: "tenfold",
        target: &["--bin", "tenfold"],
        test: "settings::tests::any::any_text_is_read_or_refused_in_words",
    },
];

/// What the compiler is told: the engine of bolero, coverage for it (SanitizerCoverage of LLVM), the sanitizer.
const FLAGS: &str = "--cfg fuzzing --cfg fuzzing_libfuzzer -Cpasses=sancov-module \
     -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
     -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
     -Ccodegen-units=1 -Cdebug-assertions -Zsanitizer=address";

/// The names of all harnesses, for an error.
pub(crate) fn names() -> String {
    HARNESSES.iter().map(|harness| harness.name).collect::<Vec<_>>().join(", ")
}

/// Whether there is a harness of that name.
pub(crate) fn knows(name: &str) -> bool {
    HARNESSES.iter().any(|harness| harness.name == name)
}

/// Runs the harnesses that are named, or all, for so many minutes each. What they learn stays in
/// `target/fuzz/NAME`, and an input that fails is kept there.
///
/// # Errors
/// Says which one found something; the input and the failure were printed.
pub(crate) fn fuzz(root: &Path, minutes: u64, only: &[&str]) -> Result<(), String> {
    let wanted = |harness: &&Harness| only.is_empty() || only.contains(&harness.name);
    let mut found = Vec::new();
    for harness in HARNESSES.iter().filter(wanted) {
        if let Err(why) = run(root, harness, minutes) {
            println!("{why}");
            found.push(harness.name);
        }
    }
    if found.is_empty() { Ok(()) } else { Err(format!("findings, or no run: {}", found.join(", "))) }
}

fn run(root: &Path, harness: &Harness, minutes: u64) -> Result<(), String> {
    println!("\n== {}: {}", harness.name, harness.test);
    let folder = root.join("target/fuzz").join(harness.name);
    let corpus = folder.join("corpus");
    fs::create_dir_all(&corpus).map_err(|error| format!("create {}: {error}", corpus.display()))?;
    let seconds = minutes * 60;
    let how = format!(
        "{} -artifact_prefix={}/ -max_total_time={seconds} -timeout=20 -rss_limit_mb=4096 -print_final_stats=1",
        corpus.display(),
        folder.display()
    );
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let cargo =
        ["run", "nightly", "cargo", "test", "--release", "--target", &platform, "-p", harness.package];
    let test = ["--", "--exact", harness.test, "--nocapture"];
    let args = [&cargo[..], harness.target, &test].concat();
    let vars = [
        ("RUSTFLAGS", FLAGS),
        // A folder of its own: nothing that is built for something else has these flags.
        ("CARGO_TARGET_DIR", "target/fuzz/build"),
        // Not optimised across crates: what is built for one run need not be the fastest.
        ("CARGO_PROFILE_RELEASE_LTO", "off"),
        ("BOLERO_LIBFUZZER_ARGS", &how),
        // Two functions of SQLite have a table of the same name each; the sanitizer takes them for one that stands twice.
        ("ASAN_OPTIONS", "detect_odr_violation=0"),
    ];
    Ok(shell::run(root, "rustup", &args, &vars)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_harness_is_a_test_that_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for harness in HARNESSES {
            let file = match harness.target {
                ["--test", name] => root.join(format!("crates/http/tests/{name}.rs")),
                _ => root.join("crates/server/src/settings/tests/any.rs"),
            };
            let text = fs::read_to_string(&file).expect("the harness's file is there");
            let name = harness.test.rsplit(':').next().expect("a path has a last part");
            assert!(text.contains(&format!("fn {name}(")), "{name} in {}", file.display());
        }
        assert!(knows("head") && !knows("tail"));
    }
}
