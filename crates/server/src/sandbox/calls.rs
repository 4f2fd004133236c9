//! The system calls that each kind of process may make.

use std::path::Path;

use tenfold_engine::{Engine, Plan, Sender, Topology};
use tenfold_sys::file::Root;
use tenfold_sys::seccomp::{Call, FilterRule, Test};
use tenfold_sys::socket::DISCONNECT_BYTES;
use tenfold_sys::{kernel_tls, process};

/// The parts of a worker's configuration that determine its sandbox.
pub(crate) struct SandboxSubject<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) several_listeners: bool,
    /// Whether connections run through a layer.
    pub(crate) layered: bool,
    /// Whether the kernel seals records of TLS.
    pub(crate) kernel_tls: bool,
    pub(crate) members: bool,
    /// Whether changes of files are reported.
    pub(crate) watches: bool,
    /// Whether a process of its own signs handshakes.
    pub(crate) signs: bool,
    pub(crate) roots: &'a [Root],
    /// The paths beneath which it writes.
    pub(crate) written: &'a [&'a Path],
}

/// System calls by their names.
macro_rules! calls {
    ($($name:ident)*) => { &[$(Call::$name),*] };
}

/// The C library, the allocator, threads, panics and their backtraces, and the fallbacks of the vDSO.
const RUNTIME: &[Call] = calls! {
    BRK CLOCK_GETRES CLOCK_GETTIME CLOCK_NANOSLEEP CLOSE EXIT EXIT_GROUP FUTEX GETCPU GETEGID GETEUID
    GETGID GETPID GETPPID GETRANDOM GETTID GETTIMEOFDAY GETUID MADVISE MREMAP MUNMAP NANOSLEEP
    RESTART_SYSCALL RSEQ RT_SIGPROCMASK RT_SIGRETURN SCHED_GETAFFINITY SCHED_YIELD SET_ROBUST_LIST
    SIGALTSTACK TIME UNAME
};

/// Files, the log, and standard error.
const FILES: &[Call] = calls! {
    ACCESS FACCESSAT FACCESSAT2 FADVISE64 FSTAT FSTATFS GETCWD GETDENTS64 LSEEK LSTAT NEWFSTATAT
    PREAD64 READ READLINK READLINKAT READV STAT STATX WRITE WRITEV
};

/// Connections, and wake-ups between threads.
const SERVING: &[Call] = calls! {
    ACCEPT4 EVENTFD2 GETPEERNAME GETSOCKNAME GETSOCKOPT RECVFROM RECVMSG SHUTDOWN
};

/// Changes of files.
const WATCHING: &[Call] = calls! { INOTIFY_ADD_WATCH INOTIFY_INIT1 INOTIFY_RM_WATCH };

/// Loops of clients, and files that are replaced as a whole.
const CLIENT: &[Call] = calls! {
    DUP EPOLL_CREATE1 EPOLL_CTL EPOLL_PWAIT EPOLL_PWAIT2 EPOLL_WAIT EVENTFD2 FDATASYNC FLOCK
    FSYNC FTRUNCATE GETPEERNAME GETSOCKNAME GETSOCKOPT MKDIR MKDIRAT PIPE2 POLL PPOLL PWRITE64 RECVFROM
    RECVMMSG RECVMSG SENDMMSG SENDMSG SENDTO SETSOCKOPT SHUTDOWN STATFS SYSINFO UNLINK UNLINKAT
};

/// Clients of the network, and the resolver of names. The socket of another process of the user may be a way out of the
/// sandbox: that of a session starts programs.
const CONNECTING: &[Call] = calls! { BIND CONNECT };

/// The files of SQLite.
const ACCOUNTS: &[Call] = calls! { CHDIR FALLOCATE FCHOWN FCHOWNAT GETPRIORITY UMASK };

/// Changes of modes by SQLite, with the index of the mode.
const MODES: [(Call, u8); 3] = [(Call::CHMOD, 1), (Call::FCHMOD, 1), (Call::FCHMODAT, 2)];

/// A mode of an ordinary file. With a set-user-ID file, any user could execute a program as the user of the process, outside
/// of its sandbox.
const PLAIN_MODE: Test = Test::Bits { mask: libc::S_ISUID | libc::S_ISGID, set: 0 };

