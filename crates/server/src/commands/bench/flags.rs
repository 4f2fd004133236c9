//! What can be typed behind `tenfold bench`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, value_parser};
use tenfold_load::io::IoChoice;

const ABOUT_CODES: &str = "\
Exit codes: 0 done; 1 failed, nobody answers; 2 wrong usage; 3 an assertion does not hold;
4 the measurement is invalid, and it is said why; 130 interrupted, with what there was until then.";

/// The subcommand.
pub(crate) fn command() -> clap::Command {
    let file = |name: &'static str| Arg::new(name).value_parser(value_parser!(PathBuf)).required(true);
    clap::Command::new("bench")
        .about("Load an HTTP server and measure what it does, and whether the measurement holds")
        .after_help(ABOUT_CODES)
        .args_conflicts_with_subcommands(true)
        .disable_help_subcommand(true)
        .arg(
            Arg::new("URL")
                .action(ArgAction::Append)
                .help("What is asked for; any form: host, host:port/path, http://[::1]/, unix:PATH:/path"),
        )
        .args(load_arguments())
        .args(shape_arguments())
        .args(beside_arguments())
        .args(result_arguments())
        .subcommand(
            clap::Command::new("compare")
                .about("How many times A's numbers B's are, with intervals")
                .arg(file("A").help("What `bench --json` wrote"))
                .arg(file("B").help("The same of another measurement")),
        )
}

fn flag(name: &'static str, value: &'static str, help: &'static str, heading: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help).help_heading(heading).allow_hyphen_values(true)
}

fn load_arguments() -> Vec<Arg> {
    let flag = |name, value, help| flag(name, value, help, "Load");
    vec![
        flag("connections", "N", "Connections that make requests [default: 10]").short('c'),
        flag("threads", "N", "Threads of each process [default: 1]").short('t'),
        flag("processes", "N", "Processes, each with its own limit of descriptors [default: 1]"),
        flag(
            "duration",
            "TIME",
            "End after this time; a bare number is seconds [default: 10s, none with -n]",
        )
        .short('d'),
        flag("requests", "N", "End after N requests; with -d, whichever comes first").short('n'),
        flag(
            "rate",
            "R|A:B",
            "Requests a second by a schedule, or a ramp from A to B; without it, a request follows an answer",
        ),
        flag("arrivals", "LAW", "How a schedule is spread: constant or poisson [default: constant]")
            .value_parser(PossibleValuesParser::new(["constant", "poisson"])),
        flag("connection-rate", "R|A:B", "New connections a second by a schedule"),
        flag("hold", "TIME", "How long each of those lives, its requests spread over that time"),
        flag("timeout", "TIME", "After which a request has failed [default: 30s]"),
        flag("repeat", "N", "Runs, one after the other, with intervals over them [default: 1]"),
        flag(
            "warm-up",
            "auto|off|TIME",
            "What is left out of the begin: by rule (MSER-5), nothing, or so much [default: auto]",
        ),
    ]
}

fn shape_arguments() -> Vec<Arg> {
    let flag = |name, value, help| flag(name, value, help, "Shape");
    vec![
        flag("requests-per-connection", "N", "Requests after which a connection is replaced; 1: a new one for each [default: no bound]"),
        flag("pipeline", "N", "Requests in flight on a connection [default: 1]"),
        flag("method", "METHOD", "[default: GET]").short('m'),
        flag("header", "FIELD", "A field of every request, as in 'Accept: text/html'; repeatable").short('H').action(ArgAction::Append),
        flag("body", "FILE", "The body of every request").value_parser(value_parser!(PathBuf)),
        flag("http", "VERSION", "1.0 or 1.1 [default: 1.1]").value_parser(PossibleValuesParser::new(["1.0", "1.1"])),
        flag("keep-alive", "", "With --http 1.0, ask for persistent connections")
            .short('k')
            .action(ArgAction::SetTrue)
            .num_args(0)
            .allow_hyphen_values(false),
        flag("completion", "HOW", "An answer is complete by its length, or at the end of the connection: length or end [default: length]")
            .value_parser(PossibleValuesParser::new(["length", "end"])),
        flag("urls", "FILE", "A URL for each line, asked for in order").value_parser(value_parser!(PathBuf)),
        flag("random", "", "URLs at random instead").action(ArgAction::SetTrue).num_args(0).allow_hyphen_values(false),
        flag("seed", "N", "What is at random repeats with the same number [default: 1]"),
    ]
}

fn beside_arguments() -> Vec<Arg> {
    let flag = |name, value, help| flag(name, value, help, "Connections");
    vec![
        flag("idle", "N", "Connections beside that never ask"),
        flag("slow-readers", "N", "Connections beside that read slowly"),
        flag("slow-writers", "N", "Connections beside that write slowly"),
        flag("slow-rate", "BYTES", "A second, of slow ones [default: 1 KiB]"),
        flag(
            "source",
            "ADDRESSES",
            "Addresses to come from in turn: 127.0.0.2-127.0.0.9, 127.1.0.0/24, or a list of those",
        ),
        flag(
            "io",
            "WAY",
            "How connections do I/O: epoll, uring, or auto: uring where each request has its own [default: auto]",
        )
        .value_parser(PossibleValuesParser::new(IoChoice::ALL.map(|(name, _)| name))),
        flag(
            "join-ack",
            "",
            "The handshake's last acknowledgement travels with the request: a packet less than browsers send",
        )
        .action(ArgAction::SetTrue)
        .num_args(0)
        .allow_hyphen_values(false),
    ]
}

fn result_arguments() -> Vec<Arg> {
    let flag = |name, value, help| flag(name, value, help, "Results");
    let switch =
        |name, help| flag(name, "", help).action(ArgAction::SetTrue).num_args(0).allow_hyphen_values(false);
    vec![
        flag(
            "expect-status",
            "STATUS",
            "Answers with another are errors; a list, as in 200,304 [default: below 400]",
        ),
        flag("expect-length", "BYTES", "Bodies of another length are errors"),
        flag("expect-hash", "SHA256", "Bodies with another SHA-256 are errors"),
        flag("assert", "CLAIM", "What every run has to show, as in 'p99<5ms' or 'errors==0'; repeatable")
            .action(ArgAction::Append),
        switch("json", "Print JSON").conflicts_with("csv"),
        switch("csv", "Print CSV, a line for each run"),
        flag(
            "hdr",
            "FILE",
            "Write the last run's latencies for the plotter of HdrHistogram; with a schedule, uncorrected ones beside",
        )
        .value_parser(value_parser!(PathBuf)),
        switch("quiet", "No live display").short('q'),
    ]
}
