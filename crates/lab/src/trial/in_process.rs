//! Trials in the process of the laboratory: timers, parsing and the access log.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use tenfold_rounds::log::{self, LineLog};
use tenfold_rounds::parsing::{self, Parser};
use tenfold_rounds::timers::{self, Timers};
use tenfold_rounds::{Operation, Rounds};
use tenfold_sys::usage;

use crate::experiment::subject::{Cell, Subject};
use crate::machine::noise::NoiseWatch;
use crate::measure::Measure;
use crate::trial::bench::{Workbench, interrupted};

type TrialValues = BTreeMap<Measure, f64>;

/// Measures an operation for `milliseconds`, on the processors of servers.
pub(crate) fn measure(
    cell: &Cell,
    milliseconds: u64,
    seed: u64,
    bench: &Workbench,
) -> Result<(TrialValues, Vec<String>), String> {
    let (Some(operation), armed) = (cell.load.operation, cell.load.armed.unwrap_or(1_000)) else {
        return Err("the cell names no operation".to_owned());
    };
    let round = match cell.subject {
        Subject::Parser => parsing::round(Parser::Own, operation),
        Subject::ByteParser => parsing::round(Parser::ByByte, operation),
        Subject::Log => own_log(cell, operation, bench)?.map(log::round),
        Subject::HeadList => timers::round(Timers::HeadList, operation, armed),
        Subject::Timers => timers::round(timers_of(cell)?, operation, armed),
        other => return Err(format!("{} does not run in process", other.name())),
    };
    let mut round = round.ok_or_else(|| {
        format!(
            "{} has no such operation: timers and head-list have add-latest, add-random, add-same, adjust, adjust-lazily and tick; \
             parser and byte-parser have parse-small, parse-browser and parse-cookies; log has log-line",
            cell.subject.name()
        )
    })?;
    let processors = &bench.server_processors;
    let noise = NoiseWatch::start();
    // Another thread, because pinning would change the processors of this thread.
    let rounds = thread::scope(|scope| {
        let work = scope.spawn(move || {
            if !processors.is_empty() {
                usage::pin(processors).map_err(|error| format!("cannot pin the trial: {error}"))?;
            }
            Ok(Rounds::run(&mut *round, Duration::from_millis(milliseconds), seed, interrupted))
        });
        work.join().unwrap_or_else(|_| Err("the trial panicked".to_owned()))
    })?;
    let flags = noise.flags(0.0);
    let mut values = TrialValues::from([(Measure::Operation, rounds.nanoseconds)]);
    if let Some(steps) = rounds.steps {
        values.insert(Measure::Steps, steps);
    }
    Ok((values, flags))
}

fn timers_of(cell: &Cell) -> Result<Timers, String> {
    cell.settings.get("timer").map_or("wheel", String::as_str).parse()
}

/// The access log of this server, on a temporary file. `None` for another operation.
fn own_log(cell: &Cell, operation: Operation, bench: &Workbench) -> Result<Option<Box<dyn LineLog>>, String> {
    if operation != Operation::LogLine {
        return Ok(None);
    }
    let mode = cell.settings.get("log-mode").map_or("sync", String::as_str);
    (bench.own.open_log)(mode, &bench.site.scratch().join("access.log")).map(Some)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::experiment::subject::Workload;
    use crate::trial::bench::{OpenLog, OwnServer};
    use crate::trial::site::TrialSite;

    fn cell(subject: Subject, timer: &str, operation: Operation, armed: u32) -> Cell {
        Cell {
            about: String::new(),
            subject,
            settings: BTreeMap::from([("timer".to_owned(), timer.to_owned())]),
            load: Workload { operation: Some(operation), armed: Some(armed), ..Workload::default() },
            original: BTreeMap::new(),
        }
    }

    /// A log that writes its lines to a file at the end.
    struct KeptLog(std::path::PathBuf, Vec<u8>);

    impl LineLog for KeptLog {
        fn add(&mut self, line: &[u8]) {
            self.1.extend_from_slice(line);
        }
        fn settle(&mut self) {
            std::fs::write(&self.0, &self.1).expect("there is room");
        }
    }

    pub(in crate::trial) fn bench() -> Workbench {
        let open_log: OpenLog = |mode, file| match mode {
            "sync" => Ok(Box::new(KeptLog(file.to_owned(), Vec::new()))),
            _ => Err(format!("there is no mode `{mode}`")),
        };
        Workbench {
            own: OwnServer {
                program: "/no/such/program".into(),
                open_log,
                load_plan: |_| Err(String::new()),
            },
            site: TrialSite::new().expect("a folder"),
            served: None,
            kept: std::env::temp_dir(),
            address: std::net::Ipv4Addr::LOCALHOST,
            server_processors: Vec::new(),
            client_processors: Vec::new(),
            until: None,
        }
    }

    #[test]
    fn a_log_gets_whole_rounds_of_lines() {
        let bench = bench();
        let log = |mode: &str, operation| {
            let mut cell = cell(Subject::Log, "", operation, 1);
            cell.settings.insert("log-mode".to_owned(), mode.to_owned());
            measure(&cell, 1, 1, &bench)
        };
        assert!(log("sync", Operation::LogLine).expect("it runs").0[&Measure::Operation] > 0.0);
        let written = std::fs::read_to_string(bench.site.scratch().join("access.log")).expect("it is there");
        assert!(written.lines().count().is_multiple_of(500) && written.ends_with("\"curl/8.5.0\"\n"));
        assert!(log("never", Operation::LogLine).expect_err("no such mode").contains("`never`"));
        assert!(log("sync", Operation::Tick).expect_err("of timers").contains("no such operation"));
    }

    #[test]
    fn each_cell_measures_its_own_timer() {
        let measured = |timer: &str, operation| {
            let cell = cell(Subject::Timers, timer, operation, 100);
            measure(&cell, 1, 1, &bench()).map(|(values, _)| values)
        };
        let values = measured("heap", Operation::Tick).expect("it runs");
        assert!(values[&Measure::Operation] > 0.0 && !values.contains_key(&Measure::Steps), "{values:?}");
        assert!(measured("sundial", Operation::Tick).expect_err("no such timer").contains("sundial"));
        assert!(
            measured("heap", Operation::ParseSmall).expect_err("of a parser").contains("no such operation")
        );
        let list = cell(Subject::HeadList, "", Operation::AddLatest, 1_000);
        assert!(measure(&list, 1, 1, &bench()).expect("it runs").0[&Measure::Steps] >= 1_000.0);
    }
}
