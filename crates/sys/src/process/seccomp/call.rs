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
    (everywhere { $($number:ident as $name:ident),+ $(,)? } x86_64 { $($old_number:ident as $old:ident),+ $(,)? }) => {
        /// The calls that a filter, a table or a report names.
        #[expect(missing_docs, reason = "each is documented by its manual page")]
        impl Call {
            $(pub const $name: Call = Call { name: name(stringify!($number)), number: libc::$number };)+
            $(
                #[cfg(target_arch = "x86_64")]
                pub const $old: Call = Call { name: name(stringify!($old_number)), number: libc::$old_number };
                #[cfg(not(target_arch = "x86_64"))]
                pub const $old: Call = Call { name: name(stringify!($old_number)), number: ABSENT };
            )+

            pub const ALL: &'static [Call] = &[$(Call::$name,)+ $(Call::$old),+];
        }
    };
}

/// The name of a call: the constant of its number without `SYS_`.
const fn name(number: &'static str) -> &'static str {
    number.split_at("SYS_".len()).1
}

calls! {
    everywhere {
        SYS_accept as ACCEPT, SYS_accept4 as ACCEPT4, SYS_add_key as ADD_KEY, SYS_bind as BIND,
        SYS_bpf as BPF, SYS_brk as BRK, SYS_chdir as CHDIR, SYS_chroot as CHROOT,
        SYS_clock_getres as CLOCK_GETRES, SYS_clock_gettime as CLOCK_GETTIME,
        SYS_clock_nanosleep as CLOCK_NANOSLEEP, SYS_clone as CLONE, SYS_clone3 as CLONE3, SYS_close as CLOSE,
        SYS_connect as CONNECT, SYS_delete_module as DELETE_MODULE, SYS_dup as DUP, SYS_dup3 as DUP3,
        SYS_epoll_create1 as EPOLL_CREATE1, SYS_epoll_ctl as EPOLL_CTL, SYS_epoll_pwait as EPOLL_PWAIT,
        SYS_epoll_pwait2 as EPOLL_PWAIT2, SYS_eventfd2 as EVENTFD2, SYS_execve as EXECVE,
        SYS_execveat as EXECVEAT, SYS_exit as EXIT, SYS_exit_group as EXIT_GROUP, SYS_faccessat as FACCESSAT,
        SYS_faccessat2 as FACCESSAT2, SYS_fadvise64 as FADVISE64, SYS_fallocate as FALLOCATE,
        SYS_fchmod as FCHMOD, SYS_fchmodat as FCHMODAT, SYS_fchown as FCHOWN, SYS_fchownat as FCHOWNAT,
        SYS_fcntl as FCNTL, SYS_fdatasync as FDATASYNC, SYS_finit_module as FINIT_MODULE, SYS_flock as FLOCK,
        SYS_fstat as FSTAT, SYS_fstatfs as FSTATFS, SYS_fsync as FSYNC, SYS_ftruncate as FTRUNCATE,
        SYS_futex as FUTEX, SYS_getcpu as GETCPU, SYS_getcwd as GETCWD, SYS_getdents64 as GETDENTS64,
        SYS_getegid as GETEGID, SYS_geteuid as GETEUID, SYS_getgid as GETGID, SYS_getpeername as GETPEERNAME,
        SYS_getpid as GETPID, SYS_getppid as GETPPID, SYS_getpriority as GETPRIORITY,
        SYS_getrandom as GETRANDOM, SYS_getsockname as GETSOCKNAME, SYS_getsockopt as GETSOCKOPT,
        SYS_gettid as GETTID, SYS_gettimeofday as GETTIMEOFDAY, SYS_getuid as GETUID,
        SYS_init_module as INIT_MODULE, SYS_inotify_add_watch as INOTIFY_ADD_WATCH,
        SYS_inotify_init1 as INOTIFY_INIT1, SYS_inotify_rm_watch as INOTIFY_RM_WATCH, SYS_ioctl as IOCTL,
        SYS_io_uring_enter as IO_URING_ENTER, SYS_io_uring_register as IO_URING_REGISTER,
        SYS_io_uring_setup as IO_URING_SETUP, SYS_kcmp as KCMP, SYS_kexec_file_load as KEXEC_FILE_LOAD,
        SYS_kexec_load as KEXEC_LOAD, SYS_keyctl as KEYCTL, SYS_kill as KILL, SYS_listen as LISTEN,
        SYS_lseek as LSEEK, SYS_madvise as MADVISE, SYS_mkdirat as MKDIRAT, SYS_mmap as MMAP,
        SYS_mount as MOUNT, SYS_mprotect as MPROTECT, SYS_mremap as MREMAP, SYS_munmap as MUNMAP,
        SYS_name_to_handle_at as NAME_TO_HANDLE_AT, SYS_nanosleep as NANOSLEEP, SYS_newfstatat as NEWFSTATAT,
        SYS_openat as OPENAT, SYS_openat2 as OPENAT2, SYS_open_by_handle_at as OPEN_BY_HANDLE_AT,
        SYS_perf_event_open as PERF_EVENT_OPEN, SYS_personality as PERSONALITY,
        SYS_pidfd_getfd as PIDFD_GETFD, SYS_pipe2 as PIPE2, SYS_pivot_root as PIVOT_ROOT, SYS_ppoll as PPOLL,
        SYS_prctl as PRCTL, SYS_pread64 as PREAD64, SYS_preadv2 as PREADV2, SYS_prlimit64 as PRLIMIT64,
        SYS_process_madvise as PROCESS_MADVISE, SYS_process_vm_readv as PROCESS_VM_READV,
        SYS_process_vm_writev as PROCESS_VM_WRITEV, SYS_pselect6 as PSELECT6, SYS_ptrace as PTRACE,
        SYS_pwrite64 as PWRITE64, SYS_read as READ, SYS_readlinkat as READLINKAT, SYS_readv as READV,
        SYS_reboot as REBOOT, SYS_recvfrom as RECVFROM, SYS_recvmmsg as RECVMMSG, SYS_recvmsg as RECVMSG,
        SYS_renameat as RENAMEAT, SYS_request_key as REQUEST_KEY, SYS_restart_syscall as RESTART_SYSCALL,
        SYS_rseq as RSEQ, SYS_rt_sigaction as RT_SIGACTION, SYS_rt_sigprocmask as RT_SIGPROCMASK,
        SYS_rt_sigreturn as RT_SIGRETURN, SYS_sched_getaffinity as SCHED_GETAFFINITY,
        SYS_sched_yield as SCHED_YIELD, SYS_seccomp as SECCOMP, SYS_sendfile as SENDFILE,
        SYS_sendmmsg as SENDMMSG, SYS_sendmsg as SENDMSG, SYS_sendto as SENDTO, SYS_setns as SETNS,
        SYS_setpriority as SETPRIORITY, SYS_setresuid as SETRESUID, SYS_setsockopt as SETSOCKOPT,
        SYS_setuid as SETUID, SYS_set_robust_list as SET_ROBUST_LIST, SYS_shutdown as SHUTDOWN,
        SYS_sigaltstack as SIGALTSTACK, SYS_socket as SOCKET, SYS_socketpair as SOCKETPAIR,
        SYS_splice as SPLICE, SYS_statfs as STATFS, SYS_statx as STATX, SYS_sysinfo as SYSINFO,
        SYS_tgkill as TGKILL, SYS_timerfd_create as TIMERFD_CREATE, SYS_timerfd_settime as TIMERFD_SETTIME,
        SYS_umask as UMASK, SYS_umount2 as UMOUNT2, SYS_uname as UNAME, SYS_unlinkat as UNLINKAT,
        SYS_unshare as UNSHARE, SYS_userfaultfd as USERFAULTFD, SYS_wait4 as WAIT4, SYS_write as WRITE,
        SYS_writev as WRITEV,
    }
    x86_64 {
        SYS_access as ACCESS, SYS_chmod as CHMOD, SYS_epoll_wait as EPOLL_WAIT, SYS_fork as FORK,
        SYS_ioperm as IOPERM, SYS_iopl as IOPL, SYS_lstat as LSTAT, SYS_mkdir as MKDIR,
        SYS_modify_ldt as MODIFY_LDT, SYS_open as OPEN, SYS_poll as POLL, SYS_readlink as READLINK,
        SYS_select as SELECT, SYS_stat as STAT, SYS_time as TIME, SYS_unlink as UNLINK, SYS_vfork as VFORK,
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
