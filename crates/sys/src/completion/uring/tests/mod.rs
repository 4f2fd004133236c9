//! A ring on sockets of this process, one file for each topic.

mod held;
mod operations;
mod queues;
mod slots;
mod spoiled;

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::faults::{Faults, InjectedFault};
use super::*;
use crate::memory::mapping::{Mapped, Mapping};
use crate::net::socket::Socket;

const SMALL: Sizes = Sizes { submissions: 16, completions: 32, buffers: 4, buffer_bytes: 256 };

fn ring() -> Ring {
    Ring::restricted(SMALL).expect("this kernel has io_uring")
}

/// A peer, and the socket of the ring.
fn pair() -> (UnixStream, Socket) {
    let (peer, ours) = UnixStream::pair().expect("there are descriptors");
    ours.set_nonblocking(true).expect("a mode of a socket");
    (peer, OwnedFd::from(ours).into())
}

/// Waits until `count` completions have come.
fn completions(ring: &mut Ring, count: usize) -> Vec<RingCompletion> {
    let (begun, mut all) = (Instant::now(), Vec::new());
    while all.len() < count {
        assert!(begun.elapsed() < Duration::from_secs(20), "{} of {count} completions came", all.len());
        let mut some = Vec::new();
        ring.wait(Some(Duration::from_millis(100)), &mut some).expect("a ring can be waited for");
        all.append(&mut some);
    }
    assert_eq!(all.len(), count);
    all
}

fn one(ring: &mut Ring) -> RingCompletion {
    completions(ring, 1).remove(0)
}

fn nothing_comes(ring: &mut Ring) {
    let mut some = Vec::new();
    ring.wait(Some(Duration::from_millis(50)), &mut some).expect("a ring can be waited for");
    assert!(some.is_empty());
}

/// Creates a ring with these faults.
fn faulty_ring(faults: &[InjectedFault]) -> Ring {
    // Rings that other tests create meanwhile would get them too.
    let mut ring = ring();
    ring.faults = Faults::of(faults);
    ring
}

/// A TCP peer, and the socket of the ring.
fn internet_pair() -> (TcpStream, Socket) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let peer = TcpStream::connect(listener.local_addr().expect("it is bound")).expect("it listens");
    let (ours, _) = listener.accept().expect("somebody connects");
    ours.set_nonblocking(true).expect("a mode of a socket");
    (peer, OwnedFd::from(ours).into())
}

fn mapped(name: &str, length: usize) -> (File, Arc<Mapping>, Vec<u8>) {
    let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
    let path = std::env::temp_dir().join(format!("tenfold-ring-{name}-{}", std::process::id()));
    std::fs::write(&path, &content).expect("a folder for temporary files");
    let file = File::options().read(true).write(true).open(&path).expect("it was just written");
    std::fs::remove_file(&path).expect("it is ours");
    let mapping = Mapping::new(&file, 0..length as u64).expect("a file of ours can be mapped");
    (file, Arc::new(mapping), content)
}

fn part(mapping: &Arc<Mapping>, range: Range<u64>) -> Bytes {
    Bytes::Mapped(Mapped { mapping: mapping.clone(), range })
}
