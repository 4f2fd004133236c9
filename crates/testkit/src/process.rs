//! Processes according to `/proc`, and signals to them (`man 5 proc`).

use std::fs;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketType, sendmsg, sockopt,
};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open};

/// Sends a message with descriptors, at most two, to a socket of [`Process::message_sockets`].
pub fn send_message(
    to: &OwnedFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)), "there is room for two");
    }
    sendmsg(to, &[IoSlice::new(bytes)], &mut control, flags).map(drop)
}

/// A field of a `stat` file, counted from the state.
fn field(stat: &str, number: usize) -> Option<String> {
    // The name is in parentheses and may contain anything.
    stat[stat.rfind(')')? + 1..].split_ascii_whitespace().nth(number).map(str::to_owned)
}

/// A process by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Process(pub u32);

impl Process {
    /// All processes.
    pub fn all() -> Vec<Process> {
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        numbers.map(Process).collect()
    }

    /// Its live direct children. A zombie has ended.
    pub fn children(self) -> Vec<Process> {
        let mut found: Vec<Process> = Process::all()
            .into_iter()
            .filter(|process| process.stat(1).as_deref() == Some(&self.0.to_string()))
            .collect();
        found.retain(|process| process.is_running());
        found.sort();
        found
    }

    /// The process and all its descendants.
    pub fn with_descendants(self) -> Vec<Process> {
        let mut all = vec![self];
        let mut at = 0;
        while at < all.len() {
            all.extend(all[at].children());
            at += 1;
        }
        all
    }

