//! The handler of SIGSYS, which a filter raises in place of a call that it refuses.
//!
//! A handler may only use what is async-signal-safe (`man 7 signal-safety`): it stores into atomics, formats into
//! its own stack, and calls `write(2)` and `_exit(2)`.

use std::fmt::{self, Write};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::call::Call;

/// The exit code of a process that made a fatal call: that of a shell whose program died by SIGSYS.
pub const ENDED: i32 = 128 + libc::SIGSYS;

/// Numbers that are known by a bit each; a call beyond them is of another system call table, and fatal.
const NUMBERS: usize = 1024;
const MAPPED: usize = NUMBERS / u64::BITS as usize;
/// Words of a row that [`Reports`] writes: the fatal call, then a bit for each call that was reported.
pub const REPORT_WORDS: usize = 1 + MAPPED;

/// The places to report refused calls to.
#[derive(Debug)]
pub struct Reports {
    /// A row of [`REPORT_WORDS`] that the parent process reads.
    pub row: &'static [AtomicU64],
    /// Counts calls that were answered EPERM.
    pub refused: &'static AtomicU64,
    /// The beginning of the line on standard error that reports the first refusal of each call; none for silence.
    pub line: Option<String>,
}

struct Handling {
    reports: Reports,
    fatal: [u64; MAPPED],
}

static HANDLING: OnceLock<Handling> = OnceLock::new();

/// Installs the handler: a refused call among `fatal` is written into the row and ends the process with the code
/// [`ENDED`], any other is counted, reported once and answered EPERM. The first handling of a process counts.
///
/// # Errors
/// What `sigaction(2)` says.
pub fn handle(reports: Reports, fatal: &[Call]) -> io::Result<()> {
    assert_eq!(reports.row.len(), REPORT_WORDS, "a row has a word for the call and bits for the others");
    let mut bits = [0; MAPPED];
    for number in fatal.iter().filter_map(|call| call.number()) {
        let (word, bit) = place(number).expect("calls of this table are below the bound");
        bits[word] |= bit;
    }
    let _ = HANDLING.set(Handling { reports, fatal: bits });
    // SAFETY: all-zero bytes are a valid sigaction with an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_refusal as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: `action` is initialised and outlives the call; the old action is not asked for.
    let result = unsafe { libc::sigaction(libc::SIGSYS, &action, std::ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes the number of the call that ended a process out of its row, if one did.
pub fn take_fatal(row: &[AtomicU64]) -> Option<i64> {
    row[0].swap(0, Ordering::Relaxed).checked_sub(1).map(|number| number as i64)
}

/// As [`take_fatal`], out of the row that this process reports in: a child of its own wrote it.
pub fn own_fatal() -> Option<i64> {
    HANDLING.get().and_then(|handling| take_fatal(handling.reports.row))
}

fn place(number: i64) -> Option<(usize, u64)> {
    let number = usize::try_from(number).ok().filter(|number| *number < NUMBERS)?;
    Some((number / u64::BITS as usize, 1 << (number % u64::BITS as usize)))
}

/// The head of a `siginfo_t` of SIGSYS, which the `libc` crate does not describe (`man 2 sigaction`).
#[repr(C)]
struct Refusal {
    signal: libc::c_int,
    errno: libc::c_int,
    code: libc::c_int,
    address: *const libc::c_void,
    number: libc::c_int,
    architecture: libc::c_uint,
}

/// `SYS_SECCOMP` of asm-generic/siginfo.h: a filter raised the signal, and not another process.
const BY_FILTER: libc::c_int = 1;

extern "C" fn on_refusal(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the pointer is to a live siginfo_t, which is as large as `Refusal` and aligned.
    let refusal = unsafe { &*info.cast::<Refusal>() };
    let Some(handling) = HANDLING.get().filter(|_| refusal.code == BY_FILTER) else { return };
    let number = i64::from(refusal.number);
    let Reports { row, refused, line } = &handling.reports;
    match place(number) {
        Some((word, bit)) if handling.fatal[word] & bit == 0 => {
            refused.fetch_add(1, Ordering::Relaxed);
            let said = row[1 + word].fetch_or(bit, Ordering::Relaxed) & bit != 0;
            if let (false, Some(line)) = (said, line) {
                report(line, number);
            }
            answer(context, -i64::from(libc::EPERM));
        }
        _ => {
            // The numbers of x32 are positive, too.
            row[0].store(number as u64 + 1, Ordering::Relaxed);
            // SAFETY: the call does not return, and runs nothing of ours.
            unsafe { libc::_exit(ENDED) }
        }
    }
}

/// Lets the refused call return `value`.
fn answer(context: *mut libc::c_void, value: i64) {
    // SAFETY: with SA_SIGINFO the pointer is to the live context that the kernel restores on return.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    #[cfg(target_arch = "x86_64")]
    {
        context.uc_mcontext.gregs[libc::REG_RAX as usize] = value;
    }
    #[cfg(target_arch = "aarch64")]
    {
        context.uc_mcontext.regs[0] = value as u64;
    }
}

/// A line on the stack. What does not fit is cut.
struct Line {
    bytes: [u8; 256],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let count = text.len().min(self.bytes.len() - self.length);
        self.bytes[self.length..self.length + count].copy_from_slice(&text.as_bytes()[..count]);
        self.length += count;
        Ok(())
    }
}

fn report(begin: &str, number: i64) {
    let mut line = Line { bytes: [0; 256], length: 0 };
    let name = Call::name_of(number).unwrap_or("without a name here");
    let _ = writeln!(
        line,
        "{begin}the sandbox refused the system call {name} ({number}) with EPERM; repetitions are only counted"
    );
    // SAFETY: the pointer and the length are those of live bytes. Without standard error nobody is told.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, line.bytes.as_ptr().cast(), line.length) };
}
