//! Tests that change a property of the whole process.

use std::process::Command;

/// Whether this process runs the test of this name and no other. If not, a process of its own runs it.
pub(crate) fn is_alone(name: &str) -> bool {
    const ALONE: &str = "TENFOLD_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut program = Command::new(std::env::current_exe().expect("a running program has a name"));
    let output = program.args(["--exact", name]).env(ALONE, "1").output().expect("it can be run again");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}
