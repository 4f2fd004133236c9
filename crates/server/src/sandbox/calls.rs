//! The system calls that each kind of process may make.

use tenfold_engine::{Engine, Plan, Topology};
use tenfold_sys::process;
use tenfold_sys::seccomp::{Call, Rule, Test};
use tenfold_sys::socket::DISCONNECT_BYTES;

/// The C library, the allocator, threads, panics and their backtraces, and what the vDSO falls back to.
const RUNTIME: &[Call] = &[
    Call::BRK,
    Call::CLOCK_GETRES,
    Call::CLOCK_GETTIME,
    Call::CLOCK_NANOSLEEP,
    Call::CLOSE,
    Call::EXIT,
    Call::EXIT_GROUP,
    Call::FUTEX,
    Call::GETCPU,
    Call::GETEGID,
    Call::GETEUID,
    Call::GETGID,
    Call::GETPID,
    Call::GETPPID,
    Call::GETRANDOM,
    Call::GETTID,
    Call::GETTIMEOFDAY,
    Call::GETUID,
    Call::MADVISE,
    Call::MREMAP,
    Call::MUNMAP,
    Call::NANOSLEEP,
    Call::RESTART_SYSCALL,
    Call::RSEQ,
    Call::RT_SIGPROCMASK,
    Call::RT_SIGRETURN,
    Call::SCHED_GETAFFINITY,
    Call::SCHED_YIELD,
    Call::SET_ROBUST_LIST,
    Call::SIGALTSTACK,
    Call::TIME,
    Call::UNAME,
];

/// Files, the log, and standard error.
const FILES: &[Call] = &[
    Call::ACCESS,
    Call::FACCESSAT,
    Call::FACCESSAT2,
    Call::FADVISE64,
    Call::FSTAT,
    Call::FSTATFS,
    Call::GETCWD,
    Call::GETDENTS64,
    Call::LSEEK,
    Call::LSTAT,
    Call::NEWFSTATAT,
    Call::OPEN,
    Call::OPENAT,
    Call::OPENAT2,
    Call::PREAD64,
    Call::READ,
    Call::READLINK,
    Call::READLINKAT,
    Call::READV,
    Call::STAT,
    Call::STATX,
    Call::WRITE,
    Call::WRITEV,
];

/// Connections, wake-ups between threads, and changes of files.
const SERVING: &[Call] = &[
    Call::ACCEPT4,
    Call::EVENTFD2,
    Call::GETPEERNAME,
    Call::GETSOCKNAME,
    Call::GETSOCKOPT,
    Call::INOTIFY_ADD_WATCH,
    Call::INOTIFY_INIT1,
    Call::INOTIFY_RM_WATCH,
    Call::RECVFROM,
    Call::RECVMSG,
    Call::SETSOCKOPT,
    Call::SHUTDOWN,
];

/// Connections to databases and the loops of their clients, the resolver of names, and the files of SQLite.
const ACCOUNTS: &[Call] = &[
    Call::BIND,
    Call::CHDIR,
    Call::CHMOD,
    Call::CONNECT,
    Call::DUP,
    Call::EPOLL_CREATE1,
    Call::EPOLL_CTL,
    Call::EPOLL_PWAIT,
    Call::EPOLL_PWAIT2,
    Call::EPOLL_WAIT,
    Call::EVENTFD2,
    Call::FALLOCATE,
    Call::FCHMOD,
    Call::FCHMODAT,
    Call::FCHOWN,
    Call::FCHOWNAT,
    Call::FDATASYNC,
    Call::FLOCK,
    Call::FSYNC,
    Call::FTRUNCATE,
    Call::GETPEERNAME,
    Call::GETPRIORITY,
    Call::GETSOCKNAME,
    Call::GETSOCKOPT,
    Call::MKDIR,
    Call::MKDIRAT,
    Call::PIPE2,
    Call::POLL,
    Call::PPOLL,
    Call::PWRITE64,
    Call::RECVFROM,
    Call::RECVMMSG,
    Call::RECVMSG,
    Call::SENDMMSG,
    Call::SENDMSG,
    Call::SENDTO,
    Call::SETPRIORITY,
    Call::SETSOCKOPT,
    Call::SHUTDOWN,
    Call::SOCKET,
    Call::SOCKETPAIR,
    Call::STATFS,
    Call::SYSINFO,
    Call::UMASK,
    Call::UNLINK,
    Call::UNLINKAT,
];

