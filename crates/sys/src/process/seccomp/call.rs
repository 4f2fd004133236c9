//! System calls, named as in `strace`.

use std::fmt;

/// A system call: its name, and its number on this architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    name: &'static str,
    number: i64,
}

/// The number of a call that this architecture lacks.
const ABSENT: i64 = -1;

impl Call {
    /// The number; `None` if this architecture lacks the call.
    pub fn number(self) -> Option<i64> {
        (self.number != ABSENT).then_some(self.number)
    }

    /// The name of a number, if it is one of [`Call::ALL`].
    pub fn name_of(number: i64) -> Option<&'static str> {
        Call::ALL.iter().find(|call| call.number() == Some(number)).map(|call| call.name)
    }

    /// The call with this name, if it is one of [`Call::ALL`].
    pub fn named(name: &str) -> Option<Call> {
        Call::ALL.iter().copied().find(|call| call.name == name)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! calls {
    (everywhere { $($name:ident $text:literal = $number:ident),+ $(,)? }
     x86_64 { $($old:ident $old_text:literal = $old_number:ident),+ $(,)? }) => {
        /// The calls that a filter, a table or a report names.
        #[expect(missing_docs, reason = "each is documented by its manual page")]
        impl Call {
            $(pub const $name: Call = Call { name: $text, number: libc::$number };)+
            $(
                #[cfg(target_arch = "x86_64")]
                pub const $old: Call = Call { name: $old_text, number: libc::$old_number };
                #[cfg(not(target_arch = "x86_64"))]
                pub const $old: Call = Call { name: $old_text, number: ABSENT };
            )+

            pub const ALL: &'static [Call] = &[$(Call::$name,)+ $(Call::$old),+];
        }
    };
}

calls! {
    everywhere {
        ACCEPT "accept" = SYS_accept,
        ACCEPT4 "accept4" = SYS_accept4,
        ADD_KEY "add_key" = SYS_add_key,
        BIND "bind" = SYS_bind,
        BPF "bpf" = SYS_bpf,
        BRK "brk" = SYS_brk,
        CHDIR "chdir" = SYS_chdir,
        CHROOT "chroot" = SYS_chroot,
        CLOCK_GETRES "clock_getres" = SYS_clock_getres,
        CLOCK_GETTIME "clock_gettime" = SYS_clock_gettime,
        CLOCK_NANOSLEEP "clock_nanosleep" = SYS_clock_nanosleep,
        CLONE "clone" = SYS_clone,
        CLONE3 "clone3" = SYS_clone3,
        CLOSE "close" = SYS_close,
        CONNECT "connect" = SYS_connect,
        DELETE_MODULE "delete_module" = SYS_delete_module,
        DUP "dup" = SYS_dup,
        DUP3 "dup3" = SYS_dup3,
        EPOLL_CREATE1 "epoll_create1" = SYS_epoll_create1,
        EPOLL_CTL "epoll_ctl" = SYS_epoll_ctl,
        EPOLL_PWAIT "epoll_pwait" = SYS_epoll_pwait,
        EPOLL_PWAIT2 "epoll_pwait2" = SYS_epoll_pwait2,
        EVENTFD2 "eventfd2" = SYS_eventfd2,
        EXECVE "execve" = SYS_execve,
        EXECVEAT "execveat" = SYS_execveat,
        EXIT "exit" = SYS_exit,
        EXIT_GROUP "exit_group" = SYS_exit_group,
        FACCESSAT "faccessat" = SYS_faccessat,
        FACCESSAT2 "faccessat2" = SYS_faccessat2,
        FADVISE64 "fadvise64" = SYS_fadvise64,
        FALLOCATE "fallocate" = SYS_fallocate,
        FCHMOD "fchmod" = SYS_fchmod,
        FCHMODAT "fchmodat" = SYS_fchmodat,
        FCHOWN "fchown" = SYS_fchown,
        FCHOWNAT "fchownat" = SYS_fchownat,
        FCNTL "fcntl" = SYS_fcntl,
        FDATASYNC "fdatasync" = SYS_fdatasync,
        FINIT_MODULE "finit_module" = SYS_finit_module,
        FLOCK "flock" = SYS_flock,
        FSTAT "fstat" = SYS_fstat,
        FSTATFS "fstatfs" = SYS_fstatfs,
        FSYNC "fsync" = SYS_fsync,
        FTRUNCATE "ftruncate" = SYS_ftruncate,
        FUTEX "futex" = SYS_futex,
        GETCPU "getcpu" = SYS_getcpu,
        GETCWD "getcwd" = SYS_getcwd,
        GETDENTS64 "getdents64" = SYS_getdents64,
        GETEGID "getegid" = SYS_getegid,
        GETEUID "geteuid" = SYS_geteuid,
        GETGID "getgid" = SYS_getgid,
        GETPEERNAME "getpeername" = SYS_getpeername,
        GETPID "getpid" = SYS_getpid,
        GETPPID "getppid" = SYS_getppid,
        GETPRIORITY "getpriority" = SYS_getpriority,
        GETRANDOM "getrandom" = SYS_getrandom,
        GETSOCKNAME "getsockname" = SYS_getsockname,
        GETSOCKOPT "getsockopt" = SYS_getsockopt,
        GETTID "gettid" = SYS_gettid,
        GETTIMEOFDAY "gettimeofday" = SYS_gettimeofday,
        GETUID "getuid" = SYS_getuid,
        INIT_MODULE "init_module" = SYS_init_module,
        INOTIFY_ADD_WATCH "inotify_add_watch" = SYS_inotify_add_watch,
        INOTIFY_INIT1 "inotify_init1" = SYS_inotify_init1,
        INOTIFY_RM_WATCH "inotify_rm_watch" = SYS_inotify_rm_watch,
        IOCTL "ioctl" = SYS_ioctl,
        IO_URING_ENTER "io_uring_enter" = SYS_io_uring_enter,
        IO_URING_REGISTER "io_uring_register" = SYS_io_uring_register,
        IO_URING_SETUP "io_uring_setup" = SYS_io_uring_setup,
        KCMP "kcmp" = SYS_kcmp,
        KEXEC_FILE_LOAD "kexec_file_load" = SYS_kexec_file_load,
        KEXEC_LOAD "kexec_load" = SYS_kexec_load,
        KEYCTL "keyctl" = SYS_keyctl,
        KILL "kill" = SYS_kill,
        LISTEN "listen" = SYS_listen,
        LSEEK "lseek" = SYS_lseek,
        MADVISE "madvise" = SYS_madvise,
        MKDIRAT "mkdirat" = SYS_mkdirat,
        MMAP "mmap" = SYS_mmap,
        MOUNT "mount" = SYS_mount,
        MPROTECT "mprotect" = SYS_mprotect,
        MREMAP "mremap" = SYS_mremap,
        MUNMAP "munmap" = SYS_munmap,
        NAME_TO_HANDLE_AT "name_to_handle_at" = SYS_name_to_handle_at,
        NANOSLEEP "nanosleep" = SYS_nanosleep,
        NEWFSTATAT "newfstatat" = SYS_newfstatat,
        OPENAT "openat" = SYS_openat,
        OPENAT2 "openat2" = SYS_openat2,
        OPEN_BY_HANDLE_AT "open_by_handle_at" = SYS_open_by_handle_at,
        PERF_EVENT_OPEN "perf_event_open" = SYS_perf_event_open,
        PERSONALITY "personality" = SYS_personality,
        PIDFD_GETFD "pidfd_getfd" = SYS_pidfd_getfd,
        PIPE2 "pipe2" = SYS_pipe2,
        PIVOT_ROOT "pivot_root" = SYS_pivot_root,
        PPOLL "ppoll" = SYS_ppoll,
        PRCTL "prctl" = SYS_prctl,
        PREAD64 "pread64" = SYS_pread64,
        PREADV2 "preadv2" = SYS_preadv2,
        PRLIMIT64 "prlimit64" = SYS_prlimit64,
        PROCESS_MADVISE "process_madvise" = SYS_process_madvise,
        PROCESS_VM_READV "process_vm_readv" = SYS_process_vm_readv,
        PROCESS_VM_WRITEV "process_vm_writev" = SYS_process_vm_writev,
        PSELECT6 "pselect6" = SYS_pselect6,
        PTRACE "ptrace" = SYS_ptrace,
        PWRITE64 "pwrite64" = SYS_pwrite64,
        READ "read" = SYS_read,
        READLINKAT "readlinkat" = SYS_readlinkat,
        READV "readv" = SYS_readv,
        REBOOT "reboot" = SYS_reboot,
        RECVFROM "recvfrom" = SYS_recvfrom,
        RECVMMSG "recvmmsg" = SYS_recvmmsg,
        RECVMSG "recvmsg" = SYS_recvmsg,
        RENAMEAT "renameat" = SYS_renameat,
        REQUEST_KEY "request_key" = SYS_request_key,
        RESTART_SYSCALL "restart_syscall" = SYS_restart_syscall,
        RSEQ "rseq" = SYS_rseq,
        RT_SIGACTION "rt_sigaction" = SYS_rt_sigaction,
        RT_SIGPROCMASK "rt_sigprocmask" = SYS_rt_sigprocmask,
        RT_SIGRETURN "rt_sigreturn" = SYS_rt_sigreturn,
        SCHED_GETAFFINITY "sched_getaffinity" = SYS_sched_getaffinity,
        SCHED_YIELD "sched_yield" = SYS_sched_yield,
        SECCOMP "seccomp" = SYS_seccomp,
        SENDFILE "sendfile" = SYS_sendfile,
        SENDMMSG "sendmmsg" = SYS_sendmmsg,
        SENDMSG "sendmsg" = SYS_sendmsg,
        SENDTO "sendto" = SYS_sendto,
        SETNS "setns" = SYS_setns,
        SETPRIORITY "setpriority" = SYS_setpriority,
        SETRESUID "setresuid" = SYS_setresuid,
        SETSOCKOPT "setsockopt" = SYS_setsockopt,
        SETUID "setuid" = SYS_setuid,
        SET_ROBUST_LIST "set_robust_list" = SYS_set_robust_list,
        SHUTDOWN "shutdown" = SYS_shutdown,
        SIGALTSTACK "sigaltstack" = SYS_sigaltstack,
        SOCKET "socket" = SYS_socket,
        SOCKETPAIR "socketpair" = SYS_socketpair,
        SPLICE "splice" = SYS_splice,
        STATFS "statfs" = SYS_statfs,
        STATX "statx" = SYS_statx,
        SYSINFO "sysinfo" = SYS_sysinfo,
        TGKILL "tgkill" = SYS_tgkill,
        TIMERFD_CREATE "timerfd_create" = SYS_timerfd_create,
        TIMERFD_SETTIME "timerfd_settime" = SYS_timerfd_settime,
        UMASK "umask" = SYS_umask,
        UMOUNT2 "umount2" = SYS_umount2,
        UNAME "uname" = SYS_uname,
        UNLINKAT "unlinkat" = SYS_unlinkat,
        UNSHARE "unshare" = SYS_unshare,
        USERFAULTFD "userfaultfd" = SYS_userfaultfd,
        WAIT4 "wait4" = SYS_wait4,
        WRITE "write" = SYS_write,
        WRITEV "writev" = SYS_writev,
    }
    x86_64 {
        ACCESS "access" = SYS_access,
        CHMOD "chmod" = SYS_chmod,
        EPOLL_WAIT "epoll_wait" = SYS_epoll_wait,
        FORK "fork" = SYS_fork,
        IOPERM "ioperm" = SYS_ioperm,
        IOPL "iopl" = SYS_iopl,
        LSTAT "lstat" = SYS_lstat,
        MKDIR "mkdir" = SYS_mkdir,
        MODIFY_LDT "modify_ldt" = SYS_modify_ldt,
        OPEN "open" = SYS_open,
        POLL "poll" = SYS_poll,
        READLINK "readlink" = SYS_readlink,
        SELECT "select" = SYS_select,
        STAT "stat" = SYS_stat,
        TIME "time" = SYS_time,
        UNLINK "unlink" = SYS_unlink,
        VFORK "vfork" = SYS_vfork,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_by_its_name_and_by_its_number() {
        for &call in Call::ALL {
            assert_eq!(Call::named(call.name), Some(call));
            if let Some(number) = call.number() {
                assert_eq!(Call::name_of(number), Some(call.name));
            }
        }
        assert_eq!(Call::name_of(i64::MAX), None);
    }
}
