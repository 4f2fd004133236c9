//! The order in which the kernel ends processes when memory runs out (`man 5 proc_pid_oom_score_adj`).

use std::fs::File;
use std::io::{self, Read, Write};

use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};

/// The greatest adjustment.
const GREATEST: i32 = 1000;

/// Makes the kernel end this process rather than its parent when memory runs out: raises the adjustment by `thousandths`
/// of the memory of the machine or group. Raising it needs no privilege.
///
/// # Errors
/// The error of the system: `/proc` is not mounted, or a sandbox refuses the file.
pub fn offer(thousandths: i32) -> io::Result<()> {
    let mut file = open_own()?;
    // A sign, four digits and a newline.
    let mut text = [0; 6];
    let length = file.read(&mut text)?;
    let text = std::str::from_utf8(&text[..length]).map_err(io::Error::other)?;
    let before: i32 = text.trim().parse().map_err(io::Error::other)?;
    file.write_all((before + thousandths).min(GREATEST).to_string().as_bytes())
}

/// While the memory of this process is hidden, root owns its files in `/proc`. So the memory is visible during the open.
fn open_own() -> io::Result<File> {
    let open = || File::options().read(true).write(true).open("/proc/self/oom_score_adj");
    match (open(), dumpable_behavior()?) {
        (Err(error), DumpableBehavior::NotDumpable) if error.kind() == io::ErrorKind::PermissionDenied => {
            set_dumpable_behavior(DumpableBehavior::Dumpable)?;
            let opened = open();
            set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
            opened
        }
        (opened, _) => opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::alone::alone;

    #[test]
    fn a_process_with_hidden_memory_offers_itself_and_stays_hidden() {
        alone(module_path!(), "a_process_with_hidden_memory_offers_itself_and_stays_hidden", || {
            let adjustment = || {
                let text = std::fs::read_to_string("/proc/self/oom_score_adj").expect("there is /proc");
                text.trim().parse::<i32>().expect("a number")
            };
            let before = adjustment();
            crate::process::hide_memory().expect("the kernel can");
            offer(100).expect("it needs no privilege");
            assert_eq!(adjustment(), (before + 100).min(GREATEST));
            offer(GREATEST).expect("it needs no privilege");
            assert_eq!(adjustment(), GREATEST);
            assert_eq!(dumpable_behavior(), Ok(DumpableBehavior::NotDumpable));
        });
    }
}
