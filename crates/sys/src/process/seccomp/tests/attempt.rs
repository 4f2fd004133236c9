//! System calls that a filter may refuse, for tests.

use std::io;

use super::Call;

/// Reads memory that is not mapped, for tests of processes with filters.
pub fn fault() {
    let nothing = std::hint::black_box(std::ptr::dangling::<u8>());
    // SAFETY: the first page of memory is never mapped (`vm.mmap_min_addr`), so the read raises SIGSEGV and returns
    // nothing.
    let _ = unsafe { nothing.read_volatile() };
}

/// Makes `call` although a filter may refuse it, for tests of filters. Its arguments are invalid or harmless; `getpid`
/// uses the number of another system call table.
///
/// # Errors
/// The error of the system call: EPERM from a filter, otherwise that of the invalid arguments.
pub fn attempt(call: Call) -> io::Result<()> {
    const ON_NOTHING: [Call; 15] = [
        Call::ACCEPT4,
        Call::BIND,
        Call::CONNECT,
        Call::EPOLL_PWAIT,
        Call::EPOLL_WAIT,
        Call::EXECVE,
        Call::IO_URING_ENTER,
        Call::IO_URING_SETUP,
        Call::LISTEN,
        Call::PROCESS_VM_READV,
        Call::PSELECT6,
        Call::PTRACE,
        Call::SECCOMP,
        Call::SELECT,
        Call::UNSHARE,
    ];
    let result = match (call, call.number()) {
        // CLONE_SIGHAND without CLONE_VM is invalid, so neither a thread nor a process is created.
        (Call::CLONE, Some(number)) => {
            // SAFETY: the kernel refuses these flags with EINVAL, so nothing is cloned.
            unsafe { libc::syscall(number, libc::CLONE_SIGHAND, 0, 0, 0, 0, 0) }
        }
        (Call::POLL, Some(number)) => {
            // SAFETY: the kernel waits a millisecond for no descriptors, and accesses no memory of ours.
            unsafe { libc::syscall(number, 0, 0, 1, 0, 0, 0) }
        }
        (Call::SENDTO, Some(number)) => {
            // SAFETY: there is no such descriptor, so nothing is sent.
            unsafe { libc::syscall(number, -1, 0, 0, libc::MSG_FASTOPEN, 0, 0) }
        }
        (Call::SOCKETPAIR, Some(number)) => {
            // SAFETY: the kernel has no address for the descriptors, and fails with EFAULT.
            unsafe { libc::syscall(number, libc::AF_UNIX, libc::SOCK_DGRAM, 0, 0) }
        }
        (Call::SETSOCKOPT, Some(number)) => {
            let option = libc::SO_ATTACH_REUSEPORT_CBPF;
            // SAFETY: there is no such descriptor.
            unsafe { libc::syscall(number, -1, libc::SOL_SOCKET, option, 0, 0) }
        }
        (Call::FCNTL, Some(number)) => {
            // SAFETY: there is no such descriptor.
            unsafe { libc::syscall(number, -1, libc::F_SETOWN, 1) }
        }
        (Call::PPOLL, Some(number)) => {
            // SAFETY: the kernel reads three entries at address zero, and fails with EFAULT.
            unsafe { libc::syscall(number, 0, 3, 0, 0, 0, 0) }
        }
        (Call::KILL, Some(number)) => {
            let own = rustix::process::getpid().as_raw_nonzero().get();
            // SAFETY: this process ignores the signal, and no memory is passed.
            unsafe { libc::syscall(number, own, libc::SIGURG) }
        }
        (Call::TGKILL, Some(number)) => {
            let parent = rustix::process::getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
            // SAFETY: no memory is passed. The parent of this process ends if no filter refuses it.
            unsafe { libc::syscall(number, parent, parent, libc::SIGABRT) }
        }
        (Call::FORK, _) => {
            // SAFETY: the child does nothing but end.
            match unsafe { libc::fork() } {
                // SAFETY: the call does not return, and runs nothing of ours.
                0 => unsafe { libc::_exit(0) },
                number => number.into(),
            }
        }
        #[cfg(target_arch = "x86_64")]
        (Call::GETPID, Some(number)) => {
            // SAFETY: the call of the x32 table (`__X32_SYSCALL_BIT`) returns a number, or does not exist.
            unsafe { libc::syscall(number | 0x4000_0000) }
        }
        (Call::RT_SIGACTION, _) => {
            // SAFETY: the signal keeps its default action, and is never sent.
            if unsafe { libc::signal(libc::SIGUSR2, libc::SIG_DFL) } == libc::SIG_ERR { -1 } else { 0 }
        }
        (call, Some(number)) if ON_NOTHING.contains(&call) => {
            // SAFETY: without descriptor, length and address, these calls access no memory of ours.
            unsafe { libc::syscall(number, 0, 0, 0, 0, 0, 0) }
        }
        _ => return Err(io::Error::other(format!("no test makes the call {call}"))),
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
