//! Whole-server suites.
