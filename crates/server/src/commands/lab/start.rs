//! `tenfold lab run`: makes a plan, starts or continues it, and reports.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ArgMatches;
use tenfold_agents::TaskPipe;
use tenfold_lab::experiment::file::is_name;
use tenfold_lab::experiment::subject::Subject;
use tenfold_lab::experiment::{Experiment, library};
use tenfold_lab::machine::environment::LabEnvironment;
use tenfold_lab::plan::profile::Profile;
use tenfold_lab::plan::{PLAN, RunPlan, Wishes};
use tenfold_lab::report::results::RunResults;
use tenfold_lab::report::{self as page, FILES};
use tenfold_lab::runner::{self, RunEnd, RunProgress};
use tenfold_lab::trial::bench::OwnServer;
use tenfold_lab::trial::far::FarMachines;
use tenfold_lab::trial::remote;
use tenfold_sys::folder::OpenFolder;
use tenfold_sys::user;

use super::failure::{INTERRUPTED, INVALID, LabFailure, print, usage};
use super::far::{self, TRANSFER};
use super::live::{self, LiveView, RunView};
use crate::commands::bench;
use crate::config::parse::rows::row;
use crate::config::parse::units;
use crate::diagnostics::info;
use crate::log::measured;

/// Runs or continues experiments.
pub(super) fn start(typed: &ArgMatches) -> Result<u8, LabFailure> {
    let (plan, folder, mut far) = match typed.get_one::<PathBuf>("resume") {
        Some(folder) => {
            own_folder(folder)?;
            let plan = RunPlan::read(folder)?;
            expect_trials_alone(&plan)?;
            let far = far::continued(typed, &plan, folder)?;
            (plan, folder.clone(), far)
        }
        None => new_run(typed)?,
    };
    if let Some(far) = &mut far {
        far.prepare(&plan.server_processors)?;
    }
    carry_out(&plan, &folder, far, &mut LiveView::new(&plan), live::verdicts, live::advice)
}

/// Executes the plan of a study in a new folder, and prints the text of its results.
pub(super) fn study(
    typed: &ArgMatches,
    stem: &str,
    (plan, environment): (&RunPlan, &LabEnvironment),
    view: &mut dyn RunView,
    text: impl FnOnce(&RunResults) -> String,
) -> Result<u8, LabFailure> {
    let folder = folder(typed, stem)?;
    runner::prepare(plan, environment, &folder)?;
    carry_out(plan, &folder, None, view, text, |_| String::new())
}

/// Executes a plan, writes its report, and prints the text of its results, the place of the report, and `advice`.
fn carry_out(
    plan: &RunPlan,
    folder: &Path,
    mut far: Option<FarMachines>,
    view: &mut dyn RunView,
    text: impl FnOnce(&RunResults) -> String,
    advice: impl FnOnce(&RunResults) -> String,
) -> Result<u8, LabFailure> {
    let tell = &mut |progress: RunProgress<'_>| view.tell(&progress);
    let ended = runner::run(plan, &own_server()?, folder, None, far.as_mut(), tell);
    view.end();
    let lost = far.as_ref().and_then(FarMachines::lost).is_some();
    drop(far);
    let again = far::again(plan, folder);
    let end = ended.map_err(|why| if lost { format!("{why}; continue with: {again}") } else { why })?;
    let results = RunResults::read(folder)?;
    page::write(&results, folder)?;
    if end == RunEnd::Interrupted {
        info!("interrupted; continue with: {again}");
        return Ok(INTERRUPTED);
    }
    print(&text(&results))?;
    print(&format!("report: {}\n", folder.join(FILES[0]).display()))?;
    let wanted = plan.experiments.iter().any(|planned| !planned.cells.is_empty());
    let succeeded = results.trials.iter().any(|trial| trial.failed.is_none());
    if wanted && !succeeded {
        let why = results.trials.iter().find_map(|trial| trial.failed.clone()).unwrap_or_default();
        return Err(LabFailure(INVALID, format!("no trial succeeded: {why}")));
    }
    print(&advice(&results))?;
    Ok(0)
}

/// Makes the server's side of trials for a controller. See [`tenfold_agents::Task`].
pub(crate) fn subject(pipe: &mut TaskPipe) -> Result<(), String> {
    remote::task(pipe, &own_server()?)
}

/// This program as the server of trials.
pub(super) fn own_server() -> Result<OwnServer, String> {
    let program = std::env::current_exe()
        .map_err(|error| format!("cannot find this program, to start it as a server: {error}"))?;
    Ok(OwnServer { program, open_log: measured::open, load_plan: bench::plan_of })
}

