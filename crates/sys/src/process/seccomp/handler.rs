//! The handler of SIGSYS, which a filter raises instead of a refused call.
//!
//! A handler may only use async-signal-safe functions (`man 7 signal-safety`). It stores into atomics, formats on its
//! own stack, and calls `write(2)` and `_exit(2)`.

use std::fmt::{self, Write};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::call::Call;
use crate::process::lifecycle::install;

/// The exit code after a fatal call, as a shell reports a program that SIGSYS killed.
pub const ENDED: i32 = 128 + libc::SIGSYS;

/// The numbers that have a bit each. A greater number belongs to another system call table, and is fatal.
const NUMBERS: usize = 1024;
const MAPPED: usize = NUMBERS / u64::BITS as usize;
/// Words of a row that [`Reports`] writes: the fatal call, then a bit for each reported call.
pub const REPORT_WORDS: usize = 1 + MAPPED;

/// The destinations of reports about refused calls.
#[derive(Debug)]
pub struct Reports {
    /// A row of [`REPORT_WORDS`] that the parent process reads.
    pub row: &'static [AtomicU64],
    /// Counts calls that failed with EPERM.
    pub refused: &'static AtomicU64,
    /// The beginning of the line on standard error about the first refusal of each call; `None` for silence.
    pub line: Option<String>,
}

struct Handling {
    reports: Reports,
    fatal: [u64; MAPPED],
}

static HANDLING: OnceLock<Handling> = OnceLock::new();

/// Installs the handler. A refused call among `fatal` is written into the row and ends the process with the code
/// [`ENDED`]. Any other is counted, reported once, and fails with EPERM. Only the first call per process has an effect.
pub fn handle(reports: Reports, fatal: &[Call]) -> io::Result<()> {
    assert_eq!(reports.row.len(), REPORT_WORDS, "a row has a word for the call and bits for the others");
    let mut bits = [0; MAPPED];
    for number in fatal.iter().filter_map(|call| call.number()) {
        let (word, bit) = place(number).expect("calls of this table are below the bound");
        bits[word] |= bit;
    }
    let _ = HANDLING.set(Handling { reports, fatal: bits });
    let handler = on_refusal as *const () as libc::sighandler_t;
    install(libc::SIGSYS, handler, libc::SA_SIGINFO | libc::SA_ONSTACK)
}

/// Takes the number of the fatal call out of a process's row, if there was one.
pub fn take_fatal(row: &[AtomicU64]) -> Option<i64> {
    row[0].swap(0, Ordering::Relaxed).checked_sub(1).map(|number| number as i64)
}

/// See [`take_fatal`], for the row of this process, into which its children write.
pub fn own_fatal() -> Option<i64> {
    HANDLING.get().and_then(|handling| take_fatal(handling.reports.row))
}

fn place(number: i64) -> Option<(usize, u64)> {
    let number = usize::try_from(number).ok().filter(|number| *number < NUMBERS)?;
    Some((number / u64::BITS as usize, 1 << (number % u64::BITS as usize)))
}

/// The head of a `siginfo_t` of SIGSYS, which the `libc` crate does not define (`man 2 sigaction`).
#[repr(C)]
struct SigsysInfo {
    signal: libc::c_int,
    errno: libc::c_int,
    code: libc::c_int,
    address: *const libc::c_void,
    number: libc::c_int,
    architecture: libc::c_uint,
}

/// `SYS_SECCOMP` of asm-generic/siginfo.h: a filter raised the signal, not another process.
const BY_FILTER: libc::c_int = 1;

extern "C" fn on_refusal(_: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the pointer is to a live siginfo_t, which is as large as `SigsysInfo` and aligned.
    let refusal = unsafe { &*info.cast::<SigsysInfo>() };
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
            // The numbers of x32 are also positive.
            row[0].store(number as u64 + 1, Ordering::Relaxed);
            // SAFETY: the call does not return, and runs no code of ours.
            unsafe { libc::_exit(ENDED) }
        }
    }
}

/// Makes the refused call return `value`.
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

/// A line on the stack. Longer text is cut.
struct StackLine {
    bytes: [u8; 256],
    length: usize,
}

impl Write for StackLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let count = text.len().min(self.bytes.len() - self.length);
        self.bytes[self.length..self.length + count].copy_from_slice(&text.as_bytes()[..count]);
        self.length += count;
        Ok(())
    }
}

fn report(begin: &str, number: i64) {
    let mut line = StackLine { bytes: [0; 256], length: 0 };
    let name = Call::name_of(number).unwrap_or("of unknown name");
    let _ = writeln!(
        line,
        "{begin}the sandbox refused the system call {name} ({number}) with EPERM; repetitions are only counted"
    );
    // SAFETY: the pointer and the length are those of live bytes. A missing standard error is ignored.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, line.bytes.as_ptr().cast(), line.length) };
}
