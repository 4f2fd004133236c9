//! The terminal that standard input is.

use std::io;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Hides the line that is typed, but for its end; the terminal is as it was when this is dropped.
#[derive(Debug)]
pub struct Hidden(Termios);

impl Hidden {
    /// Begins to hide what is typed, and drops what was typed before.
    ///
    /// # Errors
    /// What `tcgetattr(3)` and `tcsetattr(3)` say.
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