/// Options that a worker sets on connections and on the sockets that it waits at, by level. SO_ATTACH_REUSEPORT_CBPF on
/// a listening socket would take the connections of other workers.
const OPTIONS: [(libc::c_int, libc::c_int); 6] = [
    (libc::SOL_SOCKET, libc::SO_RCVTIMEO),
    (libc::SOL_SOCKET, libc::SO_SNDTIMEO),
    (libc::SOL_SOCKET, libc::SO_RCVTIMEO_NEW),
    (libc::SOL_SOCKET, libc::SO_SNDTIMEO_NEW),
    (libc::IPPROTO_TCP, libc::TCP_CORK),
    (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
];

/// Calls that no process of the server needs, but an intruder would.
pub(super) static DANGEROUS: &[Call] = calls! {
    ADD_KEY BPF CHROOT CLONE CLONE3 DELETE_MODULE EXECVE EXECVEAT FINIT_MODULE FORK INIT_MODULE IOPERM
    IOPL IO_URING_ENTER IO_URING_REGISTER IO_URING_SETUP KCMP KEXEC_FILE_LOAD KEXEC_LOAD KEYCTL KILL
    MODIFY_LDT MOUNT NAME_TO_HANDLE_AT OPEN_BY_HANDLE_AT PERF_EVENT_OPEN PERSONALITY PIDFD_GETFD
    PIVOT_ROOT PPOLL PROCESS_MADVISE PROCESS_VM_READV PROCESS_VM_WRITEV PTRACE REBOOT REQUEST_KEY SETNS
    SETRESUID SETUID TGKILL UMOUNT2 UNSHARE USERFAULTFD VFORK
};

/// The calls that a worker of `plan` may make.
pub(super) fn of_worker(serving: &SandboxSubject<'_>) -> Vec<FilterRule> {
    let SandboxSubject { plan, several_listeners, layered, kernel_tls, members, watches, signs, .. } =
        *serving;
    let model = plan.engine.model();
    let waits = plan.others_waits();
    // The calls of the sender; flags are checked below.
    let elsewhere = [Call::CLONE, Call::SENDFILE, Call::SENDTO, Call::SENDMSG];
    let of_model = model.all_calls().filter(|call| !elsewhere.contains(call) && !waits.contains(call));
    let of_sender =
        plan.sender.row().adds.iter().filter(|call| ![Call::SENDTO, Call::SENDMSG].contains(call));
    let mut rules: Vec<FilterRule> = of_model.map(FilterRule::from).collect();
    rules.push(Call::OPENAT2.into());
    rules.extend(RUNTIME.iter().chain(FILES).chain(SERVING).chain(of_sender).map(|&call| call.into()));
    // MSG_FASTOPEN connects. Filters do not see the sends of a ring, so the rule would not limit an engine with a ring.
    let unless_it_connects = |place| (place, Test::Bits { mask: libc::MSG_FASTOPEN as u32, set: 0 });
    for (call, flags) in [(Call::SENDTO, 3), (Call::SENDMSG, 2)] {
        rules.push(match plan.engine {
            Engine::Uring => call.into(),
            _ => FilterRule::when(call, &[unless_it_connects(flags)]),
        });
    }
    // A worker lowers its own limit of locked memory.
    if plan.sender == Sender::Zerocopy {
        let own_lock = [(0, Test::Is(0)), (1, Test::Is(libc::RLIMIT_MEMLOCK))];
        rules.push(FilterRule::when(Call::PRLIMIT64, &own_lock));
    }
    if watches {
        rules.extend(WATCHING.iter().map(|&call| FilterRule::from(call)));
    }
    // A loop and a layer ask whether a file is cached.
    if layered || !plan.blocking() {
        rules.push(Call::PREADV2.into());
    }
    if plan.narrows_threads() {
        rules.push(Call::SECCOMP.into());
    }
    // connect(AF_UNSPEC) resets the connection.
    rules.push(FilterRule::when(Call::CONNECT, &[(2, Test::Is(DISCONNECT_BYTES))]));
    let of_kernel_tls = kernel_tls::OPTIONS.into_iter().filter(|_| kernel_tls);
    rules.extend(OPTIONS.into_iter().chain(of_kernel_tls).map(|(level, option)| {
        FilterRule::when(Call::SETSOCKOPT, &[(1, Test::Is(level as u32)), (2, Test::Is(option as u32))])
    }));
    let accepts_by_calls = plan.blocking() || plan.topology == Topology::Handoff;
    if several_listeners && accepts_by_calls {
        rules.push(Call::POLL.into());
    } else if plan.blocking() {
        // Checks for another connection in the backlog: a non-blocking call is not a wait of any model.
        rules.push(FilterRule::when(Call::POLL, &[(2, Test::Is(0))]));
    }
    match plan.engine {
        Engine::Fork => {
            rules.push(FilterRule::when(Call::CLONE, &[(0, Test::Is(FORK))]));
            // The processes of connections; neither process groups nor all processes.
            let one = [(0, Test::AtLeast(1)), (0, Test::AtMost(i32::MAX as u32))];
            rules.push(FilterRule::when(Call::KILL, &one));
            // Each of them offers itself when memory runs out: see `tenfold_sys::sacrifice`.
            let dumpable = [libc::PR_GET_DUMPABLE, libc::PR_SET_DUMPABLE];
            rules.extend(
                dumpable.map(|option| FilterRule::when(Call::PRCTL, &[(0, Test::Is(option as u32))])),
            );
        }
        _ => rules.push(thread()),
    }
    // Processes of connections share the sockets to the process that signs, and each receives its own answers.
    if members || (signs && plan.engine == Engine::Fork) {
        // For answers. A datagram socket could send to every Unix socket of the machine.
        let stream = Test::Bits { mask: SOCKET_TYPES, set: libc::SOCK_STREAM as u32 };
        rules.push(FilterRule::when(Call::SOCKETPAIR, &[(0, Test::Is(libc::AF_UNIX as u32)), (1, stream)]));
    }
    // If the kernel has no `poll`, the C library calls `ppoll`.
    let polls = Call::POLL.number().is_none() && !waits.contains(&Call::POLL);
    rules.push(match members || polls {
        true => Call::PPOLL.into(),
        // One or two descriptors: a pipe of the log, the error queue of a socket, or file changes and the end. A model
        // would wait for many.
        false => FilterRule::when(Call::PPOLL, &[(1, Test::AtMost(2))]),
    });
    rules.extend(with_conditions());
    rules
}

/// The calls that the accounts process may make, which `connects` to a database, or has it in a file.
pub(super) fn of_accounts(connects: bool) -> Vec<FilterRule> {
    let mut rules = of_client();
    rules.extend(ACCOUNTS.iter().map(|&call| FilterRule::from(call)));
    rules.extend(MODES.map(|(call, mode)| FilterRule::when(call, &[(mode, PLAIN_MODE)])));
    if connects {
        let all = CONNECTING.iter().chain(&[Call::SOCKET, Call::SOCKETPAIR]);
        rules.extend(all.map(|&call| FilterRule::from(call)));
    }
    // A thread that hashes lowers only its own priority.
    let own = [(0, Test::Is(libc::PRIO_PROCESS)), (1, Test::Is(0))];
    rules.push(FilterRule::when(Call::SETPRIORITY, &own));
    rules
}

/// The calls of the process that obtains certificates. It may have the user id of root. Landlock limits its files, but not
/// changes of modes and owners, nor Unix sockets. So the filter refuses these changes and sockets: see [`absent_of_acme`].
#[cfg(feature = "acme")]
pub(super) fn of_acme() -> Vec<FilterRule> {
    let mut rules = of_client();
    rules.extend(CONNECTING.iter().map(|&call| FilterRule::from(call)));
    rules.push(Call::RENAMEAT.into());
    let families = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_UNIX];
    rules.extend(families.map(|family| FilterRule::when(Call::SOCKET, &[(0, Test::Is(family as u32))])));
    rules
}

