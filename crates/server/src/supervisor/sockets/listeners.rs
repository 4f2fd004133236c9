//! The listening sockets. The supervisor keeps all of them open, so that queued connections survive a worker.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Instant;

use tenfold_sys::socket::{ListenAddress, ListenOptions, Listener};

use crate::config::resolve::ResolvedConfig;
use crate::config::values::Settings;
use crate::supervisor::sockets::activation::{NamedSocket, listen_on_passed};
use crate::supervisor::upgrade::handover::{self, Handover};

/// Listening sockets by process, and in each process by address.
pub(crate) struct Sockets {
    by_process: Vec<Vec<Listener>>,
    addresses: usize,
    /// Whether a service manager also has them open. Queued connections are then for the next server.
    passed: bool,
    /// The time at which they stop listening, if the server leaves.
    pub(crate) end: Option<Instant>,
}

impl Sockets {
    /// Binds a socket for each address, and for each process if processes have their own sockets.
    pub(crate) fn bind<'a>(
        addresses: impl Iterator<Item = &'a ListenAddress>,
        config: &ResolvedConfig,
    ) -> Result<Sockets, String> {
        Sockets::open(addresses, config, |address, workers| {
            bind_all(address, &config.options, workers).map_err(|error| explain(address, &error))
        })
    }

    /// Takes the sockets that a service manager passed, which match the addresses.
    pub(crate) fn adopt<'a>(
        mut passed: Vec<NamedSocket>,
        addresses: impl Iterator<Item = &'a ListenAddress>,
        config: &ResolvedConfig,
    ) -> Result<Sockets, String> {
        let sockets = Sockets::open(addresses, config, |address, workers| {
            let own = passed.extract_if(.., |named| named.socket.address() == address);
            let own = own.map(|named| named.socket.listen(&config.options)).collect::<io::Result<Vec<_>>>();
            let all = own.and_then(|own| match own.as_slice() {
                // Processes share a Unix socket.
                [only] if matches!(address, ListenAddress::Unix(_)) => share(only, workers),
                _ => Ok(own),
            });
            match all {
                Ok(all) if all.len() == workers => Ok(all),
                Ok(all) => Err(format!(
                    "topology {} needs {workers} sockets of {address}, and the service manager passed {}; set topology \
                     to threads",
                    config.plan.topology,
                    all.len()
                )),
                Err(error) => Err(format!("cannot listen on the passed socket of {address}: {error}")),
            }
        })?;
        Ok(Sockets { passed: true, ..sockets })
    }

    /// Opens `workers` sockets for each address, and gives them to processes.
    fn open<'a>(
        addresses: impl Iterator<Item = &'a ListenAddress>,
        config: &ResolvedConfig,
        mut open: impl FnMut(&ListenAddress, usize) -> Result<Vec<Listener>, String>,
    ) -> Result<Sockets, String> {
        let workers = config.plan.sockets_per_address();
        let mut sockets: Vec<Vec<Listener>> = (0..workers).map(|_| Vec::new()).collect();
        let mut count = 0;
        for address in addresses {
            count += 1;
            sockets.iter_mut().zip(open(address, workers)?).for_each(|(own, listener)| own.push(listener));
        }
        if config.plan.processes() == 1 {
            // The process has all sockets; those of its first thread come first.
            sockets = vec![sockets.into_iter().flatten().collect()];
        }
        Ok(Sockets { by_process: sockets, addresses: count, passed: false, end: None })
    }

    /// Takes the sockets of the former program of this process.
    pub(crate) fn inherit(handover: &Handover, config: &ResolvedConfig) -> Result<Sockets, String> {
        let per_address = config.plan.sockets_per_address();
        let processes = if config.plan.processes() == 1 { 1 } else { per_address };
        let by_process = (0..processes).map(|process| handover.listeners(&handover::site(process)));
        let by_process: Vec<Vec<Listener>> = by_process.collect::<Result<_, _>>()?;
        let count: usize = by_process.iter().map(Vec::len).sum();
        let addresses = count / per_address.max(1);
        if addresses == 0 || addresses * per_address != count {
            return Err(format!(
                "the former program has {count} sockets, which topology {} does not fit",
                config.plan.topology
            ));
        }
        Ok(Sockets { by_process, addresses, passed: handover.state.passed, end: None })
    }

    /// Sets `listen`, if it is not set, to the addresses of sockets that a service manager passed to the former program.
    pub(crate) fn fit(handover: &Handover, settings: &mut Settings) -> Result<(), String> {
        let sockets = handover.listeners(&handover::site(0))?;
        listen_on_passed(sockets.iter().map(Listener::address), settings)
    }

    /// The sockets of each process.
    pub(crate) fn by_process(&self) -> &[Vec<Listener>] {
        &self.by_process
    }

    /// Whether a service manager passed them.
    pub(crate) fn were_passed(&self) -> bool {
        self.passed
    }

    /// The actual addresses, with ports that the system chose.
    pub(crate) fn addresses(&self) -> Vec<ListenAddress> {
        self.by_process[0][..self.addresses].iter().map(|listener| listener.address().clone()).collect()
    }

    /// Takes the sockets of a process and closes the others.
    pub(crate) fn take(&mut self, place: usize) -> Vec<Listener> {
        let own = self.by_process.swap_remove(place);
        self.by_process.clear();
        own
    }

    /// Closes all of them, in a process that is not a worker.
    pub(crate) fn forget(&mut self) {
        self.by_process.clear();
    }

    /// Whether their connections may send without copying.
    pub(crate) fn permit_zerocopy(&self) -> bool {
        self.by_process.iter().flatten().all(Listener::permits_zerocopy)
    }

    /// Sets the pacing of later connections.
    pub(crate) fn pace(&self, max_rate: Option<u64>) -> Result<(), String> {
        let all = self.by_process.iter().flatten();
        let mut tcp = all.filter(|listener| matches!(listener.address(), ListenAddress::Internet(_)));
        let paced = tcp.try_for_each(|listener| listener.set_max_rate(max_rate));
        paced.map_err(|error| format!("cannot pace connections (max-rate): {error}"))
    }

    /// Stops listening, in all processes with these sockets, so that clients are refused and do not wait. Passed sockets
    /// stay open for the next server.
    pub(crate) fn shut_down(&self) {
        if self.passed {
            return;
        }
        self.by_process.iter().flatten().for_each(Listener::shut_down);
    }

    /// Removes the files of Unix sockets after listening has ended.
    pub(crate) fn remove_files(&self) {
        self.by_process.iter().flatten().for_each(Listener::remove_file);
    }
}

