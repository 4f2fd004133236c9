//! Steps that check the build itself: dependencies, features, sanitizers, the interpreter, and the protections of the
//! built program.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fuzz;
use crate::shell::{self, Failed};

/// Parts of the names of packages that a server without databases must not link.
const DATABASE_CLIENTS: &[&str] = &["sqlite", "postgres", "mysql"];

/// Checks dependencies, and known vulnerabilities if their database was fetched before.
pub(crate) fn deny(root: &Path) -> Result<(), Failed> {
    let quiet = ["deny", "check", "--hide-inclusion-graph", "--allow", "duplicate"];
    shell::run(root, "cargo", &[&quiet[..], &["bans", "licenses", "sources"]].concat(), &[])?;
    match advisories() {
        Some(_) => shell::run(root, "cargo", &["deny", "--offline", "check", "advisories"], &[]),
        None => {
            println!(
                "advisories: NOT RUN: there is no advisory database; `cargo deny fetch db` downloads it"
            );
            Ok(())
        }
    }
}

/// The folder of advisory databases, if one was fetched.
fn advisories() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let folder = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home)?.join("advisory-dbs");
    // A download that failed leaves a lock.
    let mut entries = folder.read_dir().ok()?;
    entries.any(|entry| entry.is_ok_and(|entry| entry.path().is_dir())).then_some(folder)
}

/// Builds the server without database clients, and checks that it links none of them.
pub(crate) fn files_only(root: &Path) -> Result<(), Failed> {
    const BUILD: &[&str] = &["-p", "tenfold", "--no-default-features"];
    shell::run(root, "cargo", &[&["clippy"], BUILD, &["--", "-D", "warnings"]].concat(), &[])?;
    let tree = [&["tree"], BUILD, &["--edges", "normal,build", "--prefix", "none"]].concat();
    let tree = output(Command::new("cargo").args(tree).current_dir(root))?;
    let clients = database_clients(&tree);
    if clients.is_empty() {
        Ok(())
    } else {
        Err(format!("a server without databases links {}", clients.join(", ")).into())
    }
}

/// The database clients in the output of `cargo tree`.
fn database_clients(tree: &str) -> Vec<&str> {
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.filter(|name| DATABASE_CLIENTS.iter().any(|word| name.contains(word))).collect()
}

/// Runs tests of `packages` (arguments of cargo) under the address sanitizer; the prebuilt standard library suffices.
/// SQLite and the C++ part of `crates/sys` are compiled with it too. Without `all`, only unit tests and the tests of
/// `fork` run: other tests have no `unsafe` code, and they pass without the sanitizer in another step.
pub(crate) fn address_sanitizer(root: &Path, packages: &[&str], all: bool) -> Result<(), Failed> {
    let platform = shell::platform();
    let mut targets = vec!["--lib"];
    if all {
        targets.push("--tests");
        // These tests spend most of their time in these packages. Unit tests take less time than their optimisation.
        targets.extend([
            "--config=profile.dev.package.tenfold-engine.opt-level=1",
            "--config=profile.dev.package.tenfold-http.opt-level=1",
            "--config=profile.dev.package.tenfold-accounts.opt-level=1",
            "--config=profile.dev.package.loom.opt-level=1",
        ]);
    } else if packages.contains(&"tenfold-sys") {
        targets.extend(["--test", "fork"]);
    }
    let cargo = ["run", "nightly", "cargo", "test", "--target", &platform];
    // Clients of database servers have no `unsafe` code of ours, so they are not built.
    let mut features = vec!["--no-default-features"];
    if packages.contains(&"tenfold-accounts") {
        features.extend(["--features", "tenfold-accounts/sqlite"]);
    }
    // The sanitizer does not intercept fortified functions.
    let flags = "-fsanitize=address -fno-omit-frame-pointer -U_FORTIFY_SOURCE";
    let flags_of_c = format!("CFLAGS_{}", platform.replace('-', "_"));
    let mut vars = vec![("RUSTFLAGS", "-Zsanitizer=address"), (flags_of_c.as_str(), flags)];
    if all {
        vars.push(("TENFOLD_TEST_ALL", "1"));
    }
    // The harnesses run under this sanitizer in a separate step.
    let skipped: Vec<&str> = fuzz::tests().flat_map(|test| ["--skip", test]).collect();
    let args = [&cargo[..], &targets, packages, &features, &["--"], &skipped].concat();
    shell::run(root, "rustup", &args, &vars)
}

/// Runs the unit tests of crates without system calls in the interpreter, which detects undefined behaviour.
pub(crate) fn miri(root: &Path) -> Result<(), Failed> {
    let cargo = ["run", "nightly", "cargo", "miri", "test", "-p", "tenfold-http", "--lib"];
    let vars = [("MIRIFLAGS", "-Zmiri-disable-isolation"), ("BOLERO_RANDOM_ITERATIONS", "10")];
    shell::run(root, "rustup", &cargo, &vars)
}