/// The calls that fail in this process as if the kernel had no Unix sockets. The C library first looks for a name service at
/// a Unix socket, which deserves no report.
#[cfg(feature = "acme")]
pub(super) fn absent_of_acme() -> [FilterRule; 1] {
    [FilterRule::when(Call::SOCKET, &[(0, Test::Is(libc::AF_UNIX as u32))])]
}

/// The calls of a process with a client, without the calls that connect it.
fn of_client() -> Vec<FilterRule> {
    let mut rules: Vec<FilterRule> =
        RUNTIME.iter().chain(FILES).chain(CLIENT).map(|&call| call.into()).collect();
    rules.push(thread());
    rules.extend(with_conditions());
    rules
}

/// linux/net.h: the bits of a socket's type without its flags.
const SOCKET_TYPES: u32 = 0xf;

/// The calls that a process with the keys of certificates may make: it reads open files, and answers on open sockets.
pub(super) fn of_signing() -> Vec<FilterRule> {
    const SIGNING: &[Call] = calls! { EVENTFD2 GETSOCKOPT POLL PPOLL RECVMSG SENDTO };
    let mut rules: Vec<FilterRule> =
        RUNTIME.iter().chain(FILES).chain(SIGNING).map(|&call| call.into()).collect();
    rules.push(thread());
    rules.extend(with_conditions());
    rules
}

