//! The flags of `tenfold bench`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, value_parser};
use tenfold_load::io::IoChoice;

const ABOUT_CODES: &str = "\
-t, -c, -d, -H and numbers such as 10k work as in wrk, and latencies are always printed. In place of
a script (wrk's -s) there are --method, --header, --body, --urls and --pipeline.

Exit codes: 0 done; 1 failed, for example no server listens; 2 wrong usage; 3 an assertion failed;
4 the measurement is invalid, with the reason; 130 interrupted, with the results so far.";

pub(crate) fn command() -> clap::Command {
    let file = |name: &'static str| Arg::new(name).value_parser(value_parser!(PathBuf)).required(true);
    clap::Command::new("bench")
        .about("Generate load for an HTTP server, and report results and their validity")
        .after_help(ABOUT_CODES)
        .args_conflicts_with_subcommands(true)
        .disable_help_subcommand(true)
        .arg(
            Arg::new("URL")
                .action(ArgAction::Append)
                .help("URLs to request: host, host:port/path, http://[::1]/, https://host/, unix:PATH:/path"),
        )
        .args(load_arguments())
        .args(shape_arguments())
        .args(connection_arguments())
        .args(tls_arguments())
        .args(result_arguments())
        .subcommand(
            clap::Command::new("compare")
                .about("Compare two reports: differing settings, ratios of B to A with intervals")
                .arg(file("A").help("A report of `bench --json`"))
                .arg(file("B").help("Another report")),
        )
}

fn flag(name: &'static str, value: &'static str, help: &'static str, heading: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help).help_heading(heading).allow_hyphen_values(true)
}

fn switch(name: &'static str, help: &'static str, heading: &'static str) -> Arg {
    Arg::new(name).long(name).help(help).help_heading(heading).action(ArgAction::SetTrue)
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
            "Schedule R requests per second, or a ramp from A to B; without it, a request follows each response",
        ),
        flag("arrivals", "LAW", "Distribution of scheduled times: constant or poisson [default: constant]")
            .value_parser(PossibleValuesParser::new(["constant", "poisson"])),
        flag("connection-rate", "R|A:B", "Schedule R new connections per second, or a ramp from A to B"),
        flag("hold", "TIME", "Keep each new connection open for TIME, with its requests spread evenly"),
        flag("timeout", "TIME", "Count a request without a response after TIME as failed [default: 30s]"),
        flag("repeat", "N", "Repeat the run N times, with intervals over the runs [default: 1]"),
        flag(
            "warm-up",
            "auto|off|TIME",
            "Leave out the start of a run: by rule (MSER-5), nothing, or TIME [default: auto]",
        ),
    ]
}

fn shape_arguments() -> Vec<Arg> {
    let flag = |name, value, help| flag(name, value, help, "Shape");
    let switch = |name, help| switch(name, help, "Shape");
    vec![
        flag("requests-per-connection", "N", "Replace a connection after N requests [default: no limit]"),
        flag("pipeline", "N", "Requests in flight on a connection [default: 1]"),
        flag("method", "METHOD", "The method of every request [default: GET]").short('m'),
        flag("header", "FIELD", "Add a field to every request, such as 'Accept: text/html'; repeatable")
            .short('H')
            .action(ArgAction::Append),
        flag("body", "FILE", "The body of every request").value_parser(value_parser!(PathBuf)),
        flag("http", "VERSION", "The version of HTTP: 1.0 or 1.1 [default: 1.1]")
            .value_parser(PossibleValuesParser::new(["1.0", "1.1"])),
        switch("keep-alive", "With --http 1.0, ask for persistent connections").short('k'),
        flag(
            "completion",
            "HOW",
            "The end of a response: by its length, or end, with the connection [default: length]",
        )
        .value_parser(PossibleValuesParser::new(["length", "end"])),
        flag("urls", "FILE", "Request the URLs of FILE, one per line, in order")
            .value_parser(value_parser!(PathBuf)),
        switch("random", "Request URLs at random instead"),
        flag("seed", "N", "The seed of random choices; the same seed repeats them [default: 1]"),
    ]
}

fn connection_arguments() -> Vec<Arg> {
    let flag = |name, value, help| flag(name, value, help, "Connections");
    vec![
        flag("idle", "N", "Additional connections that make no requests"),
        flag("slow-readers", "N", "Additional connections that read slowly"),
        flag("slow-writers", "N", "Additional connections that write slowly"),
        flag("slow-rate", "BYTES", "Bytes per second of slow connections [default: 1 KiB]"),
        flag(
            "source",
            "ADDRESSES",
            "Source addresses, used in turn: 127.0.0.2-127.0.0.9, 127.1.0.0/24, or a list of these",
        ),
        flag(
            "io",
            "MODEL",
            "The I/O of the generator: epoll, uring, or auto (uring with a connection per request without TLS) [default: auto]",
        )
        .value_parser(PossibleValuesParser::new(IoChoice::ALL.map(|(name, _)| name))),
        switch(
            "join-ack",
            "Send the handshake's last packet with the request: one packet fewer than browsers send",
            "Connections",
        ),
    ]
}

fn tls_arguments() -> Vec<Arg> {
    let flag = |name, value, help| flag(name, value, help, "TLS");
    vec![
        switch("insecure", "Accept every certificate", "TLS"),
        flag("ca", "FILE", "Trust the certificates of this PEM file instead of the system's")
            .value_parser(value_parser!(PathBuf)),
        flag("sni", "NAME", "Ask for this name and verify it, instead of the URL's host"),
        flag("tls-resume", "on|off", "Resume earlier sessions on new connections [default: on]")
            .value_parser(PossibleValuesParser::new(["on", "off"])),
    ]
}

fn result_arguments() -> Vec<Arg> {
    let flag = |name, value, help| flag(name, value, help, "Results");
    let switch = |name, help| switch(name, help, "Results");
    vec![
        flag("expect-status", "STATUS", "Accept only these statuses, such as 200,304 [default: below 400]"),
        flag("expect-length", "BYTES", "Accept only bodies of this length"),
        flag("expect-hash", "SHA256", "Accept only bodies with this SHA-256"),
        flag(
            "assert",
            "ASSERTION",
            "Fail unless every run meets this, such as 'p99<5ms' or 'errors==0'; repeatable",
        )
        .action(ArgAction::Append),
        switch("json", "Print JSON").conflicts_with("csv"),
        switch("csv", "Print CSV, one line per run"),
        flag(
            "hdr",
            "FILE",
            "Write the last run's latencies for HdrHistogram's plotter; with --rate, also FILE.uncorrected",
        )
        .value_parser(value_parser!(PathBuf)),
        flag("report", "FILE", "Write an HTML report with charts").value_parser(value_parser!(PathBuf)),
        switch("quiet", "Hide the live display").short('q'),
    ]
}
