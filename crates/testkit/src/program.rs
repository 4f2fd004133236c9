//! Programs under test: their start, their output, and their end.

use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::Signal;

use crate::process::Process;
use crate::time::{SOON, eventually, lock};

/// Runs the command to its end. Ends it if it uses much processor time.
#[track_caller]
pub fn run(command: &mut Command) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("run {command:?}: {error}"));
    let process = Process(child.id());
    let (out, err) = (Arc::new(Mutex::new(String::new())), Arc::new(Mutex::new(String::new())));
    let out_reader = collect(child.stdout.take().expect("its standard output is a pipe"), out.clone());
    let err_reader = collect(child.stderr.take().expect("its standard error is a pipe"), err.clone());
    let status = eventually(SOON, &format!("{command:?} ends"), || {
        let ended = child.try_wait().expect("our own child");
        if ended.is_none() && process.processor_time() > SOON {
            process.signal(Signal::KILL);
        }
        ended
    });
    out_reader.join().expect("the reader does not panic");
    err_reader.join().expect("the reader does not panic");
    Output { status, stdout: lock(&out).clone().into_bytes(), stderr: lock(&err).clone().into_bytes() }
}

/// Appends what `from` yields to `into`, on a thread that ends with it.
pub fn collect(mut from: impl Read + Send + 'static, into: Arc<Mutex<String>>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            lock(&into).push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
    })
}
