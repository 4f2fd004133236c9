//! `tenfold bench`: the command line and the exit codes of the load generator.

mod flags;

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use clap::ArgMatches;
use tenfold_agents::fleet::FleetPlan;
use tenfold_load::assertion::{Assertion, AssertionResult};
use tenfold_load::io::IoChoice;
use tenfold_load::pacer::{ArrivalRate, Arrivals, scaled};
use tenfold_load::plan::{LoadPlan, RequestVersion, ResponseEnd, TrustFile, UrlOrder, WarmUp};
use tenfold_load::url::TargetUrl;
use tenfold_load::{LoadError, LoadReport, ShareBy, compare, output, request};
use tenfold_tls::certificates::roots;

pub(crate) use self::flags::command;
use crate::config::parse::units;
use crate::diagnostics::{self, day, error};
use crate::status::report::now;

/// Exit codes in addition to 0, 1 and 2.
const ASSERTION_FAILED: u8 = 3;
const INVALID: u8 = 4;
/// 128 plus the number of SIGINT, as in shells.
const INTERRUPTED: u8 = 130;

/// Runs a measurement or a comparison.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let result = match matches.subcommand() {
        Some((_, files)) => compare_files(files),
        None => bench(matches),
    };
    match result {
        Ok(code) => code,
        Err(LoadError::Usage(why)) => end(&why, 2),
        Err(LoadError::Failed(why)) => end(&why, 1),
        Err(error @ LoadError::Interrupted) => end(&error.to_string(), INTERRUPTED),
    }
}

fn end(why: &str, code: u8) -> ExitCode {
    error!("{why}");
    ExitCode::from(code)
}

fn compare_files(matches: &ArgMatches) -> Result<ExitCode, LoadError> {
    let report = |path: &PathBuf| -> Result<(String, LoadReport), LoadError> {
        let wrong = |why| LoadError::Failed(format!("{}: {why}", path.display()));
        let report = output::read_json(&read(path)?).map_err(wrong)?;
        let name = report.label.clone().unwrap_or_else(|| path.display().to_string());
        Ok((name, report))
    };
    let files = matches.get_many::<PathBuf>("REPORT").into_iter().flatten();
    let reports: Vec<(String, LoadReport)> = files.map(report).collect::<Result<_, _>>()?;
    let text = match reports.as_slice() {
        [(_, a), (_, b)] => compare::text(a, b),
        several => {
            let named: Vec<_> = several.iter().map(|(name, report)| (name.as_str(), report)).collect();
            compare::ranked(&named)
        }
    };
    print(&diagnostics::visible(&text))?;
    let valid = reports.iter().all(|(_, report)| report.invalid().is_empty());
    Ok(if valid { ExitCode::SUCCESS } else { ExitCode::from(INVALID) })
}

fn bench(matches: &ArgMatches) -> Result<ExitCode, LoadError> {
    let mut plan = plan(matches)?;
    let mut assertions = Vec::new();
    for text in matches.get_many::<String>("assert").into_iter().flatten() {
        assertions
            .push(text.parse::<Assertion>().map_err(|why| LoadError::Usage(format!("--assert: {why}")))?);
    }
    plan.check()?;
    if let Some(file) = &mut plan.tls.ca {
        file.pem =
            roots::pem(&file.path).map_err(|why| LoadError::Failed(format!("cannot use --ca {why}")))?;
    }
    // Creates the files before the run, so that an error does not come after it.
    let file = |name: &str| matches.get_one::<PathBuf>(name).map(|path| OutputFile::create(path)).transpose();
    let (curve, page) = (file("hdr")?, file("report")?);
    let live = !matches.get_flag("quiet");
    let mut report = match fleet(matches)? {
        Some(fleet) => tenfold_load::run_on(&plan, &fleet, share(matches), live)?,
        None => tenfold_load::run(&plan, live)?,
    };
    report.label = matches.get_one::<String>("label").cloned();
    let is_typed = |name: &str| matches.get_flag(name);
    let text = match (is_typed("json"), is_typed("csv"), is_typed("verbose")) {
        (true, ..) => output::json(&report),
        (_, true, _) => output::csv(&report),
        (_, _, true) => output::text(&report),
        _ => output::brief(&report),
    };
    print(&text)?;
    if let Some(curve) = curve {
        write_curve(curve, &report)?;
    }
    if let Some(page) = page {
        page.write(&output::html(&report, &day::moment(now())))?;
    }
    Ok(exit_code(&report, &assertions))
}

