//! Raw data on disk: one line of JSON for each trial, appended at its end. Verdicts and reports are computed from these
//! lines.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tenfold_sys::location;

use crate::measure::Measure;

/// The file of trials in the folder of a run.
pub const TRIALS: &str = "trials.jsonl";
/// The largest file of a run that is read. The trials of a day take some megabytes.
const LONGEST: u64 = 1 << 30;

/// One trial.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The experiment.
    pub experiment: String,
    /// The cell.
    pub cell: String,
    /// Whether it is the control: the second trial of its cell in the block.
    pub control: bool,
    /// The block, from 0.
    pub block: usize,
    /// The attempt at the block, from 0. Only the last attempt counts.
    pub attempt: u32,
    /// The position in the block, from 0.
    pub order: usize,
    /// The start of the trial in seconds since 1970.
    pub at: u64,
    /// The reason of a failure.
    pub failed: Option<String>,
    /// Disturbances.
    pub flags: Vec<String>,
    /// Remarks.
    pub notes: Vec<String>,
    /// Measured values.
    pub values: BTreeMap<Measure, f64>,
    /// Latencies in microseconds, by percentile.
    pub latencies: BTreeMap<String, f64>,
    /// System calls of the server for each response, by name, in a pass under a tracer.
    #[serde(default)]
    pub calls: BTreeMap<String, f64>,
    /// The command of the subject.
    pub server: Vec<String>,
    /// The command of the load.
    pub client: Vec<String>,
}

/// Writes a file of a run. An existing file is replaced and not followed: in another person's archive it may be a link
/// to any file.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    let written = create(path).and_then(|mut file| file.write_all(content.as_ref()));
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Reads a file of a run. It must be regular: another person's archive may contain a pipe or a device.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    location::read_text(path, LONGEST)
}

/// Creates a file of a run and replaces an existing file.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => File::create_new(path),
    }
}

/// The growing file of a run's trials.
#[derive(Debug)]
pub struct TrialLog {
    path: PathBuf,
    file: File,
}

impl TrialLog {
    /// Opens the file in `folder`, and drops the incomplete last line of an interrupted run.
    pub fn open(folder: &Path) -> Result<TrialLog, String> {
        let path = folder.join(TRIALS);
        let failed = |error: io::Error| format!("cannot open {}: {error}", path.display());
        if path.is_symlink() {
            return Err(failed(io::Error::other("it is a link, which may lead elsewhere")));
        }
        let file = OpenOptions::new().create(true).read(true).append(true).open(&path).map_err(failed)?;
        let facts = file.metadata().map_err(failed)?;
        if !facts.is_file() {
            return Err(failed(io::Error::other("it is not a regular file")));
        }
        if facts.len() > LONGEST {
            return Err(failed(ErrorKind::FileTooLarge.into()));
        }
        let text = std::fs::read(&path).map_err(failed)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            file.set_len(whole as u64).map_err(failed)?;
        }
        Ok(TrialLog { path, file })
    }

    /// Adds a trial.
    pub fn add(&mut self, trial: &Trial) -> Result<(), String> {
        let mut line = serde_json::to_vec(trial).map_err(|error| error.to_string())?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            let path = self.path.display();
            format!(
                "cannot write {path}: {error}; make room, then continue a run with `tenfold lab run --resume`"
            )
        })
    }
}

/// Reads the trials of a run.
pub fn read(folder: &Path) -> Result<Vec<Trial>, String> {
    let path = folder.join(TRIALS);
    let text = text(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let whole = text.rfind('\n').map_or("", |at| &text[..at]);
    let read = |(number, line): (usize, &str)| {
        serde_json::from_str(line)
            .map_err(|error| format!("{}:{number}: not a trial of `tenfold lab`: {error}", path.display()))
    };
    (1..).zip(whole.lines()).map(read).collect()
}

/// The trials of an experiment that count: the last attempt at each block.
#[derive(Clone, Debug, Default)]
pub struct Blocks<'a> {
    blocks: BTreeMap<usize, Vec<&'a Trial>>,
}

impl<'a> Blocks<'a> {
    /// Selects the trials of `experiment`.
    pub fn of(trials: &'a [Trial], experiment: &str) -> Blocks<'a> {
        let mut blocks: BTreeMap<usize, Vec<&Trial>> = BTreeMap::new();
        for trial in trials.iter().filter(|trial| trial.experiment == experiment) {
            let block = blocks.entry(trial.block).or_default();
            block.retain(|other| other.attempt >= trial.attempt);
            if block.iter().all(|other| other.attempt <= trial.attempt) {
                block.push(trial);
            }
        }
        Blocks { blocks }
    }

    /// Keeps blocks with numbers below `count`.
    pub fn first(mut self, count: usize) -> Blocks<'a> {
        self.blocks.retain(|number, _| *number < count);
        self
    }

