//! The warden of a task: the process that ends it with all processes below it.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tenfold_sys::process::{self, Fork, Pid, WaitStatus};
use tenfold_sys::signal::Signal;
use tenfold_sys::{lifecycle, wait};

use crate::agent::task::{Task, TaskPipe};
use crate::message::{Report, SILENCE};

/// The interval of the signs of life between an agent and its warden.
pub(super) const BEAT: Duration = Duration::from_millis(500);
/// The longest wait for killed processes.
pub(super) const LAST: Duration = Duration::from_secs(5);

/// A sign of life.
pub(super) const ALIVE: u8 = b'.';
/// From the agent: send SIGINT to the task.
pub(super) const INTERRUPT: u8 = b'i';
/// From the agent: kill the task.
pub(super) const END: u8 = b'e';
/// From the warden: the rest is the way in which the task ended; empty after exit code 0.
pub(super) const ENDED: u8 = b'=';

/// The task of a warden, and its sockets.
pub(super) struct Watch {
    pub(super) task: Task,
    pub(super) limit: Duration,
    /// The connection of the task with the agent.
    pub(super) data: UnixStream,
    /// The connection of the warden with the agent.
    pub(super) control: UnixStream,
    pub(super) agent: Pid,
}

/// Runs the task in a child of this process, and exits after it.
pub(super) fn run(watch: Watch) -> ! {
    let Watch { task, limit, data, mut control, agent } = watch;
    let own = process::own();
    // A stopped warden continues when its agent is killed, and then ends the task.
    let _ = process::end_with(agent, Signal::Continue);
    // The controller kills the group of the agent; the warden must survive it.
    let prepared = process::leave_group().and_then(|()| process::leave_streams());
    let prepared = prepared.and_then(|()| process::adopt_orphans());
    let how = match prepared.and_then(|()| process::fork()) {
        Err(error) => format!("cannot be started: {error}"),
        Ok(Fork::Child) => {
            drop(control);
            // If both the agent and the warden are stopped, nothing else ends the task.
            process::end_after(limit + SILENCE);
            // Without its warden, nothing would end the task.
            let alive = process::end_with(own, Signal::Kill).unwrap_or(true);
            std::process::exit(if alive { work(task, data) } else { 1 });
        }
        Ok(Fork::Parent(child)) => {
            drop(data);
            let how = watch_over(child, &mut control, agent, limit);
            process::end_descendants(LAST);
            how
        }
    };
    let mut said = vec![ENDED];
    said.extend_from_slice(how.as_bytes());
    // The agent may be gone.
    let _ = control.write_all(&said);
    std::process::exit(0)
}

fn work(task: Task, data: UnixStream) -> i32 {
    lifecycle::reset();
    let mut pipe = TaskPipe::new(data);
    match task(&mut pipe) {
        Ok(()) => 0,
        Err(why) => {
            let _ = pipe.report(&Report::Failed(why.into()));
            1
        }
    }
}

/// Waits until the task or its time ends. Returns the way in which it ended.
fn watch_over(task: Pid, control: &mut UnixStream, agent: Pid, limit: Duration) -> String {
    let until = Instant::now() + limit;
    let mut heard = Instant::now();
    let mut buffer = [0; 256];
    let _ = control.set_nonblocking(true);
    loop {
        // A signal shortens the wait, which is harmless.
        let _ = wait::for_input(&[control.as_fd()], Some(BEAT));
        match control.read(&mut buffer) {
            Ok(0) => return "was ended, because its agent ended".to_owned(),
            Ok(count) => {
                heard = Instant::now();
                for byte in &buffer[..count] {
                    match *byte {
                        INTERRUPT => process::send_signal(task, Signal::Interrupt),
                        END => return String::new(),
                        _ => {}
                    }
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return format!("was ended: its agent cannot be read: {error}"),
        }
        // Orphans of the task are reaped here as well.
        while let Ok(Some((child, status))) = process::reap() {
            if child == task {
                return if status == WaitStatus::Exited(0) { String::new() } else { status.to_string() };
            }
        }
        if Instant::now() > until {
            return format!("was ended after its {} s", limit.as_secs());
        }
        if heard.elapsed() > SILENCE {
            // A stopped agent cannot end itself. Its number belongs to another process if it is no longer the parent.
            let own = process::own().as_raw_nonzero().get();
            if process::parent(own.unsigned_abs()) == Some(agent.as_raw_nonzero().get().unsigned_abs()) {
                process::send_signal(agent, Signal::Kill);
            }
            return "was ended, because its agent stopped".to_owned();
        }
        let _ = control.write(&[ALIVE]);
    }
}
