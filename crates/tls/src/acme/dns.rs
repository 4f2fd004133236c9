//! TXT records, set by a program of the user.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::error::AcmeError;

/// The bound of a call: the program waits until the record has reached all name servers.
pub(super) const TIMEOUT: Duration = Duration::from_secs(300);

/// A record that the program has set. Dropping it clears the record.
pub(super) struct TxtRecord<'a> {
    command: &'a Path,
    name: String,
    value: String,
}

impl TxtRecord<'_> {
    /// Sets the record that proves the control of `host`. A wildcard uses the record of its parent.
    pub(super) fn set<'a>(command: &'a Path, host: &str, value: String) -> Result<TxtRecord<'a>, AcmeError> {
        let host = host.strip_prefix("*.").unwrap_or(host);
        let record = TxtRecord { command, name: format!("_acme-challenge.{host}"), value };
        record.run("set", TIMEOUT)?;
        Ok(record)
    }

    /// Runs the program. Its error output goes to the log of this process.
    fn run(&self, action: &str, timeout: Duration) -> Result<(), AcmeError> {
        let failed = |why: String| {
            AcmeError::new(
                "change a DNS record",
                format!("{} {action} {}: {why}", self.command.display(), self.name),
            )
        };
        let mut child = Command::new(self.command)
            .args([action, &self.name, &self.value])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let deadline = Instant::now() + timeout;
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(failed(status.to_string())),
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(50)),
                Ok(None) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(failed(format!("it did not end within {} s", timeout.as_secs())));
                }
                Err(error) => return Err(failed(error.to_string())),
            }
        }
    }
}

impl Drop for TxtRecord<'_> {
    fn drop(&mut self) {
        // A record that stays is harmless: its value is valid for a single order.
        let _ = self.run("clear", TIMEOUT);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::sync::{Mutex, PoisonError};

    use super::*;
    use crate::state::scratch::ScratchState;

    /// A program started by one test inherits a file that another test writes, which then cannot be executed
    /// (`man 2 execve`, ETXTBSY).
    static SERIAL: Mutex<()> = Mutex::new(());

    fn program(scratch: &ScratchState, body: &str) -> PathBuf {
        let path = scratch.0.join("dns");
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("our own folder");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("our own file");
        path
    }

    #[test]
    fn a_record_is_set_and_cleared() {
        let _serial = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
        let scratch = ScratchState::new("dns");
        let log = scratch.0.join("log");
        let program = program(&scratch, &format!("echo \"$@\" >> {}", log.display()));
        let record = TxtRecord::set(&program, "*.example.org", "value".to_owned()).expect("it is set");
        let read = || fs::read_to_string(&log).expect("the program ran");
        assert_eq!(read(), "set _acme-challenge.example.org value\n");
        drop(record);
        assert!(read().ends_with("clear _acme-challenge.example.org value\n"));
    }

    #[test]
    fn a_program_that_fails_or_does_not_end_is_an_error() {
        let _serial = SERIAL.lock().unwrap_or_else(PoisonError::into_inner);
        let scratch = ScratchState::new("dns-failure");
        let failing = program(&scratch, "exit 3");
        let error = TxtRecord::set(&failing, "a.test", String::new()).err().expect("it fails").to_string();
        assert!(error.contains("dns set _acme-challenge.a.test: exit status: 3"), "{error}");
        let absent = scratch.0.join("absent");
        assert!(TxtRecord::set(&absent, "a.test", String::new()).is_err());
        let endless = program(&scratch, "exec sleep 600");
        let record = TxtRecord { command: &endless, name: "a".to_owned(), value: String::new() };
        let error = record.run("set", Duration::from_millis(100)).expect_err("it is killed").to_string();
        assert!(error.contains("it did not end within"), "{error}");
        fs::write(&endless, "#!/bin/sh\n").expect("our own file");
    }
}