fn bind_all(address: &ListenAddress, options: &ListenOptions, processes: usize) -> io::Result<Vec<Listener>> {
    let ListenAddress::Internet(at) = address else {
        // A proxy in front usually has another user, so every user with access to the folder can connect.
        let first = Listener::bind_with_mode(0o666, address, options)?;
        // SO_REUSEPORT has no effect on them, so the processes share one socket.
        return share(&first, processes);
    };
    if options.reuse_port {
        // Another process with SO_REUSEPORT would silently share the address.
        Listener::expect_free(at, options)?;
    }
    let mut all = vec![Listener::bind(address, options)?];
    while all.len() < processes {
        let same = all[0].address().clone();
        all.push(Listener::bind(&same, options)?);
    }
    Ok(all)
}

/// Handles to the same socket, one for each process.
fn share(listener: &Listener, processes: usize) -> io::Result<Vec<Listener>> {
    (0..processes).map(|_| listener.duplicate()).collect()
}

pub(crate) fn explain(address: &ListenAddress, error: &io::Error) -> String {
    let automatic = match (error.kind(), address) {
        (ErrorKind::AddrInUse, ListenAddress::Internet(_)) => " (`--port auto` takes a free port)",
        _ => "",
    };
    format!("cannot listen on {address}: {}{automatic}", remedy(address, error))
}

/// Returns the reason why an address cannot be bound, and the remedy.
pub(crate) fn remedy(address: &ListenAddress, error: &io::Error) -> String {
    match (error.kind(), address) {
        (ErrorKind::AddrInUse, ListenAddress::Unix(_)) => {
            "a file or another server has this name: remove the file, stop that server, or choose another path".into()
        }
        (ErrorKind::AddrInUse, _) => {
            "the address is in use: stop the process that has it, or listen on another address".into()
        }
        (ErrorKind::PermissionDenied, ListenAddress::Internet(at)) if at.port() < 1024 => format!(
            "port {} requires root: start as root (workers drop privileges), give the program \
             CAP_NET_BIND_SERVICE, or use a port above 1023",
            at.port()
        ),
        (ErrorKind::AddrNotAvailable, ListenAddress::Internet(at)) => {
            format!(
                "{} is not an address of this machine; {} means all of its addresses",
                at.ip(),
                everything(at)
            )
        }
        _ => error.to_string(),
    }
}

fn everything(at: &SocketAddr) -> &'static str {
    if at.is_ipv4() { "0.0.0.0" } else { "[::]" }
}
