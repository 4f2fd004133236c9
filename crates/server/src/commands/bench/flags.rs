//! The flags of `tenfold bench`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, value_parser};
use tenfold_load::ShareBy;
use tenfold_load::io::IoChoice;

const ABOUT_CODES: &str = "\
-t, -c, -d, -H and numbers such as 10k work as in wrk, and latencies are always printed. In place of
a script (wrk's -s) there are --method, --header, --body, --urls and --pipeline.

Exit codes: 0 done; 1 failed, for example no server listens; 2 wrong usage; 3 an assertion failed;
4 the measurement is invalid, with the reason; 130 interrupted, with the results so far.";

pub(crate) fn command() -> clap::Command {
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
        .args(flags())
        .subcommand(
            clap::Command::new("compare")
                .about("Compare two reports in detail, or rank more reports in a table")
                .arg(
                    Arg::new("REPORT")
                        .value_parser(value_parser!(PathBuf))
                        .num_args(2..)
                        .required(true)
                        .help("Reports of `bench --json`, by their --label or their file"),
                ),
        )
}

/// A flag with a value.
fn flag(name: &'static str, value: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).allow_hyphen_values(true)
}

/// A flag that names a file.
fn file(name: &'static str) -> Arg {
    flag(name, "FILE").value_parser(value_parser!(PathBuf))
}

/// A flag that may be repeated.
fn many(name: &'static str, value: &'static str) -> Arg {
    flag(name, value).action(ArgAction::Append)
}

fn switch(name: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue)
}

/// A flag with one of these words.
fn word(name: &'static str, value: &'static str, words: &[&'static str]) -> Arg {
    flag(name, value).value_parser(PossibleValuesParser::new(words.iter().copied()))
}

/// The flags under the headings of the help, each with its help.
macro_rules! flags {
    ($($heading:literal { $($flag:expr => $help:literal;)* })*) => {
        vec![$($($flag.help($help).help_heading($heading),)*)*]
    };
}

fn flags() -> Vec<Arg> {
    flags! {
        "Load" {
            flag("connections", "N").short('c') => "Connections that make requests [default: 10]";
            flag("threads", "N").short('t') => "Threads of each process [default: 1]";
            flag("processes", "N") => "Processes, each with its own limit of descriptors [default: 1]";
            flag("duration", "TIME").short('d') => "End after this time; a bare number is seconds [default: 10s, none with -n]";
            flag("requests", "N").short('n') => "End after N requests; with -d, whichever comes first";
            flag("rate", "R|A:B") => "Schedule R requests per second, or a ramp from A to B; without it, a request follows each response";
            word("arrivals", "LAW", &["constant", "poisson"]) => "Distribution of scheduled times: constant or poisson [default: constant]";
            flag("connection-rate", "R|A:B") => "Schedule R new connections per second, or a ramp from A to B";
            flag("hold", "TIME") => "Keep each new connection open for TIME, with its requests spread evenly";
            flag("timeout", "TIME") => "Count a request without a response after TIME as failed [default: 30s]";
            flag("repeat", "N") => "Repeat the run N times, with intervals over the runs [default: 1]";
            flag("warm-up", "auto|off|TIME") => "Leave out the start of a run: by rule (MSER-5), nothing, or TIME [default: auto]";
        }
        "Shape" {
            flag("requests-per-connection", "N") => "Replace a connection after N requests [default: no limit]";
            flag("pipeline", "N") => "Requests in flight on a connection of HTTP/1.1 [default: 1]";
            flag("streams", "N") => "Requests in flight on a connection of HTTP/2, each in its own stream [default: 1]";
            flag("method", "METHOD").short('m') => "The method of every request [default: GET]";
            many("header", "FIELD").short('H') => "Add a field to every request, such as 'Accept: text/html'; repeatable";
            file("body") => "The body of every request";
            word("http", "VERSION", &["1.0", "1.1", "2"]) => "The version of HTTP: 1.0, 1.1, or 2 (by ALPN; without TLS by prior knowledge) [default: 1.1]";
            switch("keep-alive").short('k') => "With --http 1.0, ask for persistent connections";
            word("completion", "HOW", &["length", "end"]) => "The end of a response: by its length, or end, with the connection [default: length]";
            file("urls") => "Request the URLs of FILE, one per line, in order";
            switch("random") => "Request URLs at random instead";
            flag("seed", "N") => "The seed of random choices; the same seed repeats them [default: 1]";
        }
        "Connections" {
            flag("idle", "N") => "Additional connections that make no requests";
            flag("slow-readers", "N") => "Additional connections that read slowly";
            flag("slow-writers", "N") => "Additional connections that write slowly";
            flag("slow-rate", "BYTES") => "Bytes per second of slow connections [default: 1 KiB]";
            flag("source", "ADDRESSES") => "Source addresses, used in turn: 127.0.0.2-127.0.0.9, 127.1.0.0/24, or a list of these";
            word("io", "MODEL", &IoChoice::ALL.map(|(name, _)| name)) => "The I/O of the generator: epoll, uring, or auto (uring with a connection per request without TLS) [default: auto]";
            switch("join-ack") => "Send the handshake's last packet with the request: one packet fewer than browsers send";
        }
        "Several machines" {
            many("on", "NAME[*N]") => "Make the load on this host, with N agents; repeatable, and divides connections, rate and requests";
            flag("on-command", "COMMAND") => "The command that starts an agent on {}; its words are separated by spaces [default: ssh -o BatchMode=yes -- {} tenfold agent]";
            switch("on-copy") => "Copy this program to each host first, by ssh, and remove it at the end";
            word("share", "HOW", &ShareBy::ALL.map(|(name, _)| name)) => "Divide among agents equally, or by processors, with a thread for each [default: equal]";
        }
        "TLS" {
            switch("insecure") => "Accept every certificate";
            file("ca") => "Trust the certificates of this PEM file instead of the system's";
            flag("sni", "NAME") => "Ask for this name and verify it, instead of the URL's host";
            word("tls-resume", "on|off", &["on", "off"]) => "Resume earlier sessions on new connections [default: on]";
        }
        "Results" {
            flag("expect-status", "STATUS") => "Accept only these statuses, such as 200,304 [default: below 400]";
            flag("expect-length", "BYTES") => "Accept only bodies of this length";
            flag("expect-hash", "SHA256") => "Accept only bodies with this SHA-256";
            many("assert", "ASSERTION") => "Fail unless every run meets this, such as 'p99<5ms' or 'errors==0'; repeatable";
            switch("verbose").short('v').conflicts_with_all(["json", "csv"]) => "Print all results, not only the most important ones";
            flag("label", "NAME") => "Name the measurement in its report and in comparisons";
            switch("json").conflicts_with("csv") => "Print JSON";
            switch("csv") => "Print CSV, one line per run";
            file("hdr") => "Write the last run's latencies for HdrHistogram's plotter; with --rate, also FILE.uncorrected";
            file("report") => "Write an HTML report with charts";
            switch("quiet").short('q') => "Hide the live display";
        }
    }
}
