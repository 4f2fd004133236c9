//! System calls of a server, in separate trials, because a tracer inflates every other value.
//!
//! The tracer starts the server. It could not attach later: a server is not dumpable, and many systems allow a user to
//! trace only descendants (`kernel.yama.ptrace_scope`).

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use crate::machine::environment::{TRACER, installed};
use crate::record;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceDetail {
    /// Names of calls, and arguments as numbers.
    Names,
    /// Arguments in words, with the paths and addresses of descriptors.
    Arguments,
}

/// A call that returned.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CompletedCall<'a> {
    /// The thread.
    pub(crate) task: &'a str,
    /// The time of its return, since 1970.
    pub(crate) returned: Duration,
    /// The call with its arguments and its result.
    pub(crate) text: String,
}

impl CompletedCall<'_> {
    fn name(&self) -> Option<&str> {
        let (name, _) = self.text.split_once('(')?;
        let is_name = name.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_');
        (is_name && !name.is_empty()).then_some(name)
    }
}

/// The command prefix that traces a program and its descendants into `file`.
pub(crate) fn words(file: &Path, detail: TraceDetail) -> Result<Vec<String>, String> {
    let program = installed(TRACER).ok_or("strace is not installed; install the package strace")?;
    // Replaces a link of this name.
    record::create(file).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    let details: &[&str] = match detail {
        TraceDetail::Names => &["-e", "raw=all"],
        TraceDetail::Arguments => &["-yy", "-s", "16"],
    };
    let mut words = vec![program.display().to_string()];
    words.extend(["-f", "-q", "-ttt", "-T"].iter().chain(details).map(|word| (*word).to_owned()));
    words.extend(["-o".to_owned(), file.display().to_string()]);
    Ok(words)
}

/// The calls of a trace that returned, in the order of their returns.
pub(crate) fn completed(text: &str) -> Vec<CompletedCall<'_>> {
    let mut unfinished: BTreeMap<&str, &str> = BTreeMap::new();
    let mut all = Vec::new();
    for line in text.lines() {
        let mut words = line.splitn(2, ' ');
        let (Some(task), Some(rest)) = (words.next(), words.next()) else { continue };
        let Some((time, call)) = rest.trim_start().split_once(' ') else { continue };
        if let Some(begun) = call.strip_suffix(" <unfinished ...>") {
            unfinished.insert(task, begun);
            continue;
        }
        let resumed = call.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>"));
        let joined = match resumed {
            Some((_, end)) => format!("{}{end}", unfinished.remove(task).unwrap_or_default()),
            None => call.to_owned(),
        };
        // strace appends the duration, unless a call does not return.
        let (text, lasted) = match joined.strip_suffix('>').and_then(|text| text.rsplit_once(" <")) {
            Some((call, lasted)) => (call.to_owned(), lasted.parse().unwrap_or(0.0)),
            None => (joined, 0.0),
        };
        let since_begin = if resumed.is_some() { 0.0 } else { lasted };
        let time = time.parse::<f64>().ok();
        if let Some(returned) = time.and_then(|time| Duration::try_from_secs_f64(time + since_begin).ok()) {
            all.push(CompletedCall { task, returned, text });
        }
    }
    all
}

/// The number of calls that returned within a time, by name.
pub(crate) fn counts(text: &str, within: &Range<Duration>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for call in completed(text).iter().filter(|call| within.contains(&call.returned)) {
        if let Some(name) = call.name() {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_time_are_counted_by_name() {
        let text = "7 1.0 accept4(0x3, <unfinished ...>\n9 1.1 --- SIGCHLD {} ---\n7 2.5 <... accept4 resumed>0) = 0x4 <1.5>\n\
            7 2.6 recvfrom(0x4, 0x1) = 0x10 <0.000020>\n7 2.7 recvfrom(0x4, 0x1) = -1 (errno 11) <0.000020>\n\
            7 2.9 close(0x4) = 0 <0.5>\n7 3.5 exit_group(0) = ?\n7 3.6 +++ exited with 0 +++";
        let within = |begin: f64, end: f64| {
            counts(text, &(Duration::from_secs_f64(begin)..Duration::from_secs_f64(end)))
        };
        let found = within(2.0, 3.0);
        assert_eq!(found, BTreeMap::from([("accept4".to_owned(), 1), ("recvfrom".to_owned(), 2)]));
        assert_eq!(within(3.0, 4.0), BTreeMap::from([("close".to_owned(), 1), ("exit_group".to_owned(), 1)]));
        assert!(within(5.0, 6.0).is_empty());
    }
}
