//! The system calls of a model as data: printed as prose by `tenfold engines`, allowed by the sandbox.

use std::fmt;

use tenfold_sys::seccomp::Call;

/// One step of a connection's life: the system call that takes it, or the alternatives.
#[derive(Debug)]
pub struct Step {
    /// The alternatives.
    pub calls: &'static [Call],
    /// When, or how often.
    pub note: &'static str,
}

/// Steps as prose: `epoll_wait, accept4, recv, send or sendfile, epoll_ctl once a connection, close`.
#[derive(Debug)]
pub struct Steps(pub &'static [Step]);

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.0.iter().enumerate() {
            let mut names: Vec<_> = step.calls.iter().map(|call| function(*call)).collect();
            names.dedup();
            let comma = if place == 0 { "" } else { ", " };
            let blank = if step.note.is_empty() { "" } else { " " };
            write!(f, "{comma}{}{blank}{}", names.join(" or "), step.note)?;
        }
        Ok(())
    }
}

/// The C library's function for a system call, as the manual pages name it.
fn function(call: Call) -> String {
    match call {
        Call::EPOLL_PWAIT | Call::EPOLL_PWAIT2 => "epoll_wait".into(),
        Call::PSELECT6 => "select".into(),
        Call::RECVFROM => "recv".into(),
        Call::SENDTO => "send".into(),
        Call::PREAD64 => "pread".into(),
        other => other.to_string(),
    }
}

pub(super) const fn step(calls: &'static [Call]) -> Step {
    Step { calls, note: "" }
}

pub(super) const fn noted(calls: &'static [Call], note: &'static str) -> Step {
    Step { calls, note }
}

pub(super) const ACCEPT: Step = step(&[Call::ACCEPT4]);
pub(super) const RECEIVE: Step = step(&[Call::RECVFROM]);
pub(super) const SEND: Step = step(&[Call::WRITE, Call::SENDFILE]);
pub(super) const CLOSE: Step = step(&[Call::CLOSE]);
/// `epoll_wait`, and the system calls that the C library and rustix use for it.
pub(super) const EPOLL: &[Call] = &[Call::EPOLL_WAIT, Call::EPOLL_PWAIT, Call::EPOLL_PWAIT2];

/// The waits of libevent's methods.
pub(super) const BY_METHOD: &[Call] =
    &[Call::EPOLL_WAIT, Call::EPOLL_PWAIT, Call::EPOLL_PWAIT2, Call::POLL, Call::PSELECT6];