/// Runs the unit tests of `packages` (arguments of cargo) under the thread sanitizer, which needs a standard library of its own.
pub(crate) fn thread_sanitizer(root: &Path, packages: &[&str]) -> Result<(), Failed> {
    let platform = shell::platform();
    let cargo = ["run", "nightly", "cargo", "test", "-Zbuild-std", "--lib", "--target", &platform];
    let vars = [("RUSTFLAGS", "-Zsanitizer=thread"), ("CARGO_TARGET_DIR", "target/threads")];
    shell::run(root, "rustup", &[&cargo[..], packages].concat(), &vars)
}

/// Builds the server as the whole-server tests do, optimised for the long suites, and checks its protections.
pub(crate) fn protections(root: &Path, optimised: bool) -> Result<(), Failed> {
    let (profile, folder) = if optimised { ("suite", "suite") } else { ("dev", "debug") };
    // Because one target is a test, dependencies have the features that they have in tests.
    let targets = ["--bin", "tenfold", "--test", "admission", "--profile", profile];
    shell::run(root, "cargo", &[&["build", "--workspace"], &targets[..]].concat(), &[])?;
    let program = root.join("target").join(folder).join("tenfold");
    let program = std::env::var_os("TENFOLD_BIN").map_or(program, PathBuf::from);
    let facts = ["--wide", "--file-header", "--program-headers", "--dynamic", "--dyn-syms"];
    let report = output(Command::new("readelf").args(facts).arg(&program))?;
    let missing = unprotected(&report);
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("{} has no {}", program.display(), missing.join(", no ")).into())
    }
}

/// The missing protections of a program, according to the output of `readelf`.
fn unprotected(report: &str) -> Vec<&'static str> {
    let has = |words: &[&str]| report.lines().any(|line| words.iter().all(|word| line.contains(word)));
    // `GNU_STACK 0x0 0x0 0x0 0x0 0x0 RW 0x10`: the flags contain E if the stack is executable.
    let executable = report.lines().any(|line| line.contains("GNU_STACK") && line.contains("RWE"));
    let fortified = |symbol: &str| {
        let name = symbol.split('@').next().unwrap_or_default();
        name.starts_with("__") && name.ends_with("_chk")
    };
    let checked = report.split_ascii_whitespace().any(fortified);
    let all = [
        (has(&["Type:", "DYN"]) && has(&["FLAGS_1", "PIE"]), "position independence"),
        (has(&["GNU_RELRO"]) && has(&["FLAGS_1", "NOW"]), "read-only relocations"),
        (has(&["GNU_STACK"]) && !executable, "stack that is not executable"),
        (has(&["__stack_chk_fail"]), "stack protector in its C code"),
        (checked, "fortified functions in its C code"),
    ];
    all.into_iter().filter(|(there, _)| !there).map(|(_, name)| name).collect()
}

/// The output of a program.
pub(crate) fn output(command: &mut Command) -> Result<String, Failed> {
    let failed = |command: &Command, why: &str| Failed::from(format!("cannot run {command:?}: {why}"));
    let output = match command.output() {
        Ok(output) if output.status.success() => output,
        Ok(output) => return Err(failed(command, &String::from_utf8_lossy(&output.stderr))),
        Err(error) => return Err(failed(command, &error.to_string())),
    };
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTECTED: &str = "\
  Type:                              DYN (Position-Independent Executable file)
  GNU_STACK      0x000000 0x0000000000000000 0x0000000000000000 0x000000 0x000000 RW  0x10
  GNU_RELRO      0x9a0f60 0x00000000009a2f60 0x00000000009a2f60 0x0640a0 0x0640a0 R   0x1
 0x000000006ffffffb (FLAGS_1)            Flags: NOW PIE
    12: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND __stack_chk_fail@GLIBC_2.4 (9)
    13: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND __memcpy_chk@GLIBC_2.3.4 (9)
";

    #[test]
    fn each_missing_protection_is_found() {
        assert_eq!(unprotected(PROTECTED), Vec::<&str>::new());
        for (from, to) in [
            ("DYN", "EXEC"),
            ("PIE", ""),
            ("GNU_RELRO", ""),
            ("NOW", ""),
            ("RW ", "RWE"),
            ("GNU_STACK", ""),
            ("__stack_chk_fail", "strlen"),
            ("__memcpy_chk", "memcpy"),
        ] {
            assert_eq!(unprotected(&PROTECTED.replace(from, to)).len(), 1, "{from}");
        }
    }

    #[test]
    fn a_client_of_a_database_is_found_in_a_tree() {
        assert_eq!(
            database_clients("tenfold v0.1.0\nlibc v0.2.1\ntenfold-accounts v0.1.0"),
            Vec::<&str>::new()
        );
        assert_eq!(database_clients("tenfold v0.1.0\nlibsqlite3-sys v0.39.1 (*)"), ["libsqlite3-sys"]);
    }
}
