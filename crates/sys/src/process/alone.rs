//! Tests that change a property of the whole process.

use std::process::Command;

/// Runs `test` in a process of its own, which is this program with the test `name` of `module`
/// (`module_path!()`) and no other.
pub(crate) fn alone(module: &str, name: &str, test: impl FnOnce()) {
    const ALONE: &str = "TENFOLD_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return test();
    }
    let module = module.split_once("::").expect("a test is in a module").1;
    let name = format!("{module}::{name}");
    let mut program = Command::new(std::env::current_exe().expect("a running program has a name"));
    let output = program.args(["--exact", &name]).env(ALONE, "1").output().expect("it can be run again");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
