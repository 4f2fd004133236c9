//! System call filters (`man 2 seccomp`) that end the process, or report the call by name.
//!
//! Filters stack, and each thread inherits the filters of its creator. [`allow_only`] is for a process before its first
//! thread, [`deny`] for a thread that needs less than its process. A refused call raises SIGSYS, and the handler of
//! [`handle`] ends the process or returns EPERM.
//!
//! The kernel keeps a bitmap of always allowed numbers (since Linux 5.11), so a rule without a condition costs nothing.
//! Rules with conditions are for sends, which could connect, and for calls that no request makes.

#[cfg(feature = "test-hooks")]
#[path = "tests/attempt.rs"]
mod attempt;
mod call;
mod handler;

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

#[cfg(feature = "test-hooks")]
pub use self::attempt::{attempt, fault};
pub use self::call::Call;
pub use self::handler::{ENDED, REPORT_WORDS, Reports, handle, own_fatal, take_fatal};

/// The number of a call that a tracer cancels (`man 2 ptrace`), as the filter sees it.
const CANCELLED: i64 = u32::MAX as i64;

/// A condition on an argument. All arguments but pointers are compared by their low 32 bits, because the kernel reads
/// only those of an `int`.
#[derive(Clone, Copy, Debug)]
pub enum Test {
    /// The argument equals this.
    Is(u32),
    /// Of the bits of `mask`, exactly these are set.
    Bits {
        /// The compared bits.
        mask: u32,
        /// The set bits.
        set: u32,
    },
    /// The argument is at least this.
    AtLeast(u32),
    /// The argument is at most this.
    AtMost(u32),
    /// The argument is a null pointer.
    Null,
}

/// A call, always or if each of its tests passes. Several rules for one call are alternatives.
#[derive(Clone, Debug)]
pub struct FilterRule {
    call: Call,
    tests: Vec<(u8, Test)>,
}

impl From<Call> for FilterRule {
    fn from(call: Call) -> FilterRule {
        FilterRule { call, tests: Vec::new() }
    }
}

impl FilterRule {
    /// `call` if the argument at each place passes its test.
    pub fn when(call: Call, tests: &[(u8, Test)]) -> FilterRule {
        FilterRule { call, tests: tests.to_vec() }
    }
}

/// Checks that this kernel has filters that raise SIGSYS.
///
/// # Errors
/// The error of `seccomp(2)`: ENOSYS if the kernel was built without filters.
pub fn probe() -> io::Result<()> {
    let (action, flags) = (libc::SECCOMP_RET_TRAP, 0);
    // SAFETY: the kernel reads one number through the pointer, which outlives the call.
    let result = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, flags, std::ptr::from_ref(&action))
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Refuses every call but those of `rules`, for this thread and those that it starts. A program that uses another
/// architecture's calls is killed.
///
/// The number -1 is allowed, because a tracer cancels calls with it. If `clone` is allowed, `clone3` fails with ENOSYS,
/// because a filter cannot read its arguments; the C library then uses `clone`.
pub fn allow_only(rules: &[FilterRule]) -> io::Result<()> {
    let mut numbers = by_number(rules)?;
    if let (true, Some(number)) = (rules.iter().any(|rule| rule.call == Call::CLONE), Call::CLONE3.number()) {
        let absent = SeccompAction::Errno(libc::ENOSYS as u32);
        install([(number, Vec::new())].into(), SeccompAction::Allow, absent)?;
        numbers.insert(number, Vec::new());
    }
    numbers.insert(CANCELLED, Vec::new());
    install(numbers, SeccompAction::Trap, SeccompAction::Allow)
}

/// Lets the calls of `rules` fail with this error number, without a report, for this thread and those that it starts.
pub fn fail_quietly(rules: &[FilterRule], error: i32) -> io::Result<()> {
    install(by_number(rules)?, SeccompAction::Allow, SeccompAction::Errno(error.unsigned_abs()))
}

/// Refuses `calls` from now on, for this thread and those that it starts.
pub fn deny(calls: &[Call]) -> io::Result<()> {
    let numbers = calls.iter().filter_map(|call| call.number()).map(|number| (number, Vec::new()));
    install(numbers.collect(), SeccompAction::Allow, SeccompAction::Trap)
}

/// The rules by the number of their call. A call that a rule names without tests has no others: it is always matched.
fn by_number(rules: &[FilterRule]) -> io::Result<BTreeMap<i64, Vec<SeccompRule>>> {
    let mut numbers: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    let mut always = Vec::new();
    for FilterRule { call, tests } in rules {
        let Some(number) = call.number() else { continue };
        match tests.is_empty() {
            true => always.push(number),
            false => numbers.entry(number).or_default().push(compiled(tests)?),
        }
    }
    numbers.extend(always.into_iter().map(|number| (number, Vec::new())));
    Ok(numbers)
}

fn compiled(tests: &[(u8, Test)]) -> io::Result<SeccompRule> {
    use SeccompCmpArgLen::{Dword, Qword};
    let condition = |&(place, test): &(u8, Test)| {
        let (length, operator, value) = match test {
            Test::Is(value) => (Dword, SeccompCmpOp::Eq, value),
            Test::Bits { mask, set } => (Dword, SeccompCmpOp::MaskedEq(mask.into()), set),
            Test::AtLeast(value) => (Dword, SeccompCmpOp::Ge, value),
            Test::AtMost(value) => (Dword, SeccompCmpOp::Le, value),
            Test::Null => (Qword, SeccompCmpOp::Eq, 0),
        };
        SeccompCondition::new(place, length, operator, value.into())
    };
    let conditions = tests.iter().map(condition).collect::<Result<_, _>>().map_err(io::Error::other)?;
    SeccompRule::new(conditions).map_err(io::Error::other)
}

fn compile(
    numbers: BTreeMap<i64, Vec<SeccompRule>>,
    others: SeccompAction,
    these: SeccompAction,
) -> io::Result<BpfProgram> {
    let target = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let filter = SeccompFilter::new(numbers, others, these, target).map_err(io::Error::other)?;
    BpfProgram::try_from(filter).map_err(io::Error::other)
}

fn install(
    numbers: BTreeMap<i64, Vec<SeccompRule>>,
    others: SeccompAction,
    these: SeccompAction,
) -> io::Result<()> {
    apply_filter(&compile(numbers, others, these)?).map_err(|error| match error {
        seccompiler::Error::Prctl(error) | seccompiler::Error::Seccomp(error) => error,
        other => io::Error::other(other),
    })
}
