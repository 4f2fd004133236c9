//! The `tenfold` binary.

fn main() {}
