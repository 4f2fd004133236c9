//! The fuzz harnesses: properties of the tests, guided by coverage, for any duration, under the address sanitizer. They
//! replace `cargo bolero`.

use std::fs;
use std::path::Path;

use crate::shell;

/// A property and its test.
pub(crate) struct Harness {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    /// The arguments with which cargo selects the program of the test.
    target: &'static [&'static str],
    test: &'static str,
}

/// Harnesses as rows: the name, the package, the arguments that select the program, and the test.
macro_rules! harnesses {
    ($($name:literal $package:literal [$($target:literal),+] $test:literal;)+) => {
        &[$(Harness { name: $name, package: $package, target: &[$($target),+], test: $test }),+]
    };
}

const HARNESSES: &[Harness] = harnesses! {
    "head" "tenfold-http" ["--test", "properties"] "an_accepted_head_passes_a_strict_check";
    "target" "tenfold-http" ["--test", "properties"] "accepted_targets_have_only_allowed_bytes";
    "ranges" "tenfold-http" ["--test", "selection"] "a_range_is_within_the_representation";
    "chunked" "tenfold-http" ["--test", "chunks"]
        "chunks_are_read_as_a_slow_reader_reads_them_however_they_are_cut";
    "proxy" "tenfold-http" ["--test", "proxy_headers"]
        "a_proxy_header_is_read_as_a_slow_reader_reads_it_however_it_is_cut";
    "forwarded" "tenfold-http" ["--lib"]
        "semantics::forwarded::tests::any_fields_have_a_client_that_stands_in_them";
    "frame" "tenfold-wire" ["--test", "wire"]
        "properties::any_bytes_are_frames_that_survive_writing_or_errors";
    "hpack" "tenfold-wire" ["--test", "wire"]
        "properties::any_blocks_are_decoded_as_a_slow_decoder_decodes_them_however_they_are_cut";
    "record" "tenfold-tls" ["--lib"]
        "connection::tests::any::any_bytes_are_records_in_order_or_end_the_connection";
    "form" "tenfold-accounts" ["--lib"] "web::any::any_form_is_read_as_a_slow_reader_reads_it";
    "cookie" "tenfold-accounts" ["--lib"] "web::any::any_cookies_are_sessions_or_none";
    "ticket" "tenfold-tls" ["--lib"] "tickets::ticketer::tests::any_ticket_is_ours_or_invalid";
    "signature" "tenfold-tls" ["--lib"]
        "signing::keys::tests::any_message_gets_an_answer_with_its_number_or_no_answer";
    "certificate" "tenfold-tls" ["--lib"]
        "certificates::facts::tests::any_bytes_are_a_certificate_or_an_error";
    "configuration" "tenfold" ["--lib"]
        "config::parse::tests::any::any_text_is_read_or_refused_in_words";
    "accounts" "tenfold" ["--lib"] "members::channel::any::any_message_is_a_question_or_is_dropped";
};

/// The harnesses that build within a minute. The build of the server takes longer than all of them. The step `unit`
/// runs every harness as a property.
pub(crate) const BRIEF: &[&str] =
    &["head", "target", "ranges", "chunked", "proxy", "frame", "hpack", "form", "cookie"];

/// The compiler flags: bolero's engine, its coverage (SanitizerCoverage of LLVM), and the sanitizer.
const FLAGS: &str = "--cfg fuzzing --cfg fuzzing_libfuzzer -Cpasses=sancov-module \
     -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
     -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
     -Cdebug-assertions -Zsanitizer=address";

/// The names of all harnesses, for errors.
pub(crate) fn names() -> String {
    HARNESSES.iter().map(|harness| harness.name).collect::<Vec<_>>().join(", ")
}

/// The tests of the harnesses.
pub(crate) fn tests() -> impl Iterator<Item = &'static str> {
    HARNESSES.iter().map(|harness| harness.test)
}

/// Whether a harness has this name.
pub(crate) fn knows(name: &str) -> bool {
    HARNESSES.iter().any(|harness| harness.name == name)
}

/// The build and the duration of a harness.
#[derive(Clone, Copy)]
pub(crate) enum FuzzLength {
    /// Optimised, with every feature of the server.
    Minutes(u64),
    /// Hardly optimised and without database clients, because the build takes most of the time. The engine of the
    /// fuzzer is optimised.
    Seconds(u64),
}

