//! Socket activation: listening sockets that a service manager opened (`man 3 sd_listen_fds`). They must match `listen`,
//! or are its value if it is not set.

use tenfold_sys::process;
use tenfold_sys::socket::{ListenAddress, PassedSocket};

use crate::config::values::Settings;
use crate::diagnostics::info;

/// The most sockets that are taken.
const MOST: u16 = 1024;

/// A socket, and its name in the unit of the service manager (`FileDescriptorName=`).
#[derive(Debug)]
pub(crate) struct NamedSocket {
    pub(crate) socket: PassedSocket,
    name: String,
}

/// Takes the sockets that were passed to this process.
pub(crate) fn take() -> Result<Vec<NamedSocket>, String> {
    let variable = |name| std::env::var(name).ok();
    let own = process::own().as_raw_nonzero().get();
    let count = count(variable("LISTEN_PID").as_deref(), variable("LISTEN_FDS").as_deref(), own)?;
    let names = variable("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let named = |place| {
        let name = names.next().unwrap_or_default().to_owned();
        match PassedSocket::take(place) {
            Ok(socket) => Ok(NamedSocket { socket, name }),
            Err(error) => Err(format!(
                "cannot use the descriptor {} ({name}) that the service manager passed: {error}",
                place + 3
            )),
        }
    };
    (0..count).map(named).collect()
}

/// The number of sockets for the process `own`. A process inherits the variables of its parent, so another number in
/// `LISTEN_PID` means that it has no sockets.
fn count(pid: Option<&str>, count: Option<&str>, own: i32) -> Result<u16, String> {
    let (Some(pid), Some(count)) = (pid, count) else { return Ok(0) };
    let number: i32 =
        pid.parse().map_err(|_| format!("LISTEN_PID is {pid:?}, which is not a process; unset it"))?;
    if number != own {
        return Ok(0);
    }
    match count.parse() {
        Ok(count) if count <= MOST => Ok(count),
        _ => Err(format!("LISTEN_FDS is {count:?}, which is not a number from 0 to {MOST}; unset it")),
    }
}

/// Matches passed sockets to `listen`. If that is not set, they become its value.
pub(crate) fn fit(passed: &[NamedSocket], settings: &mut Settings) -> Result<(), String> {
    if passed.is_empty() {
        return Ok(());
    }
    listen_on_passed(passed.iter().map(|named| named.socket.address()), settings)?;
    let strange = passed.iter().find(|named| settings.addresses().all(|at| at != named.socket.address()));
    if let Some(NamedSocket { socket, name }) = strange {
        return Err(format!(
            "the service manager passed {} (descriptor {}, {name}), which is not in listen; add it there, or remove it \
             from the socket unit",
            socket.address(),
            socket.number()
        ));
    }
    let absent = settings.addresses().find(|at| passed.iter().all(|named| named.socket.address() != *at));
    match absent {
        Some(address) => Err(format!(
            "listen has {address}, and the service manager passed no socket for it; add ListenStream={} to the socket \
             unit, or remove the address from listen",
            address.to_string().trim_start_matches("unix:")
        )),
        None => {
            info!("the listening sockets come from the service manager, and stay open when this server ends");
            Ok(())
        }
    }
}

/// Sets `listen` to these addresses of passed sockets, if it is not set.
pub(crate) fn listen_on_passed<'a>(
    addresses: impl Iterator<Item = &'a ListenAddress>,
    settings: &mut Settings,
) -> Result<(), String> {
    if !settings.is_explicit("listen") {
        settings.listen_on(unique(addresses))?;
    }
    settings.passed = true;
    Ok(())
}

fn unique<'a>(addresses: impl Iterator<Item = &'a ListenAddress>) -> Vec<ListenAddress> {
    let mut found = Vec::new();
    for address in addresses {
        if !found.contains(address) {
            found.push(address.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_for_the_process_that_is_named() {
        assert_eq!(count(Some("77"), Some("2"), 77), Ok(2));
        assert_eq!(count(Some("77"), Some("2"), 78), Ok(0), "they were for the parent");
        assert_eq!(count(None, Some("2"), 77), Ok(0));
        assert_eq!(count(Some("77"), None, 77), Ok(0));
        for (pid, sockets, why) in [("x", "1", "LISTEN_PID is \"x\""), ("77", "-1", "LISTEN_FDS is \"-1\"")] {
            let problem = count(Some(pid), Some(sockets), 77).expect_err(why);
            assert!(problem.starts_with(why), "{problem}");
        }
        assert!(count(Some("77"), Some("1025"), 77).is_err());
    }
}