/// Calls that no process of the server has a reason for, and an intruder has.
pub(super) fn dangerous() -> Vec<Call> {
    vec![
        Call::ADD_KEY,
        Call::BPF,
        Call::CHROOT,
        Call::CLONE,
        Call::CLONE3,
        Call::DELETE_MODULE,
        Call::EXECVE,
        Call::EXECVEAT,
        Call::FINIT_MODULE,
        Call::FORK,
        Call::INIT_MODULE,
        Call::IOPERM,
        Call::IOPL,
        Call::IO_URING_ENTER,
        Call::IO_URING_REGISTER,
        Call::IO_URING_SETUP,
        Call::KCMP,
        Call::KEXEC_FILE_LOAD,
        Call::KEXEC_LOAD,
        Call::KEYCTL,
        Call::KILL,
        Call::MODIFY_LDT,
        Call::MOUNT,
        Call::NAME_TO_HANDLE_AT,
        Call::OPEN_BY_HANDLE_AT,
        Call::PERF_EVENT_OPEN,
        Call::PERSONALITY,
        Call::PIDFD_GETFD,
        Call::PIVOT_ROOT,
        Call::PPOLL,
        Call::PROCESS_MADVISE,
        Call::PROCESS_VM_READV,
        Call::PROCESS_VM_WRITEV,
        Call::PTRACE,
        Call::REBOOT,
        Call::REQUEST_KEY,
        Call::SETNS,
        Call::SETRESUID,
        Call::SETUID,
        Call::UMOUNT2,
        Call::UNSHARE,
        Call::USERFAULTFD,
        Call::VFORK,
    ]
}

/// The calls that a worker of `plan` may make.
pub(super) fn of_worker(plan: &Plan, several_listeners: bool, members: bool) -> Vec<Rule> {
    let model = plan.engine.model();
    let waits = plan.others_waits();
    // Files are sent as the sender does; flags are looked at below.
    let elsewhere = [Call::CLONE, Call::SENDFILE, Call::SENDTO, Call::SENDMSG];
    let of_model = model.all_calls().filter(|call| !elsewhere.contains(call) && !waits.contains(call));
    let of_sender =
        plan.sender.row().adds.iter().filter(|call| ![Call::SENDTO, Call::SENDMSG].contains(call));
    let mut rules: Vec<Rule> = of_model.map(Rule::from).collect();
    rules.extend(RUNTIME.iter().chain(FILES).chain(SERVING).chain(of_sender).map(|&call| call.into()));
    // MSG_FASTOPEN connects. What a ring sends no filter sees, so its engine has that limit anyhow.
    let unless_it_connects = |place| (place, Test::Bits { mask: libc::MSG_FASTOPEN as u32, set: 0 });
    for (call, flags) in [(Call::SENDTO, 3), (Call::SENDMSG, 2)] {
        rules.push(match plan.engine {
            Engine::Uring => call.into(),
            _ => Rule::when(call, &[unless_it_connects(flags)]),
        });
    }
    // Filters of threads are installed beneath that of the process; a thread that has its own may add none.
    rules.push(Call::SECCOMP.into());
    // A connection is reset by an address that is none.
    rules.push(Rule::when(Call::CONNECT, &[(2, Test::Is(DISCONNECT_BYTES))]));
    let accepts_by_poll = plan.blocking() || plan.topology == Topology::Handoff;
    if several_listeners && accepts_by_poll {
        rules.push(Call::POLL.into());
    } else if plan.blocking() {
        // Whether another connection is in the backlog: a call that does not wait is no model's wait.
        rules.push(Rule::when(Call::POLL, &[(2, Test::Is(0))]));
    }
    match plan.engine {
        Engine::Fork => {
            rules.push(Rule::when(Call::CLONE, &[(0, Test::Is(FORK))]));
            // The processes of connections. Neither groups of processes nor all of them.
            let one = [(0, Test::AtLeast(1)), (0, Test::AtMost(i32::MAX as u32))];
            rules.push(Rule::when(Call::KILL, &one));
        }
        _ => rules.push(thread()),
    }
    if members {
        // For answers. A datagram socket could send to every Unix socket of the machine.
        let stream = Test::Bits { mask: SOCKET_TYPES, set: libc::SOCK_STREAM as u32 };
        rules.push(Rule::when(Call::SOCKETPAIR, &[(0, Test::Is(libc::AF_UNIX as u32)), (1, stream)]));
    }
    // If the kernel has no `poll`, the C library calls `ppoll`.
    let polls = Call::POLL.number().is_none() && !waits.contains(&Call::POLL);
    rules.push(match members || polls {
        true => Call::PPOLL.into(),
        // A pipe that the log waits for, the error queue of a socket, or changes of files and the end: a model would
        // wait for many.
        false => Rule::when(Call::PPOLL, &[(1, Test::AtMost(2))]),
    });
    rules.extend(with_conditions(plan.engine == Engine::Fork));
    rules
}

