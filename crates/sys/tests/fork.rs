//! A fork concerns a whole process, so this one runs without a harness and its threads.

use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use tenfold_sys::asio::IoContext;
use tenfold_sys::messages;
use tenfold_sys::process::{Fork, close_aside, fork, reap};
use tenfold_sys::uring::{Ring, Sizes};

fn main() {
    h88_memory_that_the_kernel_addresses_is_not_forked();
    println!("h88_memory_that_the_kernel_addresses_is_not_forked ... ok");
    h79_a_queued_socket_whose_close_waits_holds_nobody_up();
    println!("h79_a_queued_socket_whose_close_waits_holds_nobody_up ... ok");
}

fn h79_a_queued_socket_whose_close_waits_holds_nobody_up() {
    const LINGER: Duration = Duration::from_secs(60);
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let _silent = TcpStream::connect(listener.local_addr().expect("it listens")).expect("it is accepted");
    let (mut sender, _) = listener.accept().expect("there is one");
    rustix::net::sockopt::set_socket_linger(&sender, Some(LINGER)).expect("a socket has it");
    sender.set_nonblocking(true).expect("a socket has it");
    let full = std::iter::repeat_with(|| sender.write(&[0; 65536])).find_map(Result::err);
    assert_eq!(full.expect("nobody reads").kind(), ErrorKind::WouldBlock);
    sender.set_nonblocking(false).expect("a socket has it");
    let (worker, signer) = messages::pair().expect("descriptors");
    messages::send(&worker, b"?", &[sender.as_fd()]).expect("there is room");
    // The queue has it still.
    drop(sender);
    let begun = Instant::now();
    close_aside((worker, signer));
    assert!(begun.elapsed() < LINGER / 2, "{:?}", begun.elapsed());
}

fn h88_memory_that_the_kernel_addresses_is_not_forked() {
    let sizes = Sizes { submissions: 16, completions: 32, buffers: 4, buffer_bytes: 256 };
    let ring = Ring::new(sizes).expect("this kernel has io_uring");
    refused("io_uring");
    drop(ring);
    forked();
    if let Ok(context) = IoContext::new() {
        refused("Asio");
        drop(context);
        forked();
    }
}

fn refused(name: &str) {
    match fork() {
        Ok(Fork::Child) => std::process::exit(0),
        Ok(Fork::Parent(_)) => panic!("a process with {name} was forked"),
        Err(error) => assert!(error.to_string().contains(name), "{error}"),
    }
}

fn forked() {
    match fork().expect("this process has one thread and nothing that the kernel finds by address") {
        Fork::Child => std::process::exit(0),
        Fork::Parent(child) => {
            let ended = std::iter::repeat_with(|| reap().expect("it has a child")).flatten().next();
            assert_eq!(ended.map(|(process, _)| process), Some(child));
        }
    }
}
