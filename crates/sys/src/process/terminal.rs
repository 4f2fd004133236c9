//! The terminal on standard input.

use std::io;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Hides typed characters except the newline; dropping it restores the terminal.
#[derive(Debug)]
pub struct Hidden(Termios);

impl Hidden {
    /// Starts hiding input, and discards earlier input.
    ///
    /// # Errors
    /// The error of `tcgetattr(3)` and `tcsetattr(3)`.
    pub fn begin() -> io::Result<Hidden> {
        let before = tcgetattr(io::stdin())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        quiet.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(io::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Hidden(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // If the terminal is gone, there is nothing to restore.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}
