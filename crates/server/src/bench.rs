//! `tenfold bench`: the command line of the load generator, and what it says when it is done.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use tenfold_load::assertion::{Assertion, Outcome};
use tenfold_load::pacer::{Arrivals, Rate};
use tenfold_load::plan::{Completion, Length, Order, Plan, Version, WarmUp};
use tenfold_load::url::Url;
use tenfold_load::{Report, Wrong, compare, output, request};

use crate::settings::units;

/// Exit codes beside 0 to 2, which mean what they always do.
const ASSERTION_FAILED: u8 = 3;
const INVALID: u8 = 4;
/// 128 and the number of SIGINT, as shells have it.
const INTERRUPTED: u8 = 130;

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
        flag("duration", "TIME", "How long [default: 10s]").short('d').conflicts_with("requests"),
        flag("requests", "N", "How many requests, instead of how long").short('n'),
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
        flag("slow-rate", "BYTES", "A second, of slow ones [default: 1 KB]"),
        flag(
            "source",
            "ADDRESSES",
            "Addresses to come from in turn: 127.0.0.2-127.0.0.9, 127.1.0.0/24, or a list of those",
        ),
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
            "Write latencies for the plotter of HdrHistogram; with a schedule, uncorrected ones beside",
        )
        .value_parser(value_parser!(PathBuf)),
        switch("quiet", "No live display").short('q'),
    ]
}

/// Measures, or compares.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let result = match matches.subcommand() {
        Some((_, files)) => compare_files(files),
        None => bench(matches),
    };
    match result {
        Ok(code) => code,
        Err(Wrong::Usage(why)) => end(&why, 2),
        Err(Wrong::Failed(why)) => end(&why, 1),
    }
}

fn end(why: &str, code: u8) -> ExitCode {
    eprintln!("tenfold bench: {why}");
    ExitCode::from(code)
}

fn compare_files(matches: &ArgMatches) -> Result<ExitCode, Wrong> {
    let report = |name: &str| {
        let path = matches.get_one::<PathBuf>(name).expect("clap requires both");
        output::read_json(&read(path)?).map_err(|why| Wrong::Failed(format!("{}: {why}", path.display())))
    };
    let (a, b) = (report("A")?, report("B")?);
    print(&compare::text(&a, &b))?;
    let valid = a.invalid().is_empty() && b.invalid().is_empty();
    Ok(if valid { ExitCode::SUCCESS } else { ExitCode::from(INVALID) })
}

fn bench(matches: &ArgMatches) -> Result<ExitCode, Wrong> {
    let plan = plan(matches)?;
    let mut assertions = Vec::new();
    for text in matches.get_many::<String>("assert").into_iter().flatten() {
        assertions.push(text.parse::<Assertion>().map_err(|why| Wrong::Usage(format!("--assert: {why}")))?);
    }
    let report = tenfold_load::run(&plan, !matches.get_flag("quiet"))?;
    let text = match (matches.get_flag("json"), matches.get_flag("csv")) {
        (true, _) => output::json(&report),
        (_, true) => output::csv(&report),
        _ => output::text(&report),
    };
    print(&text)?;
    if let Some(path) = matches.get_one::<PathBuf>("hdr") {
        write_hdr(path, &report)?;
    }
    Ok(judge(&report, &assertions))
}

/// What is invalid proves nothing, so that comes first.
fn judge(report: &Report, assertions: &[Assertion]) -> ExitCode {
    let mut code = 0;
    for assertion in assertions {
        match assertion.check(report) {
            Outcome::Holds => {}
            Outcome::Fails(why) => {
                eprintln!("tenfold bench: does not hold: {why}");
                code = code.max(ASSERTION_FAILED);
            }
            Outcome::Unknown(why) => {
                eprintln!("tenfold bench: can not be told: {why}");
                code = INVALID;
            }
        }
    }
    for why in report.invalid() {
        eprintln!("tenfold bench: invalid: {why}");
        code = INVALID;
    }
    ExitCode::from(if report.interrupted() { INTERRUPTED } else { code })
}

fn write_hdr(path: &Path, report: &Report) -> Result<(), Wrong> {
    let failed = |path: &Path, error: &io::Error| Wrong::Failed(format!("write {}: {error}", path.display()));
    let Some(run) = report.runs.last() else { return Ok(()) };
    let beside = path.with_added_extension("uncorrected");
    let uncorrected = run.uncorrected_us.as_ref().filter(|_| run.schedule.is_some());
    for (path, distribution) in [(path, run.latency_us.as_ref()), (&beside, uncorrected)] {
        if let Some(distribution) = distribution {
            std::fs::write(path, output::hdr(distribution)).map_err(|error| failed(path, &error))?;
        }
    }
    Ok(())
}

fn print(text: &str) -> Result<(), Wrong> {
    io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| Wrong::Failed(format!("write the report: {error}")))
}

fn read(path: &Path) -> Result<String, Wrong> {
    std::fs::read_to_string(path).map_err(|error| Wrong::Failed(format!("read {}: {error}", path.display())))
}