/// The flags of `fork(3)`.
const FORK: u32 = (libc::CLONE_CHILD_CLEARTID | libc::CLONE_CHILD_SETTID | libc::SIGCHLD) as u32;
const THREAD: u32 = libc::CLONE_THREAD as u32;
const NAMESPACES: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// linux/prctl.h: rustix reads the size of a page.
const PR_GET_AUXV: u32 = 0x4155_5856;

fn thread() -> FilterRule {
    FilterRule::when(Call::CLONE, &[(0, Test::Bits { mask: NAMESPACES | THREAD, set: THREAD })])
}

/// Calls of every process with many functions, of which few are allowed. None is on the path of a request.
fn with_conditions() -> Vec<FilterRule> {
    let is = |call, place: u8, values: &[u32]| -> Vec<FilterRule> {
        values.iter().map(|&value| FilterRule::when(call, &[(place, Test::Is(value))])).collect()
    };
    let mut rules = is(
        Call::PRCTL,
        0,
        &[
            PR_GET_AUXV,
            libc::PR_SET_NAME as u32,
            libc::PR_SET_NO_NEW_PRIVS as u32,
            libc::PR_SET_PDEATHSIG as u32,
            libc::PR_SET_VMA as u32,
        ],
    );
    let controls =
        [libc::FIONBIO, libc::FIONREAD, libc::TCGETS, libc::TIOCGWINSZ].map(|control| control as u32);
    rules.extend(is(Call::IOCTL, 1, &controls));
    // Neither F_SETOWN nor F_SETSIG, by which a descriptor sends signals to other processes.
    let descriptors =
        [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC, libc::F_GETFD, libc::F_SETFD, libc::F_GETFL, libc::F_SETFL];
    let locks = [libc::F_GETLK, libc::F_SETLK, libc::F_SETLKW, libc::F_GETPIPE_SZ, libc::F_SETPIPE_SZ];
    let commands: Vec<u32> = descriptors.iter().chain(&locks).map(|&command| command as u32).collect();
    rules.extend(is(Call::FCNTL, 1, &commands));
    // Signals reserved for the C library, and queries; no other handler may change. The Rust runtime restores the
    // default action of a memory fault, which ends the process; otherwise its handler would be called forever.
    rules.extend(is(Call::RT_SIGACTION, 0, &[32, 33, libc::SIGBUS as u32, libc::SIGSEGV as u32]));
    rules.push(FilterRule::when(Call::RT_SIGACTION, &[(1, Test::Null)]));
    // O_TRUNC also empties a file that is opened for reading, and Landlock before Linux 6.2 does not prevent that.
    let keeps = Test::Bits { mask: libc::O_TRUNC as u32, set: 0 };
    for (call, flags) in [(Call::OPEN, 1), (Call::OPENAT, 2)] {
        rules.push(FilterRule::when(call, &[(flags, keeps), (flags + 1, PLAIN_MODE)]));
    }
    let own = process::own().as_raw_nonzero().get() as u32;
    rules.push(FilterRule::when(Call::TGKILL, &[(0, Test::Is(own)), (2, Test::Is(libc::SIGABRT as u32))]));
    // Signal 0 sends nothing; it checks whether the holder of a lock still exists.
    rules.extend(is(Call::KILL, 1, &[0]));
    rules.push(FilterRule::when(Call::PRLIMIT64, &[(2, Test::Null)]));
    for call in [Call::MMAP, Call::MPROTECT] {
        rules.push(FilterRule::when(call, &[(2, Test::Bits { mask: libc::PROT_EXEC as u32, set: 0 })]));
    }
    rules
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
    use rustix::io::Errno;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket, socketpair};
    use tenfold_sys::seccomp::{REPORT_WORDS, Reports, allow_only, fail_quietly, handle};
    use tenfold_sys::shared::SharedRows;
    use tenfold_sys::task;

    use super::*;

    #[test]
    fn h79_the_accounts_process_makes_no_set_user_id_file() {
        let path = std::env::temp_dir().join(format!("tenfold-modes-{}", std::process::id()));
        let file = std::fs::File::create(&path).expect("a new file");
        let own = path.clone();
        confined(&[], of_accounts(false), move || {
            let (plain, special) = (Mode::from_raw_mode(0o640), [0o4755, 0o2755].map(Mode::from_raw_mode));
            rustix::fs::fchmod(&file, plain).expect("SQLite does");
            rustix::fs::chmod(&own, plain).expect("SQLite does");
            for mode in special {
                let new = rustix::fs::openat(CWD, &own, OFlags::CREATE | OFlags::WRONLY, mode);
                assert_eq!(new.err(), Some(Errno::PERM));
                assert_eq!(rustix::fs::fchmod(&file, mode), Err(Errno::PERM));
                assert_eq!(rustix::fs::chmod(&own, mode), Err(Errno::PERM));
            }
        });
        std::fs::remove_file(path).expect("our own file");
    }

    #[test]
    fn h79_the_accounts_process_of_a_file_has_no_sockets() {
        confined(&[], of_accounts(false), || {
            for family in [AddressFamily::UNIX, AddressFamily::INET, AddressFamily::INET6] {
                assert_eq!(socket(family, SocketType::STREAM, None).err(), Some(Errno::PERM), "{family:?}");
            }
            let pair = socketpair(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::empty(), None);
            assert_eq!(pair.err(), Some(Errno::PERM), "it could send to any socket");
            task::lower_priority(1).expect("threads that hash do");
            let parent = rustix::process::getppid();
            assert_eq!(rustix::process::setpriority_process(parent, 1), Err(Errno::PERM));
        });
    }

    #[cfg(feature = "acme")]
    #[test]
    fn h79_the_process_for_certificates_changes_no_modes_and_has_no_unix_sockets() {
        let file = std::fs::File::open("/dev/null").expect("there is a null device");
        confined(&absent_of_acme(), of_acme(), move || {
            assert_eq!(rustix::fs::chmod("/dev/null", Mode::RWXU), Err(Errno::PERM));
            assert_eq!(rustix::fs::fchmod(&file, Mode::RWXU), Err(Errno::PERM));
            assert_eq!(rustix::fs::chown("/dev/null", None, None), Err(Errno::PERM));
            for kind in [SocketType::STREAM, SocketType::DGRAM] {
                assert_eq!(socket(AddressFamily::UNIX, kind, None).err(), Some(Errno::AFNOSUPPORT));
                let pair = socketpair(AddressFamily::UNIX, kind, SocketFlags::empty(), None);
                assert_eq!(pair.err(), Some(Errno::PERM), "it could send to any socket");
            }
            for family in [AddressFamily::INET, AddressFamily::INET6, AddressFamily::NETLINK] {
                let kind =
                    if family == AddressFamily::NETLINK { SocketType::RAW } else { SocketType::STREAM };
                assert_ne!(socket(family, kind, None).err(), Some(Errno::PERM), "{family:?}");
            }
        });
    }

    #[test]
    fn h79_a_process_with_a_client_empties_no_file_by_opening_it() {
        let path = std::env::temp_dir().join(format!("tenfold-kept-{}", std::process::id()));
        let (first, second) = (path.clone(), path.clone());
        std::fs::write(&path, "kept").expect("a temporary file");
        let try_it = |path: &Path| {
            let flags = OFlags::RDONLY | OFlags::TRUNC;
            assert_eq!(rustix::fs::open(path, flags, Mode::empty()).err(), Some(Errno::PERM));
            let anywhere = ResolveFlags::empty();
            let opened = rustix::fs::openat2(CWD, path, flags, Mode::empty(), anywhere);
            assert_eq!(opened.err(), Some(Errno::PERM), "no filter sees its flags");
            rustix::fs::open(path, OFlags::RDWR | OFlags::CREATE, Mode::empty()).expect("clients do");
        };
        confined(&[], of_accounts(true), move || try_it(&first));
        confined(&[], of_signing(), move || try_it(&second));
        assert_eq!(std::fs::read(&path).expect("it is there"), b"kept");
        std::fs::remove_file(&path).expect("our own file");
    }

    /// Runs `work` on a thread with the calls of `rules`, of which the calls of `absent` fail without a report.
    #[track_caller]
    fn confined(absent: &[FilterRule], rules: Vec<FilterRule>, work: impl FnOnce() + Send + 'static) {
        let absent = absent.to_vec();
        let rows: &SharedRows = Box::leak(Box::new(SharedRows::new(2, REPORT_WORDS).expect("memory")));
        let thread = std::thread::spawn(move || {
            let reports = Reports { row: rows.row(0), refused: &rows.row(1)[0], line: None };
            fail_quietly(&absent, libc::EAFNOSUPPORT).expect("a filter");
            handle(reports, DANGEROUS).and_then(|()| allow_only(&rules)).expect("filters");
            work();
        });
        thread.join().expect("the filter is as it says");
    }
}