/// Makes the plan of a new run, and writes it to a new folder.
fn new_run(typed: &ArgMatches) -> Result<(RunPlan, PathBuf, Option<FarMachines>), LabFailure> {
    let wishes = wishes(typed)?;
    let profile = wishes.profile;
    let words: Vec<String> = typed.get_many::<String>("only").into_iter().flatten().cloned().collect();
    let mut chosen: Vec<Experiment> = library::select(&words).map_err(usage)?;
    if profile == Profile::Smoke && words.is_empty() {
        chosen.retain(|experiment| experiment.smoke);
    }
    let stem = format!("lab-{}", profile.name());
    if let Some(machines) = far::machines(typed)? {
        let far = far::start(typed, &machines, TRANSFER)?;
        let mut plan = RunPlan::on(chosen, &wishes, far.hosts());
        plan.machines = Some(machines);
        let folder = folder(typed, &stem)?;
        runner::prepare_on(&plan, far.hosts(), &folder)?;
        return Ok((plan, folder, Some(far)));
    }
    let environment = LabEnvironment::find();
    let plan = RunPlan::new(chosen, &wishes, &environment);
    let folder = folder(typed, &stem)?;
    runner::prepare(&plan, &environment, &folder)?;
    Ok((plan, folder, None))
}

/// The options of commands with trials. A command may lack some of them.
pub(super) fn wishes(typed: &ArgMatches) -> Result<Wishes, LabFailure> {
    let one = |name: &str| typed.try_get_one::<String>(name).ok().flatten();
    let profile = one("profile").map_or("quick", String::as_str);
    let profile = units::word(profile, "profile", &Profile::WORDS).map_err(usage)?;
    let parsed = |name: &str, range| {
        let text = one(name);
        text.map(|text| units::number(text, range))
            .transpose()
            .map_err(|why| usage(format!("--{name}: {why}")))
    };
    let budget = one("budget").map(|text| {
        units::duration(text, Duration::from_secs(1)..=Duration::from_secs(7 * 24 * 3600))
            .map_err(|why| usage(format!("--budget: {why}")))
    });
    let peers = typed.try_get_many::<String>("peers").ok().flatten().map(|names| {
        let subject = |name: &String| Subject::ALL.iter().find(|subject| subject.name() == name).copied();
        names.filter_map(subject).collect()
    });
    Ok(Wishes {
        profile,
        blocks: parsed("blocks", 1..=10_000)?.map(|count: u64| count as usize),
        budget: budget.transpose()?.map(|time| time.as_secs()),
        seed: parsed("seed", 0..=u64::MAX)?.unwrap_or_else(random_seed),
        peers,
    })
}

/// Words in the placeholders of settings that name files, programs, users, addresses, or text for a file.
const NAMING: [&str; 10] =
    ["PATH", "FILE", "DIR", "URL", "ADDRESS", "NAME", "EMAIL", "FORMAT", "FOLDER", "FIELD"];

/// The most bytes of all files of a plan. More could fill the disk.
const MOST_FILES: u64 = 1 << 30;
/// The most timers of a trial. More could fill the memory.
const MOST_TIMERS: u32 = 10_000_000;

/// Refuses a plan with other effects than trials. The user did not name it as an experiment, and it may come from
/// another person.
fn expect_trials_alone(plan: &RunPlan) -> Result<(), LabFailure> {
    if plan.served.is_some() {
        return Err(usage("the plan serves a folder of the user; begin a new run for it"));
    }
    let mut files = BTreeSet::new();
    for one in plan.experiments.iter().map(|planned| &planned.experiment) {
        let names = std::iter::once(&one.name).chain(one.cells.keys());
        if let Some(name) = names.into_iter().find(|name| !is_name(name)) {
            return Err(usage(format!(
                "the plan has the name {name:?}; only a plan that was made here continues"
            )));
        }
        if one.cells.values().any(|cell| cell.load.armed.unwrap_or_default() > MOST_TIMERS) {
            return Err(usage(format!(
                "{} has a cell with more than {MOST_TIMERS} timers; begin a new run with its file",
                one.name
            )));
        }
        // Cells with the same file size share a file.
        files.extend(one.cells.values().map(|cell| cell.load.file_bytes()));
        if files.iter().fold(0, |all: u64, bytes| all.saturating_add(*bytes)) > MOST_FILES {
            return Err(usage(format!(
                "{} needs files of more than 1 GiB, with those before it; begin a new run with its file",
                one.name
            )));
        }
        let servers = one.cells.values().filter(|cell| cell.subject == Subject::Tenfold);
        for (name, value) in servers.flat_map(|cell| &cell.settings) {
            let is_inside = value.starts_with("{folder}/") && !value.contains("..");
            let is_harmless = row(name).is_some_and(|row| {
                value == "off" || is_inside || !NAMING.iter().any(|word| row.value.contains(word))
            });
            if !is_harmless {
                return Err(usage(format!(
                    "{} sets {name} to {value:?}, which may be more than a trial; begin a new run with its file",
                    one.name
                )));
            }
        }
    }
    Ok(())
}