/// The exit code of a report. Invalid numbers prove nothing, so the code for them replaces that of a failed assertion.
fn exit_code(report: &LoadReport, assertions: &[Assertion]) -> ExitCode {
    let mut code = 0;
    for assertion in assertions {
        match assertion.check(report) {
            AssertionResult::Holds => {}
            AssertionResult::Fails(why) => {
                error!("assertion failed: {why}");
                code = code.max(ASSERTION_FAILED);
            }
            AssertionResult::Unknown(why) => {
                error!("cannot evaluate {why}");
                code = INVALID;
            }
        }
    }
    for why in report.invalid() {
        error!("invalid: {why}");
        code = INVALID;
    }
    ExitCode::from(if report.interrupted() { INTERRUPTED } else { code })
}

/// A file, created before the run, for the results.
struct OutputFile<'a> {
    path: &'a Path,
    file: File,
}

impl OutputFile<'_> {
    fn create(path: &Path) -> Result<OutputFile<'_>, LoadError> {
        let file = File::create(path).map_err(|error| not_written(path, &error))?;
        Ok(OutputFile { path, file })
    }

    fn write(mut self, text: &str) -> Result<(), LoadError> {
        self.file.write_all(text.as_bytes()).map_err(|error| not_written(self.path, &error))
    }
}

/// Writes the latencies of the last run.
fn write_curve(curve: OutputFile<'_>, report: &LoadReport) -> Result<(), LoadError> {
    let Some(run) = report.runs.last() else { return Ok(()) };
    let beside = curve.path.with_added_extension("uncorrected");
    if let Some(latency) = &run.latency_us {
        curve.write(&output::hdr(latency))?;
    }
    if let Some(uncorrected) = run.uncorrected_us.as_ref().filter(|_| run.schedule.is_some()) {
        OutputFile::create(&beside)?.write(&output::hdr(uncorrected))?;
    }
    Ok(())
}

fn not_written(path: &Path, error: &io::Error) -> LoadError {
    LoadError::Failed(format!("cannot write {}: {error}", path.display()))
}

fn print(report: &str) -> Result<(), LoadError> {
    super::output::print(report.as_bytes()).map_err(LoadError::Failed)
}

fn read(path: &Path) -> Result<String, LoadError> {
    std::fs::read_to_string(path)
        .map_err(|error| LoadError::Failed(format!("cannot read {}: {error}", path.display())))
}

