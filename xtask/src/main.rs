//! The commands of contributors, `cargo xtask COMMAND`: tools, tests, the book, packages, and programs for
//! measurements. `.ci/run` calls only these commands.

mod checks;
mod fuzz;
mod house;
mod imports;
mod lines;
mod package;
mod path;
mod run;
mod scope;
mod setup;
mod shell;
mod source;
mod steps;
mod structure;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fuzz::FuzzLength;
use package::PackageOptions;
use run::Selection;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  setup [--no-peers]  install the tools for tests and measurements, from packages of Debian or Ubuntu and from rustup
                      (--no-peers: without apache2, lighttpd and h2o, which serve only for comparison)
  test [--only STEP]... [--skip STEP]... [--tier TIER] [--all] [--complete] [--record] [--no-setup]
                      every step, or those that are named, or the tests of a tier (spec, system, measure). First, as
                      root or if sudo needs no password, it installs missing tools (--no-setup: it does not). A step
                      without its tools is not run; --complete: this is a failure. Steps that take long run for crates
                      that changed since their commit in .ci/passed; --only and --all run them for every crate.
                      --record: write the commit of such steps there if they pass.
                      --all: the long suites too, among them every legal combination of the switches from write to
                      log-mode with every engine, where the tests look at every pair of all switches; some hours
  test --list         the steps of `test`
  lint                format, clippy and the rules of the house
  lines [REVISION] [--under PATH]
                      count lines of code, of tests and of comments in the Rust files of a revision (default: HEAD)
                      below PATH, a file or a folder (default: crates)
  site [DIR]          check that docs/ renders and that its links lead somewhere; write the pages into DIR
  charts              draw the charts of the demonstration's home page and of README from the tables of docs/
  browser             the whole-server tests that drive a browser: test --only browser
  compare [REQUESTS] [PART]
                      send the same requests (default: 100000) to every legal combination of engine, topology and
                      sender, or to those with PART in their name (epoll+single+auto), and compare all bytes
  fuzz [CASES]        test parsers with generated input, with many more cases than `test`
  fuzz --minutes N [HARNESS]...
                      fuzz guided by coverage, under the address sanitizer: head, target, ranges, chunked, proxy,
                      forwarded, record, form, cookie, ticket, signature, challenge, certificate, configuration,
                      accounts
  package [--binary FILE] [--platform NAME] [--test]
                      make the files of a release in target/package, for x86_64 and aarch64: a .deb, an archive with a
                      static program, a bill of materials and a container image (if a builder runs here); the book as
                      a site; and checksums. Each program serves a page by each engine, in an emulator if necessary
                      (--binary: pack FILE, a program of this machine, instead of building the profile dist twice;
                      --platform: only for x86_64 or aarch64; --test: install, start, upgrade and purge the .deb of
                      this machine in a Debian of its own, as root)
  bench               build the floor programs and the files for measurements";

/// The reason why a command failed; each kind has its exit code.
enum CommandFailure {
    /// The command line is invalid: exit code 2.
    Usage(String),
    /// The command failed: exit code 1.
    Failed(String),
}

impl From<shell::Failed> for CommandFailure {
    fn from(failed: shell::Failed) -> Self {
        CommandFailure::Failed(failed.why)
    }
}