/// The folder of a new run: the folder on the command line, or a new folder.
pub(super) fn folder(typed: &ArgMatches, stem: &str) -> Result<PathBuf, LabFailure> {
    match typed.get_one::<PathBuf>("output") {
        Some(folder) if folder.join(PLAN).symlink_metadata().is_ok() => {
            let shown = folder.display();
            Err(usage(format!(
                "{shown} has a run already; continue it with `tenfold lab run --resume {shown}`, or name another folder"
            )))
        }
        Some(folder) => make_own_folder(folder).map(|()| folder.clone()),
        None => new_folder(stem),
    }
}

/// Makes a folder if it is absent, and refuses a folder of another user. The check comes last, because another user
/// could make the folder after an earlier check.
pub(super) fn make_own_folder(folder: &Path) -> Result<(), LabFailure> {
    maker().recursive(true).create(folder).map_err(|error| unusable(folder, &error))?;
    own_folder(folder)
}

/// Makes folders that only this user may write to, whatever the umask is.
fn maker() -> DirBuilder {
    let mut maker = DirBuilder::new();
    maker.mode(0o755);
    maker
}

/// Refuses a folder that another user owns or may write to, because links in it could lead to other files. Refuses a
/// path through a link of another user for the same reason.
pub(super) fn own_folder(folder: &Path) -> Result<(), LabFailure> {
    let found = OpenFolder::around(&folder.join(PLAN)).and_then(|(folder, _)| folder.metadata());
    let found = found.map_err(|error| unusable(folder, &error))?;
    let why = match found.uid() {
        owner if owner != user::own() => format!("belongs to user {owner}, whose files would be used"),
        _ if found.mode() & 0o022 != 0 => "can be written by other users (`chmod go-w` ends that)".to_owned(),
        _ => return Ok(()),
    };
    Err(usage(format!("{} {why}; name a folder of your own", folder.display())))
}

fn unusable(folder: &Path, error: &std::io::Error) -> LabFailure {
    LabFailure(1, format!("cannot use the folder {}: {error}", folder.display()))
}

/// Makes the first folder of `STEM-1`, `STEM-2`, ... that does not exist. An existing folder may belong to another user
/// and contain links to files of this user.
pub(super) fn new_folder(stem: &str) -> Result<PathBuf, LabFailure> {
    let mut number = 1;
    loop {
        let folder = PathBuf::from(format!("{stem}-{number}"));
        match maker().create(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(error) => {
                let shown = folder.display();
                return Err(LabFailure(
                    1,
                    format!("cannot create the folder {shown}: {error}; name another with --output"),
                ));
            }
        }
    }
}

/// A seed that is short enough to type.
fn random_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_micros()) + 1
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{lchown, symlink};

    use tenfold_testkit::folder::TempFolder;

    use super::*;

    #[test]
    fn a_folder_is_made_and_not_reached_by_the_link_of_another_user() {
        let folder = TempFolder::new("lab-own");
        let at = |name: &str| folder.at(name);
        assert!(own_folder(&at("a/b")).is_err(), "it is absent");
        assert!(make_own_folder(&at("a/b")).is_ok() && at("a/b").is_dir());
        assert!(["a/b/", "a/.", "a/../a/b"].iter().all(|path| own_folder(&at(path)).is_ok()));
        symlink("a", at("link")).expect("our own folder");
        assert!(make_own_folder(&at("link")).is_ok(), "our own link");
        // Only root can change owners.
        if lchown(at("link"), Some(12_345), None).is_ok() {
            for path in ["link", "link/", "link/b", "link/c"] {
                assert!(make_own_folder(&at(path)).is_err(), "{path}");
            }
            lchown(at("a"), Some(12_345), None).expect("it could be done before");
            assert!(make_own_folder(&at("a")).is_err() && make_own_folder(&at("a/b")).is_ok());
        }
        folder.allow("a/b", 0o1777);
        assert!(make_own_folder(&at("a/b")).is_err(), "everybody can put links into it");
        folder.allow("a/b", 0o775);
        assert!(make_own_folder(&at("a/b")).is_err(), "a group can");
    }

    #[test]
    fn a_new_folder_has_a_free_name() {
        let folder = TempFolder::new("lab-new");
        let at = |name: &str| folder.at(name);
        folder.make("run-1");
        symlink("elsewhere", at("run-2")).expect("our own folder");
        let made = new_folder(&at("run").display().to_string()).ok();
        assert_eq!(made, Some(at("run-3")));
        assert!(new_folder(&at("missing/run").display().to_string()).is_err());
    }
}
