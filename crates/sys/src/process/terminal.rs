//! Terminals: typed characters that are hidden, and the size.

use std::io;
use std::os::fd::AsFd;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Hides typed characters except the newline; dropping it restores the terminal.
#[derive(Debug)]
pub struct Hidden(Termios);

impl Hidden {
    /// Starts hiding input, and discards earlier input.
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

/// The columns and rows of a terminal (`man 2 TIOCGWINSZ`). `None` for other files and for a terminal without a size.
pub fn size(terminal: impl AsFd) -> Option<(usize, usize)> {
    let size = tcgetwinsize(terminal).ok()?;
    Some((usize::from(size.ws_col), usize::from(size.ws_row))).filter(|(columns, rows)| columns * rows > 0)
}