    /// The names of its threads; empty if it has ended.
    pub fn threads(self) -> Vec<String> {
        let tasks =
            fs::read_dir(format!("/proc/{}/task", self.0)).into_iter().flatten().filter_map(Result::ok);
        tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok()).collect()
    }

    /// Whether it exists and has not ended.
    pub fn is_running(self) -> bool {
        self.stat(0).is_some_and(|state| state != "Z" && state != "X")
    }

    /// Whether all its threads wait for an event: no thread is running, runnable, or stopped.
    pub fn is_sleeping(self) -> bool {
        self.threads_are("S")
    }

    /// Whether a signal has stopped all its threads. A thread can still accept when another has stopped.
    pub fn is_stopped(self) -> bool {
        self.threads_are("T")
    }

    fn threads_are(self, state: &str) -> bool {
        let Ok(tasks) = fs::read_dir(format!("/proc/{}/task", self.0)) else { return false };
        let states: Vec<_> = tasks
            .filter_map(|task| fs::read_to_string(task.ok()?.path().join("stat")).ok())
            .map(|stat| field(&stat, 0))
            .collect();
        !states.is_empty() && states.iter().all(|one| one.as_deref() == Some(state))
    }

    /// A field of `/proc/PID/stat`, counted from the state: 0 is the state, 1 the parent.
    fn stat(self, number: usize) -> Option<String> {
        field(&fs::read_to_string(format!("/proc/{}/stat", self.0)).ok()?, number)
    }

    /// The value of a line of `/proc/PID/status`.
    pub fn status(self, name: &str) -> Option<String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(line.trim().to_owned())
    }

    /// Its working directory; `None` if it has ended or belongs to another user.
    pub fn folder(self) -> Option<PathBuf> {
        fs::read_link(format!("/proc/{}/cwd", self.0)).ok()
    }

    /// Its command line; empty if it has ended.
    pub fn words(self) -> Vec<String> {
        let line = fs::read(format!("/proc/{}/cmdline", self.0)).unwrap_or_default();
        line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
    }

    /// Private memory in KiB, clean and dirty (`/proc/PID/smaps_rollup`); `None` if it has ended.
    pub fn private_memory(self) -> Option<u64> {
        let parts = fs::read_to_string(format!("/proc/{}/smaps_rollup", self.0)).ok()?;
        let private =
            |line: &str| line.strip_prefix("Private_")?.split_ascii_whitespace().nth(1)?.parse::<u64>().ok();
        Some(parts.lines().filter_map(private).sum::<u64>())
    }

    /// Whether its writable memory contains `needle` (`/proc/PID/mem`), which root may read.
    #[track_caller]
    pub fn remembers(self, needle: &[u8]) -> bool {
        !self.remembered_behind(needle, 0).is_empty()
    }

    /// The `count` bytes after each occurrence of `needle` in its writable memory; empty if it has ended.
    #[track_caller]
    pub fn remembered_behind(self, needle: &[u8], count: usize) -> Vec<Vec<u8>> {
        let at = |name| format!("/proc/{}/{name}", self.0);
        let (maps, memory) = match (fs::read_to_string(at("maps")), fs::File::open(at("mem"))) {
            (Ok(maps), Ok(memory)) => (maps, memory),
            _ if !self.is_running() => return Vec::new(),
            (maps, memory) => panic!("{}: {:?}, {:?}", self.0, maps.err(), memory.err()),
        };
        let mut found = Vec::new();
        for line in maps.lines().filter(|line| line.contains(" rw")) {
            let range = line.split([' ', '-']).take(2).map(|word| u64::from_str_radix(word, 16));
            let [Ok(begin), Ok(end)] = range.collect::<Vec<_>>()[..] else { continue };
            let mut bytes = vec![0; (end - begin) as usize];
            if memory.read_exact_at(&mut bytes, begin).is_ok() {
                let places = memchr::memmem::find_iter(&bytes, needle).map(|place| place + needle.len());
                found.extend(places.filter_map(|place| bytes.get(place..place + count)).map(<[u8]>::to_vec));
            }
        }
        found
    }

    /// The targets of its open descriptors, as in `/proc/PID/fd`; empty if it has ended.
    pub fn descriptors(self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", self.0)) else { return Vec::new() };
        let links = entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        links.map(|link| link.to_string_lossy().into_owned()).collect()
    }

    /// Copies of its Unix sockets with message boundaries.
    pub fn message_sockets(self) -> Vec<OwnedFd> {
        let is_of_messages = |socket: &OwnedFd| {
            sockopt::socket_domain(socket) == Ok(AddressFamily::UNIX)
                && sockopt::socket_type(socket) == Ok(SocketType::SEQPACKET)
        };
        self.copies(is_of_messages)
    }

    /// Copies of its descriptors that `which` selects.
    fn copies(self, which: impl Fn(&OwnedFd) -> bool) -> Vec<OwnedFd> {
        let number = i32::try_from(self.0).ok().and_then(Pid::from_raw).expect("a number of a process");
        let handle = pidfd_open(number, PidfdFlags::empty()).expect("it runs");
        let names = fs::read_dir(format!("/proc/{}/fd", self.0)).expect("it runs").flatten();
        let numbers = names.filter_map(|name| name.file_name().to_str()?.parse().ok());
        let copies = numbers.filter_map(|number| {
            let copy = pidfd_getfd(&handle, number, PidfdGetfdFlags::empty());
            copy.inspect_err(|error| assert_ne!(*error, Errno::PERM, "the test is root")).ok()
        });
        copies.filter(which).collect()
    }

    /// The lowest unused descriptor number. With this limit the process cannot open anything.
    pub fn first_free_descriptor(self) -> usize {
        let taken = |number: &usize| fs::symlink_metadata(format!("/proc/{}/fd/{number}", self.0)).is_ok();
        (0..).find(|number| !taken(number)).expect("descriptors have a limit")
    }

    /// Processor time used so far, including reaped children.
    pub fn processor_time(self) -> Duration {
        // Fields 14 to 17 of the manual, in ticks of 10 ms: user and system, own and children's.
        let ticks: u64 = (11..15).filter_map(|field| self.stat(field)?.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Sends a signal. An ended process is ignored.
    pub fn signal(self, signal: Signal) {
        let number = i32::try_from(self.0).ok().and_then(Pid::from_raw);
        let _ = kill_process(number.expect("a process has a positive number"), signal);
    }
}
