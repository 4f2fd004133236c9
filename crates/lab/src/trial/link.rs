//! The link between a client and the server: a TCP round trip, a transfer, and the network interface.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use crate::machine::environment::installed;
use crate::machine::hosts::{InterfaceFacts, LinkFacts};
use crate::trial::server::{PORTS, free_listener};

/// The connections of [`measure`].
pub(super) const CONNECTIONS: usize = 2;
/// The longest wait for a connection or for bytes.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest transfer.
const LONGEST: Duration = Duration::from_secs(30);
/// The round trips, of which the shortest counts.
const ROUND_TRIPS: u32 = 30;
/// The first byte of a connection that gets each byte back.
const ECHO: u8 = b'e';
/// The first byte of a connection that gets bytes until it closes.
const TRANSFER: u8 = b't';
/// The offloads that change the costs of a server.
const OFFLOADS: [&str; 6] = [
    "rx-checksumming",
    "tx-checksumming",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "large-receive-offload",
];

/// Serves the measurements of `clients` in a thread. Returns its address.
pub(super) fn listen(address: Ipv4Addr, clients: usize) -> Result<SocketAddr, String> {
    let opened = free_listener(address).and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = opened.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    thread::spawn(move || serve_all(&listener, clients * CONNECTIONS));
    Ok(address)
}

fn serve_all(listener: &TcpListener, count: usize) {
    for stream in listener.incoming().take(count).flatten() {
        // A failed connection is an error of its client.
        thread::spawn(move || serve(stream).ok());
    }
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let mut byte = [0];
    stream.read_exact(&mut byte)?;
    let (piece, until) = (vec![0; 256 << 10], Instant::now() + LONGEST);
    while Instant::now() < until {
        if byte[0] == TRANSFER {
            stream.write_all(&piece)?;
        } else {
            stream.write_all(&byte)?;
            stream.read_exact(&mut byte)?;
        }
    }
    Ok(())
}

/// Measures the link from this machine to a listener of [`listen`]. The listener sends, as servers do.
pub(super) fn measure(to: SocketAddr, time: Duration) -> Result<LinkFacts, String> {
    let connect = || {
        let stream = TcpStream::connect_timeout(&to, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    let failed = |error: io::Error| {
        let (first, last) = (PORTS.start(), PORTS.end());
        format!(
            "cannot reach {to}: {error}; name the address of the server that clients reach, and allow its ports \
             {first} to {last}"
        )
    };
    let (round_trip_us, megabytes) = transfer(connect, time).map_err(failed)?;
    let interface = match to {
        SocketAddr::V4(to) => interface(*to.ip()),
        SocketAddr::V6(_) => InterfaceFacts::default(),
    };
    Ok(LinkFacts { round_trip_us, megabytes, interface })
}

fn transfer(connect: impl Fn() -> io::Result<TcpStream>, time: Duration) -> io::Result<(f64, f64)> {
    let (mut stream, mut byte) = (connect()?, [ECHO]);
    let mut shortest = Duration::MAX;
    for _ in 0..ROUND_TRIPS {
        let begin = Instant::now();
        stream.write_all(&byte)?;
        stream.read_exact(&mut byte)?;
        shortest = shortest.min(begin.elapsed());
    }
    let mut stream = connect()?;
    stream.write_all(&[TRANSFER])?;
    let (begin, mut bytes, mut buffer) = (Instant::now(), 0, vec![0; 256 << 10]);
    while begin.elapsed() < time {
        match stream.read(&mut buffer)? {
            0 => break,
            count => bytes += count,
        }
    }
    Ok((shortest.as_secs_f64() * 1e6, bytes as f64 / 1e6 / begin.elapsed().as_secs_f64()))
}

/// The interface of this machine through which packets for `to` leave, or that has this address.
pub(super) fn interface(to: Ipv4Addr) -> InterfaceFacts {
    let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
    let name = if to.is_loopback() { Some("lo") } else { route(&routes, to) };
    let Some(name) = name else { return InterfaceFacts::default() };
    let folder = Path::new("/sys/class/net").join(name);
    let mtu = fs::read_to_string(folder.join("mtu")).unwrap_or_default();
    let driver = fs::read_link(folder.join("device/driver")).ok();
    let driver = driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    InterfaceFacts {
        name: name.to_owned(),
        mtu: mtu.trim().parse().unwrap_or_default(),
        driver: driver.unwrap_or_default(),
        offloads: offloads(name),
    }
}

/// The interface of the route with the longest mask for `to` (`man 5 proc`, `/proc/net/route`).
fn route(routes: &str, to: Ipv4Addr) -> Option<&str> {
    let fits = |line| {
        let fields: Vec<&str> = str::split_whitespace(line).collect();
        // The kernel prints addresses as numbers of the machine's byte order.
        let address = |at: usize| {
            u32::from_str_radix(fields.get(at)?, 16)
                .ok()
                .map(|number| u32::from_be_bytes(number.to_ne_bytes()))
        };
        let (network, mask) = (address(1)?, address(7)?);
        (u32::from(to) & mask == network).then_some((mask, *fields.first()?))
    };
    routes.lines().filter_map(fits).max_by_key(|(mask, _)| *mask).map(|(_, name)| name)
}

/// The offloads that are on; `None` if the program that knows is not installed.
fn offloads(interface: &str) -> Option<Vec<String>> {
    let output =
        Command::new(installed("ethtool")?).args(["-k", interface]).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_on = |name: &&&str| text.lines().any(|line| line.trim().starts_with(&format!("{name}: on")));
    output.status.success().then(|| OFFLOADS.iter().filter(is_on).map(|name| (*name).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_a_round_trip_and_a_rate() {
        let to = listen(Ipv4Addr::LOCALHOST, 1).expect("a port");
        let found = measure(to, Duration::from_millis(20)).expect("loopback");
        assert!(found.round_trip_us > 0.0 && found.megabytes > 0.0, "{found:?}");
        assert_eq!(found.interface.name, "lo");
        let closed =
            TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
        let said = measure(closed, Duration::from_millis(20)).expect_err("nobody listens");
        assert!(said.contains("ports 10000 to 11999"), "{said}");
    }

    #[test]
    fn the_longest_mask_selects_the_interface() {
        let hex = |address: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(address));
        let line = |name: &str, network, mask| {
            format!("{name} {} 00000000 0001 0 0 0 {} 0 0 0\n", hex(network), hex(mask))
        };
        let routes = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n".to_owned()
            + &line("eth0", [0, 0, 0, 0], [0, 0, 0, 0])
            + &line("eth1", [10, 9, 0, 0], [255, 255, 0, 0])
            + &line("eth2", [10, 9, 8, 0], [255, 255, 255, 0]);
        let of = |a, b, c, d| route(&routes, Ipv4Addr::new(a, b, c, d));
        assert_eq!(
            [of(10, 9, 8, 7), of(10, 9, 1, 1), of(8, 8, 8, 8)],
            [Some("eth2"), Some("eth1"), Some("eth0")]
        );
        assert_eq!(route("", Ipv4Addr::LOCALHOST), None);
    }
}
