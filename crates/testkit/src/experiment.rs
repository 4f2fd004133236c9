//! An experiment of the laboratory.

/// A user's experiment of two trials, with claims that a single block decides.
pub const EXPERIMENT: &str = r#"
name = "own"
title = "An experiment of the reader's own"
source = "this test"
setting = "none"
scaled = "two engines"

[base]
load = { connections = 2, milliseconds = 300 }

[cells.poll]
settings = { engine = "poll", workers = "1" }

[cells.select]
settings = { engine = "select", workers = "1" }

[[claims]]
says = "poll loses no request."
measure = "errors"
rule = { count = "poll", at-most = 0 }

[[claims]]
says = "select loses no request."
measure = "errors"
rule = { count = "select", at-most = 0 }
"#;