impl From<String> for CommandFailure {
    fn from(what: String) -> Self {
        CommandFailure::Failed(what)
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match command(&root(), &words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(CommandFailure::Failed(what)) => {
            eprintln!("xtask: {what}");
            ExitCode::from(1)
        }
        Err(CommandFailure::Usage(what)) => {
            eprintln!("xtask: {what}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The folder of the workspace, which is the parent of this package.
fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().expect("the package's folder has a parent, the workspace").to_owned()
}

fn command(root: &Path, words: &[&str]) -> Result<(), CommandFailure> {
    match words {
        [] | ["help" | "--help" | "-h"] => println!("{USAGE}"),
        ["setup"] => setup::setup(true)?,
        ["setup", "--no-peers"] => setup::setup(false)?,
        ["test", "--list"] => run::list(),
        ["test", options @ ..] => run::test(root, &selection(options)?)?,
        ["lint"] => run::test(root, &Selection::only(&["format", "clippy", "house"]))?,
        ["lines"] => lines::print(root, "HEAD", "crates")?,
        ["lines", "--under", path] => lines::print(root, "HEAD", path)?,
        ["lines", revision] => lines::print(root, revision, "crates")?,
        ["lines", revision, "--under", path] => lines::print(root, revision, path)?,
        ["charts"] => {
            for (path, drawn) in tenfold_book::charts(root)? {
                let file = root.join(path);
                std::fs::write(&file, drawn)
                    .map_err(|why| format!("cannot write {}: {why}", file.display()))?;
            }
        }
        ["site"] => tenfold_book::check(root)?,
        ["site", folder] => package::write_book(root, Path::new(folder))?,
        ["browser"] => run::test(root, &Selection::only(&["browser"]))?,
        ["compare"] => steps::compare(root, steps::COMPARED, "")?,
        ["compare", requests] => steps::compare(root, number(requests)?, "")?,
        ["compare", requests, part] => steps::compare(root, number(requests)?, part)?,
        ["fuzz"] => steps::fuzz(root, steps::FUZZ_CASES)?,
        ["fuzz", "--minutes", minutes, names @ ..] => {
            if let Some(unknown) = names.iter().find(|name| !fuzz::knows(name)) {
                let all = fuzz::names();
                return Err(CommandFailure::Usage(format!(
                    "unknown harness `{unknown}`; the harnesses are {all}"
                )));
            }
            let is_wanted = |harness: &fuzz::Harness| names.is_empty() || names.contains(&harness.name);
            fuzz::fuzz(root, FuzzLength::Minutes(number(minutes)?.into()), is_wanted)?;
        }
        ["fuzz", cases] => steps::fuzz(root, number(cases)?)?,
        ["package", options @ ..] => package::package(root, &package_options(options)?)?,
        ["bench"] => make_bench(root)?,
        [other, ..] => return Err(CommandFailure::Usage(format!("unknown command or option `{other}`"))),
    }
    Ok(())
}

fn selection(options: &[&str]) -> Result<Selection, CommandFailure> {
    let mut selection = Selection::default();
    let mut rest = options.iter();
    while let Some(option) = rest.next() {
        match (*option, rest.len()) {
            ("--all", _) => selection.all = true,
            ("--complete", _) => selection.complete = true,
            ("--no-setup", _) => selection.no_setup = true,
            ("--record", _) => selection.record = true,
            ("--only", 1..) => selection.names.extend(rest.next().map(|name| (*name).to_owned())),
            ("--skip", 1..) => selection.skipped.extend(rest.next().map(|name| (*name).to_owned())),
            ("--tier", 1..) => {
                let tier = scope::TIERS.iter().find(|tier| rest.as_slice().first() == Some(&tier.name));
                let unknown = || CommandFailure::Usage("the tiers are spec, system and measure".to_owned());
                let tier = tier.ok_or_else(unknown)?;
                rest.next();
                selection.tier = Some(tier);
                selection.names.extend(tier.steps.iter().map(|name| (*name).to_owned()));
            }
            ("--only" | "--skip" | "--tier", 0) => {
                return Err(CommandFailure::Usage(format!("{option} requires a name")));
            }
            (other, _) => return Err(CommandFailure::Usage(format!("unknown option `{other}` of test"))),
        }
    }
    match selection.unknown() {
        None => Ok(selection),
        Some(name) => {
            Err(CommandFailure::Usage(format!("unknown step `{name}`; the steps are {}", run::names())))
        }
    }
}

fn package_options(options: &[&str]) -> Result<PackageOptions, CommandFailure> {
    match options {
        [] => Ok(PackageOptions::default()),
        ["--test", rest @ ..] => Ok(PackageOptions { test: true, ..package_options(rest)? }),
        ["--binary", file, rest @ ..] => {
            Ok(PackageOptions { binary: Some(PathBuf::from(file)), ..package_options(rest)? })
        }
        ["--platform", name, rest @ ..] => {
            let platform = name.parse().map_err(CommandFailure::Usage)?;
            Ok(PackageOptions { platform: Some(platform), ..package_options(rest)? })
        }
        ["--platform"] => Err(CommandFailure::Usage("--platform requires x86_64 or aarch64".to_owned())),
        ["--binary"] => Err(CommandFailure::Usage("--binary requires the file of a program".to_owned())),
        [other, ..] => Err(CommandFailure::Usage(format!("unknown option `{other}` of package"))),
    }
}

fn number(text: &str) -> Result<u32, CommandFailure> {
    text.parse().map_err(|_| CommandFailure::Usage(format!("`{text}` is not a number of cases")))
}

fn make_bench(root: &Path) -> Result<(), shell::Failed> {
    steps::make_bench(root)?;
    shell::run(root, "sh", &["bench/make-www.sh"], &[])?;
    println!(
        "\n  cargo build --release    what is measured\n  bench/compare.py         Tenfold beside the floor and \
         its peers\n  bench/README.md          the tools, and how to read what they print"
    );
    Ok(())
}