fn plan(matches: &ArgMatches) -> Result<LoadPlan, LoadError> {
    let typed = BenchArgs(matches);
    let mut plan = LoadPlan::new(urls(matches)?);
    typed.needs("arrivals", &["rate", "connection-rate"])?;
    typed.needs("slow-rate", &["slow-readers", "slow-writers"])?;
    plan.connections = typed.count("connections")?;
    plan.threads = typed.bounded("threads", LoadPlan::MOST_THREADS)?.unwrap_or(plan.threads);
    plan.processes = typed.bounded("processes", LoadPlan::MOST_PROCESSES)?.unwrap_or(plan.processes);
    plan.requests = typed.parsed("requests", |text| count(text, 1u64..=u64::MAX >> 1))?;
    let duration = typed.time("duration")?;
    if duration.is_some() || plan.requests.is_some() {
        plan.duration = duration;
    }
    plan.rate = typed.of::<ArrivalRate>("rate")?;
    plan.connection_rate = typed.of::<ArrivalRate>("connection-rate")?;
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
    let size = |text: &str| units::size(text, LoadPlan::LEAST_SLOW_RATE..=1 << 40);
    plan.slow_rate = typed.parsed("slow-rate", size)?.unwrap_or(plan.slow_rate);
    plan.sources = typed.of("source")?.unwrap_or_default();
    plan.join_ack = matches.get_flag("join-ack");
    plan.tls.insecure = matches.get_flag("insecure");
    let unread = |path: &PathBuf| TrustFile { path: path.clone(), pem: Vec::new() };
    plan.tls.ca = matches.get_one::<PathBuf>("ca").map(unread);
    plan.tls.sni = matches.get_one::<String>("sni").cloned();
    plan.tls.resume = !typed.is("tls-resume", "off");
    if let Some((_, io)) = IoChoice::ALL.into_iter().find(|(name, _)| typed.is("io", name)) {
        plan.io = io;
    }
    let statuses = |text: &str| text.split(',').map(|one| units::number(one, 100u16..=599)).collect();
    plan.expect.statuses = typed.parsed("expect-status", statuses)?.unwrap_or_default();
    plan.expect.length = typed.parsed("expect-length", |text| units::size(text, 0..=u64::MAX >> 1))?;
    plan.expect.hash = typed.of("expect-hash")?;
    Ok(plan)
}

/// Returns the plan of a load by the words of its command line, of which the first is `bench`.
pub(crate) fn plan_of(words: &[String]) -> Result<LoadPlan, String> {
    let typed = command().try_get_matches_from(words).map_err(|error| error.to_string())?;
    plan(&typed).map_err(|error| error.to_string())
}

/// The agents that make the load, if other machines make it.
fn fleet(matches: &ArgMatches) -> Result<Option<FleetPlan>, LoadError> {
    let typed = BenchArgs(matches);
    let names = matches.get_many::<String>("on");
    let places = names.into_iter().flatten().map(|text| text.parse().map_err(|why| wrong("on", why)));
    let places = places.collect::<Result<Vec<_>, _>>()?;
    let copy = matches.get_flag("on-copy");
    if places.is_empty() {
        typed.needs("on-command", &["on"])?;
        typed.needs("share", &["on"])?;
        return match copy {
            true => Err(LoadError::Usage("--on-copy has no effect without --on".into())),
            false => Ok(None),
        };
    }
    Ok(Some(FleetPlan { places, command: typed.of("on-command")?.unwrap_or_default(), copy }))
}

/// The division of a plan among agents.
fn share(matches: &ArgMatches) -> ShareBy {
    let typed = BenchArgs(matches);
    let found = ShareBy::ALL.into_iter().find(|(name, _)| typed.is("share", name));
    found.map_or_else(ShareBy::default, |(_, share)| share)
}

fn shape(typed: &BenchArgs<'_>, plan: &mut LoadPlan) -> Result<(), LoadError> {
    plan.requests_per_connection =
        typed.parsed("requests-per-connection", |text| units::number(text, 1u64..=u64::MAX >> 1))?;
    plan.pipeline = typed.parsed("pipeline", |text| units::number(text, 1u32..=4096))?.unwrap_or(1);
    plan.method = typed.parsed("method", request::method)?.unwrap_or_else(|| plan.method.clone());
    for text in typed.0.get_many::<String>("header").into_iter().flatten() {
        plan.headers.push(request::field(text).map_err(|why| wrong("header", why))?);
    }
    if let Some(path) = typed.0.get_one::<PathBuf>("body") {
        let read = std::fs::read(path);
        plan.body =
            read.map_err(|error| LoadError::Failed(format!("cannot read {}: {error}", path.display())))?;
    }
    plan.streams = typed.parsed("streams", |text| units::number(text, 1u32..=4096))?.unwrap_or(1);
    plan.version = match typed.0.get_one::<String>("http").map(String::as_str) {
        Some("1.0") => RequestVersion::Http10,
        Some("2") => RequestVersion::Http2,
        _ => RequestVersion::Http11,
    };
    plan.keep_alive = typed.0.get_flag("keep-alive");
    if typed.is("completion", "end") {
        plan.completion = ResponseEnd::End;
    }
    if typed.0.get_flag("random") {
        plan.order = UrlOrder::Random;
    }
    if let Some(seed) = typed.parsed("seed", |text| units::number(text, 0u64..=u64::MAX))? {
        if plan.order != UrlOrder::Random && plan.arrivals != Arrivals::Poisson {
            return Err(LoadError::Usage(
                "--seed has no effect without --random or --arrivals poisson".into(),
            ));
        }
        plan.seed = seed;
    }
    Ok(())
}

