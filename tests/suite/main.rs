//! The suite. A case is named `theme::engine+topology+sender::case`; any part of the name selects it.
//!
//! `TENFOLD_BIN` names the server to test; without it, one is built. `TENFOLD_TEST_TURN=17` selects a fifth
//! of the configurations of each case (`tests/src/lists.rs`). `TENFOLD_TEST_ALL=1` runs every case on every
//! configuration that it may concern. `TENFOLD_TEST_PART=3/50` runs the third of fifty random parts of the selection.

mod accessibility;
mod acme;
mod admin;
mod admission;
mod archives;
mod bench;
mod bodies;
mod bounds;
mod browser;
mod changing;
mod clients;
mod codings;
mod coming_from;
mod commands;
mod compare;
mod conditions;
mod connections;
mod deadlines;
mod eviction;
mod exhaustion;
mod faults;
mod file_server;
mod files;
mod first_steps;
mod hardening;
mod http2;
mod itself;
mod kernel_tls;
mod lab;
mod levels;
mod lifecycle;
mod listings;
mod log;
mod log_fields;
mod logs_archive;
mod logs_modes;
mod logs_pipes;
mod manual;
mod mechanisms;
mod members;
mod planted;
mod privileges;
mod proxies;
mod ranges;
mod refusals;
mod reload;
mod rules;
mod select_range;
mod service;
mod signing;
mod slow_peers;
mod stuck;
mod switches;
mod switches_together;
mod syscalls;
mod tags;
mod timers;
mod tls;
mod tls_rules;
mod tune;
mod upgrade;

use std::process::ExitCode;

use tenfold_tests::harness::{self, Theme};

const THEMES: &[Theme] = &[
    files::THEME,
    first_steps::THEME,
    http2::THEME,
    ranges::THEME,
    conditions::THEME,
    codings::THEME,
    listings::THEME,
    archives::THEME,
    file_server::THEME,
    tags::THEME,
    refusals::THEME,
    bodies::THEME,
    connections::THEME,
    deadlines::THEME,
    changing::THEME,
    log::THEME,
    log_fields::THEME,
    logs_modes::THEME,
    logs_archive::THEME,
    logs_pipes::THEME,
    levels::THEME,
    timers::THEME,
    upgrade::THEME,
    lifecycle::THEME,
    service::THEME,
    reload::THEME,
    manual::THEME,
    rules::THEME,
    exhaustion::THEME,
    eviction::THEME,
    bounds::THEME,
    admin::THEME,
    admission::THEME,
    faults::THEME,
    hardening::framing::THEME,
    hardening::http2::THEME,
    hardening::limits::THEME,
    hardening::files::THEME,
    hardening::output::THEME,
    hardening::sandbox::THEME,
    hardening::book::THEME,
    slow_peers::THEME,
    clients::THEME,
    mechanisms::THEME,
    planted::THEME,
    privileges::THEME,
    proxies::THEME,
    members::THEME,
    commands::THEME,
    coming_from::THEME,
    compare::THEME,
    select_range::THEME,
    stuck::THEME,
    switches::THEME,
    switches_together::THEME,
    syscalls::THEME,
    accessibility::THEME,
    browser::THEME,
    bench::THEME,
    lab::THEME,
    tune::THEME,
    tls::THEME,
    kernel_tls::THEME,
    tls_rules::THEME,
    acme::THEME,
    signing::THEME,
    itself::THEME,
];

fn main() -> ExitCode {
    harness::main(THEMES)
}