impl FuzzLength {
    fn seconds(self) -> u64 {
        match self {
            FuzzLength::Minutes(minutes) => 60 * minutes,
            FuzzLength::Seconds(seconds) => seconds,
        }
    }

    /// The arguments and the environment variables of cargo.
    fn build(self) -> (&'static [&'static str], &'static [(&'static str, &'static str)]) {
        match self {
            // Link-time optimisation takes longer than it saves in one run.
            FuzzLength::Minutes(_) => (&["--release"], &[("CARGO_PROFILE_RELEASE_LTO", "off")]),
            FuzzLength::Seconds(_) => (
                &[
                    "--no-default-features",
                    "--config",
                    "profile.dev.package.'*'.opt-level=0",
                    "--config",
                    "profile.dev.package.bolero-libfuzzer.opt-level=3",
                ],
                &[("CARGO_PROFILE_DEV_OPT_LEVEL", "1"), ("TENFOLD_LIBRARIES", "off")],
            ),
        }
    }
}

/// Runs the wanted harnesses for this duration each. Inputs that reach new code, and failing inputs, are kept in
/// `target/fuzz/NAME`.
pub(crate) fn fuzz(
    root: &Path,
    length: FuzzLength,
    is_wanted: impl Fn(&Harness) -> bool,
) -> Result<(), String> {
    let mut found = Vec::new();
    for harness in HARNESSES.iter().filter(|harness| is_wanted(harness)) {
        if let Err(why) = run(root, harness, length) {
            println!("{why}");
            found.push(harness.name);
        }
    }
    if found.is_empty() {
        Ok(())
    } else {
        Err(format!("harnesses failed or did not run: {}", found.join(", ")))
    }
}

fn run(root: &Path, harness: &Harness, length: FuzzLength) -> Result<(), String> {
    println!("\n== {}: {}", harness.name, harness.test);
    let folder = root.join("target/fuzz").join(harness.name);
    let corpus = folder.join("corpus");
    fs::create_dir_all(&corpus).map_err(|error| format!("cannot create {}: {error}", corpus.display()))?;
    let how = format!(
        "{} -artifact_prefix={}/ -max_total_time={} -timeout=20 -rss_limit_mb=4096 -print_final_stats=1",
        corpus.display(),
        folder.display(),
        length.seconds()
    );
    let platform = shell::platform();
    let (build, build_vars) = length.build();
    let cargo = ["run", "nightly", "cargo", "test", "--target", &platform, "-p", harness.package];
    let test = ["--", "--exact", harness.test, "--nocapture"];
    let args = [&cargo[..], build, harness.target, &test].concat();
    let vars = [
        ("RUSTFLAGS", FLAGS),
        // A separate folder, because no other build uses these flags.
        ("CARGO_TARGET_DIR", "target/fuzz/build"),
        ("BOLERO_LIBFUZZER_ARGS", &how),
        // Two functions of SQLite have tables of the same name, which the sanitizer reports as a duplicate definition.
        ("ASAN_OPTIONS", "detect_odr_violation=0"),
    ];
    Ok(shell::run(root, "rustup", &args, &[&vars, build_vars].concat())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_harness_is_a_test_that_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for harness in HARNESSES {
            let package = harness.package.strip_prefix("tenfold-").unwrap_or("server");
            let file = match (harness.target, harness.test.rsplit_once("::")) {
                (["--test", name], None) => root.join(format!("crates/{package}/tests/{name}.rs")),
                (["--test", name], Some((module, _))) => {
                    root.join(format!("crates/{package}/tests/{name}/{module}.rs"))
                }
                _ => {
                    let modules = harness.test.rsplit_once("::").expect("a unit test is in a module").0;
                    let file = |modules: &str| {
                        root.join(format!("crates/{package}/src/{}.rs", modules.replace("::", "/")))
                    };
                    // Tests are in a separate file, or at the end of the tested file.
                    let own = file(modules);
                    if own.exists() { own } else { file(modules.trim_end_matches("::tests")) }
                }
            };
            let text = fs::read_to_string(&file).expect("the harness's file is there");
            let name = harness.test.rsplit(':').next().expect("a path has a last part");
            assert!(text.contains(&format!("fn {name}(")), "{name} in {}", file.display());
        }
        assert!(knows("head") && !knows("tail"));
        assert!(BRIEF.iter().all(|name| knows(name)));
    }
}