fn urls(matches: &ArgMatches) -> Result<Vec<TargetUrl>, LoadError> {
    let mut urls = Vec::new();
    for text in matches.get_many::<String>("URL").into_iter().flatten() {
        urls.push(text.parse().map_err(LoadError::Usage)?);
    }
    if let Some(path) = matches.get_one::<PathBuf>("urls") {
        for (number, line) in (1..).zip(read(path)?.lines()) {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let said = |why| LoadError::Usage(format!("{}, line {number}: {why}", path.display()));
                urls.push(line.parse().map_err(said)?);
            }
        }
    }
    Ok(urls)
}

/// A whole number within bounds, also as `10k` or `2M`.
fn count<T>(text: &str, bounds: RangeInclusive<T>) -> Result<T, String>
where
    T: TryFrom<u64> + Into<u64> + Copy + PartialOrd + Display,
{
    let (digits, scale) = scaled(text);
    let whole = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(scale));
    units::number(&whole.map_or_else(|| text.to_owned(), |number| number.to_string()), bounds)
}

/// The values of flags as typed.
struct BenchArgs<'a>(&'a ArgMatches);

impl BenchArgs<'_> {
    fn parsed<T, E: Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, LoadError> {
        self.0.get_one::<String>(name).map(|text| parse(text).map_err(|why| wrong(name, why))).transpose()
    }

    fn of<T: FromStr<Err = String>>(&self, name: &str) -> Result<Option<T>, LoadError> {
        self.parsed(name, str::parse)
    }

    fn count(&self, name: &str) -> Result<Option<u32>, LoadError> {
        self.bounded(name, 10_000_000)
    }

    fn bounded(&self, name: &str, most: u32) -> Result<Option<u32>, LoadError> {
        self.parsed(name, |text| count(text, 0..=most))
    }

    /// Refuses a flag that has no effect without one of these other flags.
    fn needs(&self, name: &str, others: &[&str]) -> Result<(), LoadError> {
        let typed = |name: &str| self.0.contains_id(name);
        if !typed(name) || others.iter().any(|other| typed(other)) {
            return Ok(());
        }
        let others: Vec<String> = others.iter().map(|other| format!("--{other}")).collect();
        Err(LoadError::Usage(format!("--{name} has no effect without {}", others.join(" or "))))
    }

    /// A duration; a bare number is seconds, as in wrk and oha.
    fn time(&self, name: &str) -> Result<Option<Duration>, LoadError> {
        let bounds = Duration::from_millis(1)..=Duration::from_secs(7 * 24 * 3600);
        let is_bare = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let with_unit = |text: &str| if is_bare(text) { format!("{text}s") } else { text.to_owned() };
        self.parsed(name, |text| units::duration(&with_unit(text), bounds))
    }

    fn is(&self, name: &str, word: &str) -> bool {
        self.0.get_one::<String>(name).is_some_and(|typed| typed == word)
    }
}

fn wrong(name: &str, why: impl Display) -> LoadError {
    LoadError::Usage(format!("--{name}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_the_suffixes_of_wrk() {
        assert_eq!(count("1k", 1u64..=2_000), Ok(1_000));
        assert_eq!(count("2M", 0u32..=10_000_000), Ok(2_000_000));
        for wrong in ["3k", "k", "1kk", "-1k", "99999999999999999999k"] {
            assert!(count(wrong, 1u64..=2_000).is_err(), "{wrong}");
        }
    }
}