    /// Keeps blocks with at least `whole` trials.
    pub fn complete(mut self, whole: usize) -> Blocks<'a> {
        self.blocks.retain(|_, trials| trials.len() >= whole);
        self
    }

    /// Blocks by number, with their trials.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &[&'a Trial])> {
        self.blocks.iter().map(|(number, trials)| (*number, trials.as_slice()))
    }

    /// The number of blocks.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Keeps blocks without a flag.
    pub fn undisturbed(mut self) -> Blocks<'a> {
        self.blocks.retain(|_, trials| trials.iter().all(|trial| trial.flags.is_empty()));
        self
    }

    /// The number of blocks with a flag.
    pub fn flagged(&self) -> usize {
        self.iter().filter(|(_, trials)| trials.iter().any(|trial| !trial.flags.is_empty())).count()
    }

    /// The trial of a cell in each block, if it succeeded.
    fn trial(trials: &[&'a Trial], cell: &str, control: bool) -> Option<&'a Trial> {
        let fits = |trial: &&&Trial| trial.cell == cell && trial.control == control && trial.failed.is_none();
        trials.iter().find(fits).copied()
    }

    /// The values of a cell, in the order of blocks. Blocks without a value are left out.
    pub fn values(&self, cell: &str, measure: Measure) -> Vec<f64> {
        let value = |trials: &[&'a Trial]| Self::trial(trials, cell, false)?.values.get(&measure).copied();
        self.iter().filter_map(|(_, trials)| value(trials)).collect()
    }

    /// The ratios of two cells, one for each block with both values.
    pub fn ratios(&self, of: &str, to: &str, measure: Measure) -> Vec<f64> {
        self.paired((of, false), (to, false), measure).map(|(of, to)| of / to).collect()
    }

    /// The system calls of a cell per response, by name, for each block that counted them.
    pub fn calls(&self, cell: &str) -> Vec<&'a BTreeMap<String, f64>> {
        let calls = |trials: &[&'a Trial]| Some(&Self::trial(trials, cell, false)?.calls);
        self.iter().filter_map(|(_, trials)| calls(trials)).filter(|calls| !calls.is_empty()).collect()
    }

    /// The values of two trials, one pair for each block with both values. A trial is a cell and whether it is the control.
    pub(crate) fn paired(
        &self,
        of: (&str, bool),
        to: (&str, bool),
        measure: Measure,
    ) -> impl Iterator<Item = (f64, f64)> {
        let value = move |trials: &[&'a Trial], (cell, control): (&str, bool)| {
            Self::trial(trials, cell, control)?.values.get(&measure).copied()
        };
        self.iter().filter_map(move |(_, trials)| Some((value(trials, of)?, value(trials, to)?)))
    }

    /// Reasons of failed trials of a cell.
    pub fn failures(&self, cell: &str) -> Vec<&'a str> {
        let failed = |trial: &&'a Trial| trial.failed.as_deref().filter(|_| trial.cell == cell);
        self.iter().flat_map(|(_, trials)| trials.iter().filter_map(failed)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(cell: &str, block: usize, attempt: u32, rate: f64) -> Trial {
        let values = BTreeMap::from([(Measure::Rate, rate)]);
        Trial { experiment: "x".into(), cell: cell.into(), block, attempt, values, ..Trial::default() }
    }

    #[test]
    fn the_last_attempt_at_a_block_counts() {
        let mut trials = vec![trial("a", 0, 0, 1.0), trial("b", 0, 0, 2.0), trial("a", 0, 1, 10.0)];
        let blocks = Blocks::of(&trials, "x");
        assert_eq!(blocks.values("a", Measure::Rate), [10.0]);
        assert!(blocks.values("b", Measure::Rate).is_empty(), "its attempt was repeated");
        assert!(Blocks::of(&trials, "x").complete(2).is_empty());
        trials.push(trial("b", 0, 1, 5.0));
        let blocks = Blocks::of(&trials, "x").complete(2);
        assert_eq!(blocks.ratios("a", "b", Measure::Rate), [2.0]);
    }

    #[test]
    fn a_failed_trial_is_no_value_and_its_reason_is_kept() {
        let mut trials = vec![trial("a", 0, 0, 1.0), trial("b", 0, 0, 2.0)];
        trials[0].failed = Some("it died".to_owned());
        let blocks = Blocks::of(&trials, "x").complete(2);
        assert!(blocks.ratios("a", "b", Measure::Rate).is_empty());
        assert_eq!(blocks.failures("a"), ["it died"]);
    }

    #[test]
    fn a_pipe_in_place_of_the_trials_is_refused_without_waiting() {
        let folder = std::env::temp_dir().join(format!("tenfold-lab-pipe-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let made = std::process::Command::new("mkfifo").arg(folder.join(TRIALS)).status();
        assert!(made.expect("mkfifo").success());
        let errors = [read(&folder).expect_err("a pipe"), TrialLog::open(&folder).expect_err("a pipe")];
        std::fs::remove_dir_all(&folder).expect("it is removed");
        assert!(errors.iter().all(|error| error.ends_with("it is not a regular file")), "{errors:?}");
    }

    #[test]
    fn trials_that_would_fill_the_memory_are_refused() {
        let folder = std::env::temp_dir().join(format!("tenfold-lab-sparse-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = File::create(folder.join(TRIALS)).expect("our own folder");
        file.set_len(LONGEST + 1).expect("it takes no room");
        let error = TrialLog::open(&folder).expect_err("a large file");
        std::fs::remove_dir_all(&folder).expect("it is removed");
        assert!(error.ends_with("file too large"), "{error}");
    }

    #[test]
    fn a_line_that_was_being_written_is_dropped() {
        let folder = std::env::temp_dir().join(format!("tenfold-lab-record-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut log = TrialLog::open(&folder).expect("it opens");
        log.add(&trial("a", 0, 0, 1.5)).expect("it is written");
        log.file.write_all(b"{\"experiment\": \"x").expect("it is written");
        assert_eq!(read(&folder).expect("one line is whole").len(), 1);
        let mut log = TrialLog::open(&folder).expect("it opens again");
        log.add(&trial("b", 0, 0, 2.5)).expect("it is written");
        assert_eq!(read(&folder).expect("both"), [trial("a", 0, 0, 1.5), trial("b", 0, 0, 2.5)]);
        std::fs::remove_dir_all(&folder).expect("it is removed");
    }
}
