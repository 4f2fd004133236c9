//! The sandbox: limits each process to the system calls that it needs.
//!
//! A worker's list consists of the calls of its model and sender ([`tenfold_engine::table`]) and the calls of every process
//! ([`calls`]). A call that only an intruder or a wrong model makes ends the worker, and the supervisor reports it by
//! name. Any other unlisted call fails with EPERM, is counted, and is reported once.

pub(crate) mod apart;
mod calls;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tenfold_engine::Engine;
use tenfold_sys::landlock;
use tenfold_sys::process::WaitStatus;
use tenfold_sys::seccomp::{self, Call, ENDED, FilterRule, REPORT_WORDS, Reports, own_fatal, take_fatal};
use tenfold_sys::shared::SharedRows;
use tenfold_sys::user;

pub(crate) use calls::SandboxSubject;

use crate::diagnostics::{self, Level, warning};

/// Whether processes are confined. A sanitizer makes system calls of its own.
pub(crate) const CONFINES: bool = !cfg!(feature = "sanitizer");

/// A process's name and its place for reports.
pub(crate) struct Process {
    pub(crate) name: String,
    /// The row that the supervisor reads.
    pub(crate) row: &'static [AtomicU64],
    pub(crate) refused: &'static AtomicU64,
}

/// Checks that this kernel can confine processes.
pub(crate) fn require() -> Result<(), String> {
    let probed = if CONFINES { seccomp::probe() } else { Ok(()) };
    probed.map_err(|error| {
        format!(
            "the sandbox needs seccomp filters that raise SIGSYS (CONFIG_SECCOMP_FILTER, Linux 4.14), and this \
             kernel refuses them: {error}; start the server where they are allowed"
        )
    })
}

/// Confines this worker process, which still has one thread.
pub(crate) fn confine_worker(process: Process, serving: &SandboxSubject<'_>) -> Result<(), String> {
    let SandboxSubject { roots, written, plan, .. } = *serving;
    // The process of a connection writes its own `oom_score_adj`, whose folder has no name yet. Root could write more.
    let own = Some(Path::new("/proc")).filter(|_| plan.engine == Engine::Fork && !user::is_root());
    landlock::limit_worker(roots, written.iter().copied().chain(own))
        .map_err(|error| format!("cannot limit files: {error}"))?;
    let mut fatal = calls::DANGEROUS.to_vec();
    fatal.push(Call::CONNECT);
    fatal.extend(plan.others_waits());
    confine(process, &calls::of_worker(serving), &fatal)?;
    NARROWED.store(plan.narrows_threads(), Ordering::Relaxed);
    Ok(())
}

/// Confines the accounts process, which opens the file of its `database`; None: it connects to a server.
pub(crate) fn confine_accounts(process: Process, database: Option<&Path>) -> Result<(), String> {
    let connects = database.is_none();
    landlock::limit_accounts(database).map_err(|error| format!("cannot limit files: {error}"))?;
    let mut fatal = calls::DANGEROUS.to_vec();
    fatal.extend(Some(Call::CONNECT).filter(|_| !connects));
    confine(process, &calls::of_accounts(connects), &fatal)
}

/// Limits the files of the process that obtains certificates to reading, and to writing in its state folder. It may have
/// the user id of root, which owns the folders of temporary files, so it gets no temporary folder.
#[cfg(feature = "acme")]
pub(crate) fn limit_files_of_acme(folder: &Path) -> Result<(), String> {
    landlock::limit_writing([folder]).map_err(|error| format!("cannot limit files: {error}"))
}

/// Confines the process that obtains certificates, which connects to an authority.
#[cfg(feature = "acme")]
pub(crate) fn confine_acme(process: Process) -> Result<(), String> {
    seccomp::fail_quietly(&calls::absent_of_acme(), libc::EAFNOSUPPORT)
        .map_err(|error| format!("cannot install a filter of system calls: {error}"))?;
    confine(process, &calls::of_acme(), calls::DANGEROUS)
}

/// Confines the process that signs handshakes, which opens no file.
pub(crate) fn confine_signing(process: Process) -> Result<(), String> {
    landlock::limit_worker(&[], []).map_err(|error| format!("cannot limit files: {error}"))?;
    let mut fatal = calls::DANGEROUS.to_vec();
    // Its threads wait for requests.
    fatal.retain(|call| *call != Call::PPOLL);
    fatal.push(Call::CONNECT);
    confine(process, &calls::of_signing(), &fatal)
}

/// Confines a process that reads keys, reports their problems and ends.
pub(crate) fn confine_check() -> Result<(), String> {
    let rows =
        SharedRows::new(2, REPORT_WORDS).map_err(|error| format!("cannot allocate memory: {error}"))?;
    let rows: &'static SharedRows = Box::leak(Box::new(rows));
    confine_signing(Process { name: "key check".to_owned(), row: rows.row(0), refused: &rows.row(1)[0] })
}

fn confine(process: Process, rules: &[FilterRule], fatal: &[Call]) -> Result<(), String> {
    let line = diagnostics::shows(Level::Warn).then(|| format!("tenfold: warning: {}: ", process.name));
    let reports = Reports { row: process.row, refused: process.refused, line };
    let confined = seccomp::handle(reports, fatal).and_then(|()| seccomp::allow_only(rules));
    confined.map_err(|error| format!("cannot enter the sandbox: {error}"))
}

/// Whether threads of this process install another filter: [`tenfold_engine::Plan::narrows_threads`].
static NARROWED: AtomicBool = AtomicBool::new(false);

/// Denies this thread, which serves no connection, the calls that serving threads make before they install their filter:
/// rings and filters.
pub(crate) fn confine_helper() -> io::Result<()> {
    const OF_SERVING: [Call; 4] =
        [Call::IO_URING_ENTER, Call::IO_URING_REGISTER, Call::IO_URING_SETUP, Call::SECCOMP];
    if NARROWED.load(Ordering::Relaxed) { seccomp::deny(&OF_SERVING) } else { Ok(()) }
}

/// Returns how a process ended: by the call that its row names, or by its wait status. Clears the row for the next
/// process.
pub(crate) fn end_of(row: &[AtomicU64], end: WaitStatus) -> String {
    let fatal = take_fatal(row);
    row.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    match fatal.filter(|_| end == WaitStatus::Exited(ENDED)) {
        Some(number) => format!("was ended by its sandbox, which forbids {}", named(number)),
        None => end.to_string(),
    }
}

/// Reports the end of a connection's process, which is this worker's child and not the supervisor's.
pub(crate) fn report_connection() {
    if let Some(number) = own_fatal() {
        warning!("the process of a connection was ended by its sandbox, which forbids {}", named(number));
    }
}

fn named(number: i64) -> String {
    match Call::name_of(number) {
        Some(name) => format!("the system call {name} ({number})"),
        None => format!("system call number {number}"),
    }
}

/// Makes the call that a test requests by `/.attempt/NAME`, on the answering thread; opens a file by
/// `/.attempt/open/PATH` and reports the result; or reads an invalid address (`/.attempt/fault`).
#[cfg(feature = "test-hooks")]
pub(crate) fn attempt(path: &str) {
    let Some(wanted) = path.strip_prefix("/.attempt/") else { return };
    if let Some(file) = wanted.strip_prefix("open") {
        let opened = std::fs::File::open(file).map(drop);
        warning!("attempt to open {file}: {opened:?}");
    } else if wanted == "fault" {
        seccomp::fault();
    } else if let Some(call) = Call::named(wanted) {
        let _ = seccomp::attempt(call);
    }
}