/// What was typed as what it means.
fn plan(matches: &ArgMatches) -> Result<Plan, Wrong> {
    let typed = Typed(matches);
    let mut plan = Plan::new(urls(matches)?);
    plan.connections = typed.count("connections")?;
    plan.threads = typed.count("threads")?.unwrap_or(plan.threads);
    plan.processes = typed.count("processes")?.unwrap_or(plan.processes);
    if let Some(time) = typed.time("duration")? {
        plan.length = Length::For(time);
    }
    if let Some(count) = typed.parsed("requests", |text| units::number(text, 1u64..=u64::MAX >> 1))? {
        plan.length = Length::Requests(count);
    }
    plan.rate = typed.of::<Rate>("rate")?;
    plan.connection_rate = typed.of::<Rate>("connection-rate")?;
    if typed.is("arrivals", "poisson") {
        plan.arrivals = Arrivals::Poisson;
    }
    plan.hold = typed.time("hold")?;
    plan.timeout = typed.time("timeout")?.unwrap_or(plan.timeout);
    plan.repeat = typed.count("repeat")?.unwrap_or(plan.repeat);
    plan.warm_up = match matches.get_one::<String>("warm-up").map(String::as_str) {
        None | Some("auto") => WarmUp::Rule,
        Some("off") => WarmUp::Nothing,
        Some(_) => typed.time("warm-up")?.map_or(WarmUp::Rule, WarmUp::For),
    };
    shape(&typed, &mut plan)?;
    plan.idle = typed.count("idle")?.unwrap_or(0);
    plan.slow_readers = typed.count("slow-readers")?.unwrap_or(0);
    plan.slow_writers = typed.count("slow-writers")?.unwrap_or(0);
    let size = |text: &str| units::size(text, 1..=1 << 40);
    plan.slow_rate = typed.parsed("slow-rate", size)?.unwrap_or(plan.slow_rate);
    plan.sources = typed.of("source")?.unwrap_or_default();
    plan.join_ack = matches.get_flag("join-ack");
    let statuses = |text: &str| text.split(',').map(|one| units::number(one, 100u16..=599)).collect();
    plan.expect.statuses = typed.parsed("expect-status", statuses)?.unwrap_or_default();
    plan.expect.length = typed.parsed("expect-length", |text| units::size(text, 0..=u64::MAX >> 1))?;
    plan.expect.hash = typed.of("expect-hash")?;
    Ok(plan)
}

fn shape(typed: &Typed<'_>, plan: &mut Plan) -> Result<(), Wrong> {
    plan.requests_per_connection =
        typed.parsed("requests-per-connection", |text| units::number(text, 1u64..=u64::MAX >> 1))?;
    plan.pipeline = typed.parsed("pipeline", |text| units::number(text, 1u32..=4096))?.unwrap_or(1);
    plan.method = typed.parsed("method", request::method)?.unwrap_or_else(|| plan.method.clone());
    for text in typed.0.get_many::<String>("header").into_iter().flatten() {
        plan.headers.push(request::field(text).map_err(|why| wrong("header", why))?);
    }
    if let Some(path) = typed.0.get_one::<PathBuf>("body") {
        let read = std::fs::read(path);
        plan.body = read.map_err(|error| Wrong::Failed(format!("read {}: {error}", path.display())))?;
    }
    if typed.is("http", "1.0") {
        plan.version = Version::Http10;
    }
    if typed.is("completion", "end") {
        plan.completion = Completion::End;
    }
    if typed.0.get_flag("random") {
        plan.order = Order::Random;
    }
    plan.seed = typed.parsed("seed", |text| units::number(text, 0u64..=u64::MAX))?.unwrap_or(plan.seed);
    Ok(())
}

fn urls(matches: &ArgMatches) -> Result<Vec<Url>, Wrong> {
    let mut urls = Vec::new();
    for text in matches.get_many::<String>("URL").into_iter().flatten() {
        urls.push(text.parse().map_err(Wrong::Usage)?);
    }
    if let Some(path) = matches.get_one::<PathBuf>("urls") {
        for (number, line) in (1..).zip(read(path)?.lines()) {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let said = |why| Wrong::Usage(format!("{}, line {number}: {why}", path.display()));
                urls.push(line.parse().map_err(said)?);
            }
        }
    }
    Ok(urls)
}

/// What was typed for a flag.
struct Typed<'a>(&'a ArgMatches);

impl Typed<'_> {
    fn parsed<T, E: Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Wrong> {
        self.0.get_one::<String>(name).map(|text| parse(text).map_err(|why| wrong(name, why))).transpose()
    }

    fn of<T: FromStr<Err = String>>(&self, name: &str) -> Result<Option<T>, Wrong> {
        self.parsed(name, str::parse)
    }

    fn count(&self, name: &str) -> Result<Option<u32>, Wrong> {
        self.parsed(name, |text| units::number(text, 0u32..=10_000_000))
    }

    fn time(&self, name: &str) -> Result<Option<Duration>, Wrong> {
        let bounds = Duration::from_millis(1)..=Duration::from_secs(7 * 24 * 3600);
        self.parsed(name, |text| units::duration(text, bounds))
    }

    fn is(&self, name: &str, word: &str) -> bool {
        self.0.get_one::<String>(name).is_some_and(|typed| typed == word)
    }
}

fn wrong(name: &str, why: impl Display) -> Wrong {
    Wrong::Usage(format!("--{name}: {why}"))
}