/// The calls that the accounts process may make.
pub(super) fn of_accounts() -> Vec<Rule> {
    let mut rules: Vec<Rule> = RUNTIME.iter().chain(FILES).chain(ACCOUNTS).map(|&call| call.into()).collect();
    rules.push(thread());
    rules.extend(with_conditions(false));
    rules
}

/// linux/net.h: the bits of a socket's type without its flags.
const SOCKET_TYPES: u32 = 0xf;

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

fn thread() -> Rule {
    Rule::when(Call::CLONE, &[(0, Test::Bits { mask: NAMESPACES | THREAD, set: THREAD })])
}

/// Calls of every process that do many things, of which few are allowed. None is a request's.
fn with_conditions(forks: bool) -> Vec<Rule> {
    let is = |call, place: u8, values: &[u32]| -> Vec<Rule> {
        values.iter().map(|&value| Rule::when(call, &[(place, Test::Is(value))])).collect()
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
    rules.extend(is(
        Call::IOCTL,
        1,
        &[libc::FIONBIO as u32, libc::FIONREAD as u32, libc::TCGETS as u32, libc::TIOCGWINSZ as u32],
    ));
    // Neither F_SETOWN nor F_SETSIG, by which a descriptor sends signals to other processes.
    let descriptors =
        [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC, libc::F_GETFD, libc::F_SETFD, libc::F_GETFL, libc::F_SETFL];
    let locks = [libc::F_GETLK, libc::F_SETLK, libc::F_SETLKW, libc::F_GETPIPE_SZ, libc::F_SETPIPE_SZ];
    let commands: Vec<u32> = descriptors.iter().chain(&locks).map(|&command| command as u32).collect();
    rules.extend(is(Call::FCNTL, 1, &commands));
    // Signals that the C library keeps for itself, and questions: no handler changes.
    rules.extend(is(Call::RT_SIGACTION, 0, &[32, 33]));
    rules.push(Rule::when(Call::RT_SIGACTION, &[(1, Test::Null)]));
    let abort = (2, Test::Is(libc::SIGABRT as u32));
    rules.push(match forks {
        true => Rule::when(Call::TGKILL, &[abort]),
        false => {
            let own = process::own().as_raw_nonzero().get() as u32;
            Rule::when(Call::TGKILL, &[(0, Test::Is(own)), abort])
        }
    });
    // Whether a process that holds a lock is still there: signal 0 is none.
    rules.extend(is(Call::KILL, 1, &[0]));
    rules.push(Rule::when(Call::PRLIMIT64, &[(2, Test::Null)]));
    for call in [Call::MMAP, Call::MPROTECT] {
        rules.push(Rule::when(call, &[(2, Test::Bits { mask: libc::PROT_EXEC as u32, set: 0 })]));
    }
    rules
}
