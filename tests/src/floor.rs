//! The floor programs of `bench/`: servers that make only the required system calls.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;

use crate::address::ReservedAddress;
use crate::binary;
use crate::process::Process;
use crate::time::{SOON, eventually};
use crate::tools;

/// A floor program that runs until this value is dropped.
#[derive(Debug)]
pub struct Floor {
    child: Child,
    /// Its address.
    pub address: ReservedAddress,
}

impl Floor {
    /// Compiles `bench/null_uring.c` and starts it.
    #[track_caller]
    pub fn uring() -> Floor {
        let source = binary::workspace().join("bench/null_uring.c");
        let program = binary::target().join("suite-null_uring");
        let mut compiler = Command::new(tools::program("gcc"));
        let output = compiler.arg("-O2").arg(&source).arg("-o").arg(&program).arg("-luring").output();
        let output = output.expect("gcc runs");
        let said = String::from_utf8_lossy(&output.stderr);
        let hint = "`cargo xtask setup` installs liburing-dev";
        assert!(output.status.success(), "null_uring does not compile ({hint}): {said}");
        let address = ReservedAddress::new();
        let mut command = Command::new(&program);
        command.arg(address.port().to_string()).stdin(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| panic!("run {}: {error}", program.display()));
        eventually(SOON, "null_uring listens", || TcpStream::connect(*address).ok());
        Floor { child, address }
    }

    /// Its process.
    pub fn process(&self) -> Process {
        Process(self.child.id())
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        self.process().signal(Signal::KILL);
        let _ = self.child.wait();
    }
}
